"""The thread pool and the compiled level loop, also with more threads than cores."""

from __future__ import annotations

import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from graphs import core_with_tails, grid, path, roads
from oracle import check_search, true_levels

import hetero_bfs as hb
from hetero_bfs.algorithms.bfs.host import CPUExecutor, counter_edge_bits
from hetero_bfs.algorithms.bfs.result import Frontier
from hetero_bfs.algorithms.bfs.search import Search
from hetero_bfs.engine.engine import Engine
from hetero_bfs.errors import GraphError
from hetero_bfs.graph.edge_source import NO_VERTEX
from hetero_bfs.graph.generators.kronecker import KroneckerEdges, RMATEdges
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.scheduling import schema
from hetero_bfs.scheduling.selectors import alpha_beta
from hetero_bfs.scheduling.strategies import STRATEGIES

pytestmark = pytest.mark.usefixtures("many_threads")


GRAPHS = {
    "Kronecker": KroneckerEdges(13).materialise(),
    "uniform": RMATEdges(14, 0.25, 0.25, 0.25, 0.25, edgefactor=8).materialise(),
    "grid": grid(300, 300),
    "roads": roads(300, 300),
}


def test_which_graphs_are_deep_and_regular():
    graphs = {name: build_search_graph(edges) for name, edges in GRAPHS.items()}
    assert [name for name, graph in graphs.items() if graph.is_local] == ["grid", "roads"]
    assert [name for name, graph in graphs.items() if graph.is_regular] == ["grid"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("name", GRAPHS)
def test_searches_by_a_thread_pool(name, threads):
    """Stealing, conversions, owners of partitions: with parts that any thread may get."""
    edges = GRAPHS[name]
    with hb.Engine(edges, device="cpu", selector="fixed:TC", threads=threads) as engine:
        late = "fixed:" + "TC," * 250 + "BC,TC"  # of the grid, between levels that are shared
        for selector in ("fixed:TC", "fixed:BC", "fixed:TC,TC,BC,TC,BC,TC", late, "alpha-beta"):
            engine.set_selector(selector)
            for source in edges.src[:: edges.src.size // 3]:
                check_search(engine, edges, int(source))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("make", [grid, roads])
@pytest.mark.parametrize("interval", [1, 3])
def test_owners_of_partitions(interval, make):
    """As many as there may be, with choices that stay for some levels."""
    edges = make(600, 600)
    schedule = "fixed:" + "TC," * 300 + "BC,TC"
    with hb.Engine(edges, device="cpu", threads=16, decision_interval=interval) as engine:
        for selector in ("fixed:TC", schedule, "alpha-beta", "learned"):
            engine.set_selector(selector)
            for source in (0, 600 * 300 + 300):
                check_search(engine, edges, source)


@pytest.mark.parametrize("most", [600, 1200, 2000])
def test_frontiers_larger_than_the_outbox_of_owners(most, monkeypatch):
    monkeypatch.setattr("hetero_bfs.algorithms.bfs.host._MOST_DEFERRED", most)
    edges = grid(600, 600)
    with hb.Engine(edges, device="cpu", selector="fixed:TC", threads=4) as engine:
        for source in (0, 600 * 300 + 300):
            check_search(engine, edges, source)


def test_searches_that_end_while_owners_share_levels():
    edges = grid(600, 600)
    with hb.Engine(edges, device="cpu", selector="fixed:TC", threads=4) as engine:
        source = engine.graph.searched_id(600 * 300 + 300)
        for levels in (150, 200, 201):
            search = Search(engine.platform, source, engine.selector)
            search.run(levels)
            assert [trace.found_vertices for trace in search.traces] == [
                4 * (level + 1) for level in range(levels)
            ]
            check_search(engine, edges, 7)


def test_patches_without_locality():
    """Of a graph that has none: most edges are deferred, and some levels are too large for that."""
    edges = GRAPHS["Kronecker"]
    assert edges.src.size > 1 << 16
    with hb.Engine(edges, device="cpu", order="locality", threads=5) as engine:
        for selector in ("fixed:TC", "fixed:TC,TC,BC,TC,BC,TC"):
            engine.set_selector(selector)
            for source in edges.src[:: edges.src.size // 5]:
                check_search(engine, edges, int(source))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("threads", [2, 5])
@pytest.mark.parametrize("num_vertices", [20_000, 20_003])
def test_wide_levels_by_proposals(num_vertices, threads, directed):
    """A dense push, with stale parents of earlier searches among those that it resolves.

    Next is bottom-up, or top-down, for which the bitmap becomes a queue.
    """
    random = np.random.default_rng(7)
    src, dst = random.integers(0, num_vertices, (2, 4 * num_vertices))
    edges = hb.EdgeList.from_arrays(src, dst, num_vertices=num_vertices, directed=directed)
    dense_push = 0
    with hb.Engine(edges, device="cpu", threads=threads) as engine:
        for selector in ("fixed:TC", "fixed:TC,TC,TC,TC,TC,BC", "alpha-beta"):
            engine.set_selector(selector)
            for source in random.integers(0, num_vertices, 6):
                traces = check_search(engine, edges, int(source)).traces
                dense_push += sum(
                    this.strategy == "TC" and following.features.representation == "wide"
                    for this, following in pairwise(traces)
                )
    assert dense_push >= 6, "each search by TC alone has a dense-push level"


CORE, CHAIN = 20_000, 400


def core_with_chains() -> hb.EdgeList:
    """A uniform core, a chain between two of its vertices, and a chain from a third one."""
    random = np.random.default_rng(3)
    src, dst = random.integers(0, CORE, (2, 4 * CORE))
    chains = np.arange(CORE, CORE + 2 * CHAIN).reshape(2, CHAIN)
    ends = np.array([[5, chains[0, 0]], [chains[0, -1], 9], [17, chains[1, 0]]])
    src = np.concatenate([src, chains[:, :-1].ravel(), ends[:, 0]])
    dst = np.concatenate([dst, chains[:, 1:].ravel(), ends[:, 1]])
    return hb.EdgeList.from_arrays(src, dst, num_vertices=CORE + 2 * CHAIN)


@pytest.mark.parametrize("threads", [2, 5])
def test_dense_pushes_between_levels_of_owners(threads):
    """Edges that owners deferred are followed before; also if the search ends there."""
    edges = core_with_chains()
    source, last = CORE + CHAIN // 2, CORE + 2 * CHAIN - 1
    levels = true_levels(edges, source)
    settings = {"device": "cpu", "threads": threads, "order": "locality"}
    with hb.Engine(edges, "fixed:TC", **settings) as engine:
        assert engine.graph.is_local
        for selector in ("alpha-beta", "fixed:" + "TC," * 203 + "BC,TC", "fixed:TC"):
            engine.set_selector(selector)
            traces = check_search(engine, edges, source).traces
            left = [trace.features.representation for trace in traces[1:]]
            pushed = [number for number, kind in enumerate(left) if kind == "wide"]
            assert pushed or selector != "fixed:TC"
            for number in pushed:
                features = traces[number].features
                assert features.columns["wide_vertices"] == features.num_vertices
                assert features.columns["expected_claims"] == 0
        for near in (931, 1463, 4389, 4788, 7581):  # late edges make one of their levels wide
            searched = engine.bfs(near).traces
            for this, following in pairwise(searched):
                wide = this.features.columns["wide_vertices"] > 0
                if this.features.frontier_edges > 1.1 * schema.LEAST_DENSE_PUSH_EDGES:
                    assert wide == (following.features.representation == "wide")
        for limit in {*pushed, *(number + 1 for number in pushed)}:
            found = engine.bfs(source, depth_limit=limit).level
            np.testing.assert_array_equal(found, np.where(levels <= limit, levels, -1))
        assert engine.bfs(source, target=last).level[last] == levels[last]
        mask = np.arange(edges.num_vertices) % 7 == 3
        mask[source] = False
        ends = np.stack([edges.src, edges.dst])[:, ~(mask[edges.src] | mask[edges.dst])]
        kept = hb.EdgeList.from_arrays(*ends, num_vertices=edges.num_vertices)
        found = engine.bfs(source, mask=mask).level
        np.testing.assert_array_equal(found, true_levels(kept, source))


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_few_vertices_remain(threads, directed):
    """Bottom-up by a list of the unvisited, which leaves a queue; alone, or with top-down between.

    Some never are visited, and in a directed graph some that are have no edges, nor are counted.
    """
    edges = core_with_tails(directed)
    representations = set()
    with hb.Engine(edges, device="cpu", threads=threads) as engine:
        room = engine.platform.host.fields["unvisited_list"].size
        for selector in ("BC", "TC,TC,TC,BC", "TC,BC,BC,BC,BC,TC,BC", "TC,BC,BC,BC,BC,BC,TC"):
            engine.set_selector("fixed:" + selector)
            for source in (20_000 + 7 * 200, 5, 22_000, 20_006):
                for this, following in pairwise(check_search(engine, edges, source).traces):
                    if this.strategy == "BC":
                        representations.add(following.features.representation)
                        few = this.features.unvisited_vertices <= room
                        assert few or directed or following.features.representation == "bitmap"
    assert representations == {"listed", "bitmap"}


def test_few_vertices_of_many_edges_are_no_list():
    """An unreached clique, whose edges would all be one thread's at every level."""
    core = core_with_tails()
    ends = np.arange(22_003, 22_303)
    clique = np.stack([array.ravel() for array in np.meshgrid(ends, ends)])
    both = np.concatenate([np.stack([core.src, core.dst]), clique], axis=1)
    edges = hb.EdgeList.from_arrays(*both, num_vertices=22_303)
    with hb.Engine(edges, device="cpu", selector="fixed:BC", threads=2) as engine:
        assert engine.platform.host.fields["unvisited_list"].size > 500
        representations = [
            trace.features.representation for trace in check_search(engine, edges, 5).traces
        ]
    assert representations == ["queue"] + ["bitmap"] * (len(representations) - 1)


def test_searches_after_others_of_the_same_bitmaps():
    """After one that ended, in either bitmap, one that stopped, and one that is led from here."""
    edges = core_with_tails(directed=False)
    with hb.Engine(edges, device="cpu", threads=3) as engine:
        host, source = engine.platform.host, engine.graph.searched_id(7)
        for selector in ("TC", "TC,BC", "TC,TC,BC", "TC,TC,TC,BC", "BC"):
            engine.set_selector("fixed:" + selector)
            for levels in (0, 1, 4, 6):
                Search(engine.platform, source, engine.selector).run(levels)
                check_search(engine, edges, 22_001)
                frontier = Frontier(int(engine.graph.degree[source]), engine.graph.num_searched)
                host.begin(source, frontier)
                host.run(STRATEGIES["TC"], frontier)
                check_search(engine, edges, 9)


@pytest.mark.parametrize(
    ("alpha", "beta", "expected"),
    [
        (0.0, 2.0**32, ["TC"]),  # always top-down
        (0.25, 2.0**32, ["TC", "BC"]),  # back only if hardly any vertex is found
        (15.0, 18.0, ["TC", "BC"]),
    ],
)
def test_rules_go_by_the_last_direction(alpha, beta, expected):
    """Not by the bitmap that top-down leaves of a dense-push level."""
    random = np.random.default_rng(7)
    edges = hb.EdgeList.from_arrays(*random.integers(0, 20_000, (2, 80_000)))
    rule = alpha_beta(None, [STRATEGIES["TC"], STRATEGIES["BC"]], alpha, beta)
    with hb.Engine(edges, device="cpu", threads=2) as engine:
        search = Search(engine.platform, engine.graph.searched_id(3), rule)
        search.run()
    was, dense_push, seen = "TC", False, []
    for trace in search.traces:
        features = trace.features
        dense_push |= features.representation == "wide"
        if was == "BC":
            was = "TC" if features.frontier_vertices * beta < features.num_vertices else "BC"
        else:
            was = "BC" if features.frontier_edges * alpha > features.unvisited_edges else "TC"
        assert trace.strategy == was
        seen.append(was)
    assert dense_push or alpha == 15.0
    assert list(dict.fromkeys(seen)) == expected


def test_wide_levels_of_two_components_in_turn():
    """Parents of the other one must be neither taken nor left; nor those of half a search."""
    random = np.random.default_rng(3)
    ends = random.integers(0, 20_000, (2, 80_000))
    edges = hb.EdgeList.from_arrays(*np.concatenate((ends, ends + 20_000), axis=1))
    with hb.Engine(edges, device="cpu", selector="fixed:TC", threads=3) as engine:
        for source in random.integers(0, 20_000, 4):
            check_search(engine, edges, int(source))
            half = Search(engine.platform, engine.graph.searched_id(int(source)), engine.selector)
            half.run(max_levels=6)
            assert "wide" in {trace.features.representation for trace in half.traces}
            check_search(engine, edges, int(source) + 20_000)


@pytest.mark.parametrize("num_vertices", [1, 31, 33, 64])
def test_only_parents_of_vertices_are_forgotten(num_vertices):
    """The bits beyond the last vertex in the bitmap's last word are not the search's."""
    room = []

    def allocate(size, dtype):
        array = np.full(size + 64, 7, dtype)
        room.append(array[size:])
        return array[:size]

    graph = build_search_graph(path(num_vertices), "given")
    host = CPUExecutor(graph, 1, allocate)
    frontier = Frontier(1, graph.num_searched, graph.graph.num_stored_edges)
    host.begin(0, frontier)
    host.note_foreign_parents()
    host.invalidate_stale_parents(frontier)
    assert host.parent.tolist() == [0] + [NO_VERTEX] * (num_vertices - 1)
    assert all((beyond == 7).all() for beyond in room)


def test_parents_of_earlier_searches_are_forgotten():
    """A small component after a large one: nothing is cleared, so nothing may shine through."""
    big = grid(40, 40)
    src = np.concatenate([big.src, [1600, 1601]])
    dst = np.concatenate([big.dst, [1601, 1602]])
    edges = hb.EdgeList.from_arrays(src, dst)
    with hb.Engine(edges, device="cpu", selector="alpha-beta") as engine:
        assert engine.bfs(0).reached == 1600
        assert engine.bfs(1600).reached == 3
        assert engine.bfs(5).reached == 1600
        check_search(engine, edges, 1602)


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("order", ["degree", "compact", "given"])
@pytest.mark.parametrize("num_vertices", [50_000, 800_000])
def test_restored_parents(num_vertices, order, threads):
    """In one chunk or many, of graphs whose isolated vertices left the searched range or not."""
    random = np.random.default_rng(num_vertices)
    ends = random.integers(0, num_vertices, (2, num_vertices // 2))
    graph = build_search_graph(hb.EdgeList.from_arrays(*ends, num_vertices=num_vertices), order)
    old = graph.relabelling.old_of_new
    assert (old.size < num_vertices) == (order != "given")
    host = CPUExecutor(graph, threads)
    host.prepare()
    for _ in range(3):
        parent = random.integers(0, old.size, old.size).astype(np.uint32)
        expected = np.full(num_vertices, -1)
        expected[old] = old[parent]
        host.parent[:] = parent
        host.parent[::7] = NO_VERTEX
        expected[old[::7]] = -1
        for dtype in (np.int64, np.int32):
            restored = host.restore_parents(dtype)
            assert np.array_equal(restored, expected)
            assert restored.dtype == dtype


@pytest.mark.parametrize("threads", [1, 5])
@pytest.mark.parametrize("order", ["degree", "given"])
@pytest.mark.parametrize("back", [1, 3, 300_000])
def test_restored_levels(back, order, threads):
    """Of forests of short and of long paths, with parents before and behind their children."""
    num_vertices, random = 300_000, np.random.default_rng(back)
    ends = random.integers(0, num_vertices, (2, num_vertices // 2))
    graph = build_search_graph(hb.EdgeList.from_arrays(*ends, num_vertices=num_vertices), order)
    old = graph.relabelling.old_of_new
    host = CPUExecutor(graph, threads)
    host.prepare()
    name = random.permutation(old.size) if back == 3 else np.arange(old.size)
    reached = np.arange(1, old.size - 7)
    ups = reached - 1 - (random.random(reached.size) * np.minimum(reached, back)).astype(int)
    depths = [0]
    for up in ups.tolist():
        depths.append(depths[up] + 1)
    host.parent[:] = NO_VERTEX
    host.parent[name[0]] = name[0]
    host.parent[name[reached]] = name[ups]
    expected = np.full(num_vertices, -1)
    expected[old[name[: len(depths)]]] = depths
    for _ in range(3):
        restored = host.restore_levels()
        assert np.array_equal(restored, expected)
        assert restored.dtype == np.int32


@pytest.mark.parametrize("threads", [1, 5])
@pytest.mark.parametrize("dtype", ["int64", "int32"])
@pytest.mark.parametrize("size", [1, 1000, 1 << 20, (1 << 20) + 70_001])
def test_parts_that_a_device_sent(size, dtype, threads):
    host = CPUExecutor(build_search_graph(grid(200, 200)), threads)
    host.prepare()
    sent = np.random.default_rng(size).integers(0, 2**31, size).astype(np.uint32)
    sent[::5] = NO_VERTEX
    result = np.full(size + 2, 7, dtype)
    host.receive_result(result[1:-1], sent)
    assert (result[1:-1] == sent.astype(np.int32)).all()
    assert result[[0, -1]].tolist() == [7, 7]


def test_results_use_the_memory_of_dropped_ones():
    with hb.Engine(grid(200, 200), device="cpu") as engine:
        for asked in ({}, {"dtype": "int32"}, {"want": "levels"}):
            places = set()
            for source in range(6):  # the second search begins while the first result is kept
                result = engine.bfs(source, **asked)
                places.add((result.level if asked.get("want") else result.parent).ctypes.data)
            assert len(places) == 2


def test_threads_out_of_range():
    with pytest.raises(ValueError, match="threads is 0"):
        hb.Engine(grid(3, 3), device="cpu", threads=0)


def test_a_long_search_has_a_record_of_every_level():
    edges = path(3001)
    with hb.Engine(edges, device="cpu", selector="learned") as engine:
        traces = engine.bfs(0).traces
    assert [t.features.level for t in traces] == list(range(3000))
    assert all(t.seconds > 0 and t.found_vertices == 1 for t in traces)


def test_workers_end_with_their_engine():
    gc.collect()  # other tests' engines
    before = threading.active_count()
    engine = hb.Engine(GRAPHS["Kronecker"], device="cpu", threads=4)
    assert threading.active_count() == before + 3
    del engine
    gc.collect()
    assert threading.active_count() == before


def test_several_python_threads_search_one_engine():
    edges = GRAPHS["Kronecker"]
    sources = [int(v) for v in edges.src[::9000]]
    with hb.Engine(edges, device="cpu", selector="alpha-beta", threads=3) as engine:
        alone = [engine.bfs(source).level for source in sources]
        with ThreadPoolExecutor(4) as pool:
            together = [result.level for result in pool.map(engine.bfs, sources)]
    for one, other in zip(alone, together, strict=True):
        assert np.array_equal(one, other)


def test_a_directed_graph_searched_by_a_thread_pool():
    edges = replace(GRAPHS["Kronecker"], directed=True)
    with hb.Engine(edges, device="cpu", selector="fixed:TC", threads=5) as engine:
        for selector in ("fixed:TC", "fixed:BC", "fixed:TC,TC,BC,TC"):
            engine.set_selector(selector)
            check_search(engine, edges, int(edges.src[1]))


@pytest.mark.usefixtures("one_thread")
def test_a_models_choice_stays_while_levels_are_alike(trained):
    """On a grid, whose frontier grows by a few edges a level, it is asked ever less often."""
    trained(None)
    with Engine(grid(300, 300), selector="learned", device="cpu", correction=False) as engine:
        search = engine.search(0)
        records = search.recording().records
        traces = search.traces
    asked = records[:, schema.CHOSEN_AT] == np.arange(len(records))
    assert asked[0]
    assert asked.sum() < len(records) / 5
    for level in np.flatnonzero(~asked):
        chosen_at = int(records[level, schema.CHOSEN_AT])
        assert asked[chosen_at]
        now, then = records[level], records[chosen_at]
        assert now[schema.STRATEGY] == then[schema.STRATEGY]
        for column in (schema.FRONTIER_EDGES, schema.UNVISITED_EDGES):
            assert 1 / then[schema.WITHIN] <= now[column] / then[column] <= then[schema.WITHIN]
        kept = f"as level {then[schema.LEVEL]:.0f}, which is alike"
        assert traces[int(now[schema.LEVEL])].reason == kept
    assert all(set(trace.predicted_seconds) == {"TC", "BC"} for trace in traces)


@pytest.mark.parametrize(
    ("vertices", "edges", "bits"),
    [(10, 40, 40), (2**23 - 1, 2**40 - 1, 40), (2**28, 2**34 - 1, 34)],
)
def test_a_counter_holds_vertices_edges_and_a_bit_to_spare(vertices, edges, bits):
    def graph(stored):
        return SimpleNamespace(
            num_searched=vertices, graph=SimpleNamespace(num_stored_edges=stored)
        )

    assert counter_edge_bits(graph(edges)) == bits
    assert (vertices << bits | 2**bits - 1) < 2**63
    with pytest.raises(GraphError, match=f"can count {2**bits - 1} at most"):
        counter_edge_bits(graph(2**bits))
