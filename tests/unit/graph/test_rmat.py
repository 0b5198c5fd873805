"""R-MAT graphs, edge by edge as a slow generator draws them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from slow_kronecker import MASK, scrambled

from hetero_bfs.errors import GraphError
from hetero_bfs.graph.generators.kronecker import KroneckerEdges, RMATEdges

QUADRANTS = [(0.57, 0.19, 0.19, 0.05), (0.4, 0.3, 0.1, 0.2), (0.25,) * 4, (0.1, 0.05, 0.7, 0.15)]


def splitmix(z: int) -> int:
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


def slow_rmat(edges: RMATEdges) -> list[tuple[int, int]]:
    """One edge after another, in Python's integers and fractions."""
    golden, seed, scale = 0x9E3779B97F4A7C15, edges.seed % 2**64, edges.scale
    value0 = splitmix((seed + golden) & MASK)
    value1 = splitmix((value0 + golden) & MASK)
    bounds = [Fraction(float(x)) for x in np.cumsum([edges.a, edges.b, edges.c])]
    made = []
    for index in range(edges.num_input_edges):
        state = splitmix(splitmix(seed) ^ (index * golden & MASK))
        u = v = 0
        for _ in range(scale):
            state = (state + golden) & MASK
            draw = Fraction(splitmix(state) >> 11, 2**53)
            quadrant = sum(draw >= bound for bound in bounds)
            u, v = 2 * u + quadrant // 2, 2 * v + quadrant % 2
        made.append((scrambled(u, scale, value0, value1), scrambled(v, scale, value0, value1)))
    return made


@pytest.mark.parametrize("quadrants", QUADRANTS)
@pytest.mark.parametrize(
    ("scale", "edgefactor", "seed", "size"),
    [(1, 5, 0, 10), (4, 33, -1, 100), (9, 3, 7, 257), (11, 3, 2**63, 5000)],
)
def test_rmat_edges_are_those_of_the_definition(quadrants, scale, edgefactor, seed, size):
    edges = RMATEdges(scale, *quadrants, edgefactor=edgefactor, seed=seed)
    chunks = list(edges.chunks(size))
    src = np.concatenate([src for src, _ in chunks])
    dst = np.concatenate([dst for _, dst in chunks])
    assert list(zip(src.tolist(), dst.tolist(), strict=True)) == slow_rmat(edges)


@pytest.mark.parametrize("kind", [KroneckerEdges, RMATEdges])
def test_materialised_edges_keep_their_direction(kind):
    for directed in (False, True):
        edges = kind(4, directed=directed).materialise()
        assert edges.directed is directed
        assert (edges.num_vertices, edges.num_input_edges) == (16, 256)


@pytest.mark.parametrize("quadrants", QUADRANTS)
def test_quadrant_shares(quadrants):
    """At scale 1 an edge is one quadrant; scrambling may swap the two vertices."""
    edges = RMATEdges(1, *quadrants, edgefactor=100_000, seed=3).materialise()
    counts = np.bincount(2 * edges.src + edges.dst, minlength=4) / edges.src.size
    apart = [np.abs(counts - np.array(q)).max() for q in (quadrants, quadrants[::-1])]
    assert min(apart) < 0.005  # 4.5 standard deviations


@pytest.mark.parametrize("quadrants", QUADRANTS)
def test_bits_are_independent(quadrants):
    """Degrees, sorted, are those of independent bits: (a + b)**zeros * (c + d)**ones."""
    a, b, c, d = quadrants
    edges = RMATEdges(7, *quadrants, edgefactor=4000, seed=5).materialise()
    for ends, zero, one in ((edges.src, a + b, c + d), (edges.dst, a + c, b + d)):
        share = np.sort(np.bincount(ends, minlength=128)) / ends.size
        ones = np.array([v.bit_count() for v in range(128)])
        expected = np.sort(zero ** (7 - ones) * one**ones)
        assert np.abs(share - expected).max() < 4e-3
    loops = np.count_nonzero(edges.src == edges.dst) / edges.src.size
    assert loops == pytest.approx((a + d) ** 7, abs=2e-3)


def test_rmat_repeats_and_seeds_matter():
    one = RMATEdges(9, seed=1).materialise()
    again = RMATEdges(9, seed=1).materialise()
    other = RMATEdges(9, seed=2).materialise()
    np.testing.assert_array_equal(one.src, again.src)
    np.testing.assert_array_equal(one.dst, again.dst)
    assert (one.src != other.src).any()
    assert (one.num_vertices, one.num_input_edges) == (512, 8192)
    parts = list(RMATEdges(9, seed=1).chunks(1000))
    np.testing.assert_array_equal(np.concatenate([dst for _, dst in parts]), one.dst)


@pytest.mark.parametrize(
    "quadrants", [(0.5, 0.5, 0.5, 0.5), (1.2, -0.2, 0, 0), (0, 0, 0, 0), (0.57, 0.19, 0.19, 0.06)]
)
def test_shares_that_are_none(quadrants):
    with pytest.raises(GraphError, match="four shares >= 0 that add up to 1"):
        RMATEdges(5, *quadrants)


def test_shares_that_are_not_numbers():
    nan = float("nan")
    with pytest.raises(GraphError):
        RMATEdges(5, nan, nan, nan, nan)


def test_extreme_shares():
    all_loops = RMATEdges(6, 1.0, 0.0, 0.0, 0.0).materialise()
    assert np.unique(all_loops.src).size == np.unique(all_loops.dst).size == 1
    np.testing.assert_array_equal(all_loops.src, all_loops.dst)
    no_loops = RMATEdges(6, 0.0, 0.5, 0.5, 0.0).materialise()
    assert (no_loops.src != no_loops.dst).all()
