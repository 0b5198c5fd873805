"""Neighbour lists against SciPy's, relabelled or not; constructors and their errors."""

from __future__ import annotations

import gc
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from graphs import NAMES, SmallChunks, edge_list, edge_lists, nasty, random_graph
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import matrix_of

from hetero_bfs import CSRGraph, EdgeList
from hetero_bfs.errors import GraphError
from hetero_bfs.graph import lists
from hetero_bfs.graph.generators.kronecker import KroneckerEdges
from hetero_bfs.graph.list_checks import MAX_VERTICES, check_num_vertices
from hetero_bfs.graph.lists import build_bytes
from hetero_bfs.graph.search_graph import build_search_graph


class Twice(EdgeList):
    """An undirected edge comes as (u, v) and as (v, u)."""

    both_directions = True

    @property
    def num_input_edges(self) -> int:
        return self.src.size // 2


def true_input_degree(edges: EdgeList) -> np.ndarray:
    keep = edges.src != edges.dst
    counts = np.bincount(edges.src[keep], minlength=edges.num_vertices)
    if not edges.directed:
        counts += np.bincount(edges.dst[keep], minlength=edges.num_vertices)
    return counts


def assert_lists(graph: CSRGraph, matrix) -> None:
    assert (graph.indptr.dtype, graph.indices.dtype) == (np.int64, np.uint32)
    np.testing.assert_array_equal(graph.indptr, matrix.indptr)
    np.testing.assert_array_equal(graph.indices, matrix.indices)


def check_csr(edges: EdgeList) -> None:
    graph = CSRGraph.from_edge_source(edges)
    matrix = matrix_of(edges)
    assert_lists(graph, matrix)
    np.testing.assert_array_equal(graph.input_degree, true_input_degree(edges))
    assert graph.num_vertices == edges.num_vertices
    assert graph.num_stored_edges == matrix.nnz
    assert graph.num_input_edges == edges.src.size
    assert graph.directed == edges.directed
    assert graph.both_directions == (not edges.directed)
    np.testing.assert_array_equal(graph.degree(), np.diff(matrix.indptr))
    if edges.directed:
        transposed = matrix.T.tocsr()
        transposed.sort_indices()
        assert_lists(graph.transpose, transposed)
    else:
        assert graph.transpose is graph
    for v in range(min(edges.num_vertices, 3)):
        row = matrix.indices[matrix.indptr[v] : matrix.indptr[v + 1]]
        assert graph.neighbours(v).tolist() == row.tolist()


def check_search_graph(edges: EdgeList, order: str) -> None:
    graph = build_search_graph(edges, order)
    matrix = matrix_of(edges)
    new_of_old, old_of_new = graph.relabelling.new_of_old, graph.relabelling.old_of_new
    assert graph.num_vertices == new_of_old.size == edges.num_vertices
    assert graph.num_searched == old_of_new.size
    np.testing.assert_array_equal(new_of_old[old_of_new], np.arange(old_of_new.size))
    total = np.asarray((matrix + matrix.T).sum(axis=1)).ravel()
    for v in range(min(edges.num_vertices, 50)):
        assert graph.is_isolated(v) == (total[v] == 0)
    if order == "given":
        np.testing.assert_array_equal(old_of_new, np.arange(edges.num_vertices))
    else:
        np.testing.assert_array_equal(np.sort(old_of_new), np.flatnonzero(total))
        ends = edges.src, edges.dst
        counted = true_input_degree(edges).astype(np.int64)
        if edges.directed:
            counted += true_input_degree(replace(edges, src=ends[1], dst=ends[0]))
        assert (np.diff(counted[old_of_new]) <= 0).all(), "degrees rise"
        same = np.diff(counted[old_of_new]) == 0
        assert (np.diff(old_of_new.astype(np.int64))[same] > 0).all(), "ties are not by id"
    permuted = matrix[old_of_new][:, old_of_new].tocsr()
    permuted.sort_indices()
    assert_lists(graph.graph, permuted)
    backward = permuted.T.tocsr()
    backward.sort_indices()
    assert_lists(graph.graph.transpose, backward)
    np.testing.assert_array_equal(graph.degree, np.diff(permuted.indptr))
    assert graph.degree.dtype == graph.first.dtype == np.uint32
    firsts = [
        int(backward.indices[a]) if a < b else v
        for v, (a, b) in enumerate(pairwise(backward.indptr))
    ]
    assert graph.first.tolist() == firsts
    np.testing.assert_array_equal(graph.input_degree, true_input_degree(edges))
    assert graph.num_input_edges == edges.src.size


@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
@pytest.mark.parametrize("name", NAMES)
def test_every_graph(name, directed):
    edges = nasty(name, directed)
    check_csr(edges)
    for order in ("degree", "given"):
        check_search_graph(edges, order)


@settings(max_examples=60)
@given(edges=edge_lists(min_vertices=0), order=st.sampled_from(["degree", "given"]))
def test_any_graph(one_thread, edges, order):
    check_csr(edges)
    check_search_graph(edges, order)


@st.composite
def skewed_edge_lists(draw):
    """Few vertices among many, a hub's edges among them: empty blocks, buckets of one list."""
    n = draw(st.integers(1, 500))
    vertex = st.integers(0, n - 1)
    pairs = draw(st.lists(st.tuples(vertex, vertex), max_size=60))
    hub = draw(vertex)
    pairs += [(hub, v) for v in range(0, n, draw(st.integers(1, 40)))]
    return edge_list(pairs * draw(st.integers(1, 3)), n, draw(st.booleans()))


@settings(max_examples=80)
@given(
    edges=st.one_of(edge_lists(min_vertices=0), skewed_edge_lists()),
    order=st.sampled_from(["degree", "given"]),
    bucket_edges=st.integers(1, 70),
    most=st.integers(1, 300),
    spare_bits=st.integers(0, 32),
    line_keys=st.sampled_from([1, 2, 16]),
    threads=st.integers(1, 5),
)
def test_any_buckets_and_chunks(
    monkeypatch, edges, order, bucket_edges, most, spare_bits, line_keys, threads
):
    """The same lists from tiny buckets, keys without room, and edges that come seven at a time."""
    true_bits = lists._neighbour_bits
    with monkeypatch.context() as patch:
        patch.setattr(lists, "_BUCKET_EDGES", bucket_edges)
        patch.setattr(lists, "_MAX_BUCKETS", most)
        patch.setattr(lists, "_neighbour_bits", lambda n: max(true_bits(n), spare_bits))
        patch.setattr(lists, "_line_keys", lambda num_lines, num_keys: line_keys)
        patch.setattr("numba.get_num_threads", lambda: threads)
        chunked = SmallChunks(edges.src, edges.dst, edges.num_vertices, edges.directed)
        check_csr(chunked)
        check_search_graph(chunked, order)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize(
    "num_vertices", [1, 65, 70_000, pytest.param(3_000_000, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("kind", ["none", "loops", "one edge again and again", "sparse"])
def test_few_edges_among_many_vertices(num_vertices, kind, directed):
    """More vertices than a key has room for: buckets end without many edges in them."""
    rng = np.random.default_rng(8)
    src, dst = rng.integers(0, num_vertices, (2, 400)).astype(np.uint32)
    src[0], dst[0] = 0, num_vertices - 1
    if kind == "none":
        src, dst = src[:0], dst[:0]
    elif kind == "loops":
        dst = src
    elif kind == "one edge again and again":
        src[:], dst[:] = 0, num_vertices - 1
    edges = EdgeList(src, dst, num_vertices, directed)
    check_csr(edges)
    for order in ("degree", "given"):
        check_search_graph(edges, order)


def test_many_buckets_of_skewed_lists():
    """A list longer than a bucket (one bit for each neighbour is less), and lists of several."""
    rng = np.random.default_rng(2)
    hub = np.zeros(300_000, np.uint32)
    others = rng.integers(0, 70_000, 300_000).astype(np.uint32)
    tail = rng.integers(0, 70_000, (2, 100_000)).astype(np.uint32)
    src, dst = np.concatenate([hub, tail[0]]), np.concatenate([others, tail[1]])
    for directed in (False, True):
        check_csr(EdgeList(src, dst, 70_000, directed))
        check_search_graph(EdgeList(src, dst, 70_000, directed), "degree")


def test_too_little_memory_is_an_error(monkeypatch):
    edges = random_graph(50, 150, 12)
    needed = build_bytes(edges)
    for build in (CSRGraph.from_edge_source, build_search_graph):
        free = SimpleNamespace(available=needed - 1)
        monkeypatch.setattr("psutil.virtual_memory", lambda free=free: free)
        with pytest.raises(GraphError) as caught:
            build(edges)
        for word in ("50 vertices and 150 edges", "needs about", "are free", "smaller graph"):
            assert word in str(caught.value)
        free.available = needed
        build(edges)


@pytest.mark.parametrize("directed", [False, True])
def test_memory_for_a_graph_follows_from_its_lists(directed):
    """It may be made from any number of edges: most are duplicates, or a damaged file says so."""
    graph = CSRGraph.from_edge_source(replace(random_graph(50, 150, 12), directed=directed))
    many = replace(graph, num_input_edges=1 << 40)
    assert build_bytes(many) == build_bytes(graph) < 1 << 20
    assert build_search_graph(many).num_input_edges == 1 << 40
    assert many.transpose.num_stored_edges == graph.num_stored_edges


@pytest.mark.sampled(2)
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="measures as Linux does")
@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
@pytest.mark.parametrize("dtype", [None, np.float64], ids=["unweighted", "weighted"])
def test_estimate_of_memory(directed, dtype):
    """`build_bytes` is what the process's resident memory grows by, and not much more."""
    edges = replace(KroneckerEdges(18, 32).materialise(), directed=directed)
    if dtype is not None:
        edges = replace(edges, weights=np.random.default_rng(0).random(edges.src.size))
    few = {
        name: getattr(edges, name)[:999] for name in ("src", "dst", "weights")[: 2 + bool(dtype)]
    }
    build_search_graph(replace(edges, **few))  # compiles
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # the peak is the present again
    before = _status_bytes("VmHWM")
    graph = build_search_graph(edges)
    grown = _status_bytes("VmHWM") - before
    assert graph.num_searched > 100_000
    estimate = build_bytes(edges)
    assert 0.8 * estimate <= grown <= 1.02 * estimate


def _status_bytes(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return 1024 * int(line.split()[1])
    raise AssertionError(f"no {name}")


def test_degrees_fall_along_new_ids_without_duplicates():
    pairs = np.unique(np.sort(np.random.default_rng(4).integers(0, 900, (4000, 2))), axis=0)
    graph = build_search_graph(edge_list(pairs, 900), "degree")
    assert (np.diff(graph.degree.astype(np.int64)) <= 0).all()
    assert graph.degree[-1] > 0
    assert graph.num_searched < 900 or np.unique(pairs).size == 900


@settings(max_examples=40)
@given(edges=edge_lists(min_vertices=0))
def test_a_csr_graph_builds_the_same_search_graph(one_thread, edges):
    """A CSRGraph is a source of edges too: without duplicates, but it remembers them."""
    csr = CSRGraph.from_edge_source(edges)
    assert_lists(CSRGraph.from_edge_source(csr), matrix_of(edges))
    graph = build_search_graph(csr, "given")
    assert_lists(graph.graph, matrix_of(edges))
    np.testing.assert_array_equal(graph.input_degree, true_input_degree(edges))
    assert graph.num_input_edges == edges.src.size
    for size in (1, 3, 1000):
        chunks = list(csr.chunks(size))
        assert all(src.size == dst.size <= size for src, dst in chunks)
        found = [(u, v) for src, dst in chunks for u, v in zip(src, dst, strict=True)]
        rows, columns = matrix_of(edges).tocoo().coords
        assert found == list(zip(rows, columns, strict=True))


@settings(max_examples=60)
@given(
    edges=edge_lists(min_vertices=0),
    order=st.sampled_from(["given", "compact", "locality"]),
    weighted=st.booleans(),
)
def test_lists_that_keep_their_order_are_copied(one_thread, edges, order, weighted):
    """Sorted lists that are renumbered in their order need no sorting; the graph is the same."""
    if weighted:
        weights = (edges.src * 7 + edges.dst * 7) % 11 + 1.0
        edges = EdgeList.from_arrays(
            edges.src, edges.dst, edges.num_vertices, edges.directed, weights
        )
    sorted_anew = build_search_graph(edges, order)
    copied = build_search_graph(CSRGraph.from_edge_source(edges), order)
    for one, other in (
        (sorted_anew, copied),
        (sorted_anew.relabelling, copied.relabelling),
        (sorted_anew.graph, copied.graph),
        (sorted_anew.graph.transpose, copied.graph.transpose),
    ):
        for name, value in vars(one).items():
            if isinstance(value, np.ndarray):
                np.testing.assert_array_equal(value, getattr(other, name), name)
                assert value.dtype == getattr(other, name).dtype


def test_copied_lists_are_checked():
    src = np.arange(9)
    graph = CSRGraph.from_edges(src, src + 1, num_vertices=12)
    graph = CSRGraph(
        indptr := np.array(graph.indptr),
        indices := np.array(graph.indices),
        False,
        9,
        graph.input_degree,
    )
    indices[3] = 11  # a vertex without edges
    with pytest.raises(GraphError, match="arrays changed after it was made"):
        build_search_graph(graph)
    indices[3] = 4_000_000_000
    with pytest.raises(GraphError, match="arrays changed after it was made"):
        build_search_graph(graph)
    indices[3], indptr[4] = 3, 1 << 40
    with pytest.raises(GraphError, match="arrays changed after it was made"):
        build_search_graph(graph, "given")


def test_edges_in_both_directions_are_no_duplicates():
    once = random_graph(60, 200, 9)
    both = Twice(np.concatenate([once.src, once.dst]), np.concatenate([once.dst, once.src]), 60)
    assert both.both_directions
    np.testing.assert_array_equal(
        CSRGraph.from_edge_source(both).indices, CSRGraph.from_edge_source(once).indices
    )
    np.testing.assert_array_equal(
        CSRGraph.from_edge_source(both).input_degree, CSRGraph.from_edge_source(once).input_degree
    )
    graph, expected = build_search_graph(both), build_search_graph(once)
    np.testing.assert_array_equal(graph.graph.indices, expected.graph.indices)
    np.testing.assert_array_equal(graph.relabelling.old_of_new, expected.relabelling.old_of_new)


# From arrays.


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64])
def test_any_integers(dtype):
    graph = CSRGraph.from_edges(np.array([0, 1], dtype), np.array([1, 3], dtype))
    assert graph.num_vertices == 4
    assert graph.indices.tolist() == [1, 0, 3, 1]


def test_lists_and_strides():
    table = np.array([[0, 9, 1], [1, 9, 2]])
    graph = CSRGraph.from_edges(table[:, 0], table[:, 2], directed=True)
    assert graph.indices.tolist() == [1, 2]
    assert CSRGraph.from_edges([0, 1], (1, 2)).num_vertices == 3


def test_nothing():
    graph = CSRGraph.from_edges([], [])
    assert (graph.num_vertices, graph.num_stored_edges, graph.indptr.tolist()) == (0, 0, [0])
    assert CSRGraph.from_edges([], [], 5).indptr.tolist() == [0] * 6


@pytest.mark.parametrize(
    ("src", "dst", "num_vertices", "words"),
    [
        ([0, -1], [1, 2], None, ["vertex id -1 is negative"]),
        ([0, 1], [1, -(2**40)], None, ["-1099511627776 is negative"]),
        ([0.0, 1.0], [1, 2], None, ["src holds float64", "must be integers"]),
        ([0, 1], ["1", "2"], None, ["dst holds", "must be integers"]),
        ([True], [False], None, ["src holds bool"]),
        ([0, 1], [1], None, ["src has 2 entries and dst 1", "equal length"]),
        ([[0, 1]], [[1, 2]], None, ["src has 2 dimensions"]),
        ([0, 5], [1, 2], 5, ["vertex id 5 is not below num_vertices = 5", "6"]),
        ([0, 1], [1, 2**32 - 2], None, [str(2**32 - 1), str(MAX_VERTICES)]),
        ([0, 1], [1, 2**32 + 1], None, [str(MAX_VERTICES)]),
        ([0], [1], 2**32 - 1, [str(MAX_VERTICES), "32-bit"]),
        ([], [], -1, ["-1 vertices"]),
        ([0], [1], 1, ["vertex id 1 is not below num_vertices = 1"]),
        ([0], np.array([2**64 - 1], np.uint64), None, [str(MAX_VERTICES)]),
    ],
)
def test_wrong_edges(src, dst, num_vertices, words):
    for make in (CSRGraph.from_edges, EdgeList.from_arrays):
        with pytest.raises(GraphError) as caught:
            make(src, dst, num_vertices)
        for word in words:
            assert word in str(caught.value)


def test_ids_up_to_the_last_one():
    edges = EdgeList.from_arrays([MAX_VERTICES - 1], [0])
    assert edges.num_vertices == MAX_VERTICES
    check_num_vertices(MAX_VERTICES)
    with pytest.raises(GraphError, match="4294967295 vertices"):
        check_num_vertices(MAX_VERTICES + 1)


# From SciPy and NetworkX.


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_matrix, sp.coo_array, sp.lil_matrix])
def test_scipy_matrices(kind):
    edges = random_graph(50, 150, 12)
    graph = CSRGraph.from_scipy(kind(matrix_of(edges)))
    assert_lists(graph, matrix_of(edges))
    directed = replace(edges, directed=True)
    matrix = matrix_of(directed)
    assert_lists(CSRGraph.from_scipy(kind(matrix), directed=True), matrix)
    upper = sp.triu(matrix_of(edges))
    assert_lists(CSRGraph.from_scipy(kind(upper)), matrix_of(edges))
    assert CSRGraph.from_scipy(kind(upper)).num_input_edges == upper.nnz


def test_scipy_values_do_not_matter_but_explicit_zeros_are_no_edges():
    matrix = sp.coo_array(([0.0, -2.5, 3, 1], ([0, 1, 2, 3], [1, 2, 0, 3])), (5, 5))
    graph = CSRGraph.from_scipy(matrix, directed=True)
    assert graph.indptr.tolist() == [0, 0, 1, 2, 2, 2]
    assert graph.indices.tolist() == [2, 0]
    assert graph.num_input_edges == 3


def test_scipy_matrix_must_be_square():
    with pytest.raises(GraphError, match=r"shape \(3, 4\).* must be square"):
        CSRGraph.from_scipy(sp.csr_array((3, 4)))


def test_scipy_array_must_have_two_dimensions():
    with pytest.raises(GraphError, match="square"):
        CSRGraph.from_scipy(sp.coo_array(np.ones(4)))


def test_networkx_graphs():
    graph = nx.Graph([("a", "b"), ("b", "c"), ("c", "c")])
    graph.add_node("z")
    built = CSRGraph.from_networkx(graph)
    assert (built.directed, built.num_vertices, built.num_input_edges) == (False, 4, 3)
    assert built.indptr.tolist() == [0, 1, 3, 4, 4]
    assert built.indices.tolist() == [1, 0, 2, 1]
    arrows = nx.DiGraph([(7, 3), (3, 5)])
    built = CSRGraph.from_networkx(arrows)
    assert (built.directed, built.indices.tolist()) == (True, [1, 2])
    assert built.transpose.indices.tolist() == [0, 1]
    assert CSRGraph.from_networkx(arrows, directed=False).num_stored_edges == 4
    several = nx.MultiGraph([(0, 1), (0, 1), (1, 0)])
    built = CSRGraph.from_networkx(several)
    assert (built.num_stored_edges, built.num_input_edges) == (2, 3)
    assert built.input_degree.tolist() == [3, 3]
    assert CSRGraph.from_networkx(nx.Graph()).num_vertices == 0


def test_networkx_neighbours_are_kept():
    graph = nx.gnm_random_graph(40, 90, seed=3)
    built = CSRGraph.from_networkx(graph)
    for v in range(40):
        assert built.neighbours(v).tolist() == sorted(graph[v])
