"""The Graph500 generator against its published facts and a slow, independent reading of it."""

from __future__ import annotations

import hashlib
from functools import cache

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from slow_kronecker import MASK, P, SlowGenerator, X, Y, scrambled

from hetero_bfs import kronecker, sssp
from hetero_bfs.errors import GraphError
from hetero_bfs.graph.generators.kronecker import KroneckerEdges, RMATEdges, search_keys
from hetero_bfs.graph.search_graph import build_search_graph

INITIATOR = 10000


# A slow and independent generator: skipping by x**n modulo the characteristic polynomial
# x**5 - X x**4 - Y, one edge after another, in exact integers.


def slow_edges(scale: int, indices, seed1: int, seed2: int) -> list[tuple[int, int]]:
    return [edge for edge, _ in slow_weighted_edges(scale, indices, seed1, seed2)]


def slow_weighted_edges(scale: int, indices, seed1: int, seed2: int) -> list:
    """The weight is one more draw, converted to float32, multiplied as a double, rounded again."""
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
        ends = scrambled(u, scale, value0, value1), scrambled(v, scale, value0, value1)
        weight = np.float32(float(np.float32(generator.draw())) * 0.000000000465661287524579692)
        edges.append((ends, float(weight)))
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


# The weights as float32, as the reference's generate_kronecker_range gives them (github.com/
# graph500/graph500, branch newreference, commit f89d643ce4aa, GCC 12 with -DSSSP).
@pytest.mark.parametrize(
    ("edges", "sha256"),
    [
        (
            KroneckerEdges(10, weighted=True),
            "199971e6332f459fe9980a9824b2961e9ec6c724118e24549a1c3880d28616b4",
        ),
        (
            KroneckerEdges(14, weighted=True),
            "24db2e4fe26628a36d18ad9998ad98c4cdc1193e7c797349196be32c52278f5f",
        ),
        (
            KroneckerEdges(12, 16, 5, 7, weighted=True),
            "98fa508a57cf1446968086b0487422053f12a60a54deb2d8680b858d23921244",
        ),
        (
            KroneckerEdges(18, weighted=True),
            "96b65ca3be3de8b6db301fd6d3960dbde32ca9c6c5387934873e2524dc504391",
        ),
    ],
)
def test_all_weights_are_the_references(edges, sha256):
    held = edges.materialise()
    assert held.weights.dtype == edges.weight_dtype == np.float32
    assert hashlib.sha256(held.weights.tobytes()).hexdigest() == sha256


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


@settings(max_examples=40)
@given(
    scale=st.integers(1, 31),
    seeds=st.tuples(st.integers(0, MASK), st.integers(0, MASK)),
    first=st.integers(0, 2**20),
    size=st.integers(1, 700),
)
def test_any_weights_of_any_seeds(scale, seeds, first, size):
    edges = KroneckerEdges(scale, 2**21, *seeds, weighted=True)
    chunk = edges._made(first, first + size, True)
    last = first + size - 1
    for index in {first, last, (first + last) // 2}:
        found = tuple(array[index - first] for array in chunk)
        assert [((found[0], found[1]), found[2])] == slow_weighted_edges(scale, [index], *seeds)


@pytest.mark.parametrize(
    ("drawn", "weight"), [(0, 0), (1, 2**-31), (P - 64, 1 - 2**-24), (P - 63, 1), (P - 1, 1)]
)
def test_the_least_and_greatest_weights(drawn, weight):
    """Seeds of which edge 0 of scale 1 draws its bits, and then this."""
    inverse_of_x, inverse_of_y = pow(X, -1, P), pow(Y, -1, P)
    for first in range(10_000, 20_000):
        z1, z4 = (first - Y) * inverse_of_x % P, (drawn - X * first) * inverse_of_y % P
        if 1 <= z1 <= 2**30 and 1 <= z4 <= 2**30:
            break
    edges = KroneckerEdges(1, 1, z1 - 1, (z4 - 1) << 30, weighted=True)
    assert slow_weighted_edges(1, [0], edges.seed1, edges.seed2)[0][1] == np.float32(weight)
    assert edges.materialise().weights[0] == np.float32(weight)


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


def test_weighted_chunks_are_the_whole_in_order():
    edges = KroneckerEdges(10, weighted=True)
    chunks = list(edges.weighted_chunks(1000))
    for number, name in enumerate(("src", "dst", "weights")):
        held = getattr(edges.materialise(), name)
        np.testing.assert_array_equal(np.concatenate([c[number] for c in chunks]), held)
    np.testing.assert_array_equal(edges.materialise().src, whole_graph().src)


def test_edges_without_weights():
    edges = KroneckerEdges(5)
    assert edges.weight_dtype is None
    assert edges.materialise().weights is None
    with pytest.raises(GraphError, match="has no weights; give some"):
        next(edges.weighted_chunks())
    with pytest.raises(GraphError, match="has no weights; give some"):
        sssp(edges, 0)


def test_kronecker_with_weights_keeps_the_least_of_duplicates():
    graph = kronecker(8, weighted=True)
    edges = KroneckerEdges(8, weighted=True).materialise()
    least = {}
    for u, v, weight in zip(edges.src, edges.dst, edges.weights, strict=True):
        if u != v:
            for pair in ((u, v), (v, u)):
                least[pair] = min(least.get(pair, 2), weight)
    found = dict(zip(zip(*next(graph.chunks()), strict=True), graph.weights, strict=True))
    assert found == least


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
