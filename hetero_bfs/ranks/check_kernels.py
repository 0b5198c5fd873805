"""Compiled loops of the distributed validation; they share nothing with the search.

`parents` and `levels`, uint32, are in memory that the ranks of a host share, one item per vertex
(old ids). A parent is stored plus 1, and 0 means none. A level is stored plus 1, and 0 means
unknown. The highest bit of a level is set if the tree edge to the vertex was met among the input
edges. Several ranks may write an item at the same time: they write the same value.
"""

from __future__ import annotations

import numpy as np

from hetero_bfs.support.compiling import kernel

MET = np.uint32(1 << 31)
_ONE = np.uint32(1)


@kernel(counted=False)
def find_levels(parents, levels, begin, end):
    """Find the levels of vertices [begin, end); the source's is known.

    Returns the number of vertices reached, the deepest level, and a vertex whose parents do not
    lead to the source, or -1.
    """
    size = parents.size
    reached, deepest = np.int64(0), np.int64(0)
    for v in range(begin, end):
        if parents[v] == 0:
            continue
        reached += 1
        top, steps = v, np.int64(0)
        while levels[top] == 0:
            up = np.int64(parents[top]) - 1
            if up < 0 or up >= size or parents[up] == 0 or steps > size:
                return reached, deepest, np.int64(v)
            top = up
            steps += 1
        level = np.int64(levels[top]) + steps
        deepest = max(deepest, level - 1)
        here = v
        while here != top:
            levels[here] = level
            level -= 1
            here = np.int64(parents[here]) - 1
    return reached, deepest, np.int64(-1)


@kernel(counted=False)
def check_edges(src, dst, directed, parents, levels):
    """Compare edges with the tree, and mark the tree edges among them.

    Returns the number of edges between reached vertices, the position of an edge with one reached
    end (directed: only its start), and the position of an edge that spans more than one level
    (directed: downwards). A position is -1 if there is none.
    """
    edges, half, long = np.int64(0), np.int64(-1), np.int64(-1)
    low = MET - _ONE
    for i in range(src.size):
        u, v = src[i], dst[i]
        if u == v:
            continue
        at_u, at_v = levels[u] & low, levels[v] & low
        if at_u == 0 or at_v == 0:
            if at_u != at_v and not (directed and at_u == 0):
                half = i
            continue
        edges += 1
        if at_v > at_u + _ONE or (not directed and at_u > at_v + _ONE):
            long = i
        if parents[v] == u + _ONE:
            levels[v] |= MET
        if not directed and parents[u] == v + _ONE:
            levels[u] |= MET
    return edges, half, long
