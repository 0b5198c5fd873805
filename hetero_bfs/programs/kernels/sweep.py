"""The phases of a sweep on the host; sweep_loop.py has the loop that runs them.

host_code.py appends this text to host.py, so the phases and `is_active` replace host.py's.

A dirty vertex gathers messages along its incoming edges: from all vertices if all are active, else
from vertices that were ever active. Vertices of an exact part are not adjacent, so each applies at
once. In other parts all vertices gather before the first one applies. A vertex that changed marks
its neighbours as dirty, except neighbours that would refuse its message.

Arrays in addition to sweep_loop.py's (n vertices, numbered part by part):

    state_*     (n,)            the program's fields
    outgoing    (n,) or (1,)    each vertex's message, if it does not depend on weights; IDENTITY
                                until the vertex is active
    sent        uint8 (n,)      whether a vertex was ever active
    combined    (n,)            messages combined, between a gather and its apply
    gathered    int32 (n,)      the last step in which a vertex got messages to apply
    words       uint64          the memory of `dirty`, eight vertices a word
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hetero_bfs.devices.cpu.thread_pool import chunk_of
from hetero_bfs.programs.kernels import sweep_loop
from hetero_bfs.programs.kernels.adapters import (
    ALL_ACTIVE,
    HAS_FINISHED,
    HAS_IDENTITY,
    IDENTITY,
    WEIGHTED,
    apply,
    clear_totals,
    receives,
    send,
    start,
    takes,
)
from hetero_bfs.programs.kernels.host import _finished, gathered
from hetero_bfs.programs.renumbered import BEGIN, EXACT
from hetero_bfs.support.compiling import kernel

PREPARED = HAS_IDENTITY and not WEIGHTED
_ZERO = np.int64(0)
_NONE = np.int32(-1)


@njit(inline="always")
def is_active(sent, u):
    return sent[u] != 0


@kernel(counted=False, inner=True)
def _start(control, arrays, chunk, me):
    begin, end = chunk_of(control, chunk)
    sums = arrays.sums[chunk]
    clear_totals(sums)
    active = _ZERO
    for v in range(begin, end):
        is_active = start(arrays, v, sums)
        arrays.dirty[v] = 0
        arrays.gathered[v] = _NONE
        arrays.sent[v] = is_active
        if PREPARED:
            arrays.outgoing[v] = IDENTITY
            if is_active:
                arrays.outgoing[v] = send(arrays, v, arrays.weights[0])
        active += is_active
    return active, _ZERO, _ZERO


@njit(inline="always")
def _mark_neighbours(arrays, v, message, step):
    """Mark neighbours that take the message of `v`; return the number of all neighbours.

    Neighbours that apply in this step are always marked, since their state may change.
    """
    neighbours, weights, dirty = arrays.neighbours, arrays.weights, arrays.dirty
    settled = arrays.loop[sweep_loop.SETTLED]
    first, last = np.int64(arrays.indptr[v]), np.int64(arrays.indptr[v + 1])
    for k in range(first, last):
        u = np.int64(neighbours[k])
        if arrays.gathered[u] != step:
            if not receives(arrays, u):
                continue
            if WEIGHTED:
                message = send(arrays, v, weights[k])
            if not takes(arrays, u, message):
                continue
        dirty[u] = 1
        if u < settled:
            arrays.loop[sweep_loop.PENDING] = 1
    return last - first


@kernel(counted=False, inner=True)
def _spread(control, arrays, chunk, me):
    """Mark the neighbours of the vertices that are active at the start."""
    begin, end = chunk_of(control, chunk)
    edges = _ZERO
    for v in range(begin, end):
        if arrays.sent[v]:
            edges += _mark_neighbours(arrays, v, send(arrays, v, arrays.weights[0]), np.int32(0))
    return edges, _ZERO, _ZERO


@njit(inline="always")
def _change(arrays, v, total, step, sums):
    """Apply; return whether the vertex is active, and along how many edges it marked."""
    is_active = apply(arrays, v, total, sums)
    if not ALL_ACTIVE and not is_active:
        return _ZERO, _ZERO
    message = send(arrays, v, arrays.weights[0])
    if PREPARED:
        arrays.outgoing[v] = message
    if ALL_ACTIVE:
        return np.int64(1), _ZERO
    arrays.sent[v] = 1
    return np.int64(1), _mark_neighbours(arrays, v, message, step)


@kernel(counted=False, inner=True)
def _gather(control, arrays, chunk, me):
    begin, end = chunk_of(control, chunk)
    part = arrays.parts[arrays.loop[sweep_loop.PART]]
    exact = part[EXACT] != 0
    step = np.int32(arrays.loop[sweep_loop.STEP])
    dirty, words, combined = arrays.dirty, arrays.words, arrays.combined
    sums = arrays.sums[chunk]
    clear_totals(sums)
    edges, active, receivers = _ZERO, _ZERO, _ZERO
    following, end = part[BEGIN] + begin, part[BEGIN] + end
    while following < end:
        v = following
        following += 1
        if not ALL_ACTIVE:
            if dirty[v] == 0:
                if v & 7 == 0 and words[v >> 3] == 0:
                    following = v + 8
                continue
            dirty[v] = 0
        total, found = IDENTITY, False
        if receives(arrays, v):
            receivers += 1
            total, found, scanned = gathered(arrays, arrays.sent, v)
            edges += scanned
        if not ALL_ACTIVE and not found:
            continue
        if exact:
            changed, looked = _change(arrays, v, total, step, sums)
            active += changed
            edges += looked
        else:
            combined[v] = total
            arrays.gathered[v] = step
    return edges, active, receivers


@kernel(counted=False, inner=True)
def _apply(control, arrays, chunk, me):
    begin, end = chunk_of(control, chunk)
    shift = arrays.parts[arrays.loop[sweep_loop.PART], BEGIN]
    step = np.int32(arrays.loop[sweep_loop.STEP])
    gathered, combined = arrays.gathered, arrays.combined
    sums = arrays.sums[chunk]
    clear_totals(sums)
    edges, active = _ZERO, _ZERO
    for v in range(shift + begin, shift + end):
        if gathered[v] == step:
            changed, looked = _change(arrays, v, combined[v], step, sums)
            active += changed
            edges += looked
    return edges, active, _ZERO


PHASES = {sweep_loop.START: _start, sweep_loop.GATHER: _gather, sweep_loop.APPLY: _apply}
if not ALL_ACTIVE:
    PHASES[sweep_loop.SPREAD] = _spread
if HAS_FINISHED:
    PHASES[sweep_loop.FINISHED] = _finished
