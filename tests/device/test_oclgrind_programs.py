"""Vertex programs under oclgrind; see test_oclgrind.py."""

from __future__ import annotations

import pytest
from under_oclgrind import FOUR_GROUPS, MARKS, PEEK, TESTS, TWO_GROUPS, check_said, run

pytestmark = MARKS

IMPORTS = """
import sys
sys.path.insert(0, {tests!r})
from dataclasses import replace
from unittest import mock
import numpy as np
from graphs import grid, random_graph, star
from collected_programs import Cores, Countdown, Hubs
from sample_programs import (
    Communities, Distances, Farthest, Labels, MonotoneDistances, Parents, Ranks,
)
import hetero_bfs as hb
from hetero_bfs.devices.opencl import device_run as grid_of_groups
from hetero_bfs.devices.opencl.driver import choose_device
from hetero_bfs.devices.opencl import streamed_lists
from hetero_bfs.devices.opencl.streamed_lists import Layout
from hetero_bfs.errors import BudgetError, DeviceError
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.programs import device_sweeps, renumbered
from hetero_bfs.programs import device as device_run
from hetero_bfs.programs.device_forms import OneLaunch
from hetero_bfs.algorithms.program_runs import ProgramRuns
"""

FORM = """
if {one_launch}:
    grid_of_groups._PROBE_PATIENCE = 1 << 22  # other work may take the cores
else:
    OneLaunch.__init__ = mock.Mock(side_effect=DeviceError("not now"))
"""

PROGRAMS = (
    IMPORTS
    + FORM
    + """
made = []
run_one_launch = OneLaunch.run
OneLaunch.run = lambda self, *args: made.append(self) or run_one_launch(self, *args)
ranks = dict(alpha=0.85, tol=0.05)
SMALL = dict(_HEAVY_EDGES=6, _FIRST_BATCH=2)
device_run.DeviceProgram.GROUP, device_run.DeviceProgram.GROUPS_PER_UNIT = 32, {groups}
SMALL |= dict(_LONG_PULL_OF_GPU=6, _PIECE_EDGES=4)
graph = random_graph(150, 300, 1)
weights = np.random.default_rng(1).integers(0, 9, graph.src.size).astype(np.float32)
edges = EdgeList(graph.src, graph.dst, graph.num_vertices, weights=weights)
runs = ProgramRuns(build_search_graph(edges), 1, choose_device())
assert runs.device_name.startswith("Oclgrind"), runs.notes
from_five = dict(source=5)
for program, parameters in (
    (Distances(), from_five), (Labels(), {{}}), (Parents(), from_five), (Ranks(), ranks),
    (Communities(), dict(rounds=3)), (Farthest(), {{}}),
):
    for names in {ways}:
        runs.clocked = names == ("pull",)
        with mock.patch.multiple(device_run, **SMALL):
            results = [
                runs.run(program, parameters, hb.RunOptions(schedule=schedule))
                for schedule in (names, ["device " + name for name in names])
            ]
        host, device = results
        assert host.iterations == device.iterations
        if not isinstance(program, Parents):
            field = next(iter(host.state))
            np.testing.assert_allclose(device.state[field], host.state[field], rtol=1e-9)
collected = ((Cores(), {{}}), (Countdown(), {{}}), (Hubs(), dict(rounds=3)))
for program, parameters in collected if {ways} != (("push",),) else ():
    host, device = (
        runs.run(program, parameters, hb.RunOptions(place=place)) for place in ("cpu", "device")
    )
    for field in host.state:
        np.testing.assert_array_equal(device.state[field], host.state[field])
assert len(made) == {one_launch} * 18
assert all(program._instead is None for program in made)
"""
)


WAYS = (("push",), ("pull",), ("pull", "push"))


THOROUGH = pytest.mark.thorough


@pytest.mark.parametrize(
    ("peek", "ways"),
    [
        (PEEK, WAYS[2:]),
        pytest.param(PEEK, WAYS[:2], marks=THOROUGH),
        pytest.param((), WAYS[:1], marks=THOROUGH),
    ],
    ids=["atomic look", "atomic look, one direction", "plain look"],
)
def test_programs_no_bad_access_and_no_race(peek, ways):
    """Without the option looks at combined messages are races, which are meant; a push looks."""
    script = PROGRAMS.format(tests=str(TESTS), one_launch=False, groups=2, ways=ways)
    done = run(script, *FOUR_GROUPS, *peek)
    reports = check_said(done, r"PEEK\(combined \+ ")
    assert bool(reports) == (peek == ()), "the test is of no use if nothing is found"


@THOROUGH
def test_programs_in_one_launch_no_bad_access():
    done = run(PROGRAMS.format(tests=str(TESTS), one_launch=True, groups=1, ways=WAYS), *TWO_GROUPS)
    check_said(done)


MIGRATING = (
    IMPORTS
    + FORM
    + """
SMALL = dict(_HEAVY_EDGES=6, _FIRST_BATCH=2)
device_run.DeviceProgram.GROUP, device_run.DeviceProgram.GROUPS_PER_UNIT = 32, {groups}
SMALL |= dict(_LONG_PULL_OF_GPU=6, _PIECE_EDGES=4)
crossed = set()
for graph in (random_graph(150, 300, 1), star(70)):
    weights = np.random.default_rng(1).integers(0, 9, graph.src.size).astype(np.float32)
    edges = EdgeList(graph.src, graph.dst, graph.num_vertices, weights=weights)
    runs = ProgramRuns(build_search_graph(edges), 1, choose_device())
    assert runs.device_name.startswith("Oclgrind"), runs.notes
    for program, parameters in (
        (Distances(), dict(source=5)), (Labels(), {{}}), (Ranks(), dict(alpha=0.85, tol=0.05)),
    ):
        with mock.patch.multiple(device_run, **SMALL):
            alone = runs.run(program, parameters, hb.RunOptions(place="cpu"))
            schedule = ("device push", "push", "device pull", "device push", "pull") * 20
            result = runs.run(program, parameters, hb.RunOptions(schedule=schedule))
        assert result.iterations == alone.iterations
        assert not runs.notes, runs.notes
        for field, state in alone.state.items():
            np.testing.assert_allclose(result.state[field], state, rtol=1e-9)
        crossed |= {{trace.migrated_bytes for trace in result.traces}}
    assert all(
        isinstance(one.on["device"], OneLaunch) == {one_launch}
        for mode in runs._modes.values() for one in mode.programs.values()
    )
assert len(crossed) > 5  # as pairs, as all states, as lists and as bitmaps
"""
)


@THOROUGH
def test_migrating_programs_no_bad_access_and_no_race():
    script = MIGRATING.format(tests=str(TESTS), one_launch=False, groups=2)
    done = run(script, *FOUR_GROUPS, *PEEK)
    check_said(done, r"PEEK\(combined \+ ")


@THOROUGH
def test_migrating_programs_in_one_launch_no_bad_access():
    done = run(MIGRATING.format(tests=str(TESTS), one_launch=True, groups=1), *TWO_GROUPS)
    check_said(done)


STREAMED = (
    IMPORTS
    + """
def lay_out(info, what, ways, *sizes):
    return Layout(1, 10**4, max(int(way.sizes.max()) for way in ways), 2)

SMALL = dict(_HEAVY_EDGES=6, _LONG_PULL_OF_GPU=6, _PIECE_EDGES=4)
device_run.DeviceProgram.GROUP, device_run.DeviceProgram.GROUPS_PER_UNIT = 32, 2
graph = random_graph(150, 300, 1)
weights = np.random.default_rng(1).integers(0, 9, graph.src.size).astype(np.float32)
edges = EdgeList(graph.src, graph.dst, graph.num_vertices, True, weights)
device = replace(choose_device(), unified_memory=False)
runs = ProgramRuns(build_search_graph(edges), 1, device)
assert runs.device_name.startswith("Oclgrind"), runs.notes
for program, parameters, direction in (
    (Distances(), dict(source=5), "push"), (Distances(), dict(source=5), "pull"),
    (Parents(), dict(source=5), "auto"), (Ranks(), dict(alpha=0.85, tol=0.05), "auto"),
    (Communities(), dict(rounds=2), "auto"),
):
    with (
        mock.patch.multiple(device_run, **SMALL),
        mock.patch.object(streamed_lists, "lay_out", lay_out),
        mock.patch.object(device_run.DeviceProgram, "_make_room", side_effect=BudgetError),
    ):
        host, device = [
            runs.run(program, parameters, hb.RunOptions(direction=direction, place=place))
            for place in ("cpu", "device")
        ]
    assert device.streamed_bytes > 0
    assert host.iterations == device.iterations
    if not isinstance(program, Parents):
        field = next(iter(host.state))
        np.testing.assert_allclose(device.state[field], host.state[field], rtol=1e-9)
"""
)


@THOROUGH
def test_streamed_programs_no_bad_access_and_no_race():
    done = run(STREAMED.format(tests=str(TESTS)), *FOUR_GROUPS, *PEEK)
    check_said(done)


MONOTONE = (
    IMPORTS
    + FORM
    + """
SMALL = dict(_HEAVY_EDGES=12, _FIRST_BATCH=2)
device_run.DeviceProgram.GROUP, device_run.DeviceProgram.GROUPS_PER_UNIT = 32, {groups}
graph = random_graph(150, 1500, 1)
weights = np.random.default_rng(1).integers(0, 99, graph.src.size).astype(np.float32)
for directed in (False, True):
    edges = replace(graph, weights=weights, directed=directed)
    runs = ProgramRuns(build_search_graph(edges), 1, choose_device())
    with mock.patch.multiple(device_run, **SMALL):
        host, there = [
            runs.run(MonotoneDistances(), dict(source=5), hb.RunOptions(place=place))
            for place in ("cpu", "device")
        ]
    np.testing.assert_array_equal(there.distance, host.distance)
    assert host.iterations == there.iterations
    assert [trace.strategy for trace in there.traces].count("device pull") == 1
"""
)


@pytest.mark.parametrize("one_launch", [False, pytest.param(True, marks=THOROUGH)])
def test_monotone_programs_no_bad_access_and_no_race(one_launch):
    groups, options = (1, TWO_GROUPS) if one_launch else (2, FOUR_GROUPS + PEEK)
    script = MONOTONE.format(tests=str(TESTS), one_launch=one_launch, groups=groups)
    done = run(script, *options)
    check_said(done)


MODES = (
    IMPORTS
    + """
renumbered._PART_EDGES = 30
device_sweeps._HEAVY_EDGES = device_sweeps._HEAVY_EDGES_OF_CPU = 6
SMALL = dict(_FIRST_BATCH=2)
device_run.DeviceProgram.GROUP, device_run.DeviceProgram.GROUPS_PER_UNIT = 32, 2
layered = dict(mode="layered", root=5)
device = choose_device()
if {streams}:
    full = BudgetError("it is full")
    device_run.DeviceProgram._make_room = mock.Mock(side_effect=full)
    streamed_lists.lay_out = lambda info, what, ways, *sizes: Layout(
        2, 10**4, max(int(way.sizes.max()) for way in ways), 4
    )
    device = replace(device, unified_memory=False)
for graph in (random_graph(150, 300, 1), replace(grid(4, 30), directed={streams})):
    weights = np.random.default_rng(1).integers(0, 9, graph.src.size).astype(np.float32)
    edges = replace(graph, weights=weights)
    runs = ProgramRuns(build_search_graph(edges), 1, device)
    assert runs.device_name.startswith("Oclgrind"), runs.notes
    for program, parameters, mode in (
        (Distances(), dict(source=5), layered),
        (Labels(), {{}}, dict(mode="asynchronous")),
        (Parents(), dict(source=5), layered),
        (Ranks(), dict(alpha=0.85, tol=0.05), dict(mode="asynchronous")),
    ):
        with mock.patch.multiple(device_run, **SMALL):
            host, there = [
                runs.run(program, parameters, hb.RunOptions(place=place, **mode))
                for place in ("cpu", "device")
            ]
        assert host.iterations == there.iterations
        assert there.traces[0].strategy == "device " + mode["mode"]
        if not isinstance(program, Parents):
            field = next(iter(host.state))
            np.testing.assert_allclose(there.state[field], host.state[field], rtol=1e-9)
        assert (there.streamed_bytes > 0) == {streams}, (graph, mode)
"""
)


@THOROUGH
@pytest.mark.parametrize("streams", [False, True])
def test_modes_no_bad_access_and_no_race(streams):
    done = run(MODES.format(tests=str(TESTS), streams=streams), *FOUR_GROUPS)
    check_said(done)
