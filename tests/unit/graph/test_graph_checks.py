"""Graphs and edges from outside are checked, and stay as they were: nothing reaches compiled code
that would lead it out of its arrays."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import hetero_bfs as hb
from hetero_bfs.errors import ArgumentError, GraphError
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.search_graph import build_search_graph

TRIANGLE = {
    "indptr": [0, 2, 4, 6],
    "indices": [1, 2, 0, 2, 0, 1],
    "directed": False,
    "num_input_edges": 3,
    "input_degree": [2, 2, 2],
}


def triangle(**changes) -> hb.CSRGraph:
    return hb.CSRGraph(**(TRIANGLE | changes))


# Edge lists


@pytest.mark.parametrize(
    ("src", "dst", "num_vertices", "words"),
    [
        ([0, 5], [1, 1], 3, "vertex id 5 is not below num_vertices = 3"),
        ([0, -1], [1, 1], 3, "vertex id -1 is negative"),
        ([0, 2**40], [1, 1], 3, "vertex id 1099511627776 is not below"),
        ([0, 1], [1], 3, "src has 2 entries and dst 1"),
        ([0.5], [1], 3, "src holds float64; entries must be integers"),
        ([[0]], [[1]], 3, "src has 2 dimensions"),
        ([0], [1], 2**32, "a graph may have 0 to 4294967294"),
        ([0], [1], -1, "a graph may have 0 to"),
        (np.ma.array([0, 1], mask=[False, True]), [1, 1], 3, r"src has 1 of 2.*compressed"),
        ([1, 1], np.ma.array([0, 1], mask=True), 3, r"dst has 2 of 2.*compressed"),
    ],
)
def test_wrong_edge_lists(src, dst, num_vertices, words):
    for make in (hb.EdgeList, hb.EdgeList.from_arrays, hb.CSRGraph.from_edges):
        with pytest.raises(GraphError, match=words):
            make(np.asanyarray(src), np.asanyarray(dst), num_vertices)


def test_a_mask_without_masked_entries_is_none():
    src = np.ma.array([0, 1], mask=[False, False])
    assert hb.EdgeList(src, src, 2).src.tolist() == [0, 1]


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.int64, np.uint64, ">u4"])
def test_edge_lists_hold_uint32(dtype):
    ids = np.array([0, 9, 1, 9, 2, 9], dtype)[::2]
    edges = hb.EdgeList(ids, ids, np.int16(3))
    assert edges.src.dtype == edges.dst.dtype == np.uint32
    assert edges.src.tolist() == [0, 1, 2]
    assert type(edges.num_vertices) is int


def test_edge_lists_copy_nothing_that_fits_and_are_read_only():
    src, dst = np.zeros((2, 3), np.uint32)
    edges = hb.EdgeList(src, dst, 1)
    assert np.shares_memory(edges.src, src)
    with pytest.raises(ValueError, match="read-only"):
        edges.src[0] = 1
    src[0] = 0  # the caller's own array is left alone


# Neighbour lists


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"indptr": []}, "indptr is empty"),
        ({"indptr": [1, 2, 4, 6]}, r"indptr\[0\]: offset 0 is 1; offsets must rise from 0 to 6"),
        ({"indptr": [0, 5, 4, 6]}, r"indptr\[2\]: offset 2 is 4"),
        ({"indptr": [0, 2, 4, 7]}, r"indptr\[3\]: offset 3 is 7"),
        ({"indptr": [0, 2, 4, 5]}, r"indptr\[3\]: offset 3 is 5"),
        ({"indptr": [0.0, 2, 4, 6]}, "indptr holds float64"),
        ({"indices": [1, 2, 0, 2, 0, 4_000_000_000]}, r"indices\[5\]: neighbour 4000000000"),
        ({"indices": [1, 2, 0, 2, 0, -1]}, r"indices\[5\]: neighbour -1 is negative"),
        ({"indices": [2, 1, 0, 2, 0, 1]}, r"indices\[1\]: neighbour 1 of vertex 0; lists must"),
        ({"indices": [1, 1, 0, 2, 0, 1]}, r"indices\[1\]: neighbour 1 of vertex 0; lists must"),
        ({"indices": [0, 2, 0, 2, 0, 1]}, r"indices\[0\]: neighbour 0 of vertex 0; lists must"),
        ({"indptr": [0, 2, 3, 4], "indices": [1, 2, 2, 0]}, "an edge lacks its reverse"),
        ({"indices": np.ma.array([1] * 6, mask=True)}, r"indices has 6 of 6.*compressed"),
        ({"input_degree": [2, 2]}, "input_degree has 2 entries and indptr 4"),
        ({"input_degree": [2, 1, 2]}, r"input_degree\[1\]: 1 input edges at vertex 1, and 2"),
        ({"input_degree": [2, -1, 2]}, "input_degree is not within"),
        ({"num_input_edges": 2}, "num_input_edges: 2 input edges, and their ends .* are 6"),
    ],
)
def test_wrong_neighbour_lists(changes, words):
    with pytest.raises(GraphError, match=words):
        triangle(**changes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"directed": 1}, "directed is 1; give True or False"),
        ({"num_input_edges": 3.0}, r"num_input_edges is 3\.0; give an integer of at least 0"),
        ({"num_input_edges": -3}, "num_input_edges is -3"),
    ],
)
def test_wrong_counts_and_flags(changes, words):
    with pytest.raises(ArgumentError, match=words):
        triangle(**changes)


def test_a_directed_graph_needs_no_reverse_edges():
    one_way = triangle(
        indptr=[0, 2, 3, 3], indices=[1, 2, 2], input_degree=[2, 1, 0], directed=True
    )
    assert one_way.transpose.neighbours(2).tolist() == [0, 1]


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.uint64])
def test_sound_lists_of_any_integers(dtype):
    names = ("indptr", "indices", "input_degree")
    graph = triangle(**{name: np.array(TRIANGLE[name], dtype) for name in names})
    assert (graph.indptr.dtype, graph.indices.dtype) == (np.int64, np.uint32)
    assert graph.input_degree.dtype == np.uint32
    assert hb.bfs(graph, 0, threads=1).level.tolist() == [0, 1, 1]


@pytest.mark.parametrize("make", [triangle, lambda: hb.CSRGraph.from_edges([0, 1], [1, 2])])
def test_lists_are_read_only(make):
    graph = make()
    for array in (graph.indptr, graph.indices, graph.input_degree):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 4_000_000_000 % np.iinfo(array.dtype).max


@pytest.mark.parametrize("vertex", [-1, 3, "1", True, 1.0])
def test_neighbours_of_what_is_no_vertex(vertex):
    with pytest.raises(GraphError, match=r"is not in the graph|is not a vertex id"):
        triangle().neighbours(vertex)


# What changes or lies once it is made


@pytest.mark.parametrize("build", [CSRGraph.from_edge_source, build_search_graph])
@pytest.mark.parametrize("directed", [False, True])
def test_edges_that_change_behind_the_view(build, directed):
    src, dst = np.array([[0, 1], [1, 2]], np.uint32)
    edges = hb.EdgeList(src, dst, 3, directed)
    src[1] = 4_000_000_000
    with pytest.raises(GraphError, match=r"edge \(4000000000, 2\) in a graph of only 3 vertices"):
        build(edges)
    with pytest.raises(GraphError, match="4000000000"):
        hb.validate(edges, 0, np.array([0, 0, 1]))


def test_lists_that_change_behind_the_view():
    indices = np.array(TRIANGLE["indices"], np.uint32)
    graph = triangle(indices=indices)
    indices[0] = 4_000_000_000
    with pytest.raises(GraphError, match=r"neighbour 4000000000 is not below 3.*make it anew"):
        hb.Engine(graph, selector="fixed:TC", device="cpu")


def test_offsets_that_change_behind_the_view():
    indptr = np.array(TRIANGLE["indptr"])
    graph = triangle(indptr=indptr)
    indptr[:] = [6, 6, 6, 6]
    with pytest.raises(GraphError, match="in a graph of only 3 vertices"):
        build_search_graph(graph)


def test_a_graph_that_went_through_pickle():
    graph = pickle.loads(pickle.dumps(triangle()))
    assert hb.bfs(graph, 0, threads=1).level.tolist() == [0, 1, 1]


class Source:
    """Edges of the user's own making."""

    num_vertices, num_input_edges, directed, both_directions = 4, 2, False, False

    def __init__(self, *passes, **attributes):
        self.passes = iter(passes)
        self.last = passes[-1]
        self.__dict__.update(attributes)

    def chunks(self, size=1 << 22):
        self.last = next(self.passes, self.last)
        yield self.last


def pairs(*edges, dtype=np.uint32):
    return tuple(np.array(ends, dtype) for ends in zip(*edges, strict=True))


@pytest.mark.parametrize(
    ("chunk", "words"),
    [
        (pairs((0, 9)), r"edge \(0, 9\) in a graph of only 4 vertices"),
        (pairs((0, 1), dtype=np.int64), "src of a chunk of edges holds int64"),
        (pairs((0, 1), dtype=np.float64), "holds float64"),
        (([0], [1]), "holds list; chunks\\(\\) must give one-dimensional arrays of uint32"),
        ((np.zeros(1, np.uint32), np.zeros(2, np.uint32)), "src has 1 entries and dst 2"),
    ],
)
def test_chunks_that_no_loop_may_get(chunk, words):
    with pytest.raises(GraphError, match=words):
        build_search_graph(Source(chunk))
    with pytest.raises(GraphError, match=words):
        hb.validate(Source(chunk), 0, np.array([0, -1, -1, -1]))


@pytest.mark.parametrize(
    ("order", "second"),
    [
        ("degree", pairs((0, 3), (1, 3))),  # a vertex that had no edge
        ("compact", pairs((0, 3), (1, 3))),
        ("given", pairs((0, 1))),
        ("degree", pairs(*[(0, 1), (1, 2)] * 5000)),
    ],
)
@pytest.mark.parametrize("directed", [False, True])
def test_edges_that_are_others_when_read_again(order, second, directed):
    source = Source(pairs((0, 1), (1, 2)), second, directed=directed)
    with pytest.raises(GraphError, match="gave different edges the second time"):
        build_search_graph(source, order)


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({"num_vertices": 4.0}, r"num_vertices is 4\.0"),
        ({"num_vertices": -4}, "-4 vertices; a graph may have 0 to"),
        ({"num_input_edges": "2"}, "num_input_edges is '2'"),
        ({"directed": 0}, "directed is 0"),
        ({"both_directions": None}, "both_directions is None"),
    ],
)
def test_sources_with_wrong_numbers(attributes, words):
    with pytest.raises(ValueError, match=words):
        CSRGraph.from_edge_source(Source(pairs((0, 1)), **attributes))


@pytest.mark.parametrize("directed", [np.False_, np.True_])
def test_booleans_of_numpy_become_those_of_python(directed):
    """Options of kernels are told by `is False`, and NumPy's `True` is no number of 64 bits."""
    ends = np.array([0, 1], np.uint32), np.array([1, 0], np.uint32), 2
    made = CSRGraph.from_edge_source(hb.EdgeList(*ends, bool(directed)))
    whole = CSRGraph(made.indptr, made.indices, directed, made.num_input_edges, made.input_degree)
    edges = hb.EdgeList(*ends, directed), hb.EdgeList.from_arrays(*ends, directed=directed)
    for one in (*edges, whole):
        assert type(one.directed) is bool
    for one in (*edges, whole, Source(pairs((0, 1)), directed=directed)):
        assert build_search_graph(one).graph.directed is bool(directed)
        assert hb.bfs(one, 0).level[1] == 1
        with hb.Engine(one, device="cpu") as engine:
            assert engine.bfs(0).level[1] == 1
