"""Renumbering: by falling degree or as given, and back again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from graphs import grid, random_graph
from hypothesis import given
from hypothesis import strategies as st

from hetero_bfs.build import build_search_graph
from hetero_bfs.graph import NO_VERTEX, CSRGraph, EdgeList
from hetero_bfs.kronecker import KroneckerEdges
from hetero_bfs.relabel import relabel

DEGREES = st.lists(st.one_of(st.integers(0, 4), st.integers(0, 5000)), max_size=60)


@given(degrees=DEGREES)
def test_by_falling_degree_ties_by_id(degrees):
    relabelling = relabel(np.array(degrees, np.uint32), "degree")
    expected = sorted((v for v, d in enumerate(degrees) if d), key=lambda v: (-degrees[v], v))
    assert relabelling.old_of_new.tolist() == expected
    assert relabelling.num_searched == len(expected)
    new = {old: i for i, old in enumerate(expected)}
    assert relabelling.new_of_old.tolist() == [new.get(v, NO_VERTEX) for v in range(len(degrees))]
    assert relabelling.old_of_new.dtype == relabelling.new_of_old.dtype == np.uint32


@given(degrees=DEGREES)
def test_as_given(degrees):
    relabelling = relabel(np.array(degrees, np.uint32), "given")
    assert relabelling.old_of_new.tolist() == list(range(len(degrees)))
    assert relabelling.new_of_old.tolist() == list(range(len(degrees)))


@pytest.mark.parametrize("order", ["auto", "degree", "compact", "given"])
@given(degrees=DEGREES.filter(len), data=st.data())
def test_restored_parents(order, degrees, data):
    relabelling = relabel(np.array(degrees, np.uint32), order)
    n = relabelling.num_searched
    some = st.one_of(st.just(NO_VERTEX), st.integers(0, max(n - 1, 0)))
    parent = data.draw(st.lists(some, min_size=n, max_size=n)) if n else []
    restored = relabelling.restore_parents(np.array(parent, np.uint32))
    expected = [-1] * len(degrees)
    for v, p in enumerate(parent):
        if p != NO_VERTEX:
            expected[relabelling.old_of_new[v]] = int(relabelling.old_of_new[p])
    assert restored.tolist() == expected
    assert restored.dtype == np.int64


@pytest.mark.parametrize("size", [1 << 19, (1 << 19) + 70_000])
def test_restored_parents_of_large_graphs(size):
    """By one thread, and by several."""
    random = np.random.default_rng(1)
    relabelling = relabel(random.integers(0, 3, size).astype(np.uint32), "compact")
    old = relabelling.old_of_new
    parent = random.integers(0, old.size, old.size).astype(np.uint32)
    expected = np.full(size, -1)
    expected[old] = old[parent]
    parent[::7] = NO_VERTEX
    expected[old[::7]] = -1
    assert np.array_equal(relabelling.restore_parents(parent), expected)


def test_the_largest_degree_a_vertex_can_have():
    relabelling = relabel(np.array([0, 3, 1_000_000, 3], np.uint32), "degree")
    assert relabelling.old_of_new.tolist() == [2, 1, 3]


@pytest.mark.parametrize(
    ("edges", "order"),
    [
        (KroneckerEdges(10).materialise(), "degree"),
        (grid(50, 50), "locality"),
        (random_graph(2000, 16000, 7), "compact"),
        (EdgeList.from_arrays([], [], 5), "degree"),
    ],
    ids=["Kronecker", "grid", "random", "no edges"],
)
def test_auto_decides_by_the_graph(edges, order):
    assert build_search_graph(edges).relabelling.order == order


@pytest.mark.parametrize("order", ["degree", "locality", "compact"])
@pytest.mark.parametrize("directed", [False, True])
def test_every_order_keeps_the_graph(order, directed):
    edges = replace(
        random_graph(300, 400, 7), directed=directed
    )  # several components, isolated vertices
    plain = CSRGraph.from_edge_source(edges)
    made = build_search_graph(edges, order)
    assert made.relabelling.order == order
    old = made.relabelling.old_of_new
    touched = np.union1d(edges.src, edges.dst)
    loops_only = [v for v in touched if (plain.degree() + plain.transpose.degree())[v] == 0]
    assert np.array_equal(np.sort(old), np.setdiff1d(touched, loops_only))
    for found, wanted in ((made.graph, plain), (made.graph.transpose, plain.transpose)):
        for new, vertex in enumerate(old):
            neighbours = found.neighbours(new)
            assert (np.diff(neighbours.astype(np.int64)) > 0).all()
            assert np.array_equal(np.sort(old[neighbours]), wanted.neighbours(vertex))
    assert np.array_equal(made.degree, made.graph.degree())


def test_locality_brings_neighbours_together():
    shuffled = np.random.default_rng(3).permutation(40 * 40)
    edges = grid(40, 40)
    edges = EdgeList.from_arrays(shuffled[edges.src], shuffled[edges.dst])
    new = build_search_graph(edges, "locality").relabelling.new_of_old.astype(np.int64)
    # Breadth first from a corner, an edge leads from one diagonal to the next: at most 80 apart.
    assert np.abs(new[edges.src] - new[edges.dst]).max() <= 80
