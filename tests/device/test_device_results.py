"""Parents and levels that a device restores."""

from __future__ import annotations

import numpy as np
import pytest
from graphs import edge_list, nasty, path
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import engine_on
from plain_search import plain_levels

import hetero_bfs as hb
from hetero_bfs.algorithms.bfs import device_memory
from hetero_bfs.algorithms.bfs.device import OpenCLExecutor
from hetero_bfs.algorithms.bfs.query import check_query

NAMES = ("Kronecker 10", "isolated vertices", "two components", "long path", "star", "grid")


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(device_memory, "_PART_VERTICES", 17)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("directed", [False, True])
@settings(max_examples=10)
@given(name=st.sampled_from(NAMES), order=st.sampled_from(["degree", "given"]), data=st.data())
def test_many_parts(kept, apart, directed, name, order, data):
    edges = nasty(name, directed)
    engine = kept(
        (apart, name, order, directed),
        lambda: engine_on(apart, edges, selector="fixed:TG,BG,TG", order=order),
    )
    source = data.draw(st.integers(0, edges.num_vertices - 1))
    levels = plain_levels(edges, [source])
    for dtype in ("int64", "int32"):
        result = engine.bfs(source, dtype=dtype)
        assert hb.validate(edges, source, result.parent, levels).valid
        assert result.parent.dtype == dtype
    assert engine.bfs(source, want="levels").level.tolist() == levels.tolist()


def test_the_device_restores_and_the_hosts_parents_stay(apart):
    edges = nasty("Kronecker 10")
    with engine_on(apart, edges, selector="fixed:TG,BG") as engine:
        host, search = engine.platform.host, engine.search(458)
        assert search.device_results is engine.accelerator.results is not None
        host.parent[:] = 77
        levels = plain_levels(edges, [458])
        assert hb.validate(edges, 458, engine.bfs(458).parent, levels).valid
        assert (engine.bfs(458, want="levels").level == levels).all()
        assert (host.parent == 77).all()


def test_a_search_that_ends_on_the_host_is_restored_there(apart):
    edges = nasty("Kronecker 10")
    with engine_on(apart, edges, selector="fixed:TG,BG,BC,TC") as engine:
        for source in (458, 3, 458):
            levels = plain_levels(edges, [source])
            assert hb.validate(edges, source, engine.bfs(source).parent, levels).valid
            assert (engine.bfs(source, want="levels").level == levels).all()


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 8, 9, 10, 65, 1000])
def test_levels_of_any_depth(apart, length):
    with engine_on(apart, path(length), selector="fixed:TG") as engine:
        found = engine.bfs(0, want="levels").level
        assert found.tolist() == list(range(length))


def test_a_graph_without_edges(apart):
    with engine_on(apart, edge_list([], 5)) as engine:
        for dtype in ("int64", "int32"):
            assert engine.bfs([1, 3], dtype=dtype).parent.tolist() == [-1, 1, -1, 3, -1]


def test_without_room_on_the_device_the_host_restores(apart, monkeypatch):
    edges = nasty("Kronecker 10")
    make = OpenCLExecutor.__init__

    def without_room(self, *arguments, spare_bytes, **rest):
        make(self, *arguments, spare_bytes=1000, **rest)

    monkeypatch.setattr(OpenCLExecutor, "__init__", without_room)
    with engine_on(apart, edges, selector="fixed:TG,BG") as engine:
        for source in (458, 3):
            levels = plain_levels(edges, [source])
            assert hb.validate(edges, source, engine.bfs(source).parent, levels).valid
            assert (engine.bfs(source, want="levels").level == levels).all()
        (note,) = [note for note in engine.notes if "restores" in note]
    assert note.startswith("the host restores results: the arrays need ")
    assert note.endswith("1000 bytes are free there")


def test_back_to_back_searches_are_restored_by_the_host(apart, monkeypatch):
    edges = nasty("Kronecker 10")
    with engine_on(apart, edges, selector="fixed:TG,BG") as engine:
        monkeypatch.setattr(OpenCLExecutor, "results", property(lambda _: pytest.fail("used")))
        for result in engine.bfs_back_to_back([458, 3]):
            assert hb.validate(edges, result.source, result.parent, result.level).valid


def test_ids_beyond_int32_are_refused():
    assert check_query(2**31, 0, dtype=np.int32).dtype == "int32"
    assert check_query(2**31 + 1, 0).dtype == "int64"
    with pytest.raises(hb.ArgumentError, match=r"dtype is int32, .* the graph has 2147483649"):
        check_query(2**31 + 1, 0, dtype="int32")
