"""Code that is not compiled yet: another process compiles it, and other code answers meanwhile.

A job is a name in `hetero_bfs.warm_up.JOBS`. At the first call that needs the code of a job which
is not stored, one process starts, at low priority. It compiles this job and then the others, and
stores them (code_cache.py). It may outlive this one, so that short programs get compiled code, too.

With `wait` in `HETERO_BFS_COMPILING`, as in all commands, nothing answers before it is compiled.
"""

from __future__ import annotations

import os
import subprocess
import threading

from hetero_bfs.support import private_cache
from hetero_bfs.support.code_cache import was_compiled
from hetero_bfs.support.environment import COMPILING_VARIABLE, ways_of_compiling
from hetero_bfs.support.processes import module_environment, start_in_background

MODULE = "hetero_bfs.warm_up"

_LONGEST_SECONDS = 10.0
"""Longest answer by other code, about as long as compiling a job; a guess."""

_lock = threading.Lock()
_ready: set[str] = set()
_asked: set[str] = set()
_process: subprocess.Popen[bytes] | None = None


def scipy_seconds(entries: int, reads_weights: bool = False) -> float:
    """Return about the seconds of a search by SciPy.

    At most 15 ns for an entry on four real graphs, and 82 with weights (an H200's host,
    `benchmarks/first_contact.py`, commit ffd2f3fdefba, 2026-11-26).
    """
    return entries * (1e-7 if reads_weights else 2e-8)


def is_cold(job: str, other_seconds: float = 0.0) -> bool:
    """Whether other code should answer, since the code of a job is being compiled elsewhere.

    `other_seconds` is the time of the other code; if that is too long, this process compiles.
    """
    if job in _ready:
        return False
    if other_seconds <= _LONGEST_SECONDS and compiles_in_background(job):
        return True
    _ready.add(job)
    return False


def compiles_in_background(job: str) -> bool:
    """Let another process compile the code of a job unless it is stored; False if none does."""
    global _process
    if "wait" in ways_of_compiling() or private_cache.folder() is None or was_compiled(job):
        return False
    with _lock:
        if _process is not None and _process.poll() is None:
            return True
        if job in _asked:  # the process ended without it
            return False
        _asked.add(job)
        _process = start_in_background(
            MODULE,
            job,
            env=module_environment(**{COMPILING_VARIABLE: "wait"}),
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is not for it
        )
        return _process is not None


def _after_fork() -> None:
    """Begin anew in a child, since a thread that exists only in the parent may hold the lock."""
    global _lock, _process
    _lock, _process = threading.Lock(), None
    _asked.clear()


os.register_at_fork(after_in_child=_after_fork)
