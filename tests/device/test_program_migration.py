"""Runs of vertex programs that migrate between the CPU and a device: the results of other runs."""

from __future__ import annotations

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from graphs import SEARCHABLE_NAMES, grid, nasty
from migrating import (
    SCHEDULES,
    Quiet,
    Steps,
    check_all,
    check_same,
    check_traces,
    migrations,
    runs_of,
    weighted,
)
from plain_programs import PlainRun
from sample_programs import (
    Communities,
    Distances,
    Farthest,
    Labels,
    MonotoneDistances,
    Parents,
    Ranks,
    Reached,
    Votes,
)

import hetero_bfs as hb
from hetero_bfs.algorithms.bfs.check import validate
from hetero_bfs.algorithms.program_runs import ProgramRuns
from hetero_bfs.errors import ArgumentError, BudgetError, DeviceError, GridStalledError
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.generators.kronecker import KroneckerEdges
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.programs import device as device_run
from hetero_bfs.programs.device import DeviceProgram
from hetero_bfs.programs.device_stay import DeviceStay, VertexSet, bitmap_words
from hetero_bfs.programs.migrating_run import HostStay
from hetero_bfs.programs.result import ProgramResult
from hetero_bfs.scheduling import program_decision
from hetero_bfs.scheduling.program_decision import OTHER, ProgramEstimates, lone_costs
from hetero_bfs.scheduling.speed_model import ProgramCosts


@pytest.mark.sampled(24)
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", SEARCHABLE_NAMES)
def test_every_shape(plain_device, apart, name, directed):
    edges = weighted(nasty(name, directed))
    device = apart if directed else plain_device
    if not build_search_graph(edges).num_searched:
        return  # such graphs never come to a device
    with runs_of(edges, device) as runs:
        check_all(runs, Distances(), source=0)
        check_all(runs, Labels())
        check_all(runs, Steps(), every=3)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", ["star", "grid", "two hubs", "isolated vertices", "Kronecker 10"])
def test_every_kind_of_program(apart, name):
    edges = weighted(nasty(name, directed=True), np.int32)
    mask = (np.arange(edges.num_vertices) % 7 == 0).astype(np.uint32) << 3
    with runs_of(edges, apart, "given") as runs:
        check_all(runs, Reached(), mask=mask)
        check_all(runs, Quiet())
        check_all(runs, Ranks(), exact=False, alpha=0.85, tol=1e-5)
        check_all(runs, Communities(), rounds=4)
        check_all(runs, Votes(), rounds=5)
        check_all(runs, Farthest())


def test_plain_python_gives_the_same(apart):
    if not apart.has_double:
        pytest.skip(f"{apart.name} has no doubles, which totals need")
    edges = nasty("grid", directed=True)
    graph = hb.CSRGraph.from_edges(edges.src, edges.dst, edges.num_vertices, directed=True)
    plain = PlainRun(Steps(), graph, {"every": 5}, alone=False).run()
    with runs_of(edges, apart) as runs:
        for schedule in SCHEDULES.values():
            result = runs.run(Steps(), {"every": 5}, hb.RunOptions(schedule=schedule))
            assert (result.iterations, result.converged) == (plain.iterations, True)
            for name, state in plain.state.items():
                np.testing.assert_array_equal(result.state[name], state)


def test_parents_are_a_tree(apart):
    edges = KroneckerEdges(10).materialise()
    source = int(edges.src[0])
    with hb.Engine(edges, device=str(apart.index)) as engine:
        level = engine.bfs(source).level
    with runs_of(edges, apart) as runs:
        for schedule in SCHEDULES.values():
            result = runs.run(Parents(), {"source": source}, hb.RunOptions(schedule=schedule))
            check = validate(edges, source, result.parent.astype(np.int64), level)
            assert check.valid, check.message
            check_traces(result)


def test_limits_end_a_run_wherever_it_is(apart):
    with runs_of(weighted(nasty("grid")), apart) as runs:
        for limit in (0, 1, 2, 5):
            alone = runs.run(Labels(), {}, hb.RunOptions(limit, place="cpu"))
            for schedule in SCHEDULES.values():
                result = runs.run(Labels(), {}, hb.RunOptions(limit, schedule=schedule))
                check_same(result, alone)


def test_runs_that_stay_follow_runs_that_migrate(opencl_device):
    edges = weighted(nasty("Kronecker 10"))
    parameters = {"source": int(edges.src[0])}
    with runs_of(edges, opencl_device) as runs:
        for program, given in ((Distances(), parameters), (Labels(), {})):
            before = [
                runs.run(program, given, hb.RunOptions(place=place)) for place in ("cpu", "device")
            ]
            for schedule in SCHEDULES.values():
                runs.run(program, given, hb.RunOptions(3, schedule=schedule))
                for place, alone in zip(("cpu", "device"), before, strict=True):
                    result = runs.run(program, given, hb.RunOptions(place=place))
                    check_same(result, alone)
                    assert result.migrated_bytes == 0


def changed_between(runs: ProgramRuns, program, first: int, last: int, **parameters) -> int:
    """Count the vertices whose state changed in iterations, by runs that end there."""
    states = [
        runs.run(program, parameters, hb.RunOptions(limit, place="cpu")).state
        for limit in (first, last)
    ]
    return int(np.any([states[0][name] != states[1][name] for name in states[0]], axis=0).sum())


def test_bytes_are_those_of_pairs_or_of_all_states_or_bitmaps(apart):
    """All that apply change in this program, and all that change are active."""
    edges = weighted(grid(40, 50))
    source, schedule = 1025, ("push", "device push") * 50
    with runs_of(edges, apart) as runs:
        program = Distances()
        program.priority = None
        result = runs.run(program, {"source": source}, hb.RunOptions(schedule=schedule))
        n, kinds = edges.num_vertices, set()
        for i, trace in enumerate(result.traces[1:], 1):
            changed = changed_between(runs, program, i - 1, i, source=source)
            active = trace.vertices
            assert trace.migrated_bytes == state_bytes(changed, n, 4) + set_bytes(active, n)
            kinds |= {8 * changed < 4 * n, 4 * active > n / 8}
        assert kinds == {True, False}
        assert result.migrated_bytes == sum(trace.migrated_bytes for trace in result.traces) > 0


def test_dense_states_and_bitmaps_cross_if_they_are_smaller(opencl_device):
    edges = weighted(nasty("Kronecker 10"))
    searched = build_search_graph(edges).num_searched
    with runs_of(edges, opencl_device) as runs:
        for schedule in (("push", "device push"), ("device push", "push")):
            result = runs.run(Labels(), {}, hb.RunOptions(schedule=schedule))
            assert 16 * searched > 12 * edges.num_vertices, "the graph is of no use here"
            words = bitmap_words(searched)
            assert result.migrated_bytes == 12 * edges.num_vertices + 4 * words


def test_nothing_but_what_is_counted_crosses(apart):
    """Beside some numbers."""
    edges = weighted(nasty("grid"))
    with runs_of(edges, apart) as runs:
        options = hb.RunOptions(schedule=("push", "device push"), max_iterations=2)
        runs.run(Labels(), {}, options)
        device = runs.device
        before = device.bytes_copied
        alone = runs.run(Labels(), {}, hb.RunOptions(place="device", max_iterations=2))
        of_one_place = device.bytes_copied - before
        before = device.bytes_copied
        result = runs.run(Labels(), {}, options)
        more = device.bytes_copied - before - of_one_place
        assert alone.iterations == result.iterations == 2
        assert result.migrated_bytes <= more <= result.migrated_bytes + 1000


@pytest.mark.parametrize("n", [1, 31, 32, 33, 1000])
@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 1.0])
def test_sets_are_the_same_as_lists_and_as_bitmaps(n, share):
    items = np.flatnonzero(np.random.default_rng(n).random(n) < share).astype(np.uint32)
    found = VertexSet.of_list(items, n)
    assert found.words.nbytes == set_bytes(items.size, n)
    np.testing.assert_array_equal(found.listed(), items)
    bits = np.zeros(32 * bitmap_words(n), bool)
    bits[items] = True
    words = np.packbits(bits, bitorder="little").view(np.uint32)
    again = VertexSet.of_bitmap(words, items.size, n)
    np.testing.assert_array_equal(again.words, found.words)


def test_lists_that_stream(opencl_device):
    edges = weighted(nasty("Kronecker 10"), np.int32)
    full = mock.patch.object(DeviceProgram, "_make_room", side_effect=BudgetError("it is full"))
    small = mock.patch.object(DeviceProgram, "GROUP", 32)
    copying = replace(opencl_device, unified_memory=False)
    with (
        small,
        full,
        mock.patch.object(device_run, "_HEAVY_EDGES", 40),
        runs_of(edges, copying) as runs,
    ):
        check_all(runs, Labels())
        result = runs.run(Labels(), {}, hb.RunOptions(schedule=["push", "device push"]))
        assert result.streamed_bytes >= 0
        check_all(runs, Communities(), rounds=3)


def expecting(**seconds: float):
    """Make up the seconds of an iteration on each place, and of an edge."""
    made_up = {
        place: lone_costs(
            [seconds[f"{place}_edge"], 1.0, 1.0, 0.0, 0.0, 0.0, seconds[f"{place}_iteration"]]
        )[:OTHER]
        for place in ("cpu", "device")
    }
    made = ProgramEstimates.__init__

    def make(self, *arguments):
        made(self, *arguments)
        self._costs = made_up
        self._migrations = {
            place: replace(costs, seconds=seconds["migration"])
            for place, costs in self._migrations.items()
        }

    return mock.patch.object(ProgramEstimates, "__init__", make)


def state_bytes(changed: int, num_vertices: int, item_bytes: int) -> int:
    """The bytes of states in transfer: changed ones with vertex numbers, or all."""
    return min(changed * (4 + item_bytes), num_vertices * item_bytes)


def set_bytes(count: int, num_vertices: int) -> int:
    """The bytes of a set of vertices in transfer: a list or a bitmap."""
    return 4 * min(count, -(-num_vertices // 32))


def strategies(result: ProgramResult) -> list[str]:
    return [trace.strategy for trace in result.traces]


def test_large_iterations_go_to_the_device_and_the_tail_comes_back(opencl_device):
    """A core that is large at once, with a path behind it whose iterations are small."""
    core = KroneckerEdges(10).materialise()
    tail = np.arange(core.num_vertices, core.num_vertices + 60)
    hub = int(np.bincount(np.concatenate([core.src, core.dst])).argmax())
    src = np.concatenate([core.src, [hub], tail[:-1]]).astype(np.uint32)
    dst = np.concatenate([core.dst, tail[:1], tail[1:]]).astype(np.uint32)
    edges = EdgeList(src, dst, core.num_vertices + 60)
    made_up = expecting(
        cpu_edge=1e-7,
        cpu_iteration=1e-6,
        device_edge=1e-9,
        device_iteration=1e-4,
        migration=5e-4,
    )
    with made_up, runs_of(edges, opencl_device) as runs:
        alone = runs.run(Labels(), {}, hb.RunOptions(direction="push", place="cpu"))
        options = hb.RunOptions(direction="push", place="both")
        result = runs.run(Labels(), {}, options)
    check_same(result, alone, began_on_cpu=True)
    names = strategies(result)
    assert names[0] == "device push"
    assert names[-1] == "push"
    assert migrations(result).count(True) == 1
    came = migrations(result).index(True)
    assert 5 <= came <= 12, "after about migration / iteration small ones"


def test_a_migration_that_costs_more_than_it_saves_does_not_happen(opencl_device):
    edges = weighted(nasty("Kronecker 10"))
    made_up = expecting(
        cpu_edge=1e-9,
        cpu_iteration=2e-5,
        device_edge=1e-12,
        device_iteration=1e-6,
        migration=1.0,
    )
    with made_up, runs_of(edges, opencl_device) as runs:
        options = hb.RunOptions(direction="push", place="both")
        result = runs.run(Labels(), {}, options)
        assert set(strategies(result)) == {"push"}
        assert result.migrated_bytes == 0


@pytest.mark.parametrize("pays", [False, True])
def test_both_is_tried_by_default_only_if_it_may_pay(opencl_device, pays):
    edges = weighted(nasty("grid"))
    with runs_of(edges, opencl_device) as runs:
        with (
            mock.patch.object(ProgramEstimates, "may_pay", return_value=pays),
            mock.patch("hetero_bfs.programs.migrating_run.MigratingProgram.run",
                       side_effect=DeviceError("it was tried")),
        ):  # fmt: skip
            results = [runs.run(Labels(), {}, hb.RunOptions()) for _ in range(8)]
        assert [bool(note) for note in runs.notes] == [True] * pays
        assert len({result.iterations for result in results}) == 1


@pytest.mark.parametrize(("factor", "expected"), [(1e3, ["cpu"] * 6), (1e-3, ["cpu", "device"])])
def test_a_trained_model_decides_whether_the_device_is_tried(
    opencl_device, trained, factor, expected, monkeypatch
):
    """After one run on the host, whose iterations are those of a run on the device.

    That run corrects the costs of the host. An iteration of this device costs only its edges.
    """
    monkeypatch.setitem(program_decision._ITERATION_SECONDS, "device", 0.0)

    def change(model):
        kinds = "any_one", "unweighted", "weighted"
        costs = dict.fromkeys(ProgramCosts.names(), 1e-7)
        scaled = {name: factor * cost for name, cost in costs.items()}
        model["programs"] = {"cpu": dict.fromkeys(kinds, costs)} | {
            "device": dict.fromkeys(kinds, scaled)
        }

    trained(opencl_device, change)
    with runs_of(weighted(nasty("grid")), opencl_device) as runs:
        places = [strategies(runs.run(Labels(), {}, hb.RunOptions()))[0] for _ in range(6)]
    places = ["device" if name.startswith("device") else "cpu" for name in places]
    assert places[: len(expected)] == expected


def test_after_a_stalled_grid_a_run_begins_again(opencl_device):
    edges = weighted(nasty("grid"))
    with runs_of(edges, opencl_device) as runs:
        alone = runs.run(Labels(), {}, hb.RunOptions(place="cpu"))
        run_on, calls = DeviceProgram.run_on, []

        def stall(self, *arguments):
            calls.append(arguments)
            if len(calls) == 2:
                raise GridStalledError("it stalled")
            return run_on(self, *arguments)

        with mock.patch.object(DeviceProgram, "run_on", stall):
            result = runs.run(Labels(), {}, hb.RunOptions(schedule=SCHEDULES["each time"]))
        assert len(calls) > 4
        check_same(result, alone)


def test_a_device_that_fails_as_a_run_begins_leaves_the_host_as_it_was(opencl_device):
    made_up = expecting(
        cpu_edge=1e-3,
        cpu_iteration=1e-3,
        device_edge=1e-9,
        device_iteration=1e-6,
        migration=1e-6,
    )
    with made_up, runs_of(weighted(nasty("grid")), opencl_device) as runs:
        alone = runs.run(Labels(), {}, hb.RunOptions(place="cpu"))
        failing = mock.patch.object(DeviceStay, "__init__", side_effect=DeviceError("it failed"))
        with failing, pytest.raises(DeviceError, match="it failed"):
            runs.run(Labels(), {}, hb.RunOptions(place="both"))
        check_same(runs.run(Labels(), {}, hb.RunOptions(place="cpu")), alone)


def test_what_cannot_migrate_is_refused(opencl_device):
    edges = weighted(nasty("grid"))
    with runs_of(edges, opencl_device) as runs:
        for options in (hb.RunOptions(place="both"), hb.RunOptions(schedule=["push"])):
            with pytest.raises(ArgumentError, match="monotone, and such runs stay on one place"):
                runs.run(MonotoneDistances(), {"source": 0}, options)
    with runs_of(edges, None) as runs, pytest.raises(DeviceError, match="no OpenCL device"):
        runs.run(Labels(), {}, hb.RunOptions(schedule=["device push"]))


@pytest.mark.parametrize("program", [Parents(), Labels(), Distances()])
@pytest.mark.parametrize("names", [("push",), ("pull", "push"), ("push", "pull")])
def test_both_places_hand_over_the_same_numbers(opencl_device, program, names):
    """So that the rule decides alike on both."""
    edges = weighted(nasty("Kronecker 10"))
    parameters = {} if isinstance(program, Labels) else {"source": int(edges.src[0])}
    numbers = []

    def noting(stay):
        leave = stay.leave

        def note(self):
            left = leave(self)
            known = left.iteration, left.num_active, left.edges, left.receivers
            numbers.append((*known, left.changes_per_edge))
            return left

        return mock.patch.object(stay, "leave", note)

    on_device = tuple(f"device {name}" for name in names)
    with runs_of(edges, opencl_device) as runs, noting(HostStay), noting(DeviceStay):
        for first, then in ((names, on_device), (on_device, names)):
            schedule = (*first, then[-1])
            runs.run(program, parameters, hb.RunOptions(schedule=schedule))
    of_host, of_device = numbers
    assert of_host == pytest.approx(of_device, rel=1e-6)
    assert 0 < of_host[-1] <= 1
