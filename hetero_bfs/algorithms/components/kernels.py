"""Components on the host: the phases, and the loop that runs them.

Every vertex has a label: itself, or a smaller vertex of its component. A root is a vertex that is
its own label. Labels only become smaller, but stay within the component, so following them ends at
a root. Two trees become one when the larger root gets the smaller one as its label (`_link`). That
is a compare-and-swap: of two threads that hook the same root, one tries again. Reading and
shortening paths needs no atomics: a stale label is still a vertex further up, and only
compare-and-swap writes the label of a root.

State (n vertices):

    first       uint32 (n,)     the first neighbour of each vertex (search_graph.py)
    label       uint32 (n,)
    common      uint32 (blocks,)    the label of all BLOCK vertices of a block after the first
                                phase, NO_VERTEX if they have several
    control[LARGEST]            the root of the component whose edges need not be read

Vertices in the largest component do not read their neighbours. An edge from there leads to a vertex
of the same component, or to a vertex outside, which reads the edge itself (Sutton, Ben-Nun and
Barak, 2018, "Optimizing parallel graph connectivity computation via subgraph sampling", call this
Afforest). In a directed graph the vertices outside read the edges of both directions.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from hetero_bfs.devices.cpu.thread_pool import ITEMS, OWN, chunk_of, even_size, share
from hetero_bfs.graph.edge_source import NO_ID
from hetero_bfs.graph.relabel import Relabelling
from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.intrinsics import atomic_min, clock_seconds, compare_and_swap
from hetero_bfs.support.parallel import parallel_kernel, part_of, parts_for

LARGEST = OWN
"""Word that phases keep: the root of the largest component, by the last sample."""

FIRST, ROOTS, REST, COMPRESS, FOLLOW = range(5)
NUM_TASKS = 5

BLOCK = 1 << 12

HEAD_BLOCKS = 8
"""Blocks whose labels one thread follows before all others. If vertices are numbered by falling
degree, these blocks have most first neighbours."""

_ZERO = np.int64(0)


@njit(inline="always")
def find_root(label, v):
    up = label[v]
    while up != v:
        v = up
        up = label[v]
    return up


@njit(inline="always")
def _compress(label, v):
    """Make the root above a vertex its label, and return it.

    The label of a root is not written, since another thread may hook the root.
    """
    up = label[v]
    root = find_root(label, up)
    if root != up:
        label[v] = root
    return root


@njit(inline="always")
def _link(label, u, v):
    """Join the trees of two vertices; return whether they were different.

    The swap fails if the larger root is not a root any more. Then its label is smaller than before,
    so the loop ends.
    """
    if label[u] == label[v]:
        return 0
    while True:
        one, other = find_root(label, u), find_root(label, v)
        if one == other:
            return 0
        high, low = max(one, other), min(one, other)
        if compare_and_swap(label, high, high, low):
            return 1


@njit(inline="always")
def _link_list(label, indptr, neighbours, v):
    """Link a vertex with its neighbours; return the trees removed by that, and the edges."""
    begin, end = np.uint64(indptr[v]), np.uint64(indptr[v + np.uint64(1)])
    hooks = _ZERO
    for k in range(begin, end):
        hooks += _link(label, np.uint32(v), neighbours[k])
    return hooks, np.int64(end - begin)


@njit(inline="always")
def _link_lists(arrays, v):
    """Link a vertex with its neighbours; in a directed graph also along incoming edges."""
    label = arrays.label
    hooks, scanned = _link_list(label, arrays.indptr, arrays.neighbours, v)
    if arrays.is_directed:
        more = _link_list(label, arrays.backward_indptr, arrays.backward_neighbours, v)
        hooks += more[0]
        scanned += more[1]
    return hooks, scanned


@njit(inline="always")
def _is_done(arrays, block, root):
    """Tell whether all vertices of a block have the same label, which is still a root."""
    return arrays.common[block] == root and arrays.label[root] == root


@njit(inline="always")
def _vertices_of(block, n):
    """Return the first vertex of a block and the one after its last, as unsigned integers.

    With signed indices the loops would check for negative ones, and would not be vectorised.
    """
    return np.uint64(block * BLOCK), np.uint64(min((block + 1) * BLOCK, n))


@njit(inline="always")
def _blocks_of(control, chunk):
    """Return the first block of a chunk, the one after its last, and the number of all vertices."""
    begin, end = chunk_of(control, chunk)
    return begin // BLOCK, -(-end // BLOCK), control[ITEMS]


@kernel(counted=False, inner=True)
def _hook_first(control, arrays, chunk, me):
    """Label each vertex by its first neighbour if that is smaller; return the number of roots."""
    begin, end = chunk_of(control, chunk)
    first, label = arrays.first, arrays.label
    roots = _ZERO
    for i in range(np.uint64(begin), np.uint64(end)):
        v = np.uint32(i)
        label[i] = min(v, first[i])
        roots += first[i] >= v
    return roots, _ZERO, _ZERO


@kernel(counted=False, inner=True)
def follow_labels(arrays, first_block, last_block, n):
    """Label the vertices of some blocks by the label of their label.

    The order is from smaller vertices to larger ones. So labels within these blocks become roots,
    unless their path leads to other blocks, where labels may change meanwhile.
    """
    label = arrays.label
    for block in range(first_block, last_block):
        begin, end = _vertices_of(block, n)
        for v in range(begin, end):
            label[v] = label[label[v]]
        common, differing = label[begin], np.uint32(0)
        for v in range(begin, end):
            differing |= label[v] ^ common
        arrays.common[block] = NO_ID if differing else common


@kernel(counted=False, inner=True)
def _follow(control, arrays, chunk, me):
    first_block, last_block, n = _blocks_of(control, chunk)
    follow_labels(arrays, max(first_block, HEAD_BLOCKS), last_block, n)
    return _ZERO, _ZERO, _ZERO


@njit(inline="always")
def _link_blocks(control, arrays, chunk, only_roots):
    """Link vertices outside the largest component with their neighbours, or only the roots there.

    If all vertices are linked, each is compressed before. Returns the trees removed, the vertices
    linked, and the edges scanned. Another thread may hook the root of the largest component
    meanwhile, so it is looked up again.
    """
    label, largest = arrays.label, np.uint32(control[LARGEST])
    first_block, last_block, n = _blocks_of(control, chunk)
    hooks, vertices, scanned = _ZERO, _ZERO, _ZERO
    for block in range(first_block, last_block):
        if _is_done(arrays, block, largest):
            continue
        arrays.common[block] = NO_ID
        begin, end = _vertices_of(block, n)
        for v in range(begin, end):
            root = label[v] if only_roots else _compress(label, v)
            if root == largest or (only_roots and root != v):
                continue
            largest = find_root(label, largest)
            if root != largest:
                more = _link_lists(arrays, v)
                hooks += more[0]
                vertices += 1
                scanned += more[1]
    return hooks, vertices, scanned


@kernel(counted=False, inner=True)
def _link_roots(control, arrays, chunk, me):
    return _link_blocks(control, arrays, chunk, True)


@kernel(counted=False, inner=True)
def _link_rest(control, arrays, chunk, me):
    return _link_blocks(control, arrays, chunk, False)


@kernel(counted=False, inner=True)
def _compress_all(control, arrays, chunk, me):
    label, largest = arrays.label, np.uint32(control[LARGEST])
    first_block, last_block, n = _blocks_of(control, chunk)
    for block in range(first_block, last_block):
        if _is_done(arrays, block, largest):
            continue
        begin, end = _vertices_of(block, n)
        for v in range(begin, end):
            _compress(label, v)
    return _ZERO, _ZERO, _ZERO


PHASES = dict(enumerate((_hook_first, _link_roots, _link_rest, _compress_all, _follow)))


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
    per cent of the edges (benchmarks/notes/algorithms.md).

    `records`, float64 (MOST_RECORDS, RECORD_WIDTH), gets a row for each phase. Returns their number
    and that of the components.
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


def smallest_ids(label: npt.NDArray[np.uint32], relabelling: Relabelling) -> npt.NDArray[np.int64]:
    """Return the smallest id of each vertex's component, by the caller's ids.

    `label`, shape (num_searched,), has a vertex of each vertex's component, which is its own label,
    in new ids. Vertices outside the searched range are components of their own.
    """
    old_of_new, new_of_old = relabelling.old_of_new, relabelling.new_of_old
    least = np.empty(label.size, np.int64)  # only labels' items are used
    component = np.empty(new_of_old.size, np.int64)
    parts = parts_for(component.size)
    _begin_with_labels(label, old_of_new, least, parts=parts)
    _find_least(label, old_of_new, least, parts=parts)
    _write_least(label, new_of_old, least, component, parts=parts)
    return component


@njit(inline="always")
def _range_of(size, part, parts):
    """Return a part of a range, unsigned: loops would check signed indices for negative ones."""
    begin, end = part_of(size, part, parts)
    return range(np.uint64(begin), np.uint64(end))


@parallel_kernel("label old_of_new least", counted=False)
def _begin_with_labels(given, part, parts):
    label, old_of_new, least = given.label, given.old_of_new, given.least
    for v in _range_of(label.size, part, parts):
        if label[v] == v:
            least[v] = old_of_new[v]


@parallel_kernel("label old_of_new least", counted=False)
def _find_least(given, part, parts):
    label, old_of_new, least = given.label, given.old_of_new, given.least
    for v in _range_of(label.size, part, parts):
        old = np.int64(old_of_new[v])
        if old < least[label[v]]:
            atomic_min(least, label[v], old)


@parallel_kernel("label new_of_old least component", counted=False)
def _write_least(given, part, parts):
    label, new_of_old, least = given.label, given.new_of_old, given.least
    component = given.component
    for old in _range_of(component.size, part, parts):
        new = new_of_old[old]
        component[old] = np.int64(old) if new == NO_ID else least[label[new]]


# Connected components by one thread, numbered in the order of their first vertices.
#
# Sets are joined at the smaller root, so a root is the smallest vertex of its set (Tarjan, 1975,
# "Efficiency of a good but not linear set union algorithm"; paths are halved). An edge may be
# stored in one direction or in both.


@kernel
def label_in_order(indptr, indices, label):
    """Fill label, uint32 (n,), with the number of each vertex's component; return the count.

    In a directed graph the components are the weakly connected ones. The lists must be valid.
    """
    n = label.size
    for v in range(n):
        label[v] = v  # its parent, until the last loop
    for u in range(n):
        mine = _root(label, np.uint32(u))
        for k in range(indptr[u], indptr[u + 1]):
            other = _root(label, indices[k])
            if other < mine:
                label[mine] = other
                mine = other
            elif mine < other:
                label[other] = mine
    count = np.uint32(0)
    for v in range(n):
        if label[v] == v:
            label[v] = count
            count += np.uint32(1)
        else:  # the label is a smaller vertex, which is numbered already
            label[v] = label[label[v]]
    return np.int64(count)


@kernel(inner=True)
def _root(parent, v):
    while parent[v] != v:
        parent[v] = parent[parent[v]]
        v = parent[v]
    return v
