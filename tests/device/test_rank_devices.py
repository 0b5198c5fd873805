"""Levels of ranks on OpenCL devices: right in any mixture, and which rank has which device."""

from __future__ import annotations

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from asked import check_answer, questions
from graphs import edge_list, nasty, sources_of
from hypothesis import given, settings
from hypothesis import strategies as st
from simulated import constructed, joined
from simulated_ranks import run_ranks

import hetero_bfs as hb
from hetero_bfs.algorithms.bfs import ranks_device as rank_device
from hetero_bfs.algorithms.bfs.check import validate
from hetero_bfs.algorithms.bfs.device_memory import SearchMemory
from hetero_bfs.algorithms.bfs.query import Query, check_query
from hetero_bfs.algorithms.bfs.ranks import DistributedSearch, RankExecutor
from hetero_bfs.algorithms.bfs.ranks_device import RankDevice, choose_rank_device, open_rank_device
from hetero_bfs.devices.machine import default_tuning
from hetero_bfs.devices.opencl.driver import NO_DEVICE
from hetero_bfs.engine.rank_engine import RankEngine
from hetero_bfs.errors import AgreedError, BudgetError, DeviceError
from hetero_bfs.options import EngineOptions
from hetero_bfs.ranks import exchange
from hetero_bfs.scheduling import schema


def answers_on_devices(info, edges, queries, ranks, selector, host_size=None):
    """Search by ranks that all have this device, but the last of several; results by rank."""

    def run(communicator):
        graph = constructed(communicator, edges)
        without = graph.num_searched == 0 or communicator.rank == ranks - 1 > 1
        device = None if without else RankDevice(info, graph, 1)
        search = DistributedSearch(communicator, graph, selector, 1, device=device)
        try:
            return [search.search(query) for query in queries]
        finally:
            search.close()

    return run_ranks(ranks, run, host_size)


def search_on_devices(info, edges, sources, ranks, selector, host_size=None):
    queries = [Query((source,)) for source in sources]
    by_rank = answers_on_devices(info, edges, queries, ranks, selector, host_size)
    for i, source in enumerate(sources):
        found = joined([results[i] for results in by_rank], edges)
        validate(edges, source, found.parent).raise_if_invalid()
    return by_rank


SCHEDULES = [
    "fixed:TC,BG",
    "fixed:TG",
    "fixed:TC,TG,BG,TG",
    "fixed:TG,BG,TC,BC,BG,TG,TC",
    "fixed:TC,BC,TG,BC,TG",
]


@pytest.mark.sampled(8)
@pytest.mark.parametrize("selector", [*SCHEDULES, "auto"])
@pytest.mark.parametrize(("name", "ranks"), [("Kronecker 10", 3), ("grid", 2), ("star", 3)])
def test_right_in_any_mixture(opencl_device, name, ranks, selector):
    edges = nasty(name)
    sources = [*sources_of(edges, 1)][:3]
    found = search_on_devices(opencl_device, edges, [*sources, sources[0]], ranks, selector)
    on_device = [level.on_devices for result in found[0] for level in result.levels]
    if selector != "auto" and name == "Kronecker 10":
        assert any(on_device)
        assert not any(level.on_devices for result in found[2] for level in result.levels)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
@settings(max_examples=15)
@given(
    name=st.sampled_from(["Kronecker 10", "grid", "star", "isolated vertices"]),
    ranks=st.sampled_from([1, 2, 3]),
    selector=st.sampled_from(["auto", *SCHEDULES]),
    unified=st.booleans(),
    data=st.data(),
)
def test_any_question(opencl_device, directed, name, ranks, selector, unified, data):
    """Plain searches after masked ones see the whole graph again."""
    info, edges = replace(opencl_device, unified_memory=unified), nasty(name, directed)
    every = [data.draw(questions(edges.num_vertices)) for _ in range(2)]
    asked = [{"source": v, **more, "reverse": False} for v, more in every] + [{"source": 0}]
    queries = [check_query(edges.num_vertices, **one) for one in asked]
    by_rank = answers_on_devices(info, edges, queries, ranks, selector)
    for i, one in enumerate(asked):
        limits = {key: one[key] for key in ("depth_limit", "target", "mask") if key in one}
        levels = hb.bfs(edges, one["source"], **limits).level
        found = joined([results[i] for results in by_rank], edges)
        outcome = hb.validate(edges, one["source"], found.parent, levels, **limits)
        assert outcome.valid, f"{selector}, {one}: {outcome.message}"


def test_a_device_that_cannot_take_a_mask_ends_the_search_of_all(opencl_device):
    edges = nasty("grid")
    query = check_query(edges.num_vertices, 0, mask=[5])

    def run(communicator):
        device = RankDevice(opencl_device, constructed(communicator, edges), 1)
        search = DistributedSearch(communicator, device.host.graph, "fixed:TG", 1, device=device)
        if communicator.rank == 1:
            device.receive_mask = mock.Mock(side_effect=DeviceError("it cannot"))
        with pytest.raises(AgreedError, match="rank 1: it cannot"):
            search.search(query)
        found = search.search(Query((0,)))
        search.close()
        return found

    found = joined(run_ranks(2, run), edges)
    validate(edges, 0, found.parent).raise_if_invalid()


@pytest.mark.parametrize("selector", ["auto", *SCHEDULES])
def test_the_host_writes_shared_memory_only_while_it_is_mapped(opencl_device, selector):
    """Else a device with its own cache of that memory reads old values."""
    edges, info = nasty("Kronecker 10"), replace(opencl_device, unified_memory=True)
    shared: list[SearchMemory] = []
    make, start = SearchMemory.__init__, RankExecutor.start

    def note_memory(memory, *args):
        make(memory, *args)
        shared.append(memory)

    def start_if_mapped(host, *args, **more):
        (memory,) = shared
        assert memory._mappings
        return start(host, *args, **more)

    with (
        mock.patch.object(SearchMemory, "__init__", note_memory),
        mock.patch.object(RankExecutor, "start", start_if_mapped),
    ):
        search_on_devices(info, edges, sources_of(edges, 1)[:3], 1, selector)


@pytest.mark.parametrize("selector", SCHEDULES)
def test_several_hosts(opencl_device, selector):
    edges, info = nasty("Kronecker 10"), replace(opencl_device, unified_memory=False)
    search_on_devices(info, edges, sources_of(edges, 1)[:3], 4, selector, 2)


@pytest.mark.parametrize("selector", SCHEDULES)
def test_boxes_that_are_too_small(opencl_device, monkeypatch, selector):
    monkeypatch.setattr(exchange, "free_shared_bytes", lambda: 1000)
    edges, info = nasty("Kronecker 10"), replace(opencl_device, unified_memory=False)
    search_on_devices(info, edges, sources_of(edges, 1)[:3], 3, selector)


@pytest.mark.parametrize("selector", ["fixed:TC,BG", "fixed:TG,TG,BG,TG"])
def test_a_directed_graph(opencl_device, selector):
    edges = nasty("R-MAT", directed=True)
    search_on_devices(opencl_device, edges, sources_of(edges, 1)[:3], 2, selector)


def test_a_rank_whose_vertices_are_all_visited_waits_for_the_others(opencl_device):
    edges = edge_list([(0, i) for i in (1, 2, 4, 6)] + [(2, 3), (3, 5), (5, 7), (7, 1)], 8)
    for source in (0, 7):
        search_on_devices(opencl_device, edges, [source], 2, "fixed:TC,BG")
        search_on_devices(opencl_device, edges, [source], 2, "fixed:TG,BG,TG")


@pytest.mark.parametrize("unified", [False, True])
@pytest.mark.parametrize("floor", [0.0, 1.0])
def test_a_search_moves_once_and_the_next_one_begins_where_that_is_faster(
    opencl_device, unified, floor
):
    edges, info = nasty("Kronecker 10"), replace(opencl_device, unified_memory=unified)

    def run(communicator):
        graph = constructed(communicator, edges)
        device = RankDevice(info, graph, 1)
        device.floor_seconds[:] = device.move_seconds = 0.0
        search = DistributedSearch(communicator, graph, "auto", 1, device=device)
        search.decision.factors[:] = 1e3, 1e3, 1e-3, 1e-3
        search.decision.is_on_device = lambda direction, state: state[schema.LEVEL] >= 1
        try:
            results = [search.search(Query((3,)))]
            assert not search.decision.begins_on_device(), "one slow way is not enough"
            device.floor_seconds[0] = floor
            search.search(Query((3,)))
            assert search.decision.begins_on_device() == (floor == 0.0)
            search.decision.is_on_device = lambda direction, state: bool(
                state[schema.PLACE] == schema.DEVICE or state[schema.LEVEL] >= 1
            )
            return [*results, search.search(Query((7,)))]
        finally:
            search.close()

    by_rank = run_ranks(2, run)
    for first, second in by_rank:
        for result, begins_here in ((first, False), (second, floor == 0.0)):
            on_device = [level.on_devices for level in result.levels]
            assert on_device == sorted(on_device)
            assert on_device[0] == begins_here
            assert on_device[-1]
    for i, source in enumerate((3, 7)):
        found = joined([results[i] for results in by_rank], edges)
        validate(edges, source, found.parent).raise_if_invalid()


def test_a_part_that_does_not_fit(opencl_device):
    small = replace(opencl_device, memory_bytes=64)

    def run(communicator):
        graph = constructed(communicator, nasty("star"))
        with pytest.raises(BudgetError, match="start more ranks"):
            RankDevice(small, graph)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(rank_device, "choose_rank_device", lambda *_: small)
            return open_rank_device(EngineOptions(), 0, graph, 1)

    device, note = run_ranks(1, run)[0]
    assert device is None
    assert note.startswith(f"{small.name} is left out: the rank's part needs")


def test_ranks_take_devices_by_turns(opencl_device, monkeypatch):
    kinds = ["GPU", "GPU", "CPU"]
    found = [replace(opencl_device, index=i, type=kind) for i, kind in enumerate(kinds)]
    monkeypatch.setattr(rank_device, "usable_devices", lambda: found)

    def chosen_of(names, most):
        return [] if names == NO_DEVICE else [found[int(name)] for name in names.split(",")]

    monkeypatch.setattr(rank_device, "choose_devices", chosen_of)

    def taken(**settings):
        chosen = (choose_rank_device(EngineOptions(**settings), rank) for rank in range(4))
        return [None if info is None else info.index for info in chosen]

    assert taken() == [0, 1, 0, 1], "the CPU's cores are the ranks' own"
    assert taken(device="all") == [0, 1, 2, 0]
    assert taken(device="2,1") == [2, 1, 2, 1]
    assert taken(device="cpu") == [None] * 4
    del found[:2]
    np.testing.assert_array_equal(taken(), [None] * 4)


def engine_answers(info, edges, ranks, sources, asked=(), **settings):
    """Search by the engines of ranks on this device; return results, devices and notes by rank."""

    def run(communicator):
        engine = RankEngine(edges if communicator.rank == 0 else None, communicator, **settings)
        result = engine.bfs(sources, **dict(asked))
        return result, engine.device_info, engine.notes

    with mock.patch.object(rank_device, "choose_rank_device", return_value=info):
        return run_ranks(ranks, run)


@pytest.mark.sampled(2)
@settings(max_examples=10)
@given(ranks=st.sampled_from([1, 2, 3]), selector=st.sampled_from(SCHEDULES), data=st.data())
def test_any_question_to_engines(opencl_device, ranks, selector, data):
    edges = nasty("grid", directed=True)
    sources, asked = data.draw(questions(edges.num_vertices))
    found = engine_answers(opencl_device, edges, ranks, sources, asked, selector=selector)
    for result, info, notes in found:
        assert (info, notes) == (opencl_device, [])
        check_answer(result, edges, sources, f"{ranks} ranks, {selector}", **asked)
        places = ["G" in name for name in selector.removeprefix("fixed:").split(",")]
        for trace, on_device in zip(result.traces, places, strict=False):
            assert (trace.strategy in ("TG", "BG")) == on_device


def test_settings_of_devices(opencl_device):
    """Edges in parts, and a tuning; a record has the number of ranks that used their device."""
    edges, schedule = nasty("Kronecker 10"), "fixed:TC,TG,BG,TC"
    tuning = replace(default_tuning(opencl_device.type), vertices_per_item=4)
    more = {"max_alloc_bytes": 20_000, "tuning": tuning, "threads": 2, "correction": False}
    source = int(edges.src[0])
    for result, *_ in engine_answers(opencl_device, edges, 2, source, selector=schedule, **more):
        check_answer(result, edges, source, "in parts")
        on_devices = [trace.on_devices for trace in result.traces]
        assert on_devices[:4] == [0, 2, 2, 0][: len(on_devices)]
        assert len(on_devices) > 2


def test_too_little_memory_for_a_part(opencl_device):
    """An error if the device is named; else a note."""
    edges, little = nasty("grid"), {"device_memory_bytes": 64}
    with pytest.raises(AgreedError, match="start more ranks"):
        engine_answers(opencl_device, edges, 2, 0, device="0", **little)
    for result, info, notes in engine_answers(opencl_device, edges, 2, 0, **little):
        assert info is None
        assert [note.split(":")[0] for note in notes] == ["rank 0", "rank 1"]
        check_answer(result, edges, 0, "without a device")


def test_a_note_for_both_directions_is_given_once(opencl_device):
    def run(communicator):
        edges = nasty("grid", directed=True) if communicator.rank == 0 else None
        engine = RankEngine(edges, communicator, device_memory_bytes=64)
        engine.bfs(0)
        notes = list(engine.notes)
        engine.bfs(0, reverse=True)
        assert engine.notes == notes
        return len(notes)

    with mock.patch.object(rank_device, "choose_rank_device", return_value=opencl_device):
        assert run_ranks(2, run) == [2, 2]
