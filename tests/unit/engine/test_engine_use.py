"""What an engine takes from its callers, and what is left of it when it is closed."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest

import hetero_bfs as hb
from hetero_bfs.algorithms.bfs.kernels import restore
from hetero_bfs.devices.cpu import host_run
from hetero_bfs.devices.opencl.driver import list_devices
from hetero_bfs.errors import ArgumentError, EngineClosedError, GraphError, HeteroBFSError
from hetero_bfs.graph.search_graph import build_search_graph

EDGES = hb.EdgeList([0, 1, 2], [1, 2, 3], 5)


@pytest.fixture(scope="module")
def engine():
    with hb.Engine(EDGES, "fixed:TC", device="cpu") as opened:
        yield opened


class Index:
    def __index__(self):
        return 1


# Sources


@pytest.mark.parametrize("source", [np.uint8(1), np.int64(1), np.array(1), Index()])
def test_any_integer_is_a_source_and_compiles_nothing_anew(engine, source):
    plain = engine.bfs(1)
    plain_levels = plain.level.tolist()
    compiled = len(restore.levels_from_parents.signatures)
    result = engine.bfs(source)
    assert type(result.source) is int
    assert result.level.tolist() == plain_levels == [1, 0, 1, 2, -1]
    assert len(restore.levels_from_parents.signatures) == compiled
    assert engine.search(source).source == engine.search(1).source


@pytest.mark.parametrize("source", [True, np.True_, 1.0, "1", None, [[1]]])
def test_what_is_no_source(engine, source):
    for search in (engine.bfs, engine.search, lambda v: engine.bfs_back_to_back([0, v])):
        with pytest.raises(GraphError, match="is not a vertex id; ids are integers"):
            search(source)


@pytest.mark.parametrize("sources", [(0, 4, 1), np.array([0, 4, 1]), range(3), [np.uint8(2)], []])
def test_sources_in_a_row_from_anything_that_yields_them(engine, sources):
    expected = [engine.bfs(int(source)).level.tolist() for source in sources]
    for given in (sources, iter(sources), (source for source in sources)):
        results = engine.bfs_back_to_back(given)
        assert [result.level.tolist() for result in results] == expected
        assert all(type(result.source) is int for result in results)


@pytest.mark.parametrize("sources", [3, None, np.array(3), 2.5])
def test_what_yields_no_sources(engine, sources):
    with pytest.raises(ArgumentError, match=r"sources is .*; give a sequence of vertex ids"):
        engine.bfs_back_to_back(sources)


def test_validate_takes_any_integer_and_no_masks():
    parent = np.array([1, 1, 1, 2, -1])
    for source in (np.uint8(1), np.array(1), Index()):
        assert hb.validate(EDGES, source, parent).valid
    with pytest.raises(GraphError, match="True is not a vertex id"):
        hb.validate(EDGES, True, parent)
    with pytest.raises(GraphError, match=r"parent has 1 of 5 entries masked.*compressed"):
        hb.validate(EDGES, 1, np.ma.array(parent, mask=[0, 0, 0, 1, 0]))


def test_a_wrong_source_is_found_before_the_graph_is_built(monkeypatch):
    monkeypatch.setattr(
        "hetero_bfs.engine.engine.build_search_graph", lambda *_: pytest.fail("built")
    )
    with pytest.raises(GraphError, match="vertex 5 is not in the graph; its ids are 0 to 4"):
        hb.bfs(EDGES, 5)


# Threads and devices


def test_no_more_threads_than_may_be():
    most = host_run.most_threads()
    words = f"threads is {most + 1}; give an integer from 1 to {most}, or leave it out"
    with pytest.raises(ArgumentError, match=words):
        hb.Engine(EDGES, "fixed:TC", device="cpu", threads=most + 1)
    with hb.Engine(EDGES, "fixed:TC", device="cpu", threads=np.uint8(most)) as made:
        assert (made.threads, type(made.threads)) == (most, int)


@pytest.mark.parametrize("device", ["", "  "])
def test_a_device_without_a_name(device):
    with pytest.raises(ArgumentError, match=r"device is .*; give the index or part of the name"):
        hb.Engine(EDGES, device=device)


def test_a_device_that_is_not_there_is_found_before_the_graph_is_built(monkeypatch):
    monkeypatch.setattr(
        "hetero_bfs.engine.engine.build_search_graph", lambda *_: pytest.fail("built")
    )
    with pytest.raises(HeteroBFSError, match=r"no OpenCL device matches device='voodoo'|no OpenCL"):
        hb.Engine(EDGES, device="voodoo")


# Closed


def _open(**options):
    device = "auto" if list_devices() else "cpu"
    return hb.Engine(hb.KroneckerEdges(13), "fixed:TC", device=device, **options)


USES = {
    "bfs": lambda engine: engine.bfs(1),
    "bfs_back_to_back": lambda engine: engine.bfs_back_to_back([1, 2]),
    "one back to back": lambda engine: engine.bfs_back_to_back([1]),
    "none back to back": lambda engine: engine.bfs_back_to_back([]),
    "search": lambda engine: engine.search(1),
    "set_selector": lambda engine: engine.set_selector("alpha-beta"),
    "graph": lambda engine: engine.graph,
    "platform": lambda engine: engine.platform,
}


def test_a_closed_engine_refuses_and_still_says_what_it_was():
    with _open() as engine:
        result = engine.bfs(1)
        facts = lambda: (engine.device_info, engine.num_parts, engine.streaming, engine.notes)  # noqa: E731
        before = facts()
    engine.close()
    for use in USES.values():
        with pytest.raises(EngineClosedError, match=r"the engine is closed; .* open another one"):
            use(engine)
    assert facts() == before
    assert engine.bytes_streamed == 0
    assert engine.selector.name == "fixed:TC"
    assert engine.corrections == {}
    assert result.level[1] == 0
    assert issubclass(EngineClosedError, HeteroBFSError)


def test_close_releases_memory_threads_and_device():
    engine = _open()
    engine.bfs_back_to_back([1, 2])
    platform = engine.platform
    parts = [platform, platform.graph, platform.host, platform.accelerator]
    if platform.accelerator is not None:
        parts.append(platform.accelerator.device)
    gone = [weakref.ref(part) for part in parts if part is not None]
    workers = [t for t in threading.enumerate() if t.name.startswith("hetero_bfs worker")]
    del platform, parts
    engine.close()
    gc.collect()
    assert [ref() for ref in gone] == [None] * len(gone)
    assert not any(worker.is_alive() for worker in workers)


def test_close_waits_for_a_search_and_those_that_come_late_are_refused():
    engine = _open()
    expected = engine.bfs(1).level
    outcomes = []

    def search_until_refused():
        while True:
            try:
                outcomes.append((engine.bfs(1).level == expected).all())
            except EngineClosedError:
                return

    searchers = [threading.Thread(target=search_until_refused) for _ in range(3)]
    for searcher in searchers:
        searcher.start()
    while len(outcomes) < 5:
        threading.Event().wait(0.001)
    engine.close()
    for searcher in searchers:
        searcher.join(60)
        assert not searcher.is_alive()
    assert all(outcomes)


# Functions for a single call


def test_every_call_takes_a_graph_that_is_ready_to_search():
    graph = hb.CSRGraph.from_edges([0, 1, 3], [1, 2, 4], weights=[1.0, 2.0, 3.0])
    ready = build_search_graph(graph)
    assert hb.bfs(ready, 0).level.tolist() == [0, 1, 2, -1, -1]
    assert hb.bfs_many(ready, [0]).level.tolist() == [[0, 1, 2, -1, -1]]
    assert hb.sssp(ready, 0).distance.tolist() == [0, 1, 3, np.inf, np.inf]
    assert hb.connected_components(ready).num_components == 2
    assert hb.colour(ready).num_colours == 2
    assert hb.pagerank(ready, weighted=True).converged


@pytest.mark.parametrize("call", [hb.bfs, hb.bfs_many])
def test_calls_of_searches_take_devices_and_threads(call):
    sources = 0 if call is hb.bfs else [0]
    assert call(EDGES, sources, device="cpu", threads=1).level.size == EDGES.num_vertices
    with pytest.raises(ArgumentError, match="threads is 0"):
        call(EDGES, sources, threads=0)
    assert call(EDGES, sources, device=" CPU ").level.size == EDGES.num_vertices
    for wrong, problem in (("0,cpu", "stands alone"), (7, "device is 7"), (" ", "device is ' '")):
        with pytest.raises(ArgumentError, match=problem):
            call(EDGES, sources, device=wrong)


def test_the_usual_device_is_refused_by_none():
    assert hb.bfs_many(EDGES, [0], device="auto", threads=1).reached.size == 1
