"""Vertex programs on every OpenCL device: the same results as on the host.

The host's are compared with a plain interpreter in tests/unit/programs/test_program_runs.py.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar
from unittest import mock

import numpy as np
import pytest
from graphs import SEARCHABLE_NAMES, nasty
from sample_programs import (
    Communities,
    Distances,
    Extremes,
    Farthest,
    Labels,
    MonotoneDistances,
    Parents,
    Parity,
    Ranks,
    Reached,
    Votes,
)

import hetero_bfs as hb
from hetero_bfs.algorithms.bfs.check import validate
from hetero_bfs.algorithms.program_runs import ProgramRuns
from hetero_bfs.errors import DeviceError
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.generators.kronecker import KroneckerEdges
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.programs import device as device_run

DIRECTIONS = ("auto", "push", "pull")
COUNTED = ("loops only", "duplicates", "isolated vertices", "star", "two hubs", "Kronecker 10")


def weighted(edges: EdgeList, dtype=np.float32) -> EdgeList:
    weights = np.random.default_rng(1).integers(0, 9, edges.src.size).astype(dtype)
    return EdgeList(edges.src, edges.dst, edges.num_vertices, edges.directed, weights)


def long_lists(heavy: int = 40):
    """Have lists of over `heavy` entries be long ones, in pieces of 64."""
    return mock.patch.multiple(device_run, _HEAVY_EDGES=heavy, _PIECE_EDGES=64)


def runs_of(edges, device, order: str = "auto", heavy: int = 40) -> ProgramRuns:
    """Make a graph ready; lists of over `heavy` entries are long ones for the device."""
    with long_lists(heavy):
        return ProgramRuns(build_search_graph(edges, order), 2, device)


def both(runs: ProgramRuns, program, direction: str = "auto", **parameters):
    """Run on the host and on the device; 200 iterations are several batches of launches."""
    with long_lists():
        results = [
            runs.run(program, parameters, hb.RunOptions(200, direction, place=place))
            for place in ("cpu", "device")
        ]
    assert not runs.notes, runs.notes
    assert results[1].iterations == results[0].iterations
    assert results[1].converged == results[0].converged
    return results


def same(results, field: str) -> None:
    host, device = results
    np.testing.assert_array_equal(device.state[field], host.state[field])


@pytest.mark.sampled(8)
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", SEARCHABLE_NAMES)
def test_every_shape(plain_device, name, directed):
    edges = weighted(nasty(name, directed))
    if not build_search_graph(edges).num_searched:
        return  # such graphs never come to a device
    with runs_of(edges, plain_device) as runs:
        for direction in ("push", "pull"):
            same(both(runs, Distances(), direction, source=0), "distance")
            results = both(runs, Labels(), direction)
            same(results, "label")
            same(results, "changes")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", COUNTED)
def test_the_most_frequent_message(plain_device, name, directed):
    edges = weighted(nasty(name, directed), np.int32)
    order = "given" if directed else "auto"
    if not build_search_graph(edges, order).num_searched:
        return
    with runs_of(edges, plain_device, order) as runs:
        same(both(runs, Communities(), rounds=5), "label")
        if plain_device.has_double:
            for field in ("vote", "none"):
                same(both(runs, Votes(), rounds=7), field)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", COUNTED)
def test_methods_that_combine(plain_device, name, directed):
    edges = weighted(nasty(name, directed), np.int32)
    if not build_search_graph(edges).num_searched:
        return
    with runs_of(edges, plain_device) as runs:
        for direction in DIRECTIONS:
            same(both(runs, Farthest(), direction), "label")
            same(both(runs, Parity(), direction, rounds=5), "bits")


@pytest.mark.parametrize("way", ["in", "both"])
@pytest.mark.parametrize("name", ["star", "Kronecker 10"])
def test_against_edges_and_both_ways(plain_device, name, way):
    edges = weighted(nasty(name, directed=True))
    mask = (np.arange(edges.num_vertices) % 7 == 0).astype(np.uint32) << 3
    with runs_of(edges, plain_device) as runs:
        for program, field, parameters in (
            (Reached(), "mask", {"mask": mask}),
            (Distances(), "distance", {"source": int(edges.dst[0])}),
            (Communities(), "label", {"rounds": 4}),
        ):
            program.along = way
            for direction in ("push", "pull"):
                same(both(runs, program, direction, **parameters), field)


@pytest.mark.parametrize("name", ["star", "grid", "Kronecker 10"])
def test_messages_without_an_identity_and_masks(plain_device, name):
    edges = nasty(name, directed=True)
    mask = (np.arange(edges.num_vertices) % 7 == 0).astype(np.uint32) << 3
    with runs_of(edges, plain_device) as runs:
        for direction in DIRECTIONS:
            same(both(runs, Reached(), direction, mask=mask), "mask")
            host, device = both(runs, Parents(), direction, source=0)
            np.testing.assert_array_equal(device.parent < 0, host.parent < 0)


@pytest.mark.parametrize("order", ["given", "degree", "locality", "compact"])
def test_every_order_and_the_edges_scanned(plain_device, order):
    edges = weighted(KroneckerEdges(10).materialise())
    with runs_of(edges, plain_device, order) as runs:
        for direction in ("push", "pull"):
            results = both(runs, Distances(), direction, source=int(edges.src[0]))
            same(results, "distance")
            host, device = results
            assert [t.edges_scanned for t in device.traces] == [
                t.edges_scanned for t in host.traces
            ]
            assert {t.strategy for t in device.traces} == {f"device {direction}"}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", ["Kronecker 10", "star", "grid"])
def test_a_monotone_program_sends_parts_of_lists(plain_device, name, directed):
    """Long lists wait for the grid in pushes, and for a work-group in the pull."""
    edges = nasty(name, directed)
    weights = np.random.default_rng(3).exponential(5.0, edges.src.size).astype(np.float32)
    weights[::5] = np.inf
    weights[::3] = 0
    edges = replace(edges, weights=weights)
    parameters = {"source": int(edges.src[0])}
    with runs_of(edges, plain_device) as runs, mock.patch.object(device_run, "_HEAVY_EDGES", 40):
        expected = runs.run(Distances(), parameters, hb.RunOptions(place="cpu")).distance
        for options in (
            {}, {"bucket_width": 2.0}, {"bucket_width": np.inf}, {"direction": "push"},
            {"direction": "pull"},
        ):  # fmt: skip
            given = hb.RunOptions(place="device", **options)
            result = runs.run(MonotoneDistances(), parameters, given)
            np.testing.assert_array_equal(result.distance, expected)
            assert result.converged
        assert not runs.notes, runs.notes


class Starts(hb.Program):
    """Numbers of edges from vertices with a cost to begin at them: `MonotoneDistances` by one."""

    state: ClassVar = {"distance": np.int32}
    combine = hb.minimum
    monotone = True

    def initial(self, cost):
        return cost

    def message(self, state):
        return state.distance + 1

    def apply(self, state, combined):
        return min(state.distance, combined)

    def priority(self, state):
        return state.distance


@pytest.mark.parametrize("seed", range(4))
def test_a_monotone_program_without_weights_from_leaves_of_many_costs(plain_device, seed):
    """Pulls stop by the messages of vertices that wait, also of those that cannot send any more."""
    random = np.random.default_rng(seed)
    core, leaves = 200, 50
    near = random.integers(0, core, 2000)
    far = np.clip(near + random.integers(-12, 13, near.size), 0, core - 1)
    src = np.append(near, np.arange(core, core + leaves))
    dst = np.append(far, random.integers(0, core, leaves))
    cost = np.where(random.random(core + leaves) < 0.5, random.integers(5, 60, core + leaves), 9999)
    cost[core:], cost[0] = random.integers(5, 60, leaves), 0
    parameters = {"cost": cost.astype(np.int32)}
    edges = EdgeList(src, dst, core + leaves)
    with runs_of(edges, plain_device) as runs:
        expected = runs.run(Starts(), parameters, hb.RunOptions(place="cpu")).distance
        for width in (None, 4.0, 16.0, 40.0):
            options = hb.RunOptions(place="device", bucket_width=width)
            result = runs.run(Starts(), parameters, options)
            np.testing.assert_array_equal(result.distance, expected)
        assert not runs.notes, runs.notes


def test_a_monotone_program_scans_the_edges_that_it_scans_on_the_host(plain_device):
    """Of long lists in the pull a work-group scans all."""
    edges = weighted(KroneckerEdges(12).materialise())
    parameters = {"source": int(edges.src[0])}
    with runs_of(edges, plain_device) as runs:
        host, device = (
            runs.run(MonotoneDistances(), parameters, hb.RunOptions(place=place))
            for place in ("cpu", "device")
        )
        plain = runs.run(Distances(), parameters, hb.RunOptions(place="device"))
    np.testing.assert_array_equal(device.distance, host.distance)
    np.testing.assert_array_equal(plain.distance, host.distance)
    scanned = [[t.edges_scanned for t in one.traces] for one in (host, device, plain)]
    assert [t.strategy for t in device.traces].count("device pull") == 1
    assert scanned[1] == scanned[0]
    assert 2 * sum(scanned[1]) < sum(scanned[2])


def test_directions_of_each_iteration(plain_device):
    plan = ("device push", "device pull", "device pull", "device push", "device pull")
    edges = nasty("Kronecker 10")
    with runs_of(edges, plain_device) as runs:
        for runs.clocked in (False, True):
            expected = runs.run(Labels(), {}, hb.RunOptions(place="cpu"))
            result = runs.run(Labels(), {}, hb.RunOptions(schedule=plan))
            np.testing.assert_array_equal(result.label, expected.label)
            taken = [trace.strategy for trace in result.traces]
            assert taken == [*plan, *[plan[-1]] * len(taken)][: len(taken)]
            assert result.migrated_bytes == 0


def test_parents_are_a_tree(plain_device):
    edges = KroneckerEdges(10).materialise()
    source = int(edges.src[0])
    with hb.Engine(edges, device=str(plain_device.index)) as engine:
        level = engine.bfs(source).level
    with runs_of(edges, plain_device) as runs:
        for direction in DIRECTIONS:
            _, device = both(runs, Parents(), direction, source=source)
            check = validate(edges, source, device.parent.astype(np.int64), level)
            assert check.valid, check.message


def test_sums_are_the_same_in_every_run(plain_device):
    if not plain_device.has_double:
        pytest.skip(f"{plain_device.name} has no doubles, which the states need")
    edges = KroneckerEdges(10).materialise()
    with runs_of(edges, plain_device) as runs:
        host, device = both(runs, Ranks(), alpha=0.85, tol=1e-9)
        np.testing.assert_allclose(device.rank, host.rank, rtol=1e-12)
        assert device.rank.sum() == pytest.approx(1.0)
        assert device.totals["change"] == pytest.approx(host.totals["change"], rel=1e-6)
        again = both(runs, Ranks(), alpha=0.85, tol=1e-9)[1]
        np.testing.assert_array_equal(again.rank, device.rank)


@pytest.mark.parametrize("name", ["isolated vertices", "two hubs", "Kronecker 10"])
def test_totals_of_every_kind(plain_device, name):
    if not plain_device.has_double:
        pytest.skip(f"{plain_device.name} has no doubles, which totals need")
    with runs_of(nasty(name, directed=True), plain_device) as runs:
        for direction in DIRECTIONS:
            results = host, device = both(runs, Extremes(), direction)
            same(results, "label")
            assert device.totals == host.totals


def test_limits_and_places(plain_device):
    edges = weighted(nasty("grid"))
    with runs_of(edges, plain_device) as runs:
        for limit in (0, 1, 3):
            options = [
                hb.RunOptions(max_iterations=limit, place=place) for place in ("cpu", "device")
            ]
            host, device = (runs.run(Labels(), {}, option) for option in options)
            assert (device.iterations, device.converged) == (limit, False)
            assert (host.iterations, host.converged) == (limit, False)
            np.testing.assert_array_equal(device.label, host.label)
    with (
        mock.patch.object(ProgramRuns, "_is_trained", return_value=False),
        runs_of(edges, plain_device) as runs,
    ):
        used = [runs.run(Labels(), {}, hb.RunOptions()).traces[0].strategy for _ in range(4)]
        assert [name.startswith("device") for name in used] == [False, False, True, True]


def test_a_device_that_cannot_run_it(plain_device):
    edges = weighted(nasty("grid"))
    small = replace(plain_device, has_double=False)
    with runs_of(edges, small) as runs:
        runs.run(Ranks(), {"alpha": 0.85, "tol": 1e-3}, hb.RunOptions())
        assert "Ranks runs on the CPU only: Ranks needs float64, which" in runs.notes[0]
        options = hb.RunOptions(place="device")
        with pytest.raises(DeviceError, match="no OpenCL device is in use that can run it"):
            runs.run(Ranks(), {"alpha": 0.85, "tol": 1e-3}, options)
    tiny = replace(plain_device, memory_bytes=1000, max_alloc_bytes=1000)
    with runs_of(edges, tiny) as runs:
        assert "is left out of vertex programs: programs need" in runs.notes[0]
