"""The Graph500 generator against its published facts and a slow, independent reading of it."""

from __future__ import annotations

import hashlib
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from hetero_bfs import kronecker
from hetero_bfs.errors import GraphError
from hetero_bfs.graph.generators.kronecker import KroneckerEdges, RMATEdges, search_keys
from hetero_bfs.graph.search_graph import build_search_graph

P = 2**31 - 1
X, Y = 107374182, 104480
MASK = 2**64 - 1
INITIATOR = 10000


# A slow and independent generator: skipping by x**n modulo the characteristic polynomial
# x**5 - X x**4 - Y, one edge after another, in exact integers.


def times(a: list[int], b: list[int]) -> list[int]:
    """Multiply two polynomials (lowest first), modulo x**5 = X x**4 + Y."""
    product = [0] * 9
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            product[i + j] = (product[i + j] + x * y) % P
    for power in range(8, 4, -1):
        top = product[power]
        product[power] = 0
        product[power - 1] = (product[power - 1] + X * top) % P
        product[power - 5] = (product[power - 5] + Y * top) % P
    return product[:5]


@cache
def power_of_x(exponent: int) -> tuple[int, ...]:
    result, base = [1, 0, 0, 0, 0], [0, 1, 0, 0, 0]
    while exponent:
        if exponent & 1:
            result = times(result, base)
        base = times(base, base)
        exponent >>= 1
    return tuple(result)


class SlowGenerator:
    """The last five values, oldest first."""

    def __init__(self, values: list[int]) -> None:
        self.values = values

    @classmethod
    def of_seeds(cls, seed1: int, seed2: int) -> SlowGenerator:
        z1, z2 = seed1 % 2**30 + 1, (seed1 // 2**30) % 2**30 + 1
        z3, z4 = seed2 % 2**30 + 1, (seed2 // 2**30) % 2**30 + 1
        z5 = seed2 // 2**60 * 16 + seed1 // 2**60 + 1
        return cls([z5, z4, z3, z2, z1])

    def draw(self) -> int:
        value = (X * self.values[4] + Y * self.values[0]) % P
        self.values = [*self.values[1:], value]
        return value

    def skipped(self, steps: int) -> SlowGenerator:
        later = SlowGenerator(self.values)
        sequence = self.values + [later.draw() for _ in range(4)]
        weights = power_of_x(steps)
        return SlowGenerator(
            [sum(w * z for w, z in zip(weights, sequence[k:], strict=False)) % P for k in range(5)]
        )


def reversed_bits(x: int) -> int:
    return int(f"{x:064b}"[::-1], 2)


def scrambled(vertex: int, scale: int, value0: int, value1: int) -> int:
    vertex = (vertex + value0 + value1) * (value0 | 0x4519840211493211) & MASK
    vertex = reversed_bits(vertex) >> (64 - scale)
    vertex = vertex * (value1 | 0x3050852102C843A5) & MASK
    return reversed_bits(vertex) >> (64 - scale)


def slow_edges(scale: int, indices, seed1: int, seed2: int) -> list[tuple[int, int]]:
    seed = SlowGenerator.of_seeds(seed1, seed2)
    away = seed.skipped(50 * 2**128 + 7 * 2**64)
    value0 = (away.draw() * 0xFFFFFFFF + away.draw()) & MASK
    value1 = (away.draw() * 0xFFFFFFFF + away.draw()) & MASK
    edges = []
    for index in indices:
        generator = seed.skipped(index * 2**64)
        u = v = 0
        for _ in range(scale):
            while (value := generator.draw()) < P % INITIATOR:
                pass
            value %= INITIATOR
            quadrant = 1 if value < 1900 else 2 if value < 3800 else 0 if value < 9500 else 3
            if u == v and quadrant == 2:
                quadrant = 1
            u, v = 2 * u + quadrant // 2, 2 * v + quadrant % 2
        edges.append((scrambled(u, scale, value0, value1), scrambled(v, scale, value0, value1)))
    return edges


def pairs(edges: KroneckerEdges, start: int = 0, stop: int | None = None) -> list:
    src, dst = edges.range(start, edges.num_input_edges if stop is None else stop)
    assert src.dtype == dst.dtype == np.uint32
    return list(zip(src.tolist(), dst.tolist(), strict=True))


def digest(edges: KroneckerEdges) -> str:
    ends = edges.materialise()
    return hashlib.sha256(np.column_stack([ends.src, ends.dst]).astype("<i8").tobytes()).hexdigest()


# Facts.


def test_scale_10_begins_as_the_reference_does():
    assert pairs(KroneckerEdges(10), 0, 4) == [(299, 797), (684, 861), (185, 385), (428, 328)]


@pytest.mark.parametrize(
    ("scale", "sha256"),
    [
        (10, "959f7be6382c69afe8fbc4f78b0d1d86569a38ab429e02d9c26b968ede6255ec"),
        (14, "3625670bedd5a56dce03247f8198dbf33105e186ae0c0f605d4353f55eacfa3c"),
    ],
)
def test_all_edges_are_the_references(scale, sha256):
    assert digest(KroneckerEdges(scale)) == sha256


@pytest.mark.parametrize(
    ("scale", "keys"), [(10, [458, 214, 220, 966, 395, 9]), (14, [7337, 3434, 3526, 2016])]
)
def test_search_keys_are_the_references(scale, keys):
    graph = build_search_graph(KroneckerEdges(scale))
    drawn = search_keys(graph.num_vertices, graph.is_isolated)
    assert drawn[: len(keys)] == keys
    assert len(drawn) == len(set(drawn)) == 64
    assert not any(graph.is_isolated(key) for key in drawn)


# The slow generator.


def test_the_slow_generator_knows_the_facts():
    assert slow_edges(10, range(4), 2, 3) == [(299, 797), (684, 861), (185, 385), (428, 328)]


@settings(max_examples=40)
@given(
    scale=st.integers(1, 31),
    seeds=st.tuples(st.integers(0, MASK), st.integers(0, MASK)),
    edgefactor=st.integers(1, 40),
    data=st.data(),
)
def test_any_edges_of_any_seeds(scale, seeds, edgefactor, data):
    edges = KroneckerEdges(scale, edgefactor, *seeds)
    start = data.draw(st.integers(0, edges.num_input_edges - 1))
    stop = min(start + data.draw(st.integers(0, 12)), edges.num_input_edges)
    assert pairs(edges, start, stop) == slow_edges(scale, range(start, stop), *seeds)


@pytest.mark.parametrize("start", [255, 256, 2**16 - 2, 2**24 - 2, 2**32 - 2, 2**34 + 12345])
def test_edges_around_every_table(start):
    """Skip tables hold one byte of the edge's index each."""
    edges = KroneckerEdges(31)
    assert pairs(edges, start, start + 5) == slow_edges(31, range(start, start + 5), 2, 3)


@pytest.mark.parametrize("scale", [5, 6, 9, 20, 31])
@pytest.mark.parametrize(
    ("start", "count"), [(0, 1), (1, 255), (255, 2), (77, 179), (130, 517), (4095, 258), (8190, 3)]
)
def test_odd_ranges_around_blocks(scale, start, count):
    """Edges are made in blocks of 256, and blocks in runs of 16."""
    edges = KroneckerEdges(scale, 300, 2**61 + 5, 2**35 + 1)
    slow = slow_edges(scale, range(start, start + count), edges.seed1, edges.seed2)
    assert pairs(edges, start, start + count) == slow


# Each further rejected draw fits a seed with probability one half.
@settings(max_examples=30, suppress_health_check=[HealthCheck.filter_too_much])
@given(
    scale=st.integers(1, 31),
    rejected=st.lists(st.integers(0, P % INITIATOR - 1), min_size=1, max_size=4),
    data=st.data(),
)
def test_rejected_draws(scale, rejected, data):
    """Seeds of which the first draws of edge 0 are to be rejected, up to four back to back."""
    free = st.integers(1, 2**30)
    values = data.draw(st.lists(free, min_size=4, max_size=4))  # newest first, without the oldest
    oldest = data.draw(st.integers(1, 256))
    values[0] = (rejected[0] - Y * oldest) * pow(X, -1, P) % P
    for k in range(1, len(rejected)):
        values[4 - k] = (rejected[k] - X * rejected[k - 1]) * pow(Y, -1, P) % P
    assume(all(1 <= value <= 2**30 for value in values))
    seed1 = (values[0] - 1) + (values[1] - 1 << 30) + ((oldest - 1) % 16 << 60)
    seed2 = (values[2] - 1) + (values[3] - 1 << 30) + ((oldest - 1) // 16 << 60)
    generator = SlowGenerator.of_seeds(seed1, seed2)
    assert [generator.draw() for _ in rejected] == rejected
    assert pairs(KroneckerEdges(scale, 4, seed1, seed2), 0, 2) == slow_edges(
        scale, range(2), seed1, seed2
    )


def test_whole_graphs_of_other_seeds():
    for scale, edgefactor, seed1, seed2 in ((3, 16, 5, 7), (6, 5, 2**63, 11), (5, 33, 0, 0)):
        edges = KroneckerEdges(scale, edgefactor, seed1, seed2)
        slow = slow_edges(scale, range(edges.num_input_edges), seed1, seed2)
        assert pairs(edges) == slow


# Ranges, chunks, arguments.


@settings(max_examples=60)
@given(ends=st.tuples(st.integers(0, 16384), st.integers(0, 16384)).map(sorted))
def test_any_range_is_the_slice_of_the_whole(ends):
    edges = KroneckerEdges(10)
    src, dst = edges.range(*ends)
    whole = whole_graph()
    np.testing.assert_array_equal(src, whole.src[slice(*ends)])
    np.testing.assert_array_equal(dst, whole.dst[slice(*ends)])


@cache
def whole_graph():
    return KroneckerEdges(10).materialise()


@pytest.mark.parametrize("size", [1000, 16384, 10**9])
def test_chunks_are_the_whole_in_order(size):
    chunks = list(KroneckerEdges(10).chunks(size))
    assert all(src.size == dst.size <= size for src, dst in chunks)
    np.testing.assert_array_equal(np.concatenate([src for src, _ in chunks]), whole_graph().src)
    np.testing.assert_array_equal(np.concatenate([dst for _, dst in chunks]), whole_graph().dst)


def test_seeds_and_edgefactor_matter_and_repeat():
    default = KroneckerEdges(8)
    others = [KroneckerEdges(8, 16, 3, 2), KroneckerEdges(8, 16, 2, 4), KroneckerEdges(8, 16, 1, 3)]
    digests = [digest(edges) for edges in (default, *others)]
    assert len(set(digests)) == 4
    assert digests == [digest(edges) for edges in (default, *others)]
    assert pairs(KroneckerEdges(8, 3)) == pairs(default)[: 3 * 256]
    assert KroneckerEdges(8, 3).num_input_edges == 768
    assert search_keys(256, lambda v: False, 9) != search_keys(256, lambda v: False, 9, 4, 5)


def test_vertices_are_within_the_scale():
    for scale in (1, 2, 31):
        edges = KroneckerEdges(scale, 2)
        assert edges.num_vertices == 2**scale
        src, dst = edges.range(0, min(edges.num_input_edges, 5000))
        assert max(src.max(), dst.max()) < 2**scale


def test_kronecker_is_the_graph_of_these_edges():
    graph = kronecker(9, 4, 5, 6)
    edges = KroneckerEdges(9, 4, 5, 6).materialise()
    expected = {(u, v) for u, v in zip(edges.src.tolist(), edges.dst.tolist(), strict=True)}
    expected = {(u, v) for u, v in expected | {(v, u) for u, v in expected} if u != v}
    lists = graph.indptr.tolist()
    found = [(u, int(v)) for u in range(512) for v in graph.indices[lists[u] : lists[u + 1]]]
    assert found == sorted(expected)
    assert graph.num_input_edges == 2048


@pytest.mark.parametrize("scale", [0, -1, 32])
@pytest.mark.parametrize("kind", [KroneckerEdges, RMATEdges])
def test_scale_out_of_range(kind, scale):
    with pytest.raises(GraphError, match=f"scale {scale} is not within 1 to 31"):
        kind(scale)


@pytest.mark.parametrize("kind", [KroneckerEdges, RMATEdges])
def test_edgefactor_out_of_range(kind):
    with pytest.raises(GraphError, match="edgefactor 0 is below 1"):
        kind(5, edgefactor=0)


@pytest.mark.parametrize("seeds", [(-1, 3), (2, 2**64)])
def test_seeds_out_of_range(seeds):
    with pytest.raises(GraphError, match=r"seed (-1|18446744073709551616) is not within"):
        KroneckerEdges(5, 16, *seeds).materialise()
    with pytest.raises(GraphError, match="is not within"):
        search_keys(32, lambda v: False, 4, *seeds)


@pytest.mark.parametrize(("start", "stop"), [(-1, 5), (5, 4), (0, 513), (513, 513)])
def test_range_out_of_range(start, stop):
    with pytest.raises(GraphError, match=r"is not within \[0, 512\)"):
        KroneckerEdges(5).range(start, stop)


# Search keys.


def slow_keys(num_vertices: int, isolated: set[int], count: int, seeds: tuple[int, int]) -> list:
    """Draw as the reference's main.c does."""
    generator = SlowGenerator.of_seeds(*seeds).skipped(2 * 2**128)

    def draw() -> float:
        high, low = generator.draw(), generator.draw()
        return high * 0.000000000465661287524579692 + low * 0.0000000000000000002168404346990492787

    keys: list[int] = []
    counter = 0
    while len(keys) < count:
        key = int((draw() + draw()) * num_vertices) % num_vertices
        counter += 2
        if counter > 2 * num_vertices:
            break
        if key not in keys and key not in isolated:
            keys.append(key)
    return keys


@settings(max_examples=60)
@given(
    num_vertices=st.integers(1, 300),
    isolated=st.sets(st.integers(0, 300)),
    count=st.integers(1, 64),
    seeds=st.tuples(st.integers(0, MASK), st.integers(0, MASK)),
)
def test_search_keys_by_the_slow_generator(num_vertices, isolated, count, seeds):
    keys = search_keys(num_vertices, isolated.__contains__, count, *seeds)
    assert len(keys) == len(set(keys)) <= count
    assert not isolated & set(keys)
    slow = slow_keys(num_vertices, isolated, count, seeds)
    assert keys[: len(slow)] == slow
    assert len(keys) - len(slow) in (0, 1)  # one draw may come after the reference gave up


def test_no_keys():
    assert search_keys(0, lambda v: False) == []
    assert search_keys(64, lambda v: True) == []
    assert search_keys(1, lambda v: False) == [0]


# R-MAT.


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
