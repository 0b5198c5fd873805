"""The NetworkX backend beside NetworkX itself: same results, orders and exceptions."""

from __future__ import annotations

import gc
import inspect
import os
import subprocess
import sys
from collections import OrderedDict
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from forking import in_child
from hypothesis import given, settings
from hypothesis import strategies as st
from networkx_graphs import NAMES, networkx_graphs, outcome

from hetero_bfs.engine import kept
from hetero_bfs.networkx_backend import backend_interface
from hetero_bfs.networkx_backend.backend_info import FUNCTIONS, LEAST_EDGES
from hetero_bfs.networkx_backend.conversion import convert_from_nx, convert_to_nx
from hetero_bfs.networkx_backend.traversal import levels_from

MISSING = "no such node"
nodes = st.sampled_from([*NAMES, MISSING])
limits = st.sampled_from([None, 0, 1, 2, 1.5, -1, float("inf")])


@pytest.fixture(autouse=True)
def _no_warning(monkeypatch):
    monkeypatch.setattr(nx.config, "warnings_to_ignore", {"cache"})


def assert_same(name, *args, **kwargs):
    """Compare a function's results, including their order, or its exceptions."""
    function = getattr(nx, name)
    expected = outcome(function, *args, backend="networkx", **kwargs)
    found = outcome(function, *args, backend="hetero", **kwargs)
    assert found == expected, (name, args[1:], kwargs)
    return expected, found


@settings(max_examples=100)
@given(networkx_graphs(), nodes, limits, st.booleans())
def test_traversals_are_those_of_networkx(graph, source, limit, reverse):
    assert_same("bfs_edges", graph, source, reverse=reverse, depth_limit=limit)
    assert_same("bfs_predecessors", graph, source, limit)
    assert_same("bfs_successors", graph, source, depth_limit=limit)
    assert_same("descendants_at_distance", graph, source, 2 if limit is None else limit)
    assert_same("bfs_layers", graph, source)
    assert_same("bfs_layers", graph, list(graph)[:3])
    if source in graph:
        trees = [
            nx.bfs_tree(graph, source, reverse, limit, backend=backend)
            for backend in ("networkx", "hetero")
        ]
        assert list(trees[0].edges) == list(trees[1].edges)
        assert list(trees[0]) == list(trees[1])


@settings(max_examples=100)
@given(networkx_graphs(), nodes, nodes, limits)
def test_paths_are_those_of_networkx(graph, source, target, limit):
    for kind in ("source", "target"):
        assert_same(f"single_{kind}_shortest_path", graph, source, limit)
        assert_same(f"single_{kind}_shortest_path_length", graph, source, limit)
        assert_same("shortest_path", graph, **{kind: source})
        assert_same("shortest_path_length", graph, **{kind: source})
    for name in ("bidirectional_shortest_path", "has_path", "shortest_path_length"):
        assert_same(name, graph, source, target)
    assert_same("shortest_path", graph, source, target, method="bellman-ford")
    assert_same("shortest_path", graph, source, target, method="unknown")
    for name in ("shortest_path", "shortest_path_length"):
        assert_same(name, graph)
    assert_same("all_pairs_shortest_path", graph, limit)
    assert_same("all_pairs_shortest_path_length", graph, cutoff=limit)


@settings(max_examples=100)
@given(networkx_graphs(), nodes)
def test_components_and_eccentricities_are_those_of_networkx(graph, node):
    kind = "weakly_connected" if graph.is_directed() else "connected"
    for name in (f"{kind}_components", f"number_{kind}_components", f"is_{kind}"):
        assert_same(name, graph)
        assert_same(name, type(graph)())
    assert_same("node_connected_component", graph, node)
    for v in (None, node, [node, *list(graph)[:2]]):
        assert_same("eccentricity", graph, v)
    for usebounds in (False, True):
        assert_same("diameter", graph, usebounds=usebounds)
        assert_same("diameter", type(graph)(), usebounds=usebounds)


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph])
@pytest.mark.parametrize("seed", range(4))
def test_eccentricities_of_connected_graphs(kind, seed):
    graph = kind(nx.random_regular_graph(3, 30, seed=seed).edges)
    graph.add_edges_from((30 + i, 31 + i) for i in range(seed))
    graph.add_edge(30 + seed, 0)
    graph.add_edge(0, 30)
    assert_same("eccentricity", graph)
    assert_same("diameter", graph)


@settings(max_examples=100)
@given(
    st.sampled_from(
        [st.integers(0, 5), st.sampled_from([0.0, 0.1, 0.2, 0.30000000000000004, 7.5])]
    ).flatmap(lambda weights: networkx_graphs(weights=weights)),
    nodes,
    nodes,
    st.sampled_from([None, 0, 2.5, float("inf")]),
    st.sampled_from(["weight", "absent", None]),
)
def test_weighted_paths_are_those_of_networkx(graph, source, target, cutoff, weight):
    arguments = {"cutoff": cutoff, "weight": weight}
    _, found = assert_same("single_source_dijkstra", graph, source, **arguments)
    assert_same("single_source_dijkstra_path", graph, source, **arguments)
    assert_same("single_source_dijkstra_path_length", graph, source, **arguments)
    assert_same("single_source_dijkstra", graph, source, target, **arguments)
    if isinstance(found[0], dict):
        expected = nx.single_source_dijkstra(graph, source, **arguments, backend="networkx")
        assert [list(part) for part in found] == [list(part) for part in expected]
        if weight == "absent":
            assert {type(length) for length in found[0].values()} == {int}


def test_layers_from_several_sources_report_missing_ones():
    assert_same("bfs_layers", nx.path_graph(4), [0, 3])
    assert_same("bfs_layers", nx.path_graph(4), [MISSING])
    assert_same("bfs_layers", nx.path_graph(4), [])


def test_the_tree_of_a_node_that_is_missing():
    with pytest.raises(nx.NetworkXError, match="not in the graph"):
        nx.bfs_tree(nx.path_graph(3), MISSING, backend="hetero")


@pytest.mark.parametrize(
    "name", ["bfs_edges", "node_connected_component", "single_source_dijkstra", "has_path"]
)
def test_a_node_that_cannot_be_hashed(name):
    assert_same(name, nx.path_graph(4), [1, 2], *([1] if name == "has_path" else []))


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
def test_a_converted_graph_converts_back(kind):
    graph = kind([("b", "a"), ("a", "a"), ("a", "c"), ("c", "b")], name="ring")
    graph.add_node("alone")
    back = convert_to_nx(convert_from_nx(graph, preserve_graph_attrs=True))
    assert type(back) is kind
    assert nx.utils.graphs_equal(back, graph)
    assert list(back) == list(graph)


def test_weights_convert_back():
    for values in ([1, 2, 3], [0.5, 2, 3]):
        graph = nx.DiGraph()
        graph.add_weighted_edges_from(zip("abc", "bca", values, strict=True))
        back = convert_to_nx(convert_from_nx(graph, edge_attrs={"weight": 1}))
        assert nx.utils.graphs_equal(back, graph)


def test_views_are_converted_as_what_they_show():
    graph = nx.gnp_random_graph(30, 0.1, seed=1, directed=True)
    assert_same("bfs_edges", graph.subgraph(range(0, 30, 2)), 2)
    assert_same("bfs_edges", graph.reverse(copy=False), 2)


class OrderedGraph(nx.Graph):
    """A graph whose lists are dicts of another kind, in an order of their own."""

    adjlist_inner_dict_factory = OrderedDict


@pytest.mark.parametrize("neighbour", [2, 2.0, Fraction(2), np.int64(2), 2**70, "2"])
@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph, OrderedGraph])
@pytest.mark.parametrize(
    "nodes", [range(600), range(599, -1, -1), [*map(str, range(600)), *range(600)]]
)
def test_lists_are_read_whatever_equals_a_node(kind, neighbour, nodes):
    graph = kind()
    graph.add_nodes_from(nodes)
    graph.add_edges_from((i, j % 600) for i in range(600) for j in (i + 1, 7 * i, 3 * i + 5))
    graph.add_edge(9, neighbour)
    if kind is OrderedGraph:
        graph._adj[5].move_to_end(next(iter(graph._adj[5])))
    converted = convert_from_nx(graph)
    number = {node: i for i, node in enumerate(graph)}
    for lists, adjacency in (
        (converted.successors, graph._adj),
        (converted.predecessors, getattr(graph, "_pred", graph._adj)),
    ):
        rows = [[number[v] for v in adjacency[u]] for u in graph]
        assert lists.indices.tolist() == [v for row in rows for v in row]
        assert np.diff(lists.indptr).tolist() == list(map(len, rows))


def test_conversions_are_cached_until_the_graph_changes():
    graph = nx.path_graph(4)
    converted = graph.__networkx_cache__.setdefault("backends", {}).setdefault("hetero", {})
    list(nx.bfs_edges(graph, 0, backend="hetero"))
    [first] = converted.values()
    list(nx.bfs_layers(graph, 0, backend="hetero"))
    assert [*converted.values()] == [first]
    graph.add_edge(3, 0)
    assert_same("bfs_edges", graph, 0)


def test_graphs_below_the_threshold_are_left_to_networkx():
    graph = nx.path_graph(LEAST_EDGES // 2)
    assert "fewer" in backend_interface.should_run("bfs_edges", (graph, 0), {})
    graph.add_edges_from((0, i) for i in range(2, 9))
    assert backend_interface.should_run("bfs_edges", (graph, 0), {}) is True
    small = nx.path_graph(3)
    list(nx.bfs_edges(small, 0, backend="hetero"))
    assert backend_interface.should_run("bfs_edges", (), {"G": small, "source": 0}) is True


def test_what_calls_python_for_every_node_cannot_run():
    arguments = (nx.path_graph(3), 0), {"sort_neighbors": sorted}
    assert "sort_neighbors" in backend_interface.can_run("bfs_edges", *arguments)
    assert backend_interface.can_run("bfs_edges", (nx.path_graph(3),), {}) is not True


def test_every_function_has_the_parameters_of_networkx():
    for name in FUNCTIONS:
        theirs = inspect.signature(getattr(nx, name)).parameters
        ours = inspect.signature(getattr(backend_interface, name)).parameters
        wanted = {k: p.default for k, p in theirs.items() if not k.startswith("backend")}
        assert {k: p.default for k, p in ours.items()} == wanted, name


def test_networkx_starts_without_what_the_backend_needs():
    code = (
        "import networkx, sys; "
        "assert 'hetero' in networkx.utils.backends.backend_info; "
        "print([m for m in ('numpy', 'numba', 'scipy', 'pyopencl') if m in sys.modules], "
        "sorted(m for m in sys.modules if m.startswith('hetero_bfs') and m[-9:] != '._version'))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == (
        "[] ['hetero_bfs', 'hetero_bfs.built', 'hetero_bfs.networkx_backend', "
        "'hetero_bfs.networkx_backend.backend_info']"
    )


@pytest.fixture
def engine_at_once(monkeypatch):
    """Search with an engine from the first search on; close all of them at the end."""
    monkeypatch.setattr(kept.KeptGraph, "_pays", lambda *_: True)
    yield
    kept.close_all()


def opened_graphs():
    return [one for one in kept._KEPT.values() if one.is_open]


def weighted_graph(seed, directed=False):
    graph = nx.gnp_random_graph(60, 0.05, seed, directed)
    for i, (_, _, data) in enumerate(graph.edges(data=True)):
        data["weight"] = [1, 2.5, 0.25][i % 3]
    return graph


@pytest.mark.parametrize("directed", [False, True])
def test_engines_find_the_same(engine_at_once, directed):
    graph = weighted_graph(3, directed)
    assert_same("single_source_shortest_path_length", graph, 2)
    assert_same("single_source_dijkstra_path_length", graph, 2)
    assert_same("eccentricity", graph)
    assert len(opened_graphs()) == 1  # the conversion without weights is no longer needed
    lengths = nx.single_source_shortest_path_length(graph, 2, backend="hetero")
    assert list(lengths.values()) == sorted(lengths.values())


def test_engines_find_eccentricities_of_directed_graphs(engine_at_once):
    ring = nx.cycle_graph(40, create_using=nx.DiGraph)
    ring.add_edges_from([(3, 20), (7, 1), (30, 12)])
    assert_same("eccentricity", ring)
    assert_same("diameter", ring)
    ring.add_edge(39, 40)
    assert_same("eccentricity", ring, [40])
    assert_same("eccentricity", ring)


def test_engines_close_with_their_graphs(engine_at_once):
    graph = nx.path_graph(5)
    assert_same("single_source_shortest_path_length", graph, 1)
    assert len(opened_graphs()) == 1
    graph.__networkx_cache__.clear()
    gc.collect()
    assert not opened_graphs()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_searches_without_its_parents_engine(engine_at_once):
    graph = nx.path_graph(50)
    assert_same("single_source_shortest_path_length", graph, 1)

    def search() -> bool:
        lengths = nx.single_source_shortest_path_length(graph, 1, backend="hetero")
        return bool(lengths[49] == 48)

    assert in_child(search, kept._LOCK)
    assert opened_graphs()
    assert_same("single_source_shortest_path_length", graph, 1)


def test_an_engine_opens_for_many_expected_searches():
    graph = convert_from_nx(nx.path_graph(5))
    levels_from(graph, 0)
    assert not kept.kept_of(graph).is_open
    levels_from(graph, 0, coming=10**12)
    assert kept.kept_of(graph).is_open


@settings(max_examples=25)
@given(st.integers(0, 99), st.booleans(), st.sampled_from(["weight", None]), st.booleans())
def test_ranks_are_those_of_networkx(seed, directed, weight, personal):
    graph = nx.relabel_nodes(weighted_graph(seed % 5, directed), str)
    restart = {"3": 1, "5": 3, MISSING: 9} if personal else None
    found = [
        nx.pagerank(graph, 0.7, restart, tol=1e-12, weight=weight, backend=backend)
        for backend in ("networkx", "hetero")
    ]
    assert list(found[0]) == list(found[1])
    assert found[0] == pytest.approx(found[1], abs=1e-9)


def test_ranks_without_an_answer():
    graph = nx.path_graph(5)
    assert_same("pagerank", nx.Graph())
    assert_same("pagerank", graph, max_iter=0)
    assert_same("pagerank", graph, max_iter=1, tol=1e-15)
    assert_same("pagerank", graph, personalization={MISSING: 1})
    with pytest.raises(NotImplementedError):
        nx.pagerank(nx.Graph([(0, 0), (0, 1)]), backend="hetero")
    with pytest.raises(NotImplementedError):
        nx.pagerank(graph, alpha=1.5, backend="hetero")


@settings(max_examples=25)
@given(networkx_graphs(directed=False))
def test_colours_are_those_of_networkx(graph):
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    expected, found = assert_same("greedy_color", graph, "largest_first")
    assert list(expected) == list(found)


@pytest.mark.parametrize("weight", [-1, float("inf"), float("nan"), None, "a", 2**60, 10**400])
def test_weights_that_are_left_to_networkx(weight):
    graph = nx.Graph()
    graph.add_edge(0, 1, weight=weight)
    with pytest.raises(NotImplementedError):
        nx.single_source_dijkstra(graph, 0, backend="hetero")


def test_integers_beyond_float64_among_floats_are_left_to_networkx():
    graph = nx.Graph()
    graph.add_weighted_edges_from([(0, 1, 2**53 + 1), (1, 2, 0.5)])
    with pytest.raises(NotImplementedError):
        nx.single_source_dijkstra(graph, 0, backend="hetero")


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("shortest_path", {"weight": "weight"}),
        ("eccentricity", {"sp": {}}),
        ("diameter", {"e": {0: 1}}),
        ("pagerank", {"nstart": {0: 1}}),
        ("pagerank", {"max_iter": 0.5}),
        ("pagerank", {"tol": 0}),
        ("pagerank", {"tol": np.uint64(2**63)}),
        ("pagerank", {"alpha": Fraction(1, 3)}),
        ("single_source_dijkstra", {"source": 0, "weight": lambda u, v, data: 1}),
        ("greedy_color", {"strategy": "smallest_last"}),
        ("greedy_color", {"interchange": True}),
        ("single_source_dijkstra_path", {"source": 0, "cutoff": float("nan")}),
        ("single_source_dijkstra_path", {"source": 0, "cutoff": "a"}),
        ("single_source_shortest_path", {"source": 0, "cutoff": Fraction(3, 2)}),
        ("bfs_edges", {"source": 0, "depth_limit": 10**400}),
        ("bfs_edges", {"source": 0, "depth_limit": np.float32(1)}),
    ],
)
def test_arguments_that_are_left_to_networkx(name, arguments):
    assert backend_interface.can_run(name, (nx.path_graph(3),), arguments) is not True
    with pytest.raises(NotImplementedError):
        getattr(nx, name)(nx.path_graph(3), **arguments, backend="hetero")


def test_parallel_edges_without_and_with_weights():
    graph = nx.MultiGraph([(0, 1), (0, 1), (1, 2)])
    assert_same("bfs_edges", graph, 0)
    assert_same("single_source_shortest_path_length", graph, 0)
    for name in ("pagerank", "greedy_color"):
        assert backend_interface.can_run(name, (graph,), {}) is not True


def test_a_pair_of_nodes_is_left_to_networkx_unless_the_graph_is_converted():
    graph = nx.path_graph(LEAST_EDGES)
    arguments = {"source": 0, "target": 2}
    assert "two nodes" in backend_interface.should_run("shortest_path", (graph,), arguments)
    assert backend_interface.should_run("shortest_path", (graph, 0), {}) is True
    assert backend_interface.should_run("diameter", (nx.path_graph(500),), {}) is True
    assert nx.has_path(graph, 0, 9, backend="hetero")
    assert backend_interface.should_run("shortest_path", (graph,), arguments) is True
