"""All algorithms on devices that pose as lesser ones: without 64-bit atomics, without doubles..."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from graphs import random_graph
from oracle import check_search, engine_on
from posing import POSES, hold, pose
from sample_programs import Communities, Distances, Farthest, Labels, MonotoneDistances, Parents

import hetero_bfs as hb
from hetero_bfs.algorithms.colouring.algorithm import Colourings
from hetero_bfs.algorithms.components.algorithm import ComponentRuns
from hetero_bfs.algorithms.pagerank.algorithm import PageRanks
from hetero_bfs.algorithms.pagerank.host import PageRankSettings
from hetero_bfs.algorithms.program_runs import ProgramRuns
from hetero_bfs.algorithms.sssp.algorithm import PathSearches
from hetero_bfs.devices.machine import default_tuning
from hetero_bfs.devices.opencl.opencl_device import OpenCLDevice
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.search_graph import build_search_graph

GRAPH = random_graph(900, 5000, 3)
PROGRAMS = (
    (Parents(), {"source": 5}),
    (Distances(), {"source": 5}),
    (MonotoneDistances(), {"source": 5}),
    (Labels(), {}),
    (Communities(), {"rounds": 3}),
    (Farthest(), {}),
)


@pytest.fixture(params=POSES)
def posed(request, plain_device, monkeypatch):
    hold(monkeypatch)
    return pose(plain_device, [request.param])


def weighted(dtype, directed=False) -> EdgeList:
    weights = np.random.default_rng(1).integers(1, 90, GRAPH.src.size).astype(dtype)
    return EdgeList(GRAPH.src, GRAPH.dst, GRAPH.num_vertices, directed, weights)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("directed", [False, True])
def test_searches(posed, directed):
    edges = replace(GRAPH, directed=directed)
    with engine_on(posed, edges, selector="fixed:TC") as engine:
        for selector in ("TG", "BG", "BGC", "TG,TC,BG,BC,TG"):
            engine.set_selector(f"fixed:{selector}")
            check_search(engine, edges, 5)


@pytest.mark.sampled(2)
def test_shortest_paths(posed):
    for dtype in (np.int32, np.float32, np.float64):
        if dtype == np.float64 and not posed.has_double:
            continue
        edges = weighted(dtype, directed=dtype != np.int32)
        searches = PathSearches(build_search_graph(edges), 1, posed)
        result = searches.run(5, place="device")
        check = hb.check_paths(edges, 5, result.distance, result.parent)
        assert check.valid, check.message


def test_components_and_colours(posed):
    graph = build_search_graph(GRAPH)
    components = ComponentRuns(graph, 1, posed)
    assert components.notes == []
    for one in ("device", "cpu"):
        result = components.run(place=one)
        check = hb.check_components(GRAPH, result.component)
        assert check.valid, check.message
    colourings = Colourings(graph, 1, posed)
    assert colourings.notes == []
    check = hb.check_colouring(GRAPH, colourings.run(place="device").colour)
    assert check.valid, check.message


def test_ranks(posed):
    """Without doubles the sums of floats are coarse; the ranks' sum is 1 still."""
    ranks = PageRanks(build_search_graph(GRAPH), 1, posed)
    result = ranks.run(PageRankSettings(0.85, GRAPH.num_vertices * 1e-6, 200), place="device")
    check = hb.check_pagerank(GRAPH, result.rank, 0.85, 1e-6)
    assert check.valid, check.message
    assert abs(result.rank.sum() - 1) < 1e-12


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("program", "parameters"), PROGRAMS, ids=lambda one: type(one).__name__)
def test_programs(posed, program, parameters):
    """Messages of 32 and 64 bits, pushed and pulled, counted, and in sweeps."""
    runs = ProgramRuns(build_search_graph(weighted(np.float32)), 1, posed)
    field = next(iter(program.state))
    ways = ((),) if program.monotone or program.all_active else (("push",), ("pull",))
    for way in ways:
        host, device = (
            runs.run(program, parameters, options)
            for options in (
                hb.RunOptions(schedule=way) if way else hb.RunOptions(place="cpu"),
                hb.RunOptions(schedule=[f"device {name}" for name in way])
                if way
                else hb.RunOptions(place="device"),
            )
        )
        assert all(trace.strategy.startswith("device") for trace in device.traces)
        if not isinstance(program, Parents):
            np.testing.assert_allclose(device.state[field], host.state[field], rtol=1e-6)


def test_a_device_is_held_to_its_pose(plain_device, monkeypatch):
    hold(monkeypatch)
    device = OpenCLDevice(pose(plain_device, ["groups-of-64", "small-allocations"]))
    program = device.build(["-DGROUP=128"], "", ["programs/kernels/migration.cl"])
    kernel = device.bind(program, "set_bits", *[np.uint32(0)] * 2)
    with pytest.raises(AssertionError, match="a work-group of 128 on a device of 64"):
        kernel.launch(128, 128)
    with pytest.raises(hb.errors.DeviceError, match="too large"):
        device.buffer(1 << 19, np.uint32)


def test_tunings_fit_the_pose(plain_device):
    small = pose(plain_device, ["local-memory-16k", "groups-of-64"])
    for kind in ("CPU", "GPU"):
        tuning = default_tuning(kind).fitting(small)
        assert tuning.group_size <= 64
        assert tuning.local_bytes(8) <= 1 << 14
        assert default_tuning(kind).fitting(plain_device) == default_tuning(kind)
