"""Forked processes, and modules of this package that run in another process.

Threads and some objects of a forked process hang or fail in the child.

GNU OpenMP, which runs the parallel loops of compiled code, ends a forked process without a message.
OpenCL waits for ever. This module records which of them a parent has started, and refuses to use
them in a child. `run_module` runs code that may crash or hang, such as a driver's.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn

from hetero_bfs.errors import ForkError

REMEDY = (
    'start processes with multiprocessing.get_context("spawn"), or fork before anything is built '
    "and open the engine in the child"
)

Threads = Literal["compiled loops", "OpenCL"]


_started: set[Threads] = set()
"""Only OpenCL, once this process has used it: Numba itself knows whether loops have run."""

_lost: set[Threads] = set()


def refuse_other_process(process: int) -> None:
    """Raise `ForkError` unless this is the process of that number, which opened an engine."""
    if process != os.getpid():
        raise ForkError(
            f"the engine was opened in process {process}, from which this one was forked "
            f"without its threads; {REMEDY}"
        )


def use_loops() -> None:
    _refuse_lost("compiled loops")


def use_opencl() -> None:
    """Note that this process uses OpenCL; raise `ForkError` if it cannot."""
    _refuse_lost("OpenCL")
    _started.add("OpenCL")


def lacks_loops() -> bool:
    return "compiled loops" in _lost


def lacks_opencl() -> bool:
    return "OpenCL" in _lost


def _refuse_lost(threads: Threads) -> None:
    if threads in _lost:
        raise ForkError(
            f"this process was forked from one that had used {threads}, and lacks the threads for "
            f"that; {REMEDY}"
        )


def _after_fork() -> None:
    _lost.update(_started)
    if _openmp_started():
        _lost.add("compiled loops")


def _openmp_started() -> bool:
    numba = sys.modules.get("numba")
    try:
        return numba is not None and numba.threading_layer() == "omp"
    except (AttributeError, ValueError):  # partly imported, or no threads started yet
        return False


os.register_at_fork(after_in_child=_after_fork)


class OfOneProcess:
    """Base of classes that hold threads, devices or ranks: no pickling, no copying."""

    def __reduce__(self) -> NoReturn:
        name = type(self).__name__
        raise TypeError(
            f"{name} objects cannot be pickled or copied, since they hold threads and memory of "
            f"this process; pickle the graph, such as a CSRGraph, and open {name}(graph) in the "
            "other process"
        )


def module_command(module: str) -> list[str]:
    """With -P Python does not look for modules in the current folder, which may have a malicious
    numpy.py.
    """
    return [sys.executable, "-P", "-m", module]


def module_environment(**variables: str) -> dict[str, str]:
    """Return this process's environment with these variables and its module search path.

    Empty entries of `sys.path` stand for the current folder and are left out.
    """
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **variables}


def start_in_background(
    module: str, *arguments: str, **options: Any
) -> subprocess.Popen[bytes] | None:
    """Start a module without output, in a process that nobody waits for; None if that fails."""
    is_python = Path(sys.executable or "").name.startswith("python")
    try:
        return (
            subprocess.Popen(
                [*module_command(module), *arguments],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                **options,
            )
            if is_python
            else None
        )
    except OSError:
        return None


_GRACE_SECONDS = 5.0


class Answer(NamedTuple):
    """Output of another process: its lines of JSON, and the reason if it failed."""

    lines: list[dict[str, Any]]
    problem: str | None


def run_module(module: str, timeout_seconds: float, *arguments: str, **variables: str) -> Answer:
    """Run a module with these arguments; `variables` are added to its environment.

    Each of its lines on standard output is a JSON object; other output is dropped.
    """
    done: subprocess.CompletedProcess[bytes] | subprocess.TimeoutExpired
    try:
        done = subprocess.run(
            [*module_command(module), str(timeout_seconds), *arguments],
            env=module_environment(**variables),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout_seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        return Answer(_objects(error.stdout), f"no answer within {timeout_seconds:g} s")
    return Answer(_objects(done.stdout), _problem(done.returncode, done.stderr))


def run_main(main: Callable[[], None]) -> None:
    """Call `main` in the process that `run_module` starts; arguments begin at `sys.argv[2]`.

    A driver may hang while it holds Python's lock. Ctrl-C ends the process even then. If the
    process of `run_module` ended first, a time limit ends this one.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if len(sys.argv) > 1:
        signal.setitimer(signal.ITIMER_REAL, float(sys.argv[1]) + _GRACE_SECONDS)
    main()


def say(**fields: Any) -> None:
    """Print one line for `run_module` and flush it, since the next step may crash."""
    print(json.dumps(fields), flush=True)


def _objects(output: bytes | None) -> list[dict[str, Any]]:
    found = []
    for line in (output or b"").decode(errors="replace").splitlines():
        try:
            item = json.loads(line)
        except ValueError:  # a driver's own output
            continue
        if isinstance(item, dict):
            found.append(item)
    return found


def _problem(status: int, errors: bytes) -> str | None:
    if status == 0:
        return None
    if status < 0:
        try:
            name = signal.Signals(-status).name
        except ValueError:
            name = f"signal {-status}"
        return f"the process was ended by {name}"
    lines = errors.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"the process ended with status {status}"
