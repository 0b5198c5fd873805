"""Every strategy, alone and in mixtures, on every device: valid trees and the true levels."""

from __future__ import annotations

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from graphs import (
    NAMES,
    SEARCHABLE_NAMES,
    grid,
    nasty,
    path,
    random_graph,
    sources_of,
    star,
    two_hubs,
    two_paths,
)
from oracle import check_leaving, check_result, check_search, engine_on, matrix_of, true_levels
from strategy_mixtures import selectors_of

import hetero_bfs as hb
from hetero_bfs.algorithms.bfs.kernels import steps
from hetero_bfs.algorithms.bfs.result import Frontier
from hetero_bfs.algorithms.bfs.search import Search
from hetero_bfs.devices.machine import Tuning
from hetero_bfs.errors import DeviceError, GraphError
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.scheduling import schema
from hetero_bfs.scheduling.strategies import STRATEGIES


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    ("directed", "order"),
    [
        pytest.param(False, "degree", id="undirected"),
        pytest.param(True, "given", id="directed, as given", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("name", SEARCHABLE_NAMES)
def test_every_strategy_on_every_graph(place, name, directed, order):
    edges = nasty(name, directed)
    sources = sources_of(edges, 2)
    with engine_on(place, edges, selector="fixed:TC", order=order) as engine:
        for number, selector in enumerate(selectors_of(place)):
            engine.set_selector(selector)
            if name == "long path" and number % 4:
                continue  # thousands of levels
            if edges.num_vertices > 1000:  # the selectors take turns at the sources
                check_search(engine, edges, sources[number % len(sources)])
            else:
                for source in sources:
                    check_search(engine, edges, source)


@pytest.mark.parametrize("name", ["isolated vertices", "two components", "Kronecker 10"])
def test_searches_in_a_row(place, name):
    """Each result is its own, whatever came after."""
    edges = nasty(name)
    sources = [*sources_of(edges, 4), 0, edges.num_vertices - 1, 0]
    with engine_on(place, edges, selector="fixed:TC") as engine:
        for number, selector in enumerate(selectors_of(place)):
            engine.set_selector(selector)
            row = sources[: len(sources) - number % 3]  # other lengths, in the memory of the first
            results = engine.bfs_back_to_back(row)
            assert len(results) == len(row)
            for source, result in zip(row, results, strict=True):
                check_result(engine, edges, source, result)
            check_search(engine, edges, sources[1])
        assert engine.bfs_back_to_back([]) == []
        check_result(engine, edges, sources[0], engine.bfs_back_to_back(sources[:1])[0])


def test_a_row_after_one_that_failed(apart, monkeypatch):
    """Half way, with parents saved; and memory for them that the device cannot give."""
    edges = nasty("Kronecker 10")
    with engine_on(apart, edges, selector="fixed:TG,BG") as engine:
        run, searches = Search.run, []

        def fails_at_the_third(search, max_levels=None):
            searches.append(search)
            if len(searches) == 3:
                raise DeviceError("lost")
            return run(search, max_levels)

        with monkeypatch.context() as patch:
            patch.setattr(Search, "run", fails_at_the_third)
            with pytest.raises(DeviceError, match="lost"):
                engine.bfs_back_to_back([1, 2, 3, 4])
        refuse = mock.Mock(side_effect=DeviceError("too much"))
        monkeypatch.setattr(engine.accelerator.device, "host_array", refuse)
        row = [5, 1, 2, 3, 4, 6]
        for source, result in zip(row, engine.bfs_back_to_back(row), strict=True):
            check_result(engine, edges, source, result)
        assert refuse.called


def test_a_row_with_a_wrong_vertex_is_not_searched(monkeypatch):
    edges = nasty("two components")
    with hb.Engine(edges, device="cpu") as engine:
        monkeypatch.setattr(Search, "run", lambda *_: pytest.fail("a search"))
        with pytest.raises(GraphError, match=f"vertex {edges.num_vertices} is not in the graph"):
            engine.bfs_back_to_back([0, 1, edges.num_vertices])


@pytest.mark.parametrize("order", ["degree", "given"])
def test_graph_without_vertices(place, order):
    edges = nasty("no vertices")
    with engine_on(place, edges, selector="fixed:TC", order=order) as engine:
        assert not engine.notes, "a device that does not matter is no news"
        with pytest.raises(GraphError, match="vertex 0 is not in the graph"):
            engine.bfs(0)


@pytest.mark.parametrize("name", ["no vertices", "no edges", "one vertex", "loops only"])
def test_graph_without_edges_takes_any_part_size(opencl_device, name):
    edges = nasty(name)
    with engine_on(opencl_device, edges, selector="fixed:TG", max_alloc_bytes=4) as engine:
        for source in range(edges.num_vertices):
            check_search(engine, edges, source)


@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
@pytest.mark.parametrize("name", ["grid", "Kronecker 10", "tree"])
def test_a_bitmap_becomes_a_queue_of_the_new_vertices_alone(place, name, directed):
    """Queueing all visited vertices would be right too, but slow."""
    edges = nasty(name, directed)
    bottom_up = STRATEGIES["BC" if place is None else "BG"]
    with engine_on(place, edges, selector="fixed:TC", order="given") as engine:
        engine.bfs(0)
        executor = engine.platform.executor(0 if place is None else 1)
        source = int(edges.src[3])
        levels = true_levels(edges, source)
        graph = engine.graph
        frontier = Frontier(
            int(graph.degree[source]), graph.num_searched, graph.graph.num_stored_edges
        )
        executor.begin(source, frontier)
        frontier.place = schema.HOST if place is None else schema.DEVICE
        for level in range(1, min(levels.max(), 4) + 1):
            executor.run(bottom_up, frontier)
            new = np.flatnonzero((levels == level) & (engine.graph.degree > 0))
            if not frontier.has_queue:
                executor.to_queue(frontier)
            assert frontier.has_queue
            assert frontier.vertices == new.size
            assert frontier.edges == engine.graph.degree[new].sum()


# One engine, many searches.


def test_repeated_searches_do_not_disturb_each_other(place):
    edges = nasty("Kronecker 10")
    rng = np.random.default_rng(3)
    with engine_on(place, edges, selector="fixed:TC") as engine:
        selectors = selectors_of(place)
        for source in rng.integers(0, edges.num_vertices, 60).tolist():
            engine.set_selector(selectors[rng.integers(len(selectors))])
            check_search(engine, edges, source)
        first = engine.bfs(458)
        kept = first.parent.copy()
        engine.bfs(797)
        np.testing.assert_array_equal(first.parent, kept)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("selector", ["fixed:TC", "fixed:TG", "fixed:BG"])
def test_more_levels_than_counters(plain_device, selector):
    """A device counts 1024 levels before it clears its counters; a path of 2100 passes twice."""
    edges = path(2100)
    with engine_on(plain_device, edges, selector=selector) as engine:
        result = check_search(engine, edges, 0)
        assert len(result.traces) in (2099, 2100)


@pytest.mark.parametrize("order", ["degree", "given"])
def test_isolated_root(place, order):
    edges = nasty("isolated vertices")
    isolated = int(np.flatnonzero(matrix_of(edges).sum(axis=1) == 0)[5])
    with engine_on(place, edges, selector="fixed:TC", order=order) as engine:
        for selector in selectors_of(place):
            engine.set_selector(selector)
            engine.bfs(1)  # leaves its parents behind
            result = check_search(engine, edges, isolated)
            assert (result.reached, result.nedge, result.teps) == (1, 0, 0.0)
            assert result.parent[isolated] == isolated
            assert result.traces == []
        assert engine.graph.is_isolated(isolated)


@pytest.mark.parametrize("source", [-1, 7, 2**32, -(2**40)])
def test_root_out_of_range(place, source):
    with (
        engine_on(place, nasty("duplicates"), selector="fixed:TC") as engine,
        pytest.raises(GraphError, match=rf"vertex {source} is not in the graph.* 0 to 6"),
    ):
        engine.bfs(source)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("interval", [1, 2, 100])
def test_decision_interval(place, interval):
    edges = nasty("long path")
    with engine_on(
        place, edges, selector="alpha-beta", order="given", decision_interval=interval
    ) as engine:
        traces = check_search(engine, edges, 500).traces
    for level, trace in enumerate(traces):
        kept = f"as level {level - level % interval}, for {interval} levels"
        assert (trace.reason == kept) == (level % interval > 0)


def test_decision_interval_below_one(place):
    with pytest.raises(ValueError, match="decision_interval is 0"):
        engine_on(place, nasty("grid"), selector="fixed:TC", decision_interval=0)


@pytest.mark.parametrize("schedule", ["fixed:TG", "fixed:TC,TG,BG", "fixed:TC,BG,TG"])
def test_an_interrupted_search_leaves_nothing_behind(opencl_device, schedule):
    """An interrupt while the device is at work: the counts of its launches are discarded."""
    edges = nasty("Kronecker 10")
    with engine_on(opencl_device, edges, selector="fixed:TC,TG,BG,TG") as engine:
        engine.search(458)
        accelerator = engine.accelerator
        with (
            mock.patch.object(accelerator.program, "_read_state", side_effect=KeyboardInterrupt),
            pytest.raises(KeyboardInterrupt),
        ):
            engine.search(458)
        engine.set_selector(schedule)
        for source in (458, 3):
            check_search(engine, edges, source)


def test_a_search_left_on_the_device_does_not_shine_through(opencl_device):
    """The next search invalidates parents that the device wrote and that were never gathered."""
    edges = nasty("two components")
    with engine_on(opencl_device, edges, selector="fixed:TG", order="given") as engine:
        reached = check_search(engine, edges, int(edges.src[0])).parent >= 0
        other = next(int(v) for v in edges.src if not reached[v])
        engine.search(int(edges.src[0]))
        engine.set_selector("fixed:TC")
        check_search(engine, edges, other)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("levels", [63, 64, 65, 128])
def test_a_search_that_leaves_the_device_after_many_levels(opencl_device, levels):
    """Records have 64, 128, ... rows. A search that ends with the rows leaves no stale parents."""
    for directed in (False, True):
        edges = two_paths(300, 100, directed)
        with engine_on(opencl_device, edges, selector="fixed:TG", order="given") as engine:
            check_leaving(engine, edges, 300, levels)


@pytest.mark.usefixtures("many_threads")
def test_a_frontier_of_owners_goes_to_the_device(opencl_device):
    """Of a grid numbered by partitions, some of whose edges wait to be collected."""
    edges = grid(300, 300)
    schedule = "fixed:" + "TC," * 200 + "TG,TC," + "TC," * 40 + "TG,TC"
    with engine_on(opencl_device, edges, selector=schedule, threads=5) as engine:
        assert engine.graph.is_local
        for source in (0, 300 * 150 + 150):
            check_search(engine, edges, source)


def test_a_grid_that_stalls_is_searched_again_step_by_step(opencl_device):
    edges = nasty("Kronecker 10")
    with engine_on(opencl_device, edges, selector="fixed:TG,BG,TG") as engine:
        program, failed = engine.accelerator.program, []
        program.one_launch, read = True, program._read_state
        vars(program).pop("_steps", None)  # the program of one launch has no kernels of steps

        def stall_once(launches):
            state = read(launches).copy()
            if not failed:
                failed.append(launches)
                state[steps.STATUS] = steps.FAILED
            return state

        with mock.patch.object(program, "_read_state", stall_once):
            check_search(engine, edges, 458)
        assert failed
        assert not engine.accelerator.program.one_launch


# From Python.


@pytest.mark.parametrize("name", NAMES[1:8])
def test_one_call(name, monkeypatch):
    edges = nasty(name)
    result = hb.bfs(edges, edges.num_vertices - 1, device="cpu")
    np.testing.assert_array_equal(result.level, true_levels(edges, edges.num_vertices - 1))


def test_csr_graphs_edge_lists_and_search_graphs_search_alike(place):
    edges = random_graph(500, 900, 11)
    for directed in (False, True):
        given = replace(edges, directed=directed)
        csr = hb.CSRGraph.from_edges(edges.src, edges.dst, 500, directed)
        for graph in (given, csr, build_search_graph(given), build_search_graph(csr, "given")):
            with engine_on(place, graph, selector="fixed:TC,BC,TC") as engine:
                check_search(engine, given, int(edges.src[0]))


def test_forgotten_parents_leave_times():
    with engine_on(None, star(9), selector="fixed:TC") as engine:
        result = engine.bfs(0)
    assert result.level.max() == 1
    result.drop_parents()
    assert result.parent.size == result.level.size - result.level.size == 0
    assert result.seconds > 0
    assert (result.nedge, len(result.traces)) == (9, 1)
    assert result.teps == pytest.approx(9 / result.seconds)


def test_two_engines_at_once(place):
    with (
        engine_on(place, path(50), selector="fixed:TC") as one,
        engine_on(place, two_hubs(40), selector="fixed:BC") as other,
    ):
        for source in (0, 5, 20):
            check_search(one, one_edges := path(50), source)
            check_search(other, two_hubs(40), source)
            assert one_edges.num_vertices == one.graph.num_vertices


def test_a_tuning_beyond_the_local_memory_is_refused(plain_device):
    info = replace(plain_device, local_memory_bytes=48 << 10)
    tuning = Tuning(group_size=256, edges_per_item=250)
    found = mock.patch("hetero_bfs.options.choose_devices", return_value=[info])
    with found, pytest.raises(DeviceError, match=r"needs \d+ bytes of local memory; .* 49152"):
        hb.Engine(nasty("grid"), device="0", tuning=tuning)
