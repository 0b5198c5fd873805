"""Modes of vertex programs: the fixed points of the mode "synchronous", on the host and on devices.

The mode "synchronous" is compared with plain Python in tests/unit/programs/test_program_runs.py.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from graphs import SEARCHABLE_NAMES, nasty
from sample_programs import Distances, Labels, Parents, Ranks, Reached

import hetero_bfs as hb
from hetero_bfs.algorithms.bfs.check import validate
from hetero_bfs.algorithms.program_runs import ProgramRuns
from hetero_bfs.errors import ArgumentError, DeviceError, GraphError, GridStalledError
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.io.registry import write
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.programs import device as device_run
from hetero_bfs.programs import device_sweeps, renumbered
from hetero_bfs.programs import host as host_run
from hetero_bfs.programs.renumbered import PlacedGraph

MODES = {"asynchronous": {"mode": "asynchronous"}, "layered": {"mode": "layered", "root": 0}}


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    """Lists of over 40 entries are long ones, levels of fewer than 500 edges are joined.

    A GPU joins the same levels, so sweeps are the same on all places.
    """
    monkeypatch.setattr(device_sweeps, "_RESIDENT_ITEMS", 0)
    monkeypatch.setattr(device_sweeps, "_HEAVY_EDGES_OF_CPU", 40)
    monkeypatch.setattr(device_sweeps, "_HEAVY_EDGES", 40)
    monkeypatch.setattr(renumbered, "_PART_EDGES", 500)
    monkeypatch.setattr(host_run, "_POOL_EDGES", 1)
    monkeypatch.setattr(host_run, "_FIRST_PORTION", 1)


def weighted(edges: EdgeList) -> EdgeList:
    weights = np.random.default_rng(1).integers(0, 9, edges.src.size).astype(np.float32)
    return EdgeList(edges.src, edges.dst, edges.num_vertices, edges.directed, weights)


def in_all_places(runs: ProgramRuns, program, mode: str, parameters):
    """Run in a mode on the host, then on the device twice; return both places' last results."""
    results = []
    for place in [place for place in ("cpu", "device") if place == "cpu" or runs.device]:
        for _ in range(2):  # the second one finds what the first one left
            result = runs.run(program, parameters, hb.RunOptions(place=place, **MODES[mode]))
        strategy = mode if place == "cpu" else f"device {mode}"
        assert {trace.strategy for trace in result.traces} <= {strategy}
        assert len(result.traces) == result.iterations
        assert result.converged
        results.append(result)
    assert not runs.notes, runs.notes
    assert len({result.iterations for result in results}) == 1
    return results


def edges_of(result) -> list[int]:
    return [trace.edges_scanned for trace in result.traces]


@pytest.fixture
def in_launches(monkeypatch):
    """A device goes through joined levels in many launches, as a GPU does."""
    monkeypatch.setattr(device_sweeps, "combined_edges", lambda info: 3000)
    monkeypatch.setattr(device_sweeps, "most_in_one_group", lambda info: 200)


# Results


@pytest.mark.sampled(24)
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", SEARCHABLE_NAMES)
def test_every_shape(plain_device, name, directed):
    edges = weighted(nasty(name, directed))
    program, field = (Distances(), "distance") if directed else (Labels(), "label")
    parameters = {"source": 0} if directed else {}
    with ProgramRuns(build_search_graph(edges), 1 + directed, plain_device) as runs:
        expected = runs.run(program, parameters, hb.RunOptions(place="cpu"))
        for mode in MODES:
            results = in_all_places(runs, program, mode, parameters)
            for result in results:
                np.testing.assert_array_equal(result.state[field], expected.state[field])
                assert edges_of(result) == edges_of(results[0])


@pytest.mark.sampled(4)
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", ["star", "grid", "Kronecker 10"])
def test_masks_and_messages_without_an_identity(plain_device, name, directed):
    edges = nasty(name, directed)
    mask = (np.arange(edges.num_vertices) % 7 == 0).astype(np.uint32) << 3
    with ProgramRuns(build_search_graph(edges), 2, plain_device) as runs:
        reached = runs.run(Reached(), {"mask": mask}, hb.RunOptions(place="cpu"))
        parents = runs.run(Parents(), {"source": 0}, hb.RunOptions(place="cpu"))
        for mode in MODES:
            for result in in_all_places(runs, Reached(), mode, {"mask": mask}):
                np.testing.assert_array_equal(result.mask, reached.mask)
            for result in in_all_places(runs, Parents(), mode, {"source": 0}):
                np.testing.assert_array_equal(result.parent < 0, parents.parent < 0)


def test_layers_are_the_levels_of_the_root(apart):
    """So a breadth-first search from the root finds all levels in its first sweep."""
    edges = nasty("Kronecker 10")
    with ProgramRuns(build_search_graph(edges), 2, apart) as runs:
        for result in in_all_places(runs, Parents(), "layered", {"source": 0}):
            check = validate(edges, 0, result.parent.astype(np.int64))
            assert check.valid, check.message
            assert result.traces[0].vertices >= np.count_nonzero(result.parent >= 0) - 1


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", ["grid", "long path", "Kronecker 10"])
def test_joined_levels_in_many_launches(apart, in_launches, name, directed):
    edges = weighted(nasty(name, directed))
    options = hb.RunOptions(place="device", mode="layered", root=0)
    with ProgramRuns(build_search_graph(edges), 1, apart) as runs:
        expected = runs.run(Distances(), {"source": 0}, hb.RunOptions(place="cpu"))
        few = runs.run(Distances(), {"source": 0}, options)
        host = runs.run(Distances(), {"source": 0}, replace(options, place="cpu"))
        graph = runs._modes["layered", 0, "out", False].graph
    np.testing.assert_array_equal(few.distance, expected.distance)
    assert few.iterations <= host.iterations
    visits = device_sweeps.visits_of_sweep(graph, apart)
    levels = graph.levels[2]
    passes = sum(int(one[6]) for one in visits) - (visits[-1][2] > graph.levels[0][levels - 1, 2])
    assert passes == levels
    for one, following in itertools.pairwise(visits):
        assert one[4] in (one[0], one[2])
        assert (one[4] == one[2]) == (following[0] != one[0])


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", SEARCHABLE_NAMES)
def test_a_graph_of_layers_needs_no_other_copy(name, directed, tmp_path):
    """Results are those of the graph, in the order of `names`, also from a file."""
    graph = hb.CSRGraph.from_edge_source(weighted(nasty(name, directed)))
    root = graph.num_vertices // 2
    made = hb.layered(graph, root)
    write(made, tmp_path / "layers.hbg")
    read = hb.load(tmp_path / "layers.hbg", directed=directed, weighted=True)
    assert read.names.tolist() == made.names.tolist()
    assert read.layers.tolist() == made.layers.tolist()
    with ProgramRuns(build_search_graph(graph), 1) as runs:
        expected = runs.run(Distances(), {"source": root}, hb.RunOptions())
    with ProgramRuns(build_search_graph(read), 1) as runs:
        found = runs.run(Distances(), {"source": 0}, hb.RunOptions(mode="layered", root=0))
        arranged = runs._modes["layered", 0, "out", False].graph
        assert arranged.forward is read
        assert arranged.backward is read.transpose
        other = graph.num_vertices - 1
        again = runs.run(Distances(), {"source": 0}, hb.RunOptions(mode="layered", root=other))
    np.testing.assert_array_equal(found.distance, expected.distance[read.names])
    np.testing.assert_array_equal(again.distance, found.distance)


@pytest.mark.parametrize("directed", [False, True])
def test_ranks_are_the_same_fixed_point(apart, directed):
    """With vertices that have no edges, and such that none leaves."""
    if not apart.has_double:
        pytest.skip(f"{apart.name} has no doubles, which the states need")
    edges, tol = nasty("Kronecker 10", directed), 1e-9
    parameters = {"alpha": 0.85, "tol": tol}
    with ProgramRuns(build_search_graph(edges), 1, apart) as runs:
        expected = runs.run(Ranks(), parameters, hb.RunOptions(place="cpu"))
        host, device = in_all_places(runs, Ranks(), "asynchronous", parameters)
    bound = 2 * tol * 0.85 / (1 - 0.85)
    for result in (host, device):
        assert np.abs(result.rank - expected.rank).sum() < bound
        assert result.totals["change"] < tol
        assert edges_of(result) == edges_of(host)
    np.testing.assert_allclose(device.rank, host.rank, rtol=1e-12)
    with ProgramRuns(build_search_graph(edges), 2) as runs:
        (shared,) = in_all_places(runs, Ranks(), "asynchronous", parameters)
    np.testing.assert_array_equal(shared.rank, host.rank)
    assert shared.totals == host.totals


def test_limits_and_what_is_kept(apart):
    edges = nasty("grid")
    with ProgramRuns(build_search_graph(edges), 2, apart) as runs:
        for place in ("cpu", "device"):
            for limit in (0, 1, 2):
                options = hb.RunOptions(limit, place=place, mode="asynchronous")
                result = runs.run(Labels(), {}, options)
                assert (result.iterations, result.converged) == (limit, False)
        for root in (3, 4, 5, 3, 6, 7):
            options = hb.RunOptions(place="cpu", mode="layered", root=root)
            assert runs.run(Parents(), {"source": root}, options).converged
        assert [root for _, root, *_ in runs._modes if root is not None] == [5, 3, 6, 7]


def test_launches_are_planned_once(opencl_device, monkeypatch):
    plan = mock.Mock(side_effect=device_sweeps.visits_of_sweep)
    monkeypatch.setattr(device_sweeps, "visits_of_sweep", plan)
    apart = replace(opencl_device, unified_memory=False)
    with ProgramRuns(build_search_graph(nasty("grid")), 1, apart) as runs:
        labels = []
        for classes in (None, None, 1, 1, None):
            options = hb.RunOptions(place="device", mode="asynchronous", num_classes=classes)
            labels.append(runs.run(Labels(), {}, options).label)
    assert plan.call_count == 3
    for label in labels[1:]:
        np.testing.assert_array_equal(label, labels[0])


def test_another_colouring_forgets_its_own_trials_only():
    edges = weighted(nasty("grid"))
    colour = hb.colour(edges).colour
    given = hb.RunOptions(mode="asynchronous", colour=colour)
    with ProgramRuns(build_search_graph(edges), 1) as runs:
        runs.run(Labels(), {}, hb.RunOptions())
        runs.run(Labels(), {}, hb.RunOptions(mode="layered", root=0))
        runs.run(Labels(), {}, given)
        before = dict(runs._trials)
        with pytest.raises(ArgumentError, match="colour is not a colouring"):
            runs.run(Labels(), {}, replace(given, colour=np.zeros_like(colour)))
        assert runs._trials == before
        assert len(runs._modes) == 3
        runs.run(Labels(), {}, replace(given, colour=colour.max() - colour))
        same = [key[1][0][0] for key, one in runs._trials.items() if before[key] is one]
    assert same == ["synchronous", "layered"]


def test_a_device_without_memory_for_another_copy(apart):
    edges = nasty("grid")
    with ProgramRuns(build_search_graph(edges), 2, apart) as runs:
        error = hb.DeviceError("it is full")
        with mock.patch.object(device_sweeps.DeviceProgram, "__init__", side_effect=error):
            result = runs.run(Labels(), {}, hb.RunOptions(mode="asynchronous"))
        assert result.traces[0].strategy == "asynchronous"
        assert runs.notes == ["Labels in mode 'asynchronous' runs on the CPU only: it is full"]


# Arranged graphs


@pytest.mark.parametrize("directed", [False, True])
def test_the_memory_of_an_arranged_graph(directed):
    placed = PlacedGraph(build_search_graph(weighted(nasty("Kronecker 12", directed))))
    graph = renumbered.by_level(placed, 0, 40)
    parts = graph.parts
    assert parts[0, renumbered.BEGIN] == 0
    np.testing.assert_array_equal(parts[1:, renumbered.BEGIN], parts[:-1, renumbered.END])
    assert parts[-1, renumbered.END] == graph.num_vertices
    np.testing.assert_array_equal(np.sort(graph.names), np.arange(graph.num_vertices))

    def size(lists) -> int:
        return sum(part.nbytes for part in (lists.indptr, lists.indices, lists.weights))

    ways = ["forward", "backward"] if directed else ["forward"]
    kept = sum(size(getattr(graph, way)) for way in ways) + graph.names.nbytes
    assert kept < 1.4 * sum(size(getattr(placed, way)) for way in ways)


# What is refused


class Sums(Ranks):
    """Sums of active vertices only."""

    all_active = False
    totals = ()
    measure = finished = None

    def apply(self, combined):
        return combined


@pytest.mark.parametrize(
    ("program", "mode"), [(Sums(), "asynchronous"), (Sums(), "layered"), (Ranks(), "layered")]
)
def test_programs_that_a_mode_does_not_allow(program, mode):
    parameters = {"alpha": 0.85, "tol": 1e-3} if type(program) is Ranks else {}
    message = f"{type(program).__name__} combines by plus.*; mode '{mode}' is for minimum, maximum"
    with (
        ProgramRuns(build_search_graph(nasty("grid")), 1) as runs,
        pytest.raises(ArgumentError, match=message),
    ):
        runs.run(program, parameters, hb.RunOptions(**MODES[mode]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "quick"}, "mode is 'quick'; give one of"),
        ({"mode": "layered"}, "mode is 'layered' and root is None; give a root"),
        ({"root": 3}, "mode is 'synchronous' and root is 3; give a root"),
        ({"mode": "layered", "root": -1}, "root is -1"),
        ({"mode": "asynchronous", "direction": "push"}, "direction is 'push', which mode 'async"),
        ({"mode": "asynchronous", "bucket_width": 2}, "bucket_width is 2, which mode 'async"),
        ({"mode": "asynchronous", "num_classes": 0}, "num_classes is 0"),
        ({"num_classes": 5}, "num_classes is given, which mode 'synchronous' has no"),
        ({"mode": "layered", "root": 0, "num_classes": 5}, "num_classes is given, which mode 'lay"),
    ],
)
def test_settings_that_do_not_fit(options, message):
    with pytest.raises(ArgumentError, match=message):
        hb.RunOptions(**options)


def test_a_root_that_is_not_there():
    with (
        ProgramRuns(build_search_graph(nasty("grid")), 1) as runs,
        pytest.raises(GraphError, match="vertex 9999"),
    ):
        runs.run(Labels(), {}, hb.RunOptions(mode="layered", root=9999))


# The choice of a mode


class AnyOrder(Distances):
    any_order = True


class RanksInAnyOrder(Ranks):
    any_order = True


def test_auto_tries_each_mode_and_place_twice(apart):
    """If the model of the machine has no costs of programs."""
    with (
        mock.patch.object(ProgramRuns, "_is_trained", return_value=False),
        ProgramRuns(build_search_graph(weighted(nasty("grid"))), 1, apart) as runs,
    ):
        options = hb.RunOptions(mode="auto", root=3)
        results = [runs.run(AnyOrder(), {"source": 3}, options) for _ in range(13)]
        plain = hb.RunOptions(mode="auto")
        others = [runs.run(AnyOrder(), {"source": 3}, plain) for _ in range(8)]
    tried = [(result.mode, result.traces[0].strategy.startswith("device")) for result in results]
    modes = ("synchronous", "asynchronous", "layered")
    assert tried[:12] == [(mode, device) for mode in modes for device in (False, False, True, True)]
    assert tried[12] in tried[:12]
    assert {result.mode for result in others} == {"synchronous", "asynchronous"}
    for result in results + others:
        np.testing.assert_array_equal(result.distance, results[0].distance)


def test_auto_is_synchronous_without_a_promise_or_with_a_limit():
    unlimited = hb.RunOptions(mode="auto", root=3)
    limited = hb.RunOptions(9, mode="auto", root=3)
    ranks = {"alpha": 0.85, "tol": 1e-3}
    with ProgramRuns(build_search_graph(weighted(nasty("grid"))), 1) as runs:

        def modes(program, parameters, options):
            return {runs.run(program, parameters, options).mode for _ in range(5)}

        assert modes(Distances(), {"source": 3}, unlimited) == {"synchronous"}
        assert modes(AnyOrder(), {"source": 3}, limited) == {"synchronous"}
        assert "asynchronous" in modes(RanksInAnyOrder(), ranks, unlimited)
        assert "layered" not in modes(RanksInAnyOrder(), ranks, unlimited)


def test_trials_of_one_direction_say_nothing_of_another():
    class Against(AnyOrder):
        along = "in"

    edges = weighted(nasty("Kronecker 10", directed=True))
    with ProgramRuns(build_search_graph(edges), 1) as runs:
        for program in (AnyOrder(), Against()):
            modes = [
                runs.run(program, {"source": 3}, hb.RunOptions(mode="auto")).mode for _ in range(4)
            ]
            assert modes == ["synchronous"] * 2 + ["asynchronous"] * 2


# Failures while a program runs


def test_a_device_that_fails_in_a_run_leaves_it_to_the_host(apart):
    with ProgramRuns(build_search_graph(weighted(nasty("grid"))), 1, apart) as runs:
        on_device = hb.RunOptions(place="device")
        expected = runs.run(Distances(), {"source": 3}, on_device).distance
        with mock.patch.object(device_run.DeviceProgram, "run", side_effect=DeviceError("gone")):
            with pytest.raises(DeviceError, match="gone"):
                runs.run(Distances(), {"source": 3}, on_device)
            with mock.patch.object(ProgramRuns, "_is_trained", return_value=False):
                for _ in range(4):
                    result = runs.run(Distances(), {"source": 3}, hb.RunOptions())
                    np.testing.assert_array_equal(result.distance, expected)
        assert runs.notes == ["Distances runs on the CPU from now on: gone"]


def test_a_stalled_grid_goes_on_in_launches_for_each_phase(apart):
    with ProgramRuns(build_search_graph(weighted(nasty("grid"))), 1, apart) as runs:
        options = hb.RunOptions(place="device")
        expected = runs.run(Distances(), {"source": 3}, options).distance
        ((_, mode),) = runs._modes.items()
        (compiled,) = mode.programs.values()
        stalled = compiled.on["device"]
        real = device_run.DeviceProgram.run

        def stall(self, *arguments):
            if self is stalled:
                raise GridStalledError("not together")
            return real(self, *arguments)

        with mock.patch.object(device_run.DeviceProgram, "run", stall):
            for _ in range(2):
                result = runs.run(Distances(), {"source": 3}, options)
                np.testing.assert_array_equal(result.distance, expected)
        (compiled,) = mode.programs.values()
        assert type(compiled.on["device"]) is device_run.DeviceProgram
        assert compiled.on["device"] is not stalled
