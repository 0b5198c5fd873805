"""Compiled loops of validation: depths along the parents, tree edges, one pass over the edges.

Encoding. `packed` (int64, one search, one entry per vertex) holds depth and parent together, so
that following a parent costs one cache miss. Bits 63..32 are the depth, bits 31..0 the parent, both
unsigned. All bits set means unreached. Only the upper 32 bits set means that the depth is not known
yet.

`depth` (unsigned, shape (num_vertices, searches)) holds the depths of a group of searches. The
depths of all searches at one vertex are contiguous, so an edge costs one or two cache lines at each
end, whatever the number of searches. The second largest value of the dtype means unreached. A depth
is at most the fourth largest value. So a depth and the value for unreached differ by more than 1,
even modulo the dtype's range.

Tree edges are stored once for all searches of the group. The edges to vertex `v` come from
`parents[starts[v]:starts[v + 1]]` (uint32, no duplicates). Bit k of the entry with the same index
in `searches` (uint64) tells whether search k has that edge. When the pass finds a tree edge among
the input edges, it replaces the edge's parent by NO_VERTEX. The parents that remain at the end
belong to tree edges that are not input edges. TILE more entries, all NO_VERTEX, follow the last
parent.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from hetero_bfs.graph.edge_source import NO_ID
from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.parallel import parallel_kernel, part_of

Array = npt.NDArray[Any]

BLOCKS = 256  # parts of a loop, many more than threads for load balance
TILE = 8  # parents compared at a time
MET = NO_ID
UNREACHED = -1
_LOW = 0xFFFFFFFF
_UNKNOWN_DEPTH = -(1 << 32)
_BATCH = 64  # edges whose cache lines are requested together
_NO = np.uint8(0)


@njit(inline="always")
def depth_of(entry):
    """Return the depth in an entry of `packed`, 2**32 - 1 if unreached or not known."""
    return (entry >> 32) & _LOW


# One search: its parents and levels


def pack(parent: Array, sources: Array, packed: Array) -> tuple[int, int]:
    """Fill `packed`; return the number of vertices reached, and the first suspect.

    A suspect is a vertex whose parent is unreached or not a vertex; num_vertices if there is none.
    """
    reached, suspect = np.zeros(BLOCKS, np.int64), np.full(BLOCKS, parent.size)
    _pack(parent, packed, reached, suspect, parts=BLOCKS)
    packed[sources] = sources  # depth 0
    return int(reached.sum()), int(suspect.min())


@parallel_kernel("parent packed reached suspect", counted=False)
def _pack(given, block, blocks):
    parent, packed, suspect = given.parent, given.packed, given.suspect
    start, stop = part_of(parent.size, block, blocks)
    count = 0
    for v in range(start, stop):
        p = np.int64(parent[v])
        packed[v] = UNREACHED if p == -1 else _UNKNOWN_DEPTH | (p & _LOW)
        count += p != -1
        if p != -1 and (p < 0 or p >= parent.size or parent[p] == -1):
            suspect[block] = min(suspect[block], v)
    given.reached[block] = count


def compute_depths(packed: Array, reached: int) -> int:
    """Replace every unknown depth; return the greatest depth, or -1 if there is a cycle.

    Threads share ancestors without a lock: all threads write the same depth of a vertex, in one
    aligned store. A thread visits a vertex at most twice.
    """
    deepest, cycle = np.zeros(BLOCKS, np.int64), np.zeros(1, np.bool_)
    _compute_depths(packed, reached, deepest, cycle, parts=BLOCKS)
    return -1 if cycle[0] else int(deepest.max())


@parallel_kernel("packed reached deepest cycle", counted=False)
def _compute_depths(given, block, blocks):
    packed, cycle = given.packed, given.cycle
    start, stop = part_of(packed.size, block, blocks)
    greatest = 0
    for v in range(start, stop):
        if cycle[0]:
            return
        if packed[v] != UNREACHED:
            depth = _set_depths(v, packed, given.reached)
            greatest = max(greatest, depth)
            if depth < 0:
                cycle[0] = True
    given.deepest[block] = greatest


@njit(inline="always")
def _set_depths(vertex, packed, reached):
    """Set the depths of `vertex` and its ancestors; return its depth, or -1 for a cycle."""
    top, steps = vertex, 0
    while packed[top] >> 32 == -1:
        top = packed[top] & _LOW
        steps += 1
        if steps > reached:
            return -1
    depth = depth_of(packed[top]) + steps
    deepest = depth
    v = vertex
    while v != top:
        parent = packed[v] & _LOW
        packed[v] = depth << 32 | parent
        depth -= 1
        v = parent
    return deepest


@kernel
def find_cycle(packed, sources):
    """Return a vertex of a cycle, the same one in every run; there must be a cycle."""
    visit = np.full(packed.size, -1, np.int64)  # start of the first walk that passed a vertex
    for source in sources:
        visit[source] = packed.size
    for start in range(packed.size):
        v = start
        while packed[v] != UNREACHED and visit[v] == -1:
            visit[v] = start
            v = packed[v] & _LOW
        if visit[v] == start:
            return v
    return sources[0]


def first_wrong_level(level: Array, packed: Array) -> int:
    """Return the first vertex whose level is not its depth; num_vertices if there is none."""
    first = np.full(BLOCKS, level.size)
    _find_wrong_level(level, packed, first, parts=BLOCKS)
    return int(first.min())


@parallel_kernel("level packed first", counted=False)
def _find_wrong_level(given, block, blocks):
    level, packed = given.level, given.packed
    start, stop = part_of(level.size, block, blocks)
    for v in range(start, stop):
        if level[v] != (-1 if packed[v] == UNREACHED else depth_of(packed[v])):
            given.first[block] = v
            return


# One search joins its group


@parallel_kernel("packed depth column", counted=False)
def store_depths(given, part, parts):
    """Copy the depths of a search into its column, which must be all unreached."""
    packed, depth, column = given.packed, given.depth, given.column
    start, stop = part_of(packed.size, part, parts)
    for v in range(start, stop):
        if packed[v] != UNREACHED:
            depth[v, column] = depth_of(packed[v])


@njit(inline="always")
def _tree_edge(packed, v):
    """Return the parent of a vertex; MET for sources, which are their own, and if unreached."""
    parent = packed[v] & _LOW
    return MET if packed[v] == UNREACHED or parent == v else np.uint32(parent)


def count_new_edges(packed: Array, starts: Array, parents: Array) -> Array:
    """Return the number of a search's tree edges that are not stored yet, int64 (BLOCKS,)."""
    new = np.zeros(BLOCKS, np.int64)
    _count_new_edges(packed, starts, parents, new, parts=BLOCKS)
    return new


@parallel_kernel("packed starts parents new", counted=False)
def _count_new_edges(given, block, blocks):
    packed, starts, parents = given.packed, given.starts, given.parents
    start, stop = part_of(packed.size, block, blocks)
    count = 0
    for v in range(start, stop):
        parent = _tree_edge(packed, v)
        known = parent == MET
        for place in range(starts[v], starts[v + 1]):
            known |= parents[place] == parent
        count += not known
    given.new[block] = count


@parallel_kernel(
    "packed bit starts parents searches shift new_starts new_parents new_searches",
    counted=False,
)
def merge_edges(given, block, blocks):
    """Merge the tree edges of one more search into the group's.

    `shift`, int64 (BLOCKS,), is the number of new edges before each block.
    """
    packed, bit = given.packed, given.bit
    starts, parents, searches = given.starts, given.parents, given.searches
    new_parents, new_searches = given.new_parents, given.new_searches
    start, stop = part_of(packed.size, block, blocks)
    end = starts[start] + given.shift[block]
    for v in range(start, stop):
        given.new_starts[v] = end
        parent = _tree_edge(packed, v)
        known = parent == MET
        for place in range(starts[v], starts[v + 1]):
            same = parents[place] == parent
            known |= same
            new_parents[end] = parents[place]
            new_searches[end] = searches[place] | bit if same else searches[place]
            end += 1
        if not known:
            new_parents[end], new_searches[end] = parent, bit
            end += 1


# A group of searches against the input edges


def scan(
    src: Array, dst: Array, depth: Array, starts: Array, parents: Array, directed: bool
) -> tuple[Array, Array]:
    """Compare a chunk of input edges with all searches, and mark the tree edges among them.

    Return the positions of the first edges that fail checks 3 and 4 (int64, shape (2, searches),
    chunk size if none fails) and the number of edges of each search (int64, shape (searches,)).
    """
    searches = depth.shape[1]
    first = np.full((BLOCKS, 2, searches), src.size)
    nedge, read = np.zeros((BLOCKS, searches), np.int64), np.zeros(BLOCKS, np.int64)
    _scan(src, dst, depth, starts, parents, int(directed), first, nedge, read, parts=BLOCKS)
    return first.min(axis=0), nedge.sum(axis=0)


@parallel_kernel("src dst depth starts parents directed first nedge read")
def _scan(given, block, blocks):
    """Process edges in batches. The reads of each step of a batch overlap.

    The sum in `read` has no meaning; it keeps the compiler from removing the early reads.
    """
    src, dst, depth = given.src, given.dst, given.depth
    starts, parents = given.starts, given.parents
    directed, nedge = given.directed != 0, given.nedge[block]
    # Edges (above, below) that some search may have in its tree.
    below = np.empty(2 * _BATCH, np.uint32)
    above = np.empty(2 * _BATCH, np.uint32)
    bounds = np.empty((2 * _BATCH, 2), np.int64)
    counts = np.zeros(depth.shape[1], np.uint8)  # of one batch: no overflow
    read = np.int64(0)
    begin, end = part_of(src.size, block, blocks)
    for batch in range(begin, end, _BATCH):
        stop = min(batch + _BATCH, end)
        for i in range(batch, stop):
            read += np.int64(depth[src[i], 0]) + np.int64(depth[dst[i], 0])
        found = np.int64(0)
        for i in range(batch, stop):
            u, v = src[i], dst[i]
            if u == v:
                continue
            wrong, down, up = _compare(depth, u, v, directed, counts)
            if wrong:
                _note_wrong(depth, u, v, directed, i, given.first[block])
            above[found], below[found] = u, v
            found += np.int64(down)
            above[found], below[found] = v, u
            found += np.int64(up)
        for j in range(found):
            bounds[j, 0], bounds[j, 1] = starts[below[j]], starts[np.int64(below[j]) + 1]
        for j in range(found):
            read += np.int64(parents[bounds[j, 0]])
        for j in range(found):
            _meet(parents, bounds[j, 0], bounds[j, 1], above[j])
        for k in range(counts.size):
            nedge[k] += np.int64(counts[k])
            counts[k] = 0
    given.read[block] = read


def count_ends(input_degree: Array, depth: Array, unreached: int) -> Array:
    """Return the input edges at the vertices that each search reached, int64 (searches,)."""
    counts = np.zeros((BLOCKS, depth.shape[1]), np.int64)
    _count_ends(input_degree, depth, unreached, counts, parts=BLOCKS)
    return np.asarray(counts.sum(axis=0))


@parallel_kernel("input_degree depth unreached counts", counted=False)
def _count_ends(given, block, blocks):
    input_degree, depth, counts = given.input_degree, given.depth, given.counts
    unreached = depth.dtype.type(given.unreached)
    start, stop = part_of(input_degree.size, block, blocks)
    for v in range(start, stop):
        ends = np.int64(input_degree[v])
        for k in range(depth.shape[1]):
            counts[block, k] += ends * np.int64(depth[v, k] != unreached)


@njit(inline="always")
def _compare(depth, u, v, directed, counts):
    """Compare the depths of all searches at the ends of an edge, and count it for its searches.

    Return three flags, 1 or 0: the edge fails a check in some search; it leads one level down in
    some search; it leads one level up in some search of an undirected graph. Every operation stays
    in the dtype of `depth`, as vector instructions require.
    """
    number = depth.dtype.type
    one, two = number(1), number(2)
    minus_one = number(number(0) - one)
    unreached = number(minus_one - one)
    one_way, both_ways = np.uint8(directed), np.uint8(not directed)
    wrong, down, up = _NO, _NO, _NO
    for k in range(counts.size):
        at_u, at_v = depth[u, k], depth[v, k]
        rise = number(at_v - at_u)
        wrong |= np.uint8(number(rise + one) > two) & (np.uint8(at_v > at_u) | both_ways)
        down |= np.uint8(rise == one)
        up |= np.uint8(rise == minus_one)
        belongs = np.uint8(at_u != unreached) & (np.uint8(at_v != unreached) | one_way)
        counts[k] = np.uint8(counts[k] + belongs)
    return wrong, down, up & both_ways


@njit(inline="always")
def _note_wrong(depth, u, v, directed, position, first):
    """Record an edge for the searches where it fails check 3 (row 0) or 4 (row 1)."""
    unreached = np.int64(np.iinfo(depth.dtype).max) - 1
    for k in range(depth.shape[1]):
        at_u, at_v = np.int64(depth[u, k]), np.int64(depth[v, k])
        if at_v - at_u > 1 or (at_u - at_v > 1 and not directed):
            row = 1 if unreached in (at_u, at_v) else 0
            first[row, k] = min(first[row, k], position)


@njit(inline="always")
def _meet(parents, start, stop, parent):
    """Mark the tree edge from `parent` among those to one vertex, if it exists.

    Usually it does not exist. The tiles may reach past the vertex's edges; the exact loop then
    finds no match.
    """
    found = _NO
    for tile in range(start, stop, TILE):
        for k in range(TILE):
            found |= np.uint8(parents[tile + k] == parent)
    if found:
        for place in range(start, stop):
            if parents[place] == parent:
                parents[place] = MET


def first_unmet(starts: Array, parents: Array, searches: Array, num_searches: int) -> Array:
    """Return the first vertex whose tree edge is not an input edge, for each search.

    int64, shape (num_searches,); num_vertices if there is none.
    """
    first = np.full((BLOCKS, num_searches), starts.size - 1)
    _find_unmet(starts, parents, searches, first, parts=BLOCKS)
    return np.asarray(first.min(axis=0))


@parallel_kernel("starts parents searches first", counted=False)
def _find_unmet(given, block, blocks):
    starts, parents, searches = given.starts, given.parents, given.searches
    first = given.first
    start, stop = part_of(starts.size - 1, block, blocks)
    for v in range(start, stop):
        for place in range(starts[v], starts[v + 1]):
            if parents[place] == MET:
                continue
            for k in range(first.shape[1]):
                if searches[place] >> np.uint64(k) & np.uint64(1):
                    first[block, k] = min(first[block, k], v)
