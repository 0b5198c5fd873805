"""The kernels of the other algorithms under oclgrind; see test_oclgrind.py."""

from __future__ import annotations

import pytest
from under_oclgrind import FOUR_GROUPS, MARKS, PEEK, TESTS, TWO_GROUPS, check_said, run

pytestmark = MARKS

SHORTEST_PATHS = """
import sys
sys.path.insert(0, {tests!r})
import numpy as np
from graphs import grid, random_graph, star
from planned_paths import planned
import hetero_bfs as hb
from hetero_bfs.algorithms.sssp import device as device_search
from hetero_bfs.algorithms.sssp.device import DeviceSearch
from hetero_bfs.scheduling.algorithm_decision import WindowPlan, WindowStrategy
from hetero_bfs.devices.opencl import device_run as grid_of_groups
from hetero_bfs.devices.opencl.driver import choose_device
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.algorithms.sssp.algorithm import PathSearches

device_search._CHUNK_EDGES, device_search._PULL_EDGES = 8, 4
DeviceSearch.GROUP, DeviceSearch.GROUPS_PER_UNIT = 32, 1
grid_of_groups._PROBE_PATIENCE = 1 << 22  # other work may take the cores
if {step_by_step}:
    DeviceSearch._find_one_launch = lambda self: None
for graph, dtype in (
    (random_graph(150, 350, 1), np.int32), (grid(8, 9), np.float32), (star(60), np.int32)
):
    weights = np.random.default_rng(1).integers(0, 9, graph.src.size).astype(dtype)
    directed = dtype == np.float32
    edges = EdgeList(graph.src, graph.dst, graph.num_vertices, directed, weights)
    for strategy in (WindowStrategy.PREFIX, WindowStrategy.FULL):
        with planned(WindowPlan(strategy, 2.0, 5.0)):
            searches = PathSearches(build_search_graph(edges), 1, choose_device())
            _ = searches.device
        assert searches.device_name.startswith("Oclgrind"), searches.notes
        assert searches.device.one_launch != {step_by_step}
        result = searches.run(5, place="device")
        check = hb.check_paths(edges, 5, result.distance, result.parent)
        assert check.valid, check.message
"""


THOROUGH = pytest.mark.thorough


@pytest.mark.parametrize(
    "peek", [PEEK, pytest.param((), marks=THOROUGH)], ids=["atomic look", "plain look"]
)
def test_shortest_paths_no_bad_access_and_no_race(peek):
    """Without the option looks at distances are races, which are meant."""
    script = SHORTEST_PATHS.format(tests=str(TESTS), step_by_step=True)
    done = run(script, *FOUR_GROUPS, *peek)
    reports = check_said(done, r"PEEK\(distance \+ ")
    assert bool(reports) == (peek == ()), "the test is of no use if nothing is found"


@THOROUGH
def test_shortest_paths_in_one_launch_no_bad_access():
    done = run(SHORTEST_PATHS.format(tests=str(TESTS), step_by_step=False), *TWO_GROUPS)
    check_said(done)


COMPONENTS = """
import sys
sys.path.insert(0, {tests!r})
from dataclasses import replace
from unittest import mock
from graphs import grid, random_graph, star
import hetero_bfs as hb
from hetero_bfs.algorithms.components import device as device_components
from hetero_bfs.devices.opencl.driver import choose_device
from hetero_bfs.devices.opencl import streamed_lists
from hetero_bfs.devices.opencl.streamed_lists import Layout
from hetero_bfs.errors import BudgetError
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.algorithms.components.algorithm import ComponentRuns

device = choose_device()
if {streams}:
    device_components.DeviceComponents._make_room = mock.Mock(side_effect=BudgetError("full"))
    streamed_lists.lay_out = lambda info, what, ways, *sizes: Layout(
        1, 10**4, max(int(way.sizes.max()) for way in ways), 2
    )
    device = replace(device, unified_memory=False)
sent = 0
for graph in (random_graph(1300, 1400, 1), grid(8, 9), star(60)):
    for directed in (False, True):
        edges = replace(graph, directed=directed)
        with mock.patch.object(device_components, "_HEAVY_EDGES", 8):
            runs = ComponentRuns(build_search_graph(edges, "given"), 1, device)
        assert runs.device_name.startswith("Oclgrind"), runs.notes
        found = runs.run(place="device")
        check = hb.check_components(edges, found.component)
        assert check.valid, check.message
        sent += found.streamed_bytes
assert bool(sent) == {streams}
"""


@pytest.mark.parametrize(
    ("peek", "streams"),
    [(PEEK, False), pytest.param((), False, marks=THOROUGH), (PEEK, True)],
    ids=["atomic look", "plain look", "streamed"],
)
def test_components_no_bad_access_and_no_race(peek, streams):
    """Without the option looks at labels, and their compression, are races, which are meant.

    They alone are volatile; the compiler joins some of their lines to one without a source.
    """
    done = run(COMPONENTS.format(tests=str(TESTS), streams=streams), *FOUR_GROUPS, *peek)
    reports = check_said(done, r"(load|store) volatile i32")
    assert bool(reports) == (peek == ()), "the test is of no use if nothing is found"


COLOURING = """
import sys
sys.path.insert(0, {tests!r})
from dataclasses import replace
from unittest import mock
import numpy as np
from graphs import complete, grid, random_graph, star
from hetero_bfs.algorithms.colouring import device as device_colouring
from hetero_bfs.devices.opencl.driver import choose_device
from hetero_bfs.devices.opencl import streamed_lists
from hetero_bfs.devices.opencl.streamed_lists import Layout
from hetero_bfs.errors import BudgetError
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.algorithms.colouring.algorithm import Colourings

device = choose_device()
if {streams}:
    device_colouring.DeviceColouring._make_room = mock.Mock(side_effect=BudgetError("full"))
    streamed_lists.lay_out = lambda info, what, ways, *sizes: Layout(
        1, 10**4, max(int(way.sizes.max()) for way in ways), 2
    )
    device = replace(device, unified_memory=False)
for edges in (random_graph(150, 350, 1), grid(7, 8), star(60), complete(45)):
    with (
        mock.patch.object(device_colouring, "_HUB_EDGES", 40),
        mock.patch.object(device_colouring.DeviceColouring, "GROUP", {group}),
    ):
        colourings = Colourings(build_search_graph(edges), 1, device)
        assert colourings.device_name.startswith("Oclgrind"), colourings.notes
        found = colourings.run(place="device")
    assert np.array_equal(found.colour, colourings.run(place="cpu").colour)
    assert (found.streamed_bytes > 0) == {streams}
"""


@THOROUGH
@pytest.mark.parametrize("streams", [False, True])
def test_colouring_no_bad_access_and_no_race(streams):
    script = COLOURING.format(tests=str(TESTS), streams=streams, group=32 if streams else 128)
    done = run(script, *FOUR_GROUPS)
    check_said(done)


PAGERANK = """
import sys
sys.path.insert(0, {tests!r})
from dataclasses import replace
from unittest import mock
import numpy as np
from graphs import grid, random_graph, star
import hetero_bfs as hb
from hetero_bfs.algorithms.pagerank import device as device_pagerank
from hetero_bfs.algorithms.pagerank.host import check_settings
from hetero_bfs.devices.opencl.driver import choose_device
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.algorithms.pagerank.algorithm import PageRanks, WeightedPageRanks

SMALL = dict(_LANES=4, _LOW_EDGES=3, _MEDIUM_EDGES=8)
device_pagerank.DevicePageRank.GROUP, device_pagerank.DevicePageRank.GROUPS_PER_UNIT = 32, 1
ALPHA = 0.5  # half the steps of 0.85, by the same kernels: power steps, then Chebyshev's
for graph in (random_graph(150, 450, 1), replace(random_graph(60, 300, 2), directed=True),
              grid(7, 8), star(60)):
    weights = np.random.default_rng(1).integers(0, 9, graph.src.size).astype(np.float32)
    edges, n = replace(graph, weights=weights), graph.num_vertices
    for weighted in (False, True):
        with mock.patch.multiple(device_pagerank, **SMALL):
            ranks = (WeightedPageRanks if weighted else PageRanks)(
                build_search_graph(edges), 1, choose_device()
            )
            assert ranks.device_name.startswith("Oclgrind"), ranks.notes
            for tol in (1e-2, 1e-8):  # portions of float32, then of float64
                result = ranks.run(check_settings(n, ALPHA, tol, 100), place="device")
                assert result.used_device and result.converged
                check = hb.check_pagerank(edges, result.rank, ALPHA, tol, weighted=weighted)
                assert check.valid, check.message
"""


@THOROUGH
def test_pagerank_no_bad_access_and_no_race():
    done = run(PAGERANK.format(tests=str(TESTS)), *FOUR_GROUPS)
    check_said(done)


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
from hetero_bfs.devices.machine import Tuning

TUNING = Tuning(
    group_size=32, vertices_per_item=4, edges_per_item=1, single_group_edges=64,
    cooperative_groups=2, groups_per_unit=1, one_launch=False,
)
edges = random_graph(300, 700, 6)
for budget in (None, 8_000):
    infos = [replace(choose_devices(None, 1)[0], type="GPU", unified_memory=budget is None)]
    patched = mock.patch("hetero_bfs.options.choose_devices", return_value=infos)
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


@THOROUGH
def test_masked_searches_no_bad_access_and_no_race():
    done = run(MASKED.format(tests=str(TESTS)), *FOUR_GROUPS, *PEEK)
    check_said(done)


RANKS = """
import sys
sys.path[:0] = [{tests!r}, {tests!r} + "/../device"]
from dataclasses import replace
from graphs import random_graph, two_hubs
from test_rank_devices import search_on_devices
from hetero_bfs.devices.opencl.driver import choose_device
from hetero_bfs.devices.machine import Tuning
from hetero_bfs.algorithms.bfs import ranks_device as rank_device

tuning = Tuning(
    group_size=32, vertices_per_item=4, edges_per_item=1, groups_per_unit=1, one_launch=False
)
rank_device.trained_tuning = lambda *_: tuning
info = replace(choose_device(), unified_memory=False)
assert info.name.startswith("Oclgrind")
search_on_devices(info, random_graph(200, 330, 2), [0, 199], 2, "fixed:TG,TG,BG,TG")
search_on_devices(info, replace(two_hubs(130), directed=True), [0], 2, "fixed:TG")
"""


@THOROUGH
def test_levels_of_ranks_no_bad_access_and_no_race():
    check_said(run(RANKS.format(tests=str(TESTS)), *FOUR_GROUPS, *PEEK))
