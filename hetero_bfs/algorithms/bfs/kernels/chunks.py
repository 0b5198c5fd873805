"""What one thread does in each kind of phase: with a chunk of it, or with an owner's part.

All these kernels take (control, arrays, chunk, me), where `chunk` is the chunk's or the owner's
number and `me` the thread's, and return three numbers that the phase adds up. Others reach them by
address (by_address.py), from `HostArrays.work`: so each is compiled once, and only for graphs whose
searches can come to it.
"""

from __future__ import annotations

from importlib import import_module

import numpy as np
import numpy.typing as npt
from numba import int64, njit, types

from hetero_bfs.algorithms.bfs.kernels.expand import collect_owned, expand_by_master, expand_owned
from hetero_bfs.algorithms.bfs.kernels.follow import follow_by_branches, follow_packed
from hetero_bfs.algorithms.bfs.kernels.frontier import invalidate_stale_parents, queue_words
from hetero_bfs.algorithms.bfs.kernels.level import (
    bottom_up_words,
    push_dense_chunk,
    resolve_pushed_words,
    top_down_chunk,
)
from hetero_bfs.algorithms.bfs.kernels.restore import restore_range
from hetero_bfs.devices.cpu.thread_pool import CHUNKS, JOB, OWN, report_of
from hetero_bfs.selection.strategies import STRATEGIES
from hetero_bfs.support.by_address import Struct, address_of, level_address
from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.intrinsics import array_at

# Words of a job, after its number of chunks (thread_pool.py).
TASK, VISITED, QUEUE, VERTICES, EDGES, SIZE = range(JOB + 1, JOB + 7)
(
    TOP_DOWN,
    PUSH_DENSE,
    RESOLVE_PUSH,
    EXPAND,
    COLLECT,
    BOTTOM_UP,
    CONVERT,
    BLANK,
    INVALIDATE,
    END,  # INVALIDATE, then BLANK
    CLEAR,
    RESTORE,
    ALONE,  # no phase: TOP_DOWN by the master alone
) = range(13)
NUM_TASKS = 13

OWNED = OWN
"""Whether the frontier is as its owners left it; level_loop.py has other such words."""

WHOLE = OWN + 1
"""Whether this host has found all that is visited, so that the parents are here."""

ADDRESS = OWN + 2
"""Of what a phase fills that was not there when the workers began."""

NEXT_OWN = OWN + 3
"""First word that stays from phase to phase and means nothing here."""

_NONE = np.int64(0)


@njit(inline="always")
def _edges_of(control, chunk):
    begin = chunk * control[SIZE]
    return begin, min(begin + control[SIZE], control[EDGES])


@njit(inline="always")
def _words_of(control, arrays, chunk):
    """Return which words of the bitmap a chunk is.

    The same cut in all phases of as many chunks, so that each thread meets the same words again.
    Chunks grow: after relabelling the first words are the hubs', whose lists are the longest.
    """
    words, chunks = arrays.visited[0].size, control[CHUNKS]
    return np.int64(words * (chunk / chunks) ** 2), np.int64(words * ((chunk + 1) / chunks) ** 2)


@kernel(counted=False, inner=True)
def _top_down(control, arrays, chunk, me):
    begin, end = _edges_of(control, chunk)
    this = control[QUEUE]
    top_down_chunk(
        begin,
        end,
        arrays.queue[this],
        arrays.offsets[this],
        control[VERTICES],
        arrays.indptr,
        arrays.indices,
        arrays.degree,
        arrays.visited[control[VISITED]],
        arrays.parent,
        arrays.queue[1 - this],
        arrays.offsets[1 - this],
        arrays.edge_bits,
        arrays.counter,
        arrays.found[me],
        arrays.source[me],
    )
    return _NONE, _NONE, _NONE


@kernel(counted=False, inner=True)
def _push_dense(control, arrays, chunk, me):
    begin, end = _edges_of(control, chunk)
    this = control[QUEUE]
    push_dense_chunk(
        begin,
        end,
        arrays.queue[this],
        arrays.offsets[this],
        control[VERTICES],
        arrays.indptr,
        arrays.indices,
        arrays.visited[control[VISITED]],
        arrays.parent,
    )
    return _NONE, _NONE, _NONE


@kernel(counted=False, inner=True)
def _resolve_push(control, arrays, chunk, me):
    begin, end = _words_of(control, arrays, chunk)
    visited, other = arrays.visited[control[VISITED]], arrays.visited[1 - control[VISITED]]
    found, edges = resolve_pushed_words(begin, end, arrays.degree, visited, other, arrays.parent)
    return np.int64(found), np.int64(edges), _NONE


@kernel(counted=False, inner=True)
def _bottom_up(control, arrays, chunk, me):
    begin, end = _words_of(control, arrays, chunk)
    found, edges, scanned = bottom_up_words(
        begin,
        end,
        arrays.parent.size,
        arrays.first,
        arrays.backward_indptr,
        arrays.backward_indices,
        arrays.degree,
        arrays.visited[control[VISITED]],
        arrays.visited[1 - control[VISITED]],
        arrays.parent,
        arrays.found[me],
        arrays.counter,
        arrays.unvisited_list,
    )
    return np.int64(found), np.int64(edges), np.int64(scanned)


@kernel(counted=False, inner=True)
def _convert(control, arrays, chunk, me):
    visited, this = arrays.visited[control[VISITED]], control[QUEUE]
    begin = chunk * control[SIZE]
    queue_words(
        begin,
        min(begin + control[SIZE], visited.size),
        visited,
        arrays.visited[1 - control[VISITED]],
        arrays.degree,
        arrays.edge_bits,
        arrays.counter,
        arrays.queue[this],
        arrays.offsets[this],
    )
    return _NONE, _NONE, _NONE


@kernel(counted=False, inner=True)
def _blank_or_invalidate(control, arrays, chunk, me):
    begin, end = _words_of(control, arrays, chunk)
    visited = arrays.visited[control[VISITED]]
    if control[TASK] != BLANK:
        invalidate_stale_parents(begin, end, visited, arrays.written, arrays.parent)
    if control[TASK] != INVALIDATE:
        visited[begin:end] = 0
    return _NONE, _NONE, _NONE


@kernel(counted=False, inner=True)
def _clear_or_restore(control, arrays, chunk, me):
    """Fill items of the array that is at an address, or bring parents home to it."""
    begin = chunk * control[SIZE]
    end = begin + control[SIZE]
    restored = array_at(control[ADDRESS], control[VERTICES])
    if control[TASK] == CLEAR:
        restored[begin : min(end, restored.size)] = -1
    else:
        end = min(end, arrays.parent.size)
        restore_range(begin, end, arrays.parent, arrays.old_of_new, restored)
    return _NONE, _NONE, _NONE


@njit(inline="always")
def _run_by_master(follow, control, arrays):
    """Expand a small frontier by one thread; return vertices and edges found."""
    this = control[QUEUE]
    found, edges = expand_by_master(
        follow,
        arrays.queue[this],
        arrays.segments[this],
        arrays.indptr,
        arrays.indices,
        arrays.is_local != 0,
        arrays.visited[control[VISITED]],
        arrays.parent,
        arrays.queue[1 - this],
        arrays.offsets[1 - this],
        arrays.segments[1 - this],
        arrays.outbox[0, 0],
        control[WHOLE],
        arrays.found[0],
        arrays.source[0],
    )
    return np.int64(found), np.int64(edges), _NONE


@kernel(counted=False, inner=True)
def _by_master(control, arrays, chunk, me):
    return _run_by_master(follow_by_branches, control, arrays)


@kernel(counted=False, inner=True)
def _by_master_packed(control, arrays, chunk, me):
    return _run_by_master(follow_packed, control, arrays)


@njit(inline="always")
def _run_owned(follow, control, arrays, owner):
    this = control[QUEUE]
    expand_owned(
        follow,
        owner,
        control[CHUNKS],
        report_of(control, owner),
        control[OWNED],
        control[WHOLE],
        arrays.queue[this],
        arrays.segments[this],
        arrays.indptr,
        arrays.indices,
        arrays.visited[control[VISITED]],
        arrays.parent,
        arrays.queue[1 - this],
        arrays.owned_ranges,
        arrays.outbox[this],
        arrays.outbox[1 - this],
        arrays.found[owner],
        arrays.source[owner],
    )
    return _NONE, _NONE, _NONE


@kernel(counted=False, inner=True)
def _expand(control, arrays, owner, me):
    return _run_owned(follow_by_branches, control, arrays, owner)


@kernel(counted=False, inner=True)
def _expand_packed(control, arrays, owner, me):
    return _run_owned(follow_packed, control, arrays, owner)


@kernel(counted=False, inner=True)
def _collect(control, arrays, owner, me):
    collect_owned(
        owner,
        control[CHUNKS],
        report_of(control, owner),
        arrays.indptr,
        arrays.indices,
        arrays.visited[control[VISITED]],
        arrays.parent,
        arrays.queue[control[QUEUE]],
        arrays.owned_ranges,
        arrays.outbox[1 - control[QUEUE]],
    )
    return _NONE, _NONE, _NONE


def link_levels(arrays: Struct, levels: npt.NDArray[np.int64]) -> None:
    """Compile what runs levels on the host, and fill `levels` with it by the table's rows."""
    for row, strategy in enumerate(STRATEGIES.values()):
        if strategy.device_kind == "cpu":
            module, _, name = strategy.kernel.partition(":")
            function = getattr(import_module(module), name)
            levels[row] = level_address(function, types.Array(int64, 1, "C"), arrays.numba_type)


def link_work(
    arrays: Struct, threads: int, owners: int, is_packed: bool, work: npt.NDArray[np.int64]
) -> None:
    """Compile what searches of these arrays can come to, and fill their `work` with it.

    One thread has no levels to share, and owners of partitions leave no dense-push ones
    (level_loop.py).
    """
    used = {
        BOTTOM_UP: _bottom_up,
        CONVERT: _convert,
        BLANK: _blank_or_invalidate,
        INVALIDATE: _blank_or_invalidate,
        END: _blank_or_invalidate,
        CLEAR: _clear_or_restore,
        RESTORE: _clear_or_restore,
        ALONE: _by_master_packed if is_packed else _by_master,
    }
    if threads > 1:
        used[TOP_DOWN] = _top_down
    if owners > 1:
        used |= {EXPAND: _expand_packed if is_packed else _expand, COLLECT: _collect}
    elif threads > 1:
        used |= {PUSH_DENSE: _push_dense, RESOLVE_PUSH: _resolve_push}
    control = types.Array(int64, 1, "C")
    for task, function in used.items():
        work[task] = address_of(function, control, arrays.numba_type, int64, int64)
