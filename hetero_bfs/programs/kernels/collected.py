"""A pull in which each receiver goes through its messages one by one; collected.cl does the same.

host_code.py appends this text to host.py if `apply` reads `messages`, and for other programs that
need to see both ends of an edge, or messages one by one. Messages are not stored: `fetch` computes
them from the states of the sender and of the receiver. So the new states are stored aside until all
vertices have gone through their messages. `combined` has a flag, which `collect` returns: 0 if the
vertex does not apply, 2 if it applies and says that it is active, 1 if it applies else.

All vertices are searched, including isolated ones. Arrays in addition to those of host.py:

    new_*       (n,)        the new states of vertices that apply
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hetero_bfs.devices.cpu.blocks import push_item
from hetero_bfs.devices.cpu.thread_pool import chunk_of
from hetero_bfs.programs.kernels import loop
from hetero_bfs.programs.kernels.adapters import ALL_ACTIVE, SENDS_BACK, collect, receives
from hetero_bfs.programs.kernels.host import PHASES, is_active
from hetero_bfs.support.compiling import kernel

_NONE = np.int64(0)


@njit(inline="always")
def sends(active, u):
    return ALL_ACTIVE or is_active(active, u)


@kernel(counted=False, inner=True)
def _collect(control, arrays, chunk, me):
    begin, end = chunk_of(control, chunk)
    at = arrays.cursor[me, loop.TOUCHED]
    active = arrays.active[control[loop.SIDES] >> loop.ACTIVE & 1]
    edges, receivers = _NONE, _NONE
    for v in range(begin, end):
        first, count = np.int64(arrays.backward_indptr[v]), _NONE
        back_first, back_count = np.int64(arrays.indptr[v]), _NONE
        if receives(arrays, v):
            receivers += 1
            count = np.int64(arrays.backward_indptr[v + 1]) - first
            if SENDS_BACK:
                back_count = np.int64(arrays.indptr[v + 1]) - back_first
            edges += count + back_count
        flag = collect(arrays, active, v, first, count, back_first, back_count)
        arrays.combined[v] = flag
        if not ALL_ACTIVE and flag != 0:
            at = push_item(arrays, loop.TOUCHED, arrays.touched_items, at, v, me)
    arrays.cursor[me, loop.TOUCHED] = at
    return edges, receivers, _NONE


PHASES = PHASES | {loop.GATHER: _collect}
PHASES.pop(loop.PUSH, None)
