"""Code that is not compiled yet: another process compiles it, and other code answers meanwhile.

A job is a name in `hetero_bfs.warm_up.JOBS`. At the first call that needs the code of a job which
is not stored, one process starts, at low priority. It compiles this job and then the others, and
stores them (code_cache.py). It may outlive this one, so that short programs get compiled code, too.

`HETERO_BFS_COMPILING` changes this: `wait` compiles before it answers, and `quiet` omits the line
on stderr that says that compiling takes long. Both may be given, with a comma between them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

from hetero_bfs.errors import ArgumentError
from hetero_bfs.support import private_cache
from hetero_bfs.support.code_cache import was_compiled
from hetero_bfs.support.processes import module_command, module_environment

VARIABLE = "HETERO_BFS_COMPILING"
MODULE = "hetero_bfs.warm_up"
_WAYS = {"wait", "quiet"}

_LONGEST_SECONDS = 10.0
"""Longest answer by other code: compiling a job takes no longer, 0.5 to 10 s on 2 cores."""

_lock = threading.Lock()
_ready: set[str] = set()
_asked: set[str] = set()
_process: subprocess.Popen[bytes] | None = None


def ways() -> set[str]:
    """Return the words of `HETERO_BFS_COMPILING`; raise `ArgumentError` for an unknown one."""
    given = set(os.environ.get(VARIABLE, "").replace(",", " ").split())
    if not given <= _WAYS:
        raise ArgumentError(
            f"the environment variable {VARIABLE} is {os.environ[VARIABLE]!r}; give wait, quiet or "
            "both, or unset it"
        )
    return given


def is_cold(job: str, other_seconds: float = 0.0) -> bool:
    """Whether other code should answer, since the code of a job is being compiled elsewhere.

    `other_seconds` is what the other code takes; if that is too long, this process compiles.
    """
    if job in _ready:
        return False
    if other_seconds <= _LONGEST_SECONDS and compiles_beside(job):
        return True
    _ready.add(job)
    return False


def compiles_beside(job: str) -> bool:
    """Let another process compile the code of a job unless it is stored; False if none does."""
    is_python = Path(sys.executable or "").name.startswith("python")
    if "wait" in ways() or not is_python or private_cache.folder() is None or was_compiled(job):
        return False
    with _lock:
        if _process is not None and _process.poll() is None:
            return True
        if job in _asked:  # the process ended without it
            return False
        _asked.add(job)
        return _start(job)


def _start(job: str) -> bool:
    global _process
    try:
        _process = subprocess.Popen(
            [*module_command(MODULE), job],
            env=module_environment(**{VARIABLE: "wait"}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is not for it
        )
    except OSError:
        return False
    return True
