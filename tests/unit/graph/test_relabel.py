"""Renumbering: by falling degree or as given, and back again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from graphs import grid, path, random_graph
from hypothesis import given
from hypothesis import strategies as st

from hetero_bfs.algorithms.bfs.kernels.job import (
    owner_of,
    partition_bits,
    split_among_owners,
)
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.edge_source import NO_VERTEX
from hetero_bfs.graph.generators.kronecker import KroneckerEdges
from hetero_bfs.graph.kernels.sorting import sort_lists
from hetero_bfs.graph.relabel import relabel
from hetero_bfs.graph.search_graph import build_search_graph

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


def shuffled(edges: EdgeList, seed: int = 3) -> EdgeList:
    """The same graph with other vertex ids."""
    ids = np.random.default_rng(seed).permutation(edges.num_vertices)
    return EdgeList.from_arrays(ids[edges.src], ids[edges.dst], edges.num_vertices)


def test_few_edges_leave_a_patch():
    edges = shuffled(grid(200, 200))
    new = build_search_graph(edges).relabelling.new_of_old
    partition = new >> partition_bits(8)
    # A partition is as good as a diamond: 2,048 vertices, 45 on a side, two edges out for each of
    # them.
    assert (partition[edges.src] != partition[edges.dst]).mean() < 0.15


def test_components_stay_together_in_partitions():
    """Large ones, small ones and a path, whose distances take more than one digit to sort by."""
    one, other, small, long = grid(70, 50), grid(90, 30), grid(20, 20), path(5000)
    parts, first = [], [0]
    for part in (one, other, small, long):
        parts.append((part.src + first[-1], part.dst + first[-1]))
        first.append(first[-1] + part.num_vertices)
    src, dst = (np.concatenate(ends) for ends in zip(*parts, strict=True))
    edges = EdgeList.from_arrays(src, dst, first[-1])
    relabelling = build_search_graph(edges, "locality").relabelling
    component = np.searchsorted(first, relabelling.old_of_new, "right")
    assert np.count_nonzero(np.diff(component)) == 3
    assert np.array_equal(np.sort(relabelling.old_of_new), np.arange(first[-1]))


@pytest.mark.parametrize("bits", [1, 11, 30, 64])
def test_sorting_by_key(bits):
    keys = np.random.default_rng(bits).integers(0, 1 << bits, 5000, np.uint64)
    items = np.arange(5000, dtype=np.uint32)
    expected = np.argsort(keys, kind="stable")
    sort_lists(np.array([0, 5000]), items, keys)
    assert np.array_equal(items, expected)


@pytest.mark.parametrize(("partitions", "more"), [(0, 1), (1, 0), (5, 77), (35, 0)])
@pytest.mark.parametrize("owners", [1, 2, 4, 16])
def test_owned_ranges_have_room_for_their_owners_edges(partitions, more, owners):
    size = 1 << min(partition_bits(owners), 13)  # of one owner's, which has all, a part
    num_vertices = partitions * size + more
    bits = partition_bits(owners)
    owner = [owner_of(np.uint32(v), owners, bits) for v in range(num_vertices)]
    assert owner == np.repeat(owner[::size], size)[:num_vertices].tolist()
    sizes = np.diff(split_among_owners(num_vertices, owners))
    assert sizes.tolist() == [owner.count(k) for k in range(owners)]


@pytest.mark.parametrize("owners", [2, 4, 8, 16])
def test_owners_share_what_a_frontier_crosses(owners):
    """Of the blocks along a diagonal, partitions of a grid numbered along Morton's curve."""
    side = 32
    place = np.arange(side * side)
    x = sum((place >> 2 * bit & 1) << bit for bit in range(5))
    y = sum((place >> 2 * bit + 1 & 1) << bit for bit in range(5))
    bits = partition_bits(owners)
    for diagonal in range(side // 2, side + side // 2):
        partitions = np.flatnonzero(x + y == diagonal)
        counts = np.bincount(
            [owner_of(np.uint32(p << bits), owners, bits) for p in partitions],
            minlength=owners,
        )
        assert counts.max() <= 3 * partitions.size / owners + 2
