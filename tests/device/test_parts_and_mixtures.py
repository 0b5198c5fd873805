"""Edge arrays in parts, and any mixture of strategies on any graph."""

from __future__ import annotations

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from graphs import (
    core_with_tails,
    edge_list,
    edge_lists,
    late_hub,
    nasty,
    sources_of,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import check_search, engine_on
from strategy_mixtures import selectors_of

import hetero_bfs as hb
from hetero_bfs.devices.opencl.opencl_device import OpenCLDevice
from hetero_bfs.errors import DeviceError
from hetero_bfs.graph.generators.kronecker import KroneckerEdges
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.scheduling import schema
from hetero_bfs.scheduling.strategies import STRATEGIES

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


@pytest.mark.sampled(4)
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


@pytest.mark.sampled(2)
@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
@settings(max_examples=20)
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


@settings(max_examples=20)
@given(edges=edge_lists(), data=st.data())
def test_any_small_graph_on_the_cpu(one_thread, edges, data):
    order = data.draw(st.sampled_from(["degree", "given"]))
    source = data.draw(st.integers(0, edges.num_vertices - 1))
    with engine_on(None, edges, selector="fixed:TC", order=order) as engine:
        for selector in ("fixed:TC", "fixed:BC", "fixed:TC,BC,TC", "fixed:BC,TC", "alpha-beta"):
            engine.set_selector(selector)
            check_search(engine, edges, source)


@pytest.mark.sampled(2)
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
    """A dense push leaves a bitmap; the device continues from it, or from a queue."""
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
    """The host lists unvisited vertices. The list stays valid after the device has found some."""
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
    """Bottom-up gives neighbours beyond the 512th to the whole work-group."""
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


@pytest.mark.sampled(2)
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


# Searches that leave a device.

LEAVING = (
    "TG,TG,BG,BG,TC",
    "BG,TC",
    "TG,BGC,TC,TG,BG,TC",
    "TC,BG,TC,BC,BG,TC",
    "TG,BG,TC,TC,TC,BC,TG,BGC,TC",
)
"""Schedules that go from bottom-up on a device to top-down on the host."""


def check_leaving_times(result) -> None:
    """Levels and migrations add up to no more than the search, and migrations take time."""
    before = None
    for trace in result.traces:
        place = STRATEGIES[trace.strategy].device_kind
        assert 0.0 <= trace.transfer_seconds < result.seconds
        assert place == before or trace.features.level == 0 or trace.transfer_seconds > 0.0
        before = place
    spent = sum(t.seconds + t.transfer_seconds + t.select_seconds for t in result.traces)
    assert spent <= 1.01 * result.seconds + 1e-5


@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
@pytest.mark.usefixtures("many_threads")
def test_a_launch_that_leaves_its_device_converts_the_bitmap(opencl_device, directed):
    """The host then reads a queue without further launches; in a directed graph the queue has
    vertices without out-edges, too.
    """
    edges = core_with_tails(directed)
    with engine_on(opencl_device, edges, selector="fixed:TC", threads=2) as engine:
        device = type(engine.accelerator)
        with mock.patch.object(device, "to_queue", side_effect=AssertionError("a second launch")):
            for schedule in LEAVING:
                engine.set_selector(f"fixed:{schedule}")
                for source in (20_000 + 7 * 200, 20_006, 17):
                    result = check_search(engine, edges, source)
                    check_leaving_times(result)
                    names = [trace.strategy for trace in result.traces]
                    wanted = schedule.split(",")
                    wanted += wanted[-1:] * len(names)
                    assert names == wanted[: len(names)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.usefixtures("many_threads")
def test_searches_of_mixed_places_in_a_row_leave_no_stale_parents(opencl_device, directed, seed):
    """The host notes only parents of its found list as written; another component must not show
    those of an earlier search.
    """
    random = np.random.default_rng(seed)
    edges = core_with_tails(directed)
    with engine_on(opencl_device, edges, selector="fixed:TC", threads=2) as engine:
        for _ in range(24):
            schedule = random.choice(["TC", "TC,BC", "TG", "TG,BG", *LEAVING])
            engine.set_selector(f"fixed:{schedule}")
            source = int(random.choice([22_000, 22_001, 20_000 + 7 * 200, 20_006, 17]))
            if random.random() < 0.5:
                engine.search(source)  # its parents stay where they are
            else:
                check_search(engine, edges, source)
        for schedule in ("TC", "TG", "TC,BG,TC"):
            engine.set_selector(f"fixed:{schedule}")
            check_search(engine, edges, 22_001)


@pytest.mark.parametrize("memory", [None, 1_500_000])
@pytest.mark.parametrize("directed", [False, True])
def test_a_host_that_finds_many_vertices_completes_the_parents_on_the_device(
    apart, directed, memory
):
    """The host keeps no list of so many; it sends all its parents, in parts to a streamed graph."""
    edges = core_with_tails(directed)
    device = apart if memory is None else replace(apart, memory_bytes=memory)
    with engine_on(device, edges, selector="fixed:TC") as engine:
        for schedule in ("TC,TC,TC,TG", "TG,TC,BC,BC,BC,TC", "TC,BC,TG,BC,BG,TC"):
            engine.set_selector(f"fixed:{schedule}")
            for source in (20_006, 3, 20_000 + 7 * 200):
                check_search(engine, edges, source)


def core_on_the_device(data) -> None:
    """Large levels are fast on the device, small ones on the host."""
    for name in data["learned"]:
        on_host = name.endswith("C") and name != "BGC"
        data["learned"][name] = {"constant": 1e-3 if on_host else 1e-5}
    data["learned_small"] = {
        name: {"constant": 1e-6 if name == "TC" else 1e-3} for name in data["learned"]
    }


@pytest.mark.sampled(2)
@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
@pytest.mark.parametrize("correction", [False, True])
@pytest.mark.usefixtures("many_threads")
def test_auto_leaves_the_device_after_the_core(opencl_device, trained, directed, correction):
    trained(opencl_device, core_on_the_device)
    edges = core_with_tails(directed)
    options = {"selector": "auto", "correction": correction, "threads": 2}
    with engine_on(opencl_device, edges, **options) as engine:
        for source in (20_000 + 7 * 200, 20_006, 22_001, 17) * 2:
            result = check_search(engine, edges, source)
            check_leaving_times(result)
            if correction:
                continue
            for trace in result.traces:
                large = trace.features.frontier_edges >= schema.LEAST_SHARED_EDGES
                kind = STRATEGIES[trace.strategy].device_kind
                assert kind == ("device" if large else "cpu"), trace
