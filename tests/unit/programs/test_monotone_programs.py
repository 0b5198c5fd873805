"""Monotone programs on the host: the results of the same program without the promise."""

from __future__ import annotations

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from graphs import nasty
from oracle import true_levels
from sample_programs import Distances, MonotoneDistances

import hetero_bfs as hb
from hetero_bfs.algorithms.program_runs import ProgramRuns
from hetero_bfs.algorithms.sssp.algorithm import PathSearches
from hetero_bfs.errors import GraphError, ProgramError
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.graph.weighted_lists import WeightedLists
from hetero_bfs.programs import host as host_run


class Levels(hb.Program):
    """Integers, no weights, no `receives`, and a field beside the priority."""

    state = {"level": np.int32, "changes": np.int32}  # noqa: RUF012
    combine = hb.minimum
    monotone = True

    def initial(self, vertex, source):
        return (0, 0) if vertex == source else (2147483647, 0)

    def message(self, state):
        return state.level + 1

    def apply(self, state, combined):
        if combined < state.level:
            return combined, state.changes + 1
        return state.level, state.changes

    def priority(self, state):
        return state.level


class Broken(MonotoneDistances):
    """Messages below the sender's priority, and the lower the heavier the edge."""

    def message(self, state, weight):
        return max(state.distance - weight, 0.5) + 0.25 * weight


def drawn_weights(kind: str, count: int) -> np.ndarray:
    draw = np.random.default_rng(3)
    if kind == "ties and zeros":
        return draw.integers(0, 3, count).astype(np.float32)
    weights = draw.exponential(5.0, count).astype(np.float32)
    if kind == "infinite":
        weights[draw.random(count) < 0.3] = np.inf
    return weights


def prepared(edges: EdgeList, threads: int = 2) -> ProgramRuns:
    with mock.patch.object(host_run, "_POOL_EDGES", 1):
        return ProgramRuns(build_search_graph(edges), threads)


def with_weights(name: str, directed: bool, kind: str) -> EdgeList:
    edges = nasty(name, directed)
    weights = drawn_weights(kind, edges.src.size)
    return EdgeList(edges.src, edges.dst, edges.num_vertices, directed, weights)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("kind", ["ties and zeros", "fractions", "infinite"])
@pytest.mark.parametrize("name", ["Kronecker 10", "complete", "dense random", "star", "grid"])
def test_weights_and_buckets(name, kind, directed):
    edges = with_weights(name, directed, kind)
    parameters = {"source": int(edges.src[0])}
    with prepared(edges) as runs, mock.patch.object(host_run, "_POOL_EDGES", 1):
        expected = runs.run(Distances(), parameters, hb.RunOptions()).distance
        for direction in ("auto", "push", "pull"):
            for width in (None, 1e-3, 0.5, np.inf):
                options = hb.RunOptions(direction=direction, bucket_width=width)
                result = runs.run(MonotoneDistances(), parameters, options)
                np.testing.assert_array_equal(result.distance, expected)
                assert result.converged


def test_fewer_edges_are_scanned_and_one_iteration_pulls():
    edges = with_weights("Kronecker 12", False, "fractions")
    with prepared(edges, 1) as runs:
        parameters = {"source": int(edges.src[0])}
        plain = runs.run(Distances(), parameters, hb.RunOptions())
        fast = runs.run(MonotoneDistances(), parameters, hb.RunOptions())
        np.testing.assert_array_equal(fast.distance, plain.distance)
        assert [trace.strategy for trace in fast.traces].count("pull") == 1
        scanned = [sum(t.edges_scanned for t in result.traces) for result in (plain, fast)]
        assert 2 * scanned[1] < scanned[0]
        limited = runs.run(MonotoneDistances(), parameters, hb.RunOptions(max_iterations=2))
        assert (limited.iterations, limited.converged) == (2, False)
        again = runs.run(MonotoneDistances(), parameters, hb.RunOptions())
        np.testing.assert_array_equal(again.distance, plain.distance)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", ["Kronecker 10", "loops only", "tree", "isolated vertices"])
def test_without_weights(name, directed):
    edges = nasty(name, directed)
    source = int(edges.src[0])
    level = true_levels(edges, source)
    with prepared(edges) as runs, mock.patch.object(host_run, "_POOL_EDGES", 1):
        for direction in ("auto", "push", "pull"):
            options = hb.RunOptions(direction=direction)
            result = runs.run(Levels(), {"source": source}, options)
            np.testing.assert_array_equal(result.level, np.where(level < 0, 2147483647, level))
            assert not result.state["changes"][level <= 0].any()


def test_a_broken_promise_ends():
    edges = with_weights("Kronecker 10", True, "fractions")
    with prepared(edges) as runs:
        for direction in ("auto", "push", "pull"):
            options = hb.RunOptions(max_iterations=2000, direction=direction)
            result = runs.run(Broken(), {"source": int(edges.src[0])}, options)
            assert result.distance.shape == (edges.num_vertices,)


def test_what_cannot_be_monotone():
    class Greatest(MonotoneDistances):
        combine = hb.maximum

    class Aimless(MonotoneDistances):
        priority = None

    edges = with_weights("grid", False, "fractions")
    with prepared(edges) as runs:
        for program in (Greatest(), Aimless()):
            with pytest.raises(ProgramError, match="a monotone program has `priority`"):
                runs.run(program, {"source": 0}, hb.RunOptions())
    negative = replace(edges, weights=edges.weights - 1)
    with prepared(negative) as runs, pytest.raises(GraphError, match="monotone programs need"):
        runs.run(MonotoneDistances(), {"source": 0}, hb.RunOptions())


def test_searches_share_the_sorted_lists():
    graph = build_search_graph(with_weights("grid", False, "fractions"))
    with PathSearches(graph, 1) as searches:
        assert WeightedLists.of(graph, "programs") is searches.lists
