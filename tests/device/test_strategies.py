"""Every strategy, alone and in mixtures, on every device: valid trees and the true levels."""

from __future__ import annotations

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from graphs import (
    NAMES,
    SEARCHABLE_NAMES,
    core_with_tails,
    edge_list,
    edge_lists,
    grid,
    late_hub,
    nasty,
    path,
    random_graph,
    sources_of,
    star,
    two_hubs,
    two_paths,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import check_leaving, check_result, check_search, engine_on, matrix_of, true_levels

import hetero_bfs as hb
from hetero_bfs.algorithms.bfs.result import Frontier
from hetero_bfs.devices.opencl.driver import OpenCLDevice
from hetero_bfs.errors import DeviceError, GraphError, GridStalledError, ModelError
from hetero_bfs.graph.generators.kronecker import KroneckerEdges
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.runtime.engine import Engine
from hetero_bfs.selection.strategies import MODEL_SELECTORS, STRATEGIES, available

SMALL = ["one edge", "duplicates", "cycle", "complete", "two components"]
MIXTURES = [
    "TC,BG,TG,BC,BGC,TC",
    "TG,TC,TG,BC,TC,BG,BC,BGC,TG",
    "BGC,TC,BC,TG",
    "BC,TG,BG,TC,BGC,BC,BG,TG",
    "TG,TG,BC",
    "TC,TC,BG",
]


def selectors_of(place) -> list[str]:
    """Every strategy alone, then mixtures of those that can run."""
    names = [s.name for s in available(place is not None)]
    mixtures = [] if place is None else MIXTURES
    return (
        [f"fixed:{n}" for n in names]
        + ["fixed:TC,BC,TC", "fixed:BC,TC,BC,BC,TC"]
        + [f"fixed:{m}" for m in mixtures]
    )


@pytest.mark.parametrize("order", ["degree", pytest.param("given", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "directed",
    [
        pytest.param(False, id="undirected"),
        pytest.param(True, id="directed", marks=pytest.mark.slow),
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
        run, searches = Engine._run, []

        def fails_at_the_third(engine, search):
            searches.append(search)
            if len(searches) == 3:
                raise DeviceError("lost")
            return run(engine, search)

        with monkeypatch.context() as partition:
            partition.setattr(Engine, "_run", fails_at_the_third)
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
    with hb.Engine(edges, devices="cpu") as engine:
        monkeypatch.setattr(engine, "_run", lambda _: pytest.fail("a search"))
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
        frontier.kind = "cpu" if place is None else "device"
        for level in range(1, min(levels.max(), 4) + 1):
            executor.run(bottom_up, frontier)
            new = np.flatnonzero((levels == level) & (engine.graph.degree > 0))
            if not frontier.has_queue:
                executor.to_queue(frontier)
            assert frontier.has_queue
            assert frontier.vertices == new.size
            assert frontier.edges == engine.graph.degree[new].sum()


# Parts of the edge array.

PARTS = [
    ("two components", 1, False),
    ("two hubs", 128, False),
    ("two hubs", 128, True),
    ("late hub", 128, False),
    ("late hub", 128, True),
    ("Kronecker 10", 1024, False),
    ("Kronecker 10", 1024, True),
]
"""Graph, edges in a part, directed. Every other number (up to a power of two) or size of parts is
another program, which PoCL compiles for five seconds; so other tests of parts have these too."""


@pytest.mark.parametrize(("name", "part_edges", "directed"), PARTS)
def test_every_strategy_on_a_split_edge_array(opencl_device, name, part_edges, directed):
    edges = nasty(name, directed)
    order = "given" if name in ("late hub", "two hubs") else "degree"
    limit = 4 * part_edges + 3  # bytes; a limit need not be a power of two
    options = {"selector": "fixed:TG", "order": order, "max_alloc_bytes": limit}
    with engine_on(opencl_device, edges, **options) as engine:
        assert engine.num_parts == max(-(-engine.graph.graph.num_stored_edges // part_edges), 1)
        assert 2 <= engine.num_parts <= 32
        sources = sources_of(edges, 2)
        for number, selector in enumerate(selectors_of(opencl_device)):
            engine.set_selector(selector)
            check_search(engine, edges, sources[number % len(sources)])
            check_search(engine, edges, sources[(number + 1) % len(sources)])


def test_too_small_a_limit_names_one_that_works(opencl_device):
    edges = nasty("two hubs")
    with pytest.raises(DeviceError, match=r"allow at least 512 bytes \(max_alloc_bytes\)"):
        engine_on(opencl_device, edges, selector="fixed:TG", max_alloc_bytes=256)
    with engine_on(opencl_device, edges, selector="fixed:TG", max_alloc_bytes=512) as engine:
        check_search(engine, edges, 0)


def test_a_driver_that_gives_less_than_it_promised_gets_smaller_parts(opencl_device):
    edges = nasty("Kronecker 10")
    graph = build_search_graph(edges)
    upload = OpenCLDevice.upload
    limit = 8 * graph.num_searched + 64  # lets the other arrays pass, but not all the edges

    def stingy(self, array):
        if array.nbytes > limit:
            raise DeviceError(f"allocating {array.nbytes} bytes failed")
        return upload(self, array)

    with (
        mock.patch.object(OpenCLDevice, "upload", stingy),
        engine_on(opencl_device, graph, selector="fixed:TG") as engine,
    ):
        assert graph.graph.indices.nbytes > limit
        assert engine.num_parts > 1
        for selector in ("fixed:TG", "fixed:BG", "fixed:BGC"):
            engine.set_selector(selector)
            check_search(engine, edges, 458)


# Mixtures by Hypothesis, on engines that are kept.

SCHEDULED = {
    "Kronecker 10": {},
    "Kronecker 10, parts": {"max_alloc_bytes": 4096},
    "sparse random": {},
    "sparse random, given": {"order": "given"},
    "two hubs": {},
    "grid": {"order": "given"},
}


@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
@settings(max_examples=60)
@given(
    key=st.sampled_from(list(SCHEDULED)),
    schedule=st.lists(st.sampled_from(list(STRATEGIES)), min_size=1, max_size=9),
    position=st.floats(0, 1, exclude_max=True),
    interval=st.integers(1, 3),
)
def test_any_mixture(kept, place, directed, key, schedule, position, interval):
    if place is None:
        schedule = [name[0] + "C" for name in schedule]
    edges = nasty(key.split(",")[0], directed)
    engine = kept(
        (place, key, directed),
        lambda: engine_on(place, edges, selector="fixed:TC", **SCHEDULED[key]),
    )
    engine.set_selector("fixed:" + ",".join(schedule))
    engine.decision_interval = interval
    result = check_search(engine, edges, int(position * edges.num_vertices))
    wanted = [schedule[min(i - i % interval, len(schedule) - 1)] for i in range(len(result.traces))]
    assert [trace.strategy for trace in result.traces] == wanted


@settings(max_examples=40)
@given(edges=edge_lists(), data=st.data())
def test_any_small_graph_on_the_cpu(one_thread, edges, data):
    order = data.draw(st.sampled_from(["degree", "given"]))
    source = data.draw(st.integers(0, edges.num_vertices - 1))
    with engine_on(None, edges, selector="fixed:TC", order=order) as engine:
        for selector in ("fixed:TC", "fixed:BC", "fixed:TC,BC,TC", "fixed:BC,TC", "alpha-beta"):
            engine.set_selector(selector)
            check_search(engine, edges, source)


@settings(max_examples=15)
@given(edges=edge_lists(max_vertices=100, max_edges=300), data=st.data())
def test_any_graph_on_a_device(one_thread, opencl_device, edges, data):
    """A component apart keeps parts as in PARTS, so that kernels are compiled once."""
    n = edges.num_vertices
    tail = n + np.arange(1200, dtype=np.uint32)
    padded = replace(
        edges,
        src=np.concatenate([tail[:-1], edges.src]),
        dst=np.concatenate([tail[1:], edges.dst]),
        num_vertices=n + tail.size,
    )
    source = data.draw(st.integers(0, n - 1))
    graph = build_search_graph(padded)
    for max_alloc in (None, 4 * 128):
        with engine_on(
            opencl_device, graph, selector="fixed:TG", max_alloc_bytes=max_alloc
        ) as engine:
            for selector in ("fixed:TG", "fixed:BG", "fixed:BGC", "fixed:TG,BC,TG,BG,TC,BGC"):
                engine.set_selector(selector)
                check_search(engine, padded, source)


@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
def test_hubs_keep_every_core_and_group_busy_and_right(place, directed):
    """Frontiers far above one chunk of a thread or one tile of a work-group."""
    edges = replace(KroneckerEdges(14).materialise(), directed=directed)
    graph = build_search_graph(edges)
    with engine_on(place, graph, selector="fixed:TC") as engine:
        for selector in selectors_of(place):
            engine.set_selector(selector)
            check_search(engine, edges, 7337)


@pytest.mark.usefixtures("many_threads")
def test_a_wide_level_on_the_host_hands_over_to_a_device(opencl_device):
    """Top-down by several threads leaves a bitmap; the device goes on from it, or from a queue."""
    random = np.random.default_rng(7)
    edges = hb.EdgeList.from_arrays(*random.integers(0, 20_000, (2, 80_000)))
    dense_push = 0
    with engine_on(opencl_device, edges, selector="fixed:TC", threads=2) as engine:
        for after in ("BG", "BGC", "TG", "TG,TC", "BG,TC"):
            engine.set_selector(f"fixed:TC,TC,TC,TC,TC,{after}")
            for source in random.integers(0, 20_000, 3):
                representations = [
                    t.features.representation
                    for t in check_search(engine, edges, int(source)).traces
                ]
                dense_push += "wide" in representations
    assert dense_push == 15


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.usefixtures("many_threads")
def test_few_vertices_remain_to_host_and_device(opencl_device, directed):
    """The host lists them, and its list serves after the device has found some of them as well."""
    edges = core_with_tails(directed)
    found_list = 0
    with engine_on(opencl_device, edges, selector="fixed:TC", threads=2) as engine:
        for after in ("BG", "TG,BC", "BG,BC", "BG,BC,TG,BC", "TC,BG,BC"):
            engine.set_selector(f"fixed:TC,BC,BC,BC,BC,BC,BC,{after}")
            for source in (20_000 + 7 * 200, 20_006):
                representations = [
                    t.features.representation for t in check_search(engine, edges, source).traces
                ]
                found_list += "listed" in representations
    assert found_list >= 5


@pytest.mark.parametrize("leaves", [510, 511, 512, 513, 514, 515, 767, 768, 769, 1025])
def test_lists_around_the_length_that_a_group_shares(opencl_device, leaves):
    """Bottom-up hands what lies beyond 512 neighbours to the whole work-group."""
    edges = late_hub(leaves)
    with engine_on(opencl_device, edges, selector="fixed:BG", order="given") as engine:
        for selector in ("fixed:BG", "fixed:BGC", "fixed:BC", "fixed:BC,BG,BGC"):
            engine.set_selector(selector)
            check_search(engine, edges, leaves + 1)


def test_many_long_lists_in_one_tile(opencl_device):
    """Forty hubs over 600 shared leaves; the last leaf alone is near the source."""
    hubs, leaves = 40, 700
    pairs = [(h, hubs + leaf) for h in range(hubs) for leaf in range(leaves)]
    edges = edge_list([*pairs, (hubs + leaves - 1, hubs + leaves)], hubs + leaves + 1)
    with engine_on(opencl_device, edges, selector="fixed:BG", order="given") as engine:
        for selector in ("fixed:BG", "fixed:BGC", "fixed:TG,BG,TG"):
            engine.set_selector(selector)
            check_search(engine, edges, hubs + leaves)


@pytest.mark.parametrize("count", [31, 32, 33, 255, 256, 257, 2047, 2048, 2049, 131_073])
def test_sizes_around_words_tiles_and_the_cache(place, count):
    """Vertices around multiples of a bitmap word, a group, a tile, and BGC's cached bits."""
    rng = np.random.default_rng(count)
    old = np.arange(1, count)
    pairs = np.column_stack([old, (old * rng.random(old.size)).astype(np.int64)])
    edges = edge_list(pairs, count)
    with engine_on(place, edges, selector="fixed:TC", order="given") as engine:
        assert engine.graph.num_searched == count
        for selector in selectors_of(place)[: 5 if place else 2]:
            engine.set_selector(selector)
            check_search(engine, edges, count - 1)


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


@pytest.mark.parametrize("selector", ["fixed:TC", "fixed:TG", "fixed:BG"])
def test_more_levels_than_counters(opencl_device, selector):
    """A device counts 1024 levels before it clears its counters; a path of 3000 passes twice."""
    edges = nasty("long path")
    with engine_on(opencl_device, edges, selector=selector) as engine:
        for _ in range(2):
            result = check_search(engine, edges, 0)
        assert len(result.traces) in (2999, 3000)


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


@pytest.mark.parametrize("interval", [1, 2, 100])
def test_decision_interval(place, interval):
    edges = nasty("long path")
    with engine_on(
        place, edges, selector="alpha-beta", order="given", decision_interval=interval
    ) as engine:
        traces = check_search(engine, edges, 1500).traces
    kept = [trace.reason == "as the level before" for trace in traces]
    assert kept == [level % interval > 0 for level in range(len(traces))]


def test_decision_interval_below_one(place):
    with pytest.raises(ValueError, match="decision_interval is 0"):
        engine_on(place, nasty("grid"), selector="fixed:TC", decision_interval=0)


@pytest.mark.parametrize("schedule", ["fixed:TG", "fixed:TC,TG,BG", "fixed:TC,BG,TG"])
def test_an_interrupted_search_leaves_nothing_behind(opencl_device, schedule):
    """An interrupt while the device is at work: what its launches counted is forgotten."""
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
    """Parents that the device wrote, and nobody gathered, are forgotten by the next search."""
    edges = nasty("two components")
    with engine_on(opencl_device, edges, selector="fixed:TG", order="given") as engine:
        reached = check_search(engine, edges, int(edges.src[0])).parent >= 0
        other = next(int(v) for v in edges.src if not reached[v])
        engine.search(int(edges.src[0]))
        engine.set_selector("fixed:TC")
        check_search(engine, edges, other)


@pytest.mark.parametrize("levels", [63, 64, 65, 128])
def test_a_search_that_leaves_the_device_after_many_levels(opencl_device, levels):
    """Records come in 64, 128, ... rows: what ends there has forgotten stale parents too."""
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
        launch = type(engine.accelerator.program).launch
        calls = []

        def stall_once(self, *arguments):
            calls.append(launch(self, *arguments))
            if len(calls) == 1:
                raise GridStalledError("the work-groups did not run together")
            return calls[-1]

        with mock.patch.object(type(engine.accelerator.program), "launch", stall_once):
            check_search(engine, edges, 458)
        assert len(calls) > 1


# Selectors.


@pytest.mark.parametrize(
    "selector", ["auto", "learned", "thresholds", "average", "alpha-beta", "daga"]
)
@pytest.mark.parametrize("name", ["no edges", "one loop", "two components", "grid", "Kronecker 12"])
def test_every_selector(place, trained, selector, name):
    if selector == "daga" and place is None:
        with pytest.raises(ModelError, match="there is none"):
            engine_on(None, nasty(name), selector=selector)
        return
    trained(place)
    edges = nasty(name)
    with engine_on(place, edges, selector=selector) as engine:
        assert engine.notes == []
        assert engine.selector.name == ("learned" if selector == "auto" else selector)
        for source in sources_of(edges):
            result = check_search(engine, edges, source)
            for trace in result.traces:
                check_choice(trace, selector, place)


def check_choice(trace, selector, place) -> None:
    if selector in ("auto", *MODEL_SELECTORS):
        assert set(trace.predicted_seconds) == {s.name for s in available(place is not None)}
        assert all(0 < seconds < 1 for seconds in trace.predicted_seconds.values())
        if selector == "average" and trace.reason != "as the level before":  # others look ahead
            chosen = trace.predicted_seconds[trace.strategy]
            assert chosen == min(trace.predicted_seconds.values())
    else:
        assert trace.predicted_seconds == {}
        bottom_up = "BG" if place is not None else "BC"
        top_down = "TG" if place is not None and selector == "alpha-beta" else "TC"
        assert trace.strategy in (top_down, bottom_up)
    assert trace.reason


def test_a_made_up_model_makes_the_search_cross_both_ways(opencl_device, trained):
    """Bottom-up free on the device, top-down free on the CPU, while a switch costs little."""

    def change(data):
        for name, columns in data["learned"].items():
            columns["constant"] = 1e-9 if name in ("BG", "TC") else 1.0

    trained(opencl_device, change)
    edges = nasty("Kronecker 12")
    with engine_on(opencl_device, edges, selector="learned") as engine:
        result = check_search(engine, edges, 7)
    used = [trace.strategy for trace in result.traces]
    assert set(used) == {"TC", "BG"}
    assert used[0] == "TC"


@pytest.mark.parametrize("name", ["two components", "star", "Kronecker 12", "grid"])
def test_beamers_rule_as_the_levels_show_it(place, name):
    """Replay the rule on the recorded features."""
    edges = nasty(name)
    with engine_on(place, edges, selector="alpha-beta") as engine:
        for source in sources_of(edges):
            direction = "top-down"
            for trace in check_search(engine, edges, source).traces:
                f = trace.features
                if direction == "top-down":
                    if f.frontier_edges > f.unvisited_edges / 15:
                        direction = "bottom-up"
                elif f.frontier_vertices < f.num_vertices / 18:
                    direction = "top-down"
                assert STRATEGIES[trace.strategy].direction == direction


# Memory.


def test_shared_memory_is_not_copied(shared):
    edges = KroneckerEdges(15).materialise()
    graph = build_search_graph(edges)
    with engine_on(shared, graph, selector="fixed:TG") as engine:
        device = engine.accelerator.device
        assert graph.graph.indices.nbytes > 2 * 2**20
        assert device.bytes_copied < 64 * 2**10, "upload and warm-up"
        device.bytes_copied = 0
        for selector in ("fixed:TG", "fixed:BG", "fixed:TC,BG,TC", "fixed:TG,BC,TG"):
            engine.set_selector(selector)
            check_search(engine, edges, int(edges.src[0]))
            assert device.bytes_copied < 64 * 2**10, selector
            device.bytes_copied = 0


def test_a_graph_is_copied_to_a_device_with_memory_of_its_own(apart):
    """What the host then does to its edges is nothing to a search there."""
    edges = KroneckerEdges(12).materialise()
    graph = build_search_graph(edges)
    with engine_on(apart, graph, selector="fixed:TG,BG") as engine:
        assert engine.accelerator.device.bytes_copied > graph.graph.indices.nbytes
        graph.graph.indices[:] = 0
        check_search(engine, edges, int(edges.src[0]))


def test_only_the_frontier_crosses_to_a_device_with_memory_of_its_own(apart):
    """TC, TG, BC: bitmap n/8 bytes and a short queue; parents are merged once at the end."""
    edges = KroneckerEdges(15).materialise()
    with engine_on(apart, edges, selector="fixed:TC,TG,BC") as engine:
        device = engine.accelerator.device
        n = engine.graph.num_searched
        device.bytes_copied = 0
        search = engine.search(int(edges.src[0]))
        switches = 2
        queue = max(t.features.frontier_vertices for t in search.traces[:2])
        assert device.bytes_copied <= 4 * n + switches * (n // 8 + 16 * queue + 64) + 4096


def test_graph_too_large_for_the_device_is_searched_on_the_cpu(opencl_device):
    edges = nasty("Kronecker 10")
    small = replace(opencl_device, memory_bytes=15_000)
    with (
        mock.patch("hetero_bfs.runtime.engine.choose_device", return_value=small),
        hb.Engine(edges, selector="fixed:TC,BC") as engine,
    ):
        assert engine.device_info is None
        assert [s.name for s in engine.candidates] == ["TC", "BC"]
        (note,) = engine.notes
        assert small.name in note
        assert "left out" in note
        fits = "edges of this kind would fit" if small.unified_memory else "a few pages of edges"
        assert fits in note
        check_search(engine, edges, 458)
        with pytest.raises(ModelError, match="strategies that can run are TC, BC"):
            engine.set_selector("fixed:TG")


def test_graph_too_large_for_the_device_is_left_out_with_max_alloc_too(opencl_device):
    edges = nasty("Kronecker 10")
    small = replace(opencl_device, memory_bytes=15_000)
    with (
        mock.patch("hetero_bfs.runtime.engine.choose_device", return_value=small),
        hb.Engine(edges, selector="fixed:TC", max_alloc_bytes=2**20) as engine,
    ):
        assert engine.device_info is None
        assert "left out" in engine.notes[0]


def test_no_opencl_runtime(monkeypatch):
    monkeypatch.setattr("hetero_bfs.devices.opencl.driver._devices", list)
    edges = nasty("two components")
    with hb.Engine(edges, selector="alpha-beta") as engine:
        assert engine.device_info is None
        assert "searching on the CPU only: no OpenCL runtime found" in engine.notes[0]
        check_search(engine, edges, 0)
    with pytest.raises(DeviceError, match="no OpenCL runtime"):
        hb.Engine(edges, device="0", selector="fixed:TC")


@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
@pytest.mark.parametrize("name", ["sparse random", "isolated vertices", "no edges"])
def test_memory_that_was_never_written_is_never_read(opencl_device, name, directed):
    """All of it is 0xAB at first; vertex 0 may have no edges, so that warming up does nothing."""
    make_buffer, make_array = OpenCLDevice.buffer, OpenCLDevice.host_array

    def buffer(self, size, dtype):
        made = make_buffer(self, size, dtype)
        cl.enqueue_fill_buffer(self.queue, made, np.uint8(0xAB), 0, made.size)
        self.queue.finish()
        return made

    def host_array(self, size, dtype):
        array = make_array(self, size, dtype)
        array.view(np.uint8)[:] = 0xAB
        return array

    cl = pytest.importorskip("pyopencl")
    edges = nasty(name, directed)
    patched = mock.patch.multiple(OpenCLDevice, buffer=buffer, host_array=host_array)
    for selector in ("fixed:TC,BGC", "fixed:TC,BG,TG", "fixed:TC,TG,BC", "fixed:BG,TC", "fixed:TG"):
        with patched, engine_on(opencl_device, edges, selector="fixed:TC", order="given") as engine:
            engine.set_selector(selector)
            for source in sources_of(edges, 4):
                check_search(engine, edges, source)


def test_a_kernel_that_does_not_compile_is_a_device_error(opencl_device):
    broken = mock.patch(
        "hetero_bfs.devices.opencl.driver._kernel_source", return_value="__kernel nonsense"
    )
    with broken, pytest.raises(DeviceError, match="compiling kernels"):
        engine_on(opencl_device, nasty("star"), selector="fixed:TG")


def test_a_device_whose_compiler_fails_is_left_out(opencl_device):
    broken = mock.patch(
        "hetero_bfs.devices.opencl.driver._kernel_source", return_value="__kernel nonsense"
    )
    chosen = mock.patch("hetero_bfs.runtime.engine.choose_device", return_value=opencl_device)
    edges = nasty("star")
    with broken, chosen, hb.Engine(edges, selector="alpha-beta") as engine:
        assert engine.device_info is None
        assert "is left out: compiling kernels" in engine.notes[0]
        assert engine.bfs(0).reached == edges.num_vertices


# From Python.


@pytest.mark.parametrize("name", NAMES[1:8])
def test_one_call(name, monkeypatch):
    edges = nasty(name)
    result = hb.bfs(edges, edges.num_vertices - 1, selector="fixed:TC")
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
