"""Compiles in two processes at once if nothing is compiled yet.

Numba compiles one function at a time in a process. While an engine builds its graph and compiles
the kernels of its threads, another process compiles the loop over levels and the kernels of
correction, and stores both (support/code_cache.py). The engine waits for that process before it
searches, so that no timing is disturbed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

import numpy as np

from hetero_bfs.algorithms.bfs.host import CPUExecutor
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.relabel import Relabelling
from hetero_bfs.graph.search_graph import SearchGraph
from hetero_bfs.scheduling.policy import fixed_policy
from hetero_bfs.scheduling.strategies import available
from hetero_bfs.support import code_cache, private_cache
from hetero_bfs.support.environment import usable_cores
from hetero_bfs.support.processes import module_environment, start_in_background

_LOCK = "background-compiling.lock"

_PATIENCE_SECONDS = 120.0
"""Longest wait for the other process; after it the engine compiles everything itself."""


class BackgroundCompiling:
    def __init__(self, process: subprocess.Popen[bytes] | None) -> None:
        self._process = process

    def wait(self) -> None:
        """Wait for its code; whatever is missing afterwards is compiled in this process."""
        if self._process is not None:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_PATIENCE_SECONDS)
            self.end()

    def end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()  # also closes the pipe


@contextmanager
def compiling_in_background() -> Iterator[BackgroundCompiling]:
    """Let another process compile while the body runs, at the first use in this process."""
    background = BackgroundCompiling(start())
    try:
        yield background
    finally:
        background.end()


@cache
def start() -> subprocess.Popen[bytes] | None:
    """Start the process once, if there is a free core, code to compile, and a cache folder.

    The next `compiling_in_background` waits for it.
    """
    if not _is_of_use():
        return None
    # The pipe closes when this process ends, however that happens.
    return start_in_background(__name__, env=module_environment(), stdin=subprocess.PIPE)


def _is_of_use() -> bool:
    if usable_cores() < 2 or private_cache.folder() is None:
        return False
    return not all(code_cache.is_kept(function, kinds) for function, kinds in what_to_compile())


def what_to_compile() -> list[tuple[Any, tuple[Any, ...]]]:
    """Return kernels with the types of their arguments; their callees are compiled with them."""
    import numba

    from hetero_bfs.algorithms.bfs.kernels import level_loop
    from hetero_bfs.scheduling.correction_kernels import learn

    arrays, policy = _tiny_host().arrays_type, numba.typeof(fixed_policy([0], available(False)))
    number, real = numba.int64, numba.float64
    words, reals, table = numba.int64[::1], numba.float64[::1], numba.float64[:, ::1]
    search = (words, arrays, policy, number, number, numba.boolean, reals, table)
    return [
        (level_loop.run_levels, search),
        (learn, (policy, number, table, real, reals, table)),
        (level_loop.restore_parents, (words, arrays, number, number, numba.boolean)),
    ]


def _tiny_host() -> CPUExecutor:
    """Return an executor of a graph with one edge; its arrays have the usual types."""
    ids, degree = np.arange(2, dtype=np.uint32), np.ones(2, np.uint32)
    edges = CSRGraph.trusted(np.arange(3, dtype=np.int64), ids[::-1].copy(), False, 1, degree)
    return CPUExecutor(
        SearchGraph(edges, Relabelling(ids, ids, "given"), 1, degree, degree, edges.indices)
    )


def main() -> None:
    threading.Thread(target=_end_with_starter, daemon=True).start()
    with private_cache.one_at_a_time(_LOCK):  # a later process finds what an earlier one stored
        for function, kinds in what_to_compile():
            function.compile(kinds)


def _end_with_starter() -> None:
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    main()
