"""Objects and threads of forked processes, which hang or fail in a child.

GNU OpenMP, which runs the parallel loops of compiled code, ends a forked process without a message.
OpenCL waits for ever. This module records which of them a parent has started, and refuses to use
them in a child.
"""

from __future__ import annotations

import os
import sys
from typing import Literal, NoReturn

from hetero_bfs.errors import ForkError

REMEDY = (
    'start processes with multiprocessing.get_context("spawn"), or fork before anything is built '
    "and open the engine in the child"
)

Threads = Literal["compiled loops", "OpenCL"]


class _Process:
    generation = 0
    opencl_started = False
    lost: frozenset[Threads] = frozenset()


def generation() -> int:
    """Return a number that is larger in a forked process than in its parent."""
    return _Process.generation


def refuse_other_process(born: int) -> None:
    """Raise `ForkError` unless `generation` was `born` in this process."""
    if born != _Process.generation:
        raise ForkError(
            f"the engine was opened in process {os.getppid()}, from which this one was forked "
            f"without its threads; {REMEDY}"
        )


def use_loops() -> None:
    _refuse_lost("compiled loops")


def use_opencl() -> None:
    """Note that this process uses OpenCL; raise `ForkError` if it cannot."""
    _refuse_lost("OpenCL")
    _Process.opencl_started = True


def lacks_opencl() -> bool:
    return "OpenCL" in _Process.lost


def _refuse_lost(threads: Threads) -> None:
    if threads in _Process.lost:
        raise ForkError(
            f"this process was forked from one that had used {threads}, and lacks the threads for "
            f"that; {REMEDY}"
        )


def _after_fork() -> None:
    _Process.generation += 1
    if _Process.opencl_started:
        _Process.lost |= {"OpenCL"}
    if _openmp_started():
        _Process.lost |= {"compiled loops"}


def _openmp_started() -> bool:
    numba = sys.modules.get("numba")
    try:
        return numba is not None and numba.threading_layer() == "omp"
    except (AttributeError, ValueError):  # partly imported, or no threads started yet
        return False


if hasattr(os, "register_at_fork"):
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
