"""The loop of sweeps on the host, the same for all programs; sweep.py has the phases.

A sweep goes through the parts of a graph (renumbered.py) in order. `arrays` is the head of a run's
struct (parallel.py):

    threads, num_vertices, num_totals, all_active
    parts       int64 (parts, 5)        parts of the arranged graph
    dirty       uint8 (n + 7,)          1 if an in-neighbour changed since the vertex last gathered
    sums        float64 (chunks, totals)    each chunk's part of the program's totals
    totals      float64 (totals,)       totals of the previous sweep
    next_totals float64 (totals,)       totals of this sweep so far
    loop        int64 (16,)             ITERATION, NUM_ACTIVE, RESUMES, PART, STEP, SETTLED,
                                        PENDING, SHARED
    work        int64 (NUM_TASKS,)      addresses of the phases; 0 if the program lacks one
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hetero_bfs.devices.cpu.thread_pool import share
from hetero_bfs.programs.kernels.loop import ITERATION, NUM_ACTIVE, RESUMES
from hetero_bfs.programs.renumbered import BEGIN, END, EXACT, TIMES
from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.intrinsics import clock_seconds
from hetero_bfs.support.parallel import call_at

PART, STEP, SETTLED, PENDING, SHARED = range(RESUMES + 1, RESUMES + 6)
"""Words of `loop`. PART: the current part. STEP: unique number of a pass through a part. SETTLED:
this sweep will not visit vertices below it again. PENDING: whether one of these vertices was
marked. SHARED: the threads share each part with a lower number, one thread does the others."""

START, SPREAD, GATHER, APPLY, FINISHED = range(5)
NUM_TASKS = 5

VERTICES, EDGES, SECONDS = range(3)
"""Columns of a record: vertices that gathered, edges visited, seconds."""
CHUNK = 1 << 9
"""Vertices per chunk: fixed, so that sums do not depend on the number of threads."""

_ZERO = np.int64(0)


@njit(inline="always")
def _share(control, arrays, task, items, size):
    """Do a task for `items` vertices in chunks of `size`, and add to the totals."""
    counts = share(control, arrays, task, items, size)
    for i in range(arrays.num_totals):
        total = arrays.next_totals[i]
        for chunk in range(-(-items // size)):
            total += arrays.sums[chunk, i]
        arrays.next_totals[i] = total
    return counts


@njit(inline="always")
def _end_totals(arrays):
    for i in range(arrays.num_totals):
        arrays.totals[i] = arrays.next_totals[i]
        arrays.next_totals[i] = 0.0


@kernel(counted=False, inner=True)
def _sweep(control, arrays):
    """Go through all parts; return vertices that changed, edges visited, vertices that gathered."""
    active, edges, receivers = _ZERO, _ZERO, _ZERO
    loop = arrays.loop
    loop[PENDING] = 0
    for number in range(arrays.parts.shape[0]):
        part = arrays.parts[number]
        loop[PART] = number
        for visit in range(part[TIMES]):
            loop[STEP] += 1
            loop[SETTLED] = part[END] if visit == part[TIMES] - 1 else part[BEGIN]
            size = part[END] - part[BEGIN]
            chunk = np.int64(CHUNK) if number < loop[SHARED] else size
            looked, changed, gathered = _share(control, arrays, GATHER, size, chunk)
            edges += looked
            active += changed
            receivers += gathered
            if gathered == 0 and arrays.all_active == 0:
                break
            if part[EXACT] == 0:
                looked, changed, _ = _share(control, arrays, APPLY, size, chunk)
                edges += looked
                active += changed
    return active, edges, receivers


@njit(inline="always")
def _begin(control, arrays):
    """Write the initial states; return active vertices, and edges whose ends they marked."""
    n, loop = arrays.num_vertices, arrays.loop
    loop[ITERATION], loop[STEP] = 0, 0
    for i in range(arrays.num_totals):
        arrays.next_totals[i] = 0.0
    active, _, _ = _share(control, arrays, START, n, np.int64(CHUNK))
    _end_totals(arrays)
    marked = _ZERO
    if active == n:
        arrays.dirty[:n] = 1
    else:
        marked, _, _ = share(control, arrays, SPREAD, n, CHUNK)
    return active, marked


@kernel(counted=False)
def run_sweeps(control, arrays, max_iterations, records):
    """Run the program, or continue a run (RESUMES); return its sweeps, and whether it converged.

    `max_iterations` counts the sweeps of the whole run. `records` is float64 (any, at least 3),
    with a row for each sweep; later sweeps that do not fit are not recorded.
    """
    n, all_active, loop = arrays.num_vertices, arrays.all_active != 0, arrays.loop
    ends, marked = False, _ZERO
    if loop[RESUMES] == 0:
        active, marked = _begin(control, arrays)
        ends = active == 0
    iteration = loop[ITERATION]
    while iteration < max_iterations:
        if ends:
            return iteration, True
        began = clock_seconds()
        active, edges, receivers = _sweep(control, arrays)
        if all_active:
            active = np.int64(n)
        ends = not all_active and loop[PENDING] == 0
        _end_totals(arrays)
        if iteration < records.shape[0]:
            record = records[iteration]
            record[VERTICES], record[EDGES] = receivers, edges + marked
            record[SECONDS] = clock_seconds() - began
        marked = _ZERO
        iteration += 1
        loop[ITERATION], loop[NUM_ACTIVE] = iteration, active
        address = arrays.work[FINISHED]
        if address != 0 and call_at(address, control, arrays, 0, 0)[0] != 0:
            return iteration, True
    return iteration, ends
