"""The kernels of the other algorithms and of programs under oclgrind; see test_oclgrind.py."""

from __future__ import annotations

import re

import pytest
from under_oclgrind import FOUR_GROUPS, MARKS, PEEK, TESTS, parse, run

pytestmark = MARKS

SHORTEST_PATHS = """
import sys
sys.path.insert(0, {tests!r})
import numpy as np
from graphs import grid, random_graph, star
import hetero_bfs as hb
from hetero_bfs.algorithms.sssp import device_search
from hetero_bfs.algorithms.sssp.device_search import DeviceSearch
from hetero_bfs.algorithms.sssp.weighted_lists import Plan
from hetero_bfs.devices.opencl import grid as grid_of_groups
from hetero_bfs.devices.opencl.driver import choose_device
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.runtime.path_searches import PathSearches

device_search._CHUNK_EDGES, device_search._PULL_EDGES, device_search._GROUP = 8, 4, 32
device_search._GROUPS_PER_UNIT = 1
grid_of_groups._PROBE_PATIENCE = 1 << 22  # other work may take the cores
if {step_by_step}:
    DeviceSearch._find_one_launch = lambda self: None
for graph, dtype in (
    (random_graph(150, 350, 1), np.int32), (grid(8, 9), np.float32), (star(60), np.int32)
):
    weights = np.random.default_rng(1).integers(0, 9, graph.src.size).astype(dtype)
    directed = dtype == np.float32
    edges = EdgeList(graph.src, graph.dst, graph.num_vertices, directed, weights)
    searches = PathSearches(build_search_graph(edges), 1, choose_device())
    assert searches.device_name.startswith("Oclgrind"), searches.notes
    assert searches.device.one_launch != {step_by_step}
    for is_full in (False, True):
        searches.lists.__dict__["plan"] = Plan(is_full, 2.0, 5.0)
        result = searches.search(5, "device")
        check = hb.check_paths(edges, 5, result.distance, result.parent)
        assert check.valid, check.message
"""


@pytest.mark.parametrize("peek", [PEEK, ()], ids=["atomic look", "plain look"])
def test_shortest_paths_no_bad_access_and_no_race(peek):
    """Without the option looks at distances are races, which are meant."""
    script = SHORTEST_PATHS.format(tests=str(TESTS), step_by_step=True)
    done = run(script, *FOUR_GROUPS, *peek)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    reports = parse(done.stderr)
    bad = [report.text for report in reports if "PEEK(distance + " not in report.text]
    assert not bad, f"{len(bad)} messages, the first:\n{bad[0]}"
    assert bool(reports) == (peek == ()), "the test is of no use if nothing is found"


def test_shortest_paths_in_one_launch_no_bad_access():
    """The checker of races does not know barriers of a grid."""
    done = run(SHORTEST_PATHS.format(tests=str(TESTS), step_by_step=False), *FOUR_GROUPS)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    bad = [report.text for report in parse(done.stderr) if "data race" not in report.title]
    assert not bad, f"{len(bad)} messages, the first:\n{bad[0]}"


PROGRAMS = """
import sys
sys.path.insert(0, {tests!r})
from unittest import mock
import numpy as np
from graphs import random_graph
from sample_programs import Communities, Distances, Labels, Parents, Ranks
import hetero_bfs as hb
from hetero_bfs.devices.opencl.driver import choose_device
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.devices.opencl import grid as grid_of_groups
from hetero_bfs.errors import DeviceError
from hetero_bfs.programs import device_run
from hetero_bfs.programs.one_launch import OneLaunch
from hetero_bfs.runtime.program_runs import ProgramRuns

if {one_launch}:
    grid_of_groups._PROBE_PATIENCE = 1 << 22  # other work may take the cores
else:
    OneLaunch.__init__ = mock.Mock(side_effect=DeviceError("not now"))
made = []
run_one_launch = OneLaunch.run
OneLaunch.run = lambda self, *args: made.append(self) or run_one_launch(self, *args)
ranks = dict(alpha=0.85, tol=0.05)
SMALL = dict(_HEAVY_EDGES=6, _FIRST_BATCH=2, _GROUP=32, _GROUPS_PER_UNIT={groups})
SMALL |= dict(_LONG_PULL_OF_GPU=6, _PIECE_EDGES=4)
graph = random_graph(150, 300, 1)
weights = np.random.default_rng(1).integers(0, 9, graph.src.size).astype(np.float32)
edges = EdgeList(graph.src, graph.dst, graph.num_vertices, weights=weights)
runs = ProgramRuns(build_search_graph(edges), 1, choose_device())
assert runs.device_name.startswith("Oclgrind"), runs.notes
from_five = dict(source=5)
for program, parameters in (
    (Distances(), from_five), (Labels(), {{}}), (Parents(), from_five), (Ranks(), ranks),
    (Communities(), dict(rounds=3)),
):
    for names in (("push",), ("pull",), ("pull", "push")):
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
assert len(made) == {one_launch} * 12
assert all(program._instead is None for program in made)
"""


@pytest.mark.parametrize("peek", [PEEK, ()], ids=["atomic look", "plain look"])
def test_programs_no_bad_access_and_no_race(peek):
    """Without the option looks at combined messages are races, which are meant."""
    script = PROGRAMS.format(tests=str(TESTS), one_launch=False, groups=2)
    done = run(script, *FOUR_GROUPS, *peek)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    reports = parse(done.stderr)
    bad = [report.text for report in reports if "PEEK(combined + " not in report.text]
    assert not bad, f"{len(bad)} messages, the first:\n{bad[0]}"
    assert bool(reports) == (peek == ()), "the test is of no use if nothing is found"


def test_programs_in_one_launch_no_bad_access():
    """The checker of races does not know barriers of a grid."""
    script = PROGRAMS.format(tests=str(TESTS), one_launch=True, groups=1)
    done = run(script, *FOUR_GROUPS)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    bad = [report.text for report in parse(done.stderr) if "data race" not in report.title]
    assert not bad, f"{len(bad)} messages, the first:\n{bad[0]}"


MIGRATING = """
import sys
sys.path.insert(0, {tests!r})
from unittest import mock
import numpy as np
from graphs import random_graph, star
from sample_programs import Distances, Labels, Ranks
import hetero_bfs as hb
from hetero_bfs.devices.opencl import grid as grid_of_groups
from hetero_bfs.devices.opencl.driver import choose_device
from hetero_bfs.errors import DeviceError
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.programs import device_run
from hetero_bfs.programs.one_launch import OneLaunch
from hetero_bfs.runtime.program_runs import ProgramRuns

if {one_launch}:
    grid_of_groups._PROBE_PATIENCE = 1 << 22  # other work may take the cores
else:
    OneLaunch.__init__ = mock.Mock(side_effect=DeviceError("not now"))
SMALL = dict(_HEAVY_EDGES=6, _FIRST_BATCH=2, _GROUP=32, _GROUPS_PER_UNIT={groups})
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
        isinstance(one.on["device"].current, OneLaunch) == {one_launch}
        for mode in runs._modes.values() for one in mode.programs.values()
    )
assert len(crossed) > 5  # as pairs, as all states, as lists and as bitmaps
"""


def test_migrating_programs_no_bad_access_and_no_race():
    script = MIGRATING.format(tests=str(TESTS), one_launch=False, groups=2)
    done = run(script, *FOUR_GROUPS, *PEEK)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    reports = parse(done.stderr)
    bad = [report.text for report in reports if "PEEK(combined + " not in report.text]
    assert not bad, f"{len(bad)} messages, the first:\n{bad[0]}"


def test_migrating_programs_in_one_launch_no_bad_access():
    """The checker of races does not know barriers of a grid."""
    done = run(MIGRATING.format(tests=str(TESTS), one_launch=True, groups=1), *FOUR_GROUPS)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    bad = [report.text for report in parse(done.stderr) if "data race" not in report.title]
    assert not bad, f"{len(bad)} messages, the first:\n{bad[0]}"


STREAMED = """
import sys
sys.path.insert(0, {tests!r})
from dataclasses import replace
from unittest import mock
import numpy as np
from graphs import random_graph
from sample_programs import Communities, Distances, Parents, Ranks
import hetero_bfs as hb
from hetero_bfs.devices.opencl.driver import choose_device
from hetero_bfs.errors import BudgetError
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.programs import block_memory, device_run
from hetero_bfs.programs.streamed_lists import Layout
from hetero_bfs.runtime.program_runs import ProgramRuns

def lay_out(info, ways, *sizes):
    return Layout(1, 10**4, max(int(way.sizes.max()) for way in ways), 2)

SMALL = dict(_HEAVY_EDGES=6, _LONG_PULL_OF_GPU=6, _PIECE_EDGES=4, _GROUP=32, _GROUPS_PER_UNIT=2)
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
        mock.patch.object(block_memory, "lay_out", lay_out),
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


def test_streamed_programs_no_bad_access_and_no_race():
    done = run(STREAMED.format(tests=str(TESTS)), *FOUR_GROUPS, *PEEK)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    reports = parse(done.stderr)
    assert not reports, f"{len(reports)} messages, the first:\n{reports[0].text}"


MONOTONE = """
import sys
sys.path.insert(0, {tests!r})
from dataclasses import replace
from unittest import mock
import numpy as np
from graphs import random_graph
from sample_programs import MonotoneDistances
import hetero_bfs as hb
from hetero_bfs.devices.opencl import grid as grid_of_groups
from hetero_bfs.devices.opencl.driver import choose_device
from hetero_bfs.errors import DeviceError
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.programs import device_run
from hetero_bfs.programs.one_launch import OneLaunch
from hetero_bfs.runtime.program_runs import ProgramRuns

if {one_launch}:
    grid_of_groups._PROBE_PATIENCE = 1 << 22  # other work may take the cores
else:
    OneLaunch.__init__ = mock.Mock(side_effect=DeviceError("not now"))
SMALL = dict(_HEAVY_EDGES=12, _FIRST_BATCH=2, _GROUP=32, _GROUPS_PER_UNIT={groups})
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


@pytest.mark.parametrize("one_launch", [False, True])
def test_monotone_programs_no_bad_access_and_no_race(one_launch):
    groups = 1 if one_launch else 2
    script = MONOTONE.format(tests=str(TESTS), one_launch=one_launch, groups=groups)
    done = run(script, *FOUR_GROUPS, *PEEK)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    bad = [  # the checker of races does not know barriers of a grid
        report.text
        for report in parse(done.stderr)
        if not one_launch or "data race" not in report.title
    ]
    assert not bad, f"{len(bad)} messages, the first:\n{bad[0]}"


MODES = """
import sys
sys.path.insert(0, {tests!r})
from dataclasses import replace
from unittest import mock
import numpy as np
from graphs import grid, random_graph
from sample_programs import Distances, Labels, Parents, Ranks
import hetero_bfs as hb
from hetero_bfs.devices.opencl.driver import choose_device
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.errors import BudgetError
from hetero_bfs.programs import arranged, block_memory, device_run, device_sweeps
from hetero_bfs.programs.streamed_lists import Layout
from hetero_bfs.runtime import program_runs
from hetero_bfs.runtime.program_runs import ProgramRuns

program_runs._NUM_EXACT = 2
arranged._PART_EDGES = 30
device_sweeps._HEAVY_EDGES = device_sweeps._HEAVY_EDGES_OF_CPU = 6
SMALL = dict(_FIRST_BATCH=2, _GROUP=32, _GROUPS_PER_UNIT=2)
layered = dict(mode="layered", root=5)
device = choose_device()
if {streams}:
    full = BudgetError("it is full")
    device_run.DeviceProgram._make_room = mock.Mock(side_effect=full)
    block_memory.lay_out = lambda info, ways, *sizes: Layout(
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


@pytest.mark.parametrize("streams", [False, True])
def test_modes_no_bad_access_and_no_race(streams):
    done = run(MODES.format(tests=str(TESTS), streams=streams), *FOUR_GROUPS)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    reports = parse(done.stderr)
    assert not reports, f"{len(reports)} messages, the first:\n{reports[0].text}"


COMPONENTS = """
import sys
sys.path.insert(0, {tests!r})
from dataclasses import replace
from unittest import mock
from graphs import grid, random_graph, star
import hetero_bfs as hb
from hetero_bfs.algorithms.components import device_components
from hetero_bfs.devices.opencl.driver import choose_device
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.runtime.component_runs import ComponentRuns

for graph in (random_graph(1300, 1400, 1), grid(8, 9), star(60)):
    for directed in (False, True):
        edges = replace(graph, directed=directed)
        with mock.patch.object(device_components, "_HEAVY_EDGES", 8):
            runs = ComponentRuns(build_search_graph(edges, "given"), 1, choose_device())
        assert runs.device_name.startswith("Oclgrind"), runs.notes
        check = hb.check_components(edges, runs.find("device").component)
        assert check.valid, check.message
"""


@pytest.mark.parametrize("peek", [PEEK, ()], ids=["atomic look", "plain look"])
def test_components_no_bad_access_and_no_race(peek):
    """Without the option looks at labels, and their compression, are races, which are meant.

    They alone are volatile; the compiler joins some of their lines to one without a source.
    """
    done = run(COMPONENTS.format(tests=str(TESTS)), *FOUR_GROUPS, *peek)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    reports = parse(done.stderr)
    meant = re.compile(r"(load|store) volatile i32")
    bad = [report.text for report in reports if not meant.search(report.text)]
    assert not bad, f"{len(bad)} messages, the first:\n{bad[0]}"
    assert bool(reports) == (peek == ()), "the test is of no use if nothing is found"


COLOURING = """
import sys
sys.path.insert(0, {tests!r})
from unittest import mock
import numpy as np
from graphs import complete, grid, random_graph, star
from hetero_bfs.algorithms.colouring import device_colouring
from hetero_bfs.devices.opencl.driver import choose_device
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.runtime.colourings import Colourings

for edges in (random_graph(150, 350, 1), grid(7, 8), star(60), complete(45)):
    with mock.patch.object(device_colouring, "_HEAVY_EDGES", 40):
        colourings = Colourings(build_search_graph(edges), 1, choose_device())
        assert colourings.device_name.startswith("Oclgrind"), colourings.notes
        found = colourings.colour("device").colour
    assert np.array_equal(found, colourings.colour("cpu").colour)
"""


def test_colouring_no_bad_access_and_no_race():
    done = run(COLOURING.format(tests=str(TESTS)), *FOUR_GROUPS)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    reports = parse(done.stderr)
    assert not reports, f"{len(reports)} messages, the first:\n{reports[0].text}"


PAGERANK = """
import sys
sys.path.insert(0, {tests!r})
from dataclasses import replace
from unittest import mock
import numpy as np
from graphs import grid, random_graph, star
import hetero_bfs as hb
from hetero_bfs.algorithms.pagerank import device_ranks
from hetero_bfs.algorithms.pagerank.rank_lists import check_settings
from hetero_bfs.devices.opencl.driver import choose_device
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.runtime.page_ranks import ranks_kind

SMALL = dict(_GROUP=32, _LANES=4, _LOW_EDGES=3, _MEDIUM_EDGES=8, _GROUPS_PER_UNIT=1)
ALPHA = 0.5  # half the steps of 0.85, by the same kernels: power steps, then Chebyshev's
for graph in (random_graph(150, 450, 1), replace(random_graph(60, 300, 2), directed=True),
              grid(7, 8), star(60)):
    weights = np.random.default_rng(1).integers(0, 9, graph.src.size).astype(np.float32)
    edges, n = replace(graph, weights=weights), graph.num_vertices
    for weighted in (False, True):
        with mock.patch.multiple(device_ranks, **SMALL):
            ranks = ranks_kind(weighted)(build_search_graph(edges), 1, choose_device())
            assert ranks.device_name.startswith("Oclgrind"), ranks.notes
            for tol in (1e-2, 1e-8):  # portions of float32, then of float64
                result = ranks.rank(check_settings(n, ALPHA, tol, 100), "device")
                assert result.used_device and result.converged
                check = hb.check_pagerank(edges, result.rank, ALPHA, tol, weighted=weighted)
                assert check.valid, check.message
"""


def test_pagerank_no_bad_access_and_no_race():
    done = run(PAGERANK.format(tests=str(TESTS)), *FOUR_GROUPS)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    reports = parse(done.stderr)
    assert not reports, f"{len(reports)} messages, the first:\n{reports[0].text}"


MANY = """
import sys
sys.path.insert(0, {tests!r})
from unittest import mock
import numpy as np
from graphs import late_hub, random_graph
from plain_search import plain_levels
import hetero_bfs as hb
from hetero_bfs.algorithms.msbfs import device_planes
from hetero_bfs.devices.opencl.driver import choose_device
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.runtime.many_runs import ManyRuns
from hetero_bfs.runtime.query import Query

SMALL = dict(_SHORT_LIST=4, _GROUP=32, _GROUPS_PER_UNIT=1)
ways = set()
for edges in (random_graph(150, 400, 1), late_hub(300)):
    sources = (0, 5, 5, edges.num_vertices - 1)
    with mock.patch.multiple(device_planes, **SMALL):
        runs = ManyRuns(build_search_graph(edges), 1, choose_device())
        assert runs.device_name.startswith("Oclgrind"), runs.notes
        found = runs.search(Query(sources, want="levels"), "device")
    for level, source in zip(found.level, sources, strict=True):
        np.testing.assert_array_equal(level, plain_levels(edges, [source]))
    ways |= {{trace.strategy for trace in found.traces}}
assert ways == {{"device push", "device pull"}}, ways
"""


def test_searches_side_by_side_no_bad_access_and_no_race():
    done = run(MANY.format(tests=str(TESTS)), *FOUR_GROUPS)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    bad = [report.text for report in parse(done.stderr)]
    assert not bad, f"{len(bad)} messages, the first:\n{bad[0]}"


MASKED = """
import sys
sys.path.insert(0, {tests!r})
from dataclasses import replace
from unittest import mock
import numpy as np
from graphs import random_graph
from plain_search import plain_levels
import hetero_bfs as hb
from hetero_bfs.devices.opencl.driver import choose_devices
from hetero_bfs.devices.opencl.tuning import Tuning

TUNING = Tuning(
    group_size=32, vertices_per_item=4, edges_per_item=1, single_group_edges=64,
    cooperative_groups=2, groups_per_unit=1, one_launch=False,
)
edges = random_graph(300, 700, 6)
for budget in (None, 8_000):
    infos = [replace(choose_devices(None, 1)[0], type="GPU", unified_memory=budget is None)]
    patched = mock.patch("hetero_bfs.runtime.opening.choose_devices", return_value=infos)
    options = dict(tuning=TUNING, device_memory_bytes=budget, order="degree")
    with patched, hb.Engine(edges, "fixed:TG", **options) as engine:
        assert engine.device_info.name.startswith("Oclgrind"), engine.notes
        assert (engine.streaming is None) == (budget is None)
        for schedule in ("TG,BG,BGC,TG", "TC,BG"):
            engine.set_selector("fixed:" + schedule)
            mask = np.arange(3, 300, 4)
            level = engine.bfs([0, 5], mask=mask).level
            np.testing.assert_array_equal(level, plain_levels(edges, [0, 5], mask=mask))
"""


def test_masked_searches_no_bad_access_and_no_race():
    done = run(MASKED.format(tests=str(TESTS)), *FOUR_GROUPS, *PEEK)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    bad = [report.text for report in parse(done.stderr)]
    assert not bad, f"{len(bad)} messages, the first:\n{bad[0]}"
