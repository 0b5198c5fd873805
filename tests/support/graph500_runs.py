"""Graph500 runs of scale 10 for tests, right ones and broken ones."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from unittest import mock

import numpy as np
from oracle import true_levels

from hetero_bfs.algorithms.bfs import algorithm
from hetero_bfs.algorithms.bfs import search as searches
from hetero_bfs.graph.generators.kronecker import KroneckerEdges
from hetero_bfs.graph500.kernel import Graph500Options
from hetero_bfs.graph500.protocol import run_graph500
from hetero_bfs.graph500.report import Graph500Report
from hetero_bfs.options import EngineOptions

ON_CPU = EngineOptions(selector="fixed:TC", device="cpu")


QUICK = Graph500Options(scale=10, energy_seconds=0.01, engine=ON_CPU)


@cache
def edges():
    return KroneckerEdges(10).materialise()


def run(device, **changes) -> Graph500Report:
    """Run on a DeviceInfo, or on the CPU alone (None)."""
    engine = {name: changes.pop(name) for name in changes.keys() & vars(ON_CPU).keys()}
    if device is None:
        return run_graph500(replace(QUICK, engine=replace(ON_CPU, **engine), **changes))
    engine = replace(ON_CPU, device=None, **engine)
    with mock.patch("hetero_bfs.options.choose_devices", return_value=[device] if device else []):
        return run_graph500(replace(QUICK, engine=engine, **changes))


@cache
def full(device) -> Graph500Report:
    return run(device, selector="fixed:TC,BC" if device is None else "fixed:TG,BG,TC,BGC")


def pick(source: int, level: int, nth: int = 0) -> int:
    return int(np.flatnonzero(true_levels(edges(), source) == level)[nth])


def leaf(parent: np.ndarray) -> int:
    """Return a reached vertex that is nobody's parent."""
    inner = np.unique(parent[parent >= 0])
    return int(np.setdiff1d(np.flatnonzero(parent >= 0), inner)[0])


def lose_one(parent, source):
    parent[v := leaf(parent)] = -1
    return 4, v


def wrong_key(parent, source):
    parent[source] = pick(source, 1)
    return 1, source


def no_edge(parent, source):
    """A vertex of level 2 hangs from one of level 1 that is not its neighbour."""
    near = {*zip(edges().src.tolist(), edges().dst.tolist(), strict=True)}
    levels = true_levels(edges(), source)
    for v in np.flatnonzero(levels == 2).tolist():
        for u in np.flatnonzero(levels == 1).tolist():
            if (u, v) not in near and (v, u) not in near:
                parent[v] = u
                return 5, v
    raise AssertionError("every pair is joined")


def no_vertex(parent, source):
    parent[v := leaf(parent)] = 5000
    return 1, v


def cycle_of_two(parent, source):
    u, v = pick(source, 2, 0), pick(source, 2, 1)
    parent[u], parent[v] = v, u
    return 1, None


def own_parent(parent, source):
    v = pick(source, 2)
    parent[v] = v
    return 1, v


BREAKS = {
    f.__name__: f for f in (lose_one, wrong_key, no_edge, no_vertex, cycle_of_two, own_parent)
}


class Breaking:
    """Replaces what restores parents: those of searches from 220 come back broken."""

    def __init__(self, how: str) -> None:
        self.how = how
        self.expected = None
        self.restore = searches.restored

    def __call__(self, search, sources, want, dtype):
        parent = self.restore(search, sources, want, dtype)
        if tuple(sources) == (220,):
            self.expected = BREAKS[self.how](parent, 220)
        return parent

    def patch(self):
        return mock.patch.object(algorithm, "restored", self)
