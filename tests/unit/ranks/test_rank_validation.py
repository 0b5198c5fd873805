"""The distributed validation finds what is wrong, on one host and on several."""

from __future__ import annotations

import numpy as np
import pytest
from graphs import edge_list, nasty
from simulated import share_of
from simulated_ranks import run_ranks

from hetero_bfs.algorithms.bfs.check import validate
from hetero_bfs.algorithms.bfs.check_report import RankValidator

PAIRS = [(0, 1), (1, 2), (2, 3), (0, 4), (4, 4), (5, 6), (3, 4)]
EDGES = edge_list(PAIRS, 8)
RIGHT = [0, 0, 1, 4, 0, -1, -1, -1]

WRONG = {
    "source not its own parent": ([1, 0, 1, 4, 0, -1, -1, -1], 1),
    "cycle": ([0, 2, 1, 4, 0, -1, -1, -1], 1),
    "parent unreached": ([0, 0, 1, 5, 0, -1, -1, -1], 1),
    "parent no vertex": ([0, 0, 1, 77, 0, -1, -1, -1], 1),
    "level skipped": ([0, 0, 1, 2, 3, -1, -1, -1], 3),
    "component not covered": ([0, 0, 1, 4, 0, 0, -1, -1], 4),
    "vertex left out": ([0, 0, -1, 4, 0, -1, -1, -1], 4),
    "no such edge": ([0, 0, 0, 4, 0, -1, -1, -1], 5),
}


def outcomes(edges, source, parent, ranks, host_size):
    whole = np.array(parent, np.int64).astype(np.uint32)

    def run(communicator):
        share = share_of(edges, communicator.rank, ranks)
        validator = RankValidator(communicator, share, None)
        own = whole[communicator.rank :: ranks]
        star = np.full_like(own, source)  # of this the next one must not see anything
        validator.validate(source, star)
        return validator.validate(source, own)

    return run_ranks(ranks, run, host_size)


@pytest.mark.parametrize(("ranks", "host_size"), [(1, 1), (2, 2), (3, 2), (4, 2), (5, 1)])
@pytest.mark.parametrize("name", WRONG)
def test_wrong_trees_fail(name, ranks, host_size):
    parent, check = WRONG[name]
    for outcome in outcomes(EDGES, 0, parent, ranks, host_size):
        assert not outcome.valid
        assert outcome.check == check, outcome.message


ONE_WAY = edge_list([(0, 1), (1, 2), (2, 3), (1, 3), (4, 2), (3, 0), (5, 0)], 6, directed=True)
ONE_WAY_TREE = [0, 0, 1, 1, -1, -1]

WRONG_ONE_WAY = {
    "level skipped": ([0, 0, 1, 2, -1, -1], 3),
    "end left out": ([0, 0, 1, -1, -1, -1], 4),
    "start taken in": ([0, 0, 1, 1, 2, -1], 5),
    "against an edge": ([0, 0, 1, 0, -1, -1], 5),
}


@pytest.mark.parametrize(("ranks", "host_size"), [(1, 1), (3, 2)])
def test_trees_of_a_directed_graph(ranks, host_size):
    for parent, check in WRONG_ONE_WAY.values():
        for outcome in outcomes(ONE_WAY, 0, parent, ranks, host_size):
            assert outcome.check == check, outcome.message
    for outcome in outcomes(ONE_WAY, 0, ONE_WAY_TREE, ranks, host_size):
        assert outcome == validate(ONE_WAY, 0, np.array(ONE_WAY_TREE))


@pytest.mark.parametrize(("ranks", "host_size"), [(1, 1), (2, 2), (3, 2), (4, 2), (5, 1)])
def test_a_right_tree_passes(ranks, host_size):
    for outcome in outcomes(EDGES, 0, RIGHT, ranks, host_size):
        assert outcome.valid, outcome.message
        assert (outcome.reached, outcome.nedge, outcome.depth) == (5, 5, 2)


@pytest.mark.parametrize("name", ["Kronecker 10", "duplicates", "long path", "two components"])
def test_counts_are_those_of_one_process(name):
    edges = nasty(name)
    parent = breadth_first(edges, 1)
    alone = validate(edges, 1, np.array(parent, np.int64))
    for outcome in outcomes(edges, 1, parent, 3, 2):
        assert (outcome.valid, outcome.reached, outcome.nedge, outcome.depth) == (
            alone.valid,
            alone.reached,
            alone.nedge,
            alone.depth,
        )


def breadth_first(edges, source):
    lists = [[] for _ in range(edges.num_vertices)]
    for u, v in zip(edges.src.tolist(), edges.dst.tolist(), strict=True):
        lists[u].append(v)
        lists[v].append(u)
    parent = [-1] * edges.num_vertices
    parent[source] = source
    frontier = [source]
    while frontier:
        coming = []
        for u in frontier:
            for v in lists[u]:
                if parent[v] < 0:
                    parent[v] = u
                    coming.append(v)
        frontier = coming
    return parent
