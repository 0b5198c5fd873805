"""The loop that finds components on the host; hook.py has its phases."""

from __future__ import annotations

import numpy as np
from numba import njit

from hetero_bfs.algorithms.components.kernels.hook import (
    BLOCK,
    COMPRESS,
    FIRST,
    FOLLOW,
    HEAD_BLOCKS,
    LARGEST,
    REST,
    ROOTS,
    find_root,
    follow_labels,
)
from hetero_bfs.devices.cpu.sharing import even_size, share
from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.intrinsics import clock_seconds

STRATEGY, VERTICES, EDGES, SECONDS = range(4)
"""Columns of a record: the phase, the vertices it worked on, edges scanned, seconds."""

RECORD_WIDTH, MOST_RECORDS = 4, 4
SAMPLES = 128


@njit(inline="always")
def _sample_largest(label):
    """Return the most frequent root of SAMPLES vertices, and its number of samples."""
    roots = np.empty(SAMPLES, np.uint32)
    for i in range(SAMPLES):
        roots[i] = find_root(label, np.uint32(i * label.size // SAMPLES))
    largest, most = roots[0], 0
    for i in range(SAMPLES):
        count = 0
        for k in range(SAMPLES):
            count += roots[k] == roots[i]
        if count > most:
            largest, most = roots[i], count
    return np.int64(largest), most


@njit(inline="always")
def _record(records, row, strategy, vertices, edges, began):
    """Fill a record; return the time at which the next phase begins."""
    ended = clock_seconds()
    record = records[row]
    record[STRATEGY], record[VERTICES], record[EDGES] = strategy, vertices, edges
    record[SECONDS] = ended - began
    return ended


@kernel
def label_components(control, arrays, records):
    """Label each vertex by the smallest vertex of its component, in new ids; there must be one.

    A sample estimates the entries of vertices outside the largest component. If they are more than
    there are vertices, roots link first. Each root then joins trees of about its size, for a few
    per cent of the edges (benchmarks/NOTES.md).

    Parameters
    ----------
    control, arrays
        The thread pool's words; see hook.py.
    records : float64 (MOST_RECORDS, RECORD_WIDTH)
        A row for each phase.

    Returns
    -------
    rows, components : int
        Records filled, and the number of components.
    """
    label = arrays.label
    n, edges = label.size, arrays.neighbours.size
    size = -(-even_size(arrays, n, BLOCK) // BLOCK) * BLOCK
    began = clock_seconds()
    components, _, _ = share(control, arrays, FIRST, n, size)
    follow_labels(arrays, 0, min(HEAD_BLOCKS, -(-n // BLOCK)), n)
    share(control, arrays, FOLLOW, n, size)
    began = _record(records, 0, FIRST, n, 0, began)
    rows = 1
    control[LARGEST], count = _sample_largest(label)
    if (SAMPLES - count) * edges > SAMPLES * n:
        hooks, vertices, scanned = share(control, arrays, ROOTS, n, BLOCK)
        components -= hooks
        began = _record(records, rows, ROOTS, vertices, scanned, began)
        rows += 1
        control[LARGEST], _ = _sample_largest(label)
    hooks, vertices, scanned = share(control, arrays, REST, n, BLOCK)
    components -= hooks
    began = _record(records, rows, REST, vertices, scanned, began)
    rows += 1
    if hooks:
        share(control, arrays, COMPRESS, n, size)
        _record(records, rows, COMPRESS, n, 0, began)
        rows += 1
    return rows, components
