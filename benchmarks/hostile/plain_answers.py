"""Right answers by plain Python and NumPy, sharing nothing with the package: slow and simple."""

from __future__ import annotations

import heapq
from collections import deque

import numpy as np

from benchmarks.hostile.cases import Case


def neighbours(case: Case, either_way: bool = False) -> list[dict[int, float]]:
    """Return for each vertex where its edges lead, and the smallest weight; no loops."""
    lists: list[dict[int, float]] = [{} for _ in range(case.num_vertices)]
    weights = case.weights or [1.0] * len(case.edges)
    for (u, v), weight in zip(case.edges, weights, strict=True):
        ends = [(u, v)] if case.directed and not either_way else [(u, v), (v, u)]
        for a, b in ends if u != v else ():
            lists[a][b] = min(weight, lists[a].get(b, weight))
    return lists


def levels(case: Case, source: int) -> list[int]:
    """Return distances in edges, -1 where not reached."""
    lists, found = neighbours(case), [-1] * case.num_vertices
    found[source], waiting = 0, deque([source])
    while waiting:
        u = waiting.popleft()
        for v in lists[u]:
            if found[v] < 0:
                found[v] = found[u] + 1
                waiting.append(v)
    return found


def distances(case: Case, source: int) -> list[float]:
    """Return the sums of weights along shortest paths, inf where not reached."""
    lists, found = neighbours(case), [np.inf] * case.num_vertices
    found[source], heap = 0.0, [(0.0, source)]
    while heap:
        distance, u = heapq.heappop(heap)
        if distance > found[u]:
            continue
        for v, weight in lists[u].items():
            if distance + weight < found[v]:
                found[v] = distance + weight
                heapq.heappush(heap, (found[v], v))
    return found


def components(case: Case) -> list[int]:
    """Return the smallest vertex of each one's component, edges taken both ways."""
    above = list(range(case.num_vertices))

    def top(v: int) -> int:
        while above[v] != v:
            v = above[v]
        return v

    for u, v in case.edges:
        first, second = sorted((top(u), top(v)))
        above[second] = first
    return [top(v) for v in range(case.num_vertices)]


def ranks(case: Case, alpha: float) -> np.ndarray:
    """Return PageRank by solving the linear equations; those without out-edges link to all."""
    n = case.num_vertices
    links = np.zeros((n, n))
    for u, where in enumerate(neighbours(case)):
        for v in where:
            links[v, u] = 1 / len(where)
        if not where:
            links[:, u] = 1 / n
    return np.linalg.solve(np.eye(n) - alpha * links, np.full(n, (1 - alpha) / n))


def tree_problem(case: Case, source: int, level: list[int], parent: list[int]) -> str | None:
    """Return what keeps `parent` from being a tree of shortest paths by `level`, if anything."""
    lists = neighbours(case)
    for v, (depth, above) in enumerate(zip(level, parent, strict=True)):
        if depth < 0 or v == source:
            right = above == (-1 if depth < 0 else source)
        else:
            right = 0 <= above < len(parent) and level[above] == depth - 1 and v in lists[above]
        if not right:
            return f"vertex {v} of level {depth} has parent {above}"
    return None
