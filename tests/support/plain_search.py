"""Breadth-first search in plain Python: several sources, a mask, a limit, a target."""

from __future__ import annotations

from collections import deque

import numpy as np

from hetero_bfs.graph.edge_list import EdgeList


def lists_of(edges: EdgeList, reverse: bool = False) -> list[list[int]]:
    """Return the neighbours of every vertex."""
    lists: list[list[int]] = [[] for _ in range(edges.num_vertices)]
    for u, v in zip(edges.src.tolist(), edges.dst.tolist(), strict=True):
        if reverse and edges.directed:
            u, v = v, u
        lists[u].append(v)
        if not edges.directed:
            lists[v].append(u)
    return lists


def plain_levels(
    edges: EdgeList, sources, depth_limit=None, target=None, mask=(), reverse=False
) -> np.ndarray:
    """Return the levels, int64, -1 where not reached."""
    lists, masked = lists_of(edges, reverse), set(mask)
    level = dict.fromkeys(sources, 0)
    queue = deque(level)
    while queue:
        u = queue.popleft()
        for v in lists[u]:
            if v not in level and v not in masked:
                level[v] = level[u] + 1
                queue.append(v)
    last = edges.num_vertices if depth_limit is None else depth_limit
    last = min(last, level.get(target, last))
    found = np.full(edges.num_vertices, -1, np.int64)
    for v, depth in level.items():
        if depth <= last:
            found[v] = depth
    return found
