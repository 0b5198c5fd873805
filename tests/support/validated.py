"""Graphs, right searches of them, and what validation must say, for tests."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from hetero_bfs.graph.edge_list import EdgeList

N = -1  # unreached, short for tables


@dataclass(frozen=True)
class SmallChunks(EdgeList):
    """An edge list that comes three edges at a time, and perhaps every edge both ways."""

    twice: bool = False

    @property
    def both_directions(self):
        return self.twice

    def chunks(self, size=3):
        return super().chunks(size)


def graph(pairs, num_vertices, directed=False, both_directions=False):
    pairs = np.array(pairs, dtype=np.uint32).reshape(-1, 2)
    if both_directions:
        pairs = np.concatenate([pairs, pairs[:, ::-1]])
    src, dst = pairs[:, 0].copy(), pairs[:, 1].copy()
    return SmallChunks(src, dst, num_vertices, directed, twice=both_directions)


def search(pairs, num_vertices, source, directed=False):
    """Plain serial breadth-first search: (parent, level)."""
    lists = [[] for _ in range(num_vertices)]
    for u, v in pairs:
        lists[u].append(v)
        if not directed:
            lists[v].append(u)
    parent, level = [N] * num_vertices, [N] * num_vertices
    parent[source], level[source] = source, 0
    queue = deque([source])
    while queue:
        u = queue.popleft()
        for v in lists[u]:
            if parent[v] == N:
                parent[v], level[v] = u, level[u] + 1
                queue.append(v)
    return np.array(parent, dtype=np.int64), np.array(level, dtype=np.int32)


def count_edges(pairs, parent, directed):
    return sum(u != v and parent[u] != N and (directed or parent[v] != N) for u, v in pairs)


@st.composite
def graphs(draw, most_vertices=12):
    num_vertices = draw(st.integers(1, most_vertices))
    vertex = st.integers(0, num_vertices - 1)
    pairs = draw(st.lists(st.tuples(vertex, vertex), max_size=3 * num_vertices))
    pairs += draw(st.lists(st.sampled_from(pairs), max_size=4)) if pairs else []  # duplicates
    return pairs, num_vertices, draw(vertex), draw(st.booleans())


PAIRS = [(0, 1), (1, 2), (2, 3), (3, 4), (0, 5), (5, 6), (6, 2), (7, 8), (1, 0), (3, 3)]


PARENT = [0, 0, 1, 2, 3, 0, 5, N, N, N]
