"""Right answers by plain Python and NumPy, sharing nothing with the package: slow and simple."""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import replace

import numpy as np

from tests.fuzz.cases import Case, Step


def neighbours(case: Case, either_way: bool = False) -> list[dict[int, float]]:
    """Return for each vertex where its edges lead, and the smallest weight; no loops."""
    lists: list[dict[int, float]] = [{} for _ in range(case.num_vertices)]
    weights = case.weights or [1.0] * len(case.edges)
    for (u, v), weight in zip(case.edges, weights, strict=True):
        ends = [(u, v)] if case.directed and not either_way else [(u, v), (v, u)]
        for a, b in ends if u != v else ():
            lists[a][b] = min(weight, lists[a].get(b, weight))
    return lists


def levels(case: Case, step: Step) -> list[int]:
    """Return distances in edges from the nearest source, -1 where not reached."""
    lists, passed = _lists_of(case, step), set(step.get("mask", ()))
    limit, target = step.get("depth_limit"), step.get("target")
    found = [-1] * case.num_vertices
    for source in step["sources"]:
        found[source] = 0
    waiting = deque(step["sources"])
    while waiting:
        u = waiting.popleft()
        if target is not None and found[target] >= 0:
            limit = min(found[target], found[target] if limit is None else limit)
        if limit is not None and found[u] >= limit:
            break
        for v in lists[u]:
            if found[v] < 0 and v not in passed:
                found[v] = found[u] + 1
                waiting.append(v)
    return found


def _lists_of(case: Case, step: Step) -> list[dict[int, float]]:
    if not (step.get("reverse") and case.directed):
        return neighbours(case)
    return neighbours(replace(case, edges=[(v, u) for u, v in case.edges]))


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


def ranks(
    case: Case, alpha: float, restart: np.ndarray | None = None, weighted: bool = False
) -> np.ndarray:
    """Return PageRank by solving the linear equations.

    Vertices that pass nothing on link to all, in the proportions of restarts.
    """
    n = case.num_vertices
    links = np.zeros((n, n))
    share = np.full(n, 1 / n) if restart is None else restart / restart.sum()
    for u, where in enumerate(neighbours(case)):
        largest = max(where.values(), default=0.0) if weighted else 1.0
        given = {
            v: (w / largest if largest else 0.0) if weighted else 1.0 for v, w in where.items()
        }
        total = sum(given.values())
        for v, part in given.items() if total else ():
            links[v, u] = part / total
        if not total:
            links[:, u] = share
    return np.linalg.solve(np.eye(n) - alpha * links, (1 - alpha) * share)


def tree_problem(case: Case, step: Step, level: list[int], parent: list[int]) -> str | None:
    """Return what keeps `parent` from being trees of shortest paths by `level`, if anything."""
    lists = _lists_of(case, step)
    for v, (depth, above) in enumerate(zip(level, parent, strict=True)):
        if depth <= 0:
            right = above == (v if depth == 0 else -1)
        else:
            right = 0 <= above < len(parent) and level[above] == depth - 1 and v in lists[above]
        if not right:
            return f"vertex {v} of level {depth} has parent {above}"
    return None


def path_problem(case: Case, source: int, right: list[float], parent: list[int]) -> str | None:
    """Return what keeps parents from leading along shortest paths to the source, if anything."""
    lists = neighbours(case)
    for v, above in enumerate(parent):
        if not np.isfinite(right[v]) or v == source:
            if above != (source if v == source else -1):
                return f"vertex {v} has parent {above}"
        elif right[above] + lists[above].get(v, np.inf) != right[v]:
            return f"the edge from {above} to {v} is on no shortest path"
    for v in range(len(parent)):
        steps = 0
        while v != source and parent[v] >= 0 and steps <= len(parent):
            v, steps = parent[v], steps + 1
        if steps > len(parent):
            return "parents go round in a circle"
    return None
