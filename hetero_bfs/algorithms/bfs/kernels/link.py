"""Compiles the kernels that the level loop and its phases call by address (parallel.py).

A kernel is compiled once, and only if searches of the graph can call it.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.bfs.kernels import job
from hetero_bfs.algorithms.bfs.kernels.expand import (
    collect_owned,
    expand_by_master,
    expand_by_master_packed,
    expand_owned,
    expand_owned_packed,
)
from hetero_bfs.algorithms.bfs.kernels.frontier import blank_or_invalidate, queue_words
from hetero_bfs.algorithms.bfs.kernels.level import (
    bottom_up_words,
    push_dense_chunk,
    resolve_pushed_words,
    top_down_chunk,
)
from hetero_bfs.algorithms.bfs.kernels.restore import (
    blank_depths,
    fill_result,
    restore_levels_chunk,
)
from hetero_bfs.scheduling.strategies import STRATEGIES
from hetero_bfs.support.parallel import Head, Struct, chunk_address, level_address


def link_levels(arrays: Struct | Head, levels: npt.NDArray[np.int64]) -> None:
    """Compile the kernels of the host's strategies, and put their addresses into `levels`.

    The index of a strategy is its row in the table of strategies.
    """
    for row, strategy in enumerate(STRATEGIES.values()):
        if strategy.device_kind == "cpu":
            module, _, name = strategy.kernel.partition(":")
            function = getattr(import_module(module), name)
            levels[row] = level_address(function, arrays.numba_type)


def link_work(
    arrays: Struct | Head,
    threads: int,
    owners: int,
    is_packed: bool,
    work: npt.NDArray[np.int64],
    replaced: Mapping[int, int],
) -> None:
    """Compile the kernels of phases, and put their addresses into `work`.

    A single thread never shares levels. With owners of partitions no level is a dense push
    (host_strategies.py). `replaced` has addresses of other kernels for some tasks (`chunk_kernel`).
    """
    used = {
        job.BOTTOM_UP: bottom_up_words,
        job.CONVERT: queue_words,
        job.BLANK: blank_or_invalidate,
        job.INVALIDATE: blank_or_invalidate,
        job.END: blank_or_invalidate,
        job.CLEAR: fill_result,
        job.RECEIVE: fill_result,
        job.RESTORE: fill_result,
        job.BLANK_DEPTHS: blank_depths,
        job.RESTORE_LEVELS: restore_levels_chunk,
        job.ALONE: expand_by_master_packed if is_packed else expand_by_master,
    }
    if threads > 1:
        used[job.TOP_DOWN] = top_down_chunk
    if owners > 1:
        used |= {
            job.EXPAND: expand_owned_packed if is_packed else expand_owned,
            job.COLLECT: collect_owned,
        }
    elif threads > 1:
        used |= {job.PUSH_DENSE: push_dense_chunk, job.RESOLVE_PUSH: resolve_pushed_words}
    for task, function in used.items():
        if task not in replaced:
            work[task] = chunk_kernel(function, arrays)
    for task, address in replaced.items():
        work[task] = address


def chunk_kernel(function: Any, arrays: Struct | Head) -> int:
    """Compile a kernel of a phase for arrays of this type, and return its address."""
    return chunk_address(function, arrays.numba_type)
