"""The check of shortest paths finds each kind of fault."""

from __future__ import annotations

import numpy as np
import pytest

import hetero_bfs as hb
from hetero_bfs.algorithms.base import open_analysis
from hetero_bfs.algorithms.sssp.algorithm import PathSearches
from hetero_bfs.algorithms.sssp.check import PathChecker
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.generators.kronecker import KroneckerEdges
from hetero_bfs.options import EngineOptions

#  0 -2- 1 -2- 2,  0 -5- 2,  3 -1- 4, and 5 alone
EDGES = EdgeList.from_arrays([0, 1, 0, 3], [1, 2, 2, 4], 6, weights=np.array([2, 2, 5, 1]))
INF = np.inf
DISTANCE = [0, 2, 4, INF, INF, INF]
PARENT = [0, 0, 1, -1, -1, -1]


def changed(values, **at):
    return [at.get(f"v{i}", value) for i, value in enumerate(values)]


def test_sound_paths_pass():
    assert hb.check_paths(EDGES, 0, np.array(DISTANCE), np.array(PARENT)).valid


@pytest.mark.parametrize(
    ("distance", "parent", "said"),
    [
        (changed(DISTANCE, v0=1), PARENT, "check 1 .the source.: distance 1.0"),
        (DISTANCE, changed(PARENT, v0=1), "check 1 .* parent 1"),
        (changed(DISTANCE, v3=7), PARENT, "check 2 .*: vertex 3"),
        (DISTANCE, changed(PARENT, v3=0), "check 2 .*: vertex 3"),
        (DISTANCE, changed(PARENT, v2=6), "check 2 .*: vertex 2"),
        (changed(DISTANCE, v1=np.nan), PARENT, "check 2 .*: vertex 1"),
        (changed(DISTANCE, v2=5), changed(PARENT, v2=0), "check 3 .* edge .1, 2. of weight 2"),
        (changed(DISTANCE, v2=3), PARENT, "check 4 .* parent 1 to vertex 2"),
        (DISTANCE, changed(PARENT, v2=0), "check 4 .* parent 0 to vertex 2"),
        (
            changed(DISTANCE, v3=0, v4=1),
            changed(PARENT, v3=4, v4=3),
            "check 4 .* parent 4 to vertex 3",
        ),
    ],
)
def test_each_fault_is_found(distance, parent, said):
    check = hb.check_paths(EDGES, 0, np.array(distance, float), np.array(parent))
    assert not check.valid
    with pytest.raises(hb.ValidationError, match=said):
        check.raise_if_invalid()


def test_a_circle_of_parents_over_edges_of_weight_0_is_found():
    edges = EdgeList.from_arrays([0, 1, 1], [1, 2, 3], weights=[1, 0, 0], directed=False)
    distance = np.array([0.0, 1.0, 1.0, 1.0])
    assert hb.check_paths(edges, 0, distance, np.array([0, 0, 1, 1])).valid
    said = hb.check_paths(edges, 0, distance, np.array([0, 2, 1, 1])).message
    assert "check 5" in said


def test_sums_are_those_of_the_distances_type():
    """Of float32 if they fit, else of float64; there is no tolerance."""
    third, step = np.float32(1) / np.float32(3), np.float32(1e-7)
    edges = EdgeList.from_arrays([0, 1, 2], [1, 2, 3], weights=np.array([third, third, step]))
    narrow = np.cumsum(np.array([0, third, third, step], np.float32), dtype=np.float32)
    wide = np.cumsum(np.array([0, third, third, step], np.float64))
    parent = np.array([0, 0, 1, 2])
    assert narrow[3] != wide[3]
    for sums in (narrow, wide):
        assert hb.check_paths(edges, 0, sums, parent).valid
    for sums in (np.nextafter(narrow, np.float32(9)), np.nextafter(narrow, np.float32(0))):
        sums[:3] = narrow[:3]
        said = hb.check_paths(edges, 0, sums, parent).message
        assert "check 3" in said or "check 4" in said


def weighted_graphs():
    edges = KroneckerEdges(8, 8, 3, 4, weighted=True).materialise()
    kinds = (np.float32, 1, False), (np.int32, 50, True), (np.float64, 1, False)
    return [
        EdgeList.from_arrays(
            edges.src, edges.dst, 256, directed, (edges.weights * factor).astype(dtype)
        )
        for dtype, factor, directed in kinds
    ]


def outcomes(edges, searches):
    checker = PathChecker(edges)
    for source, distance, parent in searches:
        checker.add(source, distance, parent)
    return checker.finish()


@pytest.mark.parametrize("edges", weighted_graphs())
def test_groups_find_what_single_checks_find(edges):
    sources = np.bincount(edges.src).argsort()[-16:]
    with open_analysis(PathSearches, edges, EngineOptions(device="cpu", threads=1)) as paths:
        found = [paths.run(int(source)) for source in sources]
    searches = [(r.source, r.distance.copy(), r.parent.copy()) for r in found]
    whole = outcomes(edges, searches)
    assert all(outcome.valid for outcome in whole)
    graph = hb.CSRGraph.from_edge_source(edges)
    assert outcomes(graph, searches) == whole
    kept = edges.src != edges.dst
    for outcome, result in zip(whole, found, strict=True):
        reached = np.isfinite(result.distance)
        assert outcome.reached == reached.sum()
        assert outcome.nedge == (reached[edges.src] & kept).sum()
    near = [np.flatnonzero(np.isfinite(d) & (d > 0)) for _, d, _ in searches]
    searches[1][1][near[1][-1]] *= 2  # a longer way
    searches[2][1][near[2][0]] /= 2
    searches[3][2][near[3][1]] = near[3][2]
    searches[4][1][sources[4]] = 1
    searches[5][1][near[5][3]] = np.inf
    singles = [hb.check_paths(edges, *search) for search in searches]
    broken = outcomes(edges, searches)
    assert [o.message for o in broken] == [s.message for s in singles]
    assert [o.valid for o in broken] == [s.valid for s in singles]
    assert [number for number, o in enumerate(broken) if not o.valid] == [1, 2, 3, 4, 5]


def test_a_group_of_searches_with_sums_of_both_types():
    """Far ones are beyond float32; those from vertex 4 are rounded to it, and others in float64."""
    third = 1 / 3
    edges = EdgeList.from_arrays(
        [0, 1, 4, 5], [1, 2, 5, 6], 7, weights=np.array([3e38, 3e38, third, 1e-7], np.float32)
    )
    found = [hb.sssp(edges, source) for source in (0, 4, 1, 6)]
    assert found[0].distance[2] > 5e38
    searches = [(result.source, result.distance, result.parent) for result in found]
    assert [outcome.valid for outcome in outcomes(edges, searches)] == [True] * 4
    searches[1][1][6] = np.float64(np.float32(third)) + np.float64(np.float32(1e-7))
    assert [outcome.valid for outcome in outcomes(edges, searches)] == [True] * 4
    searches[1][1][6] += 1e-12
    assert [outcome.valid for outcome in outcomes(edges, searches)] == [True, False, True, True]


def test_wrong_arguments():
    with pytest.raises(hb.ArgumentError, match="distance has shape"):
        hb.check_paths(EDGES, 0, np.zeros(3), np.zeros(6, int))
    with pytest.raises(hb.GraphError, match="no weights"):
        hb.check_paths(EdgeList([0], [1], 2), 0, np.zeros(2), np.zeros(2, int))
