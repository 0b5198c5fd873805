"""Graph generators: Graph500's Kronecker graph, bit for bit, and R-MAT with free parameters.

The Graph500 v3 generator draws from a multiple recursive generator (L'Ecuyer, Blouin, Couture
1993: order 5, modulus 2**31 - 1). The state for edge `i` is the seed's state skipped ahead by
i * 2**64 steps, so any range of edges can be made without the edges before it. A step is the linear
map z -> A z of the last five values, a skip of n steps is A**n. Every value depends on the five
values before it in the same way, so one row of A**n suffices: x_(i+n) = w_0 x_i + ... + w_4 x_(i+4)
for every i. Tables hold these weights for each byte of the edge index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.errors import GraphError
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.edge_source import CHUNK_EDGES, VertexArray
from hetero_bfs.graph.weights import WeightArray, needed_weights
from hetero_bfs.support import processes
from hetero_bfs.support.checks import check_flag, check_integer, check_real

MODULUS = 2**31 - 1
MAX_SCALE = 31
_MULTIPLIER_FIRST = 107374182
_MULTIPLIER_LAST = 104480
_SKIP_BYTES = 6  # edge indices below 2**48


class _Drawn:
    """An `EdgeSource` whose edges are drawn; a subclass has the parameters."""

    scale: int
    edgefactor: int
    directed: bool
    weighted: bool = False

    @property
    def num_vertices(self) -> int:
        """2**scale."""
        return 1 << self.scale

    @property
    def num_input_edges(self) -> int:
        """Edgefactor times the number of vertices."""
        begin, end = self._bounds
        return end - begin

    @property
    def _bounds(self) -> tuple[int, int]:
        """Where the edges begin and end among all that can be drawn."""
        return 0, self.edgefactor << self.scale

    @property
    def both_directions(self) -> bool:
        """False: every edge is drawn once."""
        return False

    @property
    def weight_dtype(self) -> np.dtype[Any] | None:
        """float32, None without weights."""
        return np.dtype(np.float32) if self.weighted else None

    def range(self, start: int, stop: int) -> tuple[VertexArray, VertexArray]:
        """Generate edges [start, stop) as two uint32 arrays of shape (stop - start,)."""
        start, stop = check_integer("start", start), check_integer("stop", stop)
        end = self.edgefactor << self.scale
        if not 0 <= start <= stop <= end:
            raise GraphError(f"edge range [{start}, {stop}) is not within [0, {end})")
        src, dst, _ = self._made(start, stop, False)
        return src, dst

    def weighted_range(self, start: int, stop: int) -> tuple[VertexArray, VertexArray, WeightArray]:
        """Generate edges [start, stop) of a weighted graph: the arrays of `range`, and weights."""
        return self._made(start, stop, True)

    def chunks(self, size: int = CHUNK_EDGES) -> Iterator[tuple[VertexArray, VertexArray]]:
        """Yield the edges in index order; see `EdgeSource.chunks`."""
        begin, end = self._bounds
        for start in range(begin, end, check_integer("size", size, 1)):
            yield self.range(start, min(start + size, end))

    def weighted_chunks(
        self, size: int = CHUNK_EDGES
    ) -> Iterator[tuple[VertexArray, VertexArray, WeightArray]]:
        """Yield the edges in index order as (src, dst, weights); see `chunks`."""
        if not self.weighted:
            needed_weights(self)
        begin, end = self._bounds
        for start in range(begin, end, check_integer("size", size, 1)):
            yield self.weighted_range(start, min(start + size, end))

    def materialise(self) -> EdgeList:
        """Generate all edges into memory: 8 bytes per edge, 12 with weights."""
        src, dst, weights = self._made(*self._bounds, self.weighted)
        held = weights if self.weighted else None
        return EdgeList.trusted(src, dst, self.num_vertices, self.directed, held)

    def _made(
        self, start: int, stop: int, weighted: bool
    ) -> tuple[VertexArray, VertexArray, WeightArray]:
        """Return src, dst and weights of edges [start, stop); without `weighted`, no weights."""
        src, dst = np.empty(stop - start, np.uint32), np.empty(stop - start, np.uint32)
        weights = np.empty(stop - start if weighted else 0, np.float32)
        for first in range(0, stop - start, CHUNK_EDGES):  # a compiled loop cannot be interrupted
            part = slice(first, first + CHUNK_EDGES)
            self._fill(start + first, src[part], dst[part], weights[part])
        return src, dst, weights

    def _fill(self, start: int, src: VertexArray, dst: VertexArray, weights: WeightArray) -> None:
        """Fill the arrays with the edges from `start` on; without weights theirs is empty."""
        raise NotImplementedError


@dataclass(frozen=True)
class KroneckerEdges(_Drawn):
    """The edges of a Graph500 graph, generated whenever they are read (an `EdgeSource`).

    Parameters
    ----------
    scale : int
        log2 of the number of vertices, 1 to 31.
    edgefactor : int
        Edges per vertex, 16 in Graph500.
    seed1, seed2 : int
        The reference's seeds, 2 and 3 by default.
    directed : bool
    weighted : bool
        Whether edges have the weights of Graph500's kernel 3: float32, uniform from 0 to 1. As in
        the reference, 63 of the 2**31 - 1 equally likely draws give exactly 1.
    """

    scale: int
    edgefactor: int = 16
    seed1: int = 2
    seed2: int = 3
    directed: bool = False
    weighted: bool = False

    def __post_init__(self) -> None:
        scale, edgefactor = check_scale(self.scale, self.edgefactor)
        check_flag("directed", self.directed)
        check_flag("weighted", self.weighted)
        seeds = {name: check_integer(name, getattr(self, name)) for name in ("seed1", "seed2")}
        self.__dict__.update(scale=scale, edgefactor=edgefactor, **seeds)

    def _fill(self, start: int, src: VertexArray, dst: VertexArray, weights: WeightArray) -> None:
        from hetero_bfs.graph.generators.kronecker_kernels import kronecker_range, runs

        processes.use_loops()
        values, scramble = _seed_values(self.seed1, self.seed2)
        kronecker_range(
            start, self.scale, values, scramble, _skip_tables(), src, dst, weights,
            parts=runs(start, src.size),
        )  # fmt: skip


@dataclass(frozen=True)
class RMATEdges(_Drawn):
    """R-MAT edges with free quadrant probabilities (Chakrabarti et al. 2004; an `EdgeSource`).

    Each of the `scale` bits of an edge falls into one quadrant with probability a, b, c or d,
    which must add up to 1. Vertex ids are scrambled. The same arguments give the same edges on
    every machine; the random numbers are our own (splitmix64 of seed and edge index).
    """

    scale: int
    a: float = 0.57
    b: float = 0.19
    c: float = 0.19
    d: float = 0.05
    edgefactor: int = 16
    seed: int = 1
    directed: bool = False

    def __post_init__(self) -> None:
        scale, edgefactor = check_scale(self.scale, self.edgefactor)
        check_flag("directed", self.directed)
        seed = check_integer("seed", self.seed)
        self.__dict__.update(scale=scale, edgefactor=edgefactor, seed=seed)
        quadrants = tuple(check_real(name, getattr(self, name)) for name in "abcd")
        self.__dict__.update(zip("abcd", quadrants, strict=True))
        if not (min(quadrants) >= 0 and abs(sum(quadrants) - 1) <= 1e-6):
            raise GraphError(f"a, b, c, d = {quadrants}; give four shares >= 0 that add up to 1")

    def _fill(self, start: int, src: VertexArray, dst: VertexArray, _: WeightArray) -> None:
        from hetero_bfs.graph.generators.kronecker_kernels import rmat_range, runs

        processes.use_loops()
        # Draws are multiples of 2**-53; as integers they compare the same, and faster.
        thresholds = np.ceil(np.cumsum([self.a, self.b, self.c]) * 2.0**53).astype(np.int64)
        seed, parts = np.uint64(self.seed % 2**64), runs(0, src.size)
        rmat_range(start, self.scale, seed, thresholds, src, dst, parts=parts)


def kronecker(
    scale: int, edgefactor: int = 16, seed1: int = 2, seed2: int = 3, weighted: bool = False
) -> CSRGraph:
    """Build the Graph500 graph of 2**scale vertices as a `CSRGraph` with the original ids.

    With `weighted` an edge that occurs several times has its smallest weight.
    """
    return CSRGraph.from_edge_source(
        KroneckerEdges(scale, edgefactor, seed1, seed2, weighted=weighted)
    )


def search_keys(
    num_vertices: int,
    is_isolated: Callable[[int], bool],
    count: int = 64,
    seed1: int = 2,
    seed2: int = 3,
) -> list[int]:
    """Draw unique search keys as the Graph500 reference does.

    Vertices for which `is_isolated` is true are skipped. As in the reference, at most
    2 * num_vertices keys are drawn, so fewer than `count` may be returned.
    """
    if num_vertices == 0:
        return []
    state = _skip(_mrg_seed(seed1, seed2), 2 << 128)
    keys: list[int] = []
    chosen: set[int] = set()
    counter = 0
    while len(keys) < count and counter <= 2 * num_vertices:
        first, state = _next_double(state)
        second, state = _next_double(state)
        counter += 2
        key = int((first + second) * num_vertices) % num_vertices
        if key not in chosen and not is_isolated(key):
            keys.append(key)
            chosen.add(key)
    return keys


def check_scale(scale: int, edgefactor: int) -> tuple[int, int]:
    """Return both as ints."""
    scale, edgefactor = check_integer("scale", scale), check_integer("edgefactor", edgefactor)
    if not 1 <= scale <= MAX_SCALE:
        raise GraphError(f"scale {scale} is not within 1 to {MAX_SCALE} (vertex ids are 32-bit)")
    if edgefactor < 1:
        raise GraphError(f"edgefactor {edgefactor} is below 1; Graph500 uses 16")
    return scale, edgefactor


# The generator's state, outside the compiled loop: exact Python integers.

_Exact = npt.NDArray[np.object_]
_TRANSITION: _Exact = np.eye(5, k=-1, dtype=np.uint8).astype(object)
_TRANSITION[0] = [_MULTIPLIER_FIRST, 0, 0, 0, _MULTIPLIER_LAST]


def _skip(state: _Exact, exponent: int) -> _Exact:
    power = _TRANSITION
    while exponent:
        if exponent & 1:
            state = power @ state % MODULUS
        power = power @ power % MODULUS
        exponent >>= 1
    return state


def _mrg_seed(seed1: int, seed2: int) -> _Exact:
    for seed in (seed1, seed2):
        if not 0 <= seed < 2**64:
            raise GraphError(f"seed {seed} is not within 0 to 2**64 - 1")
    low_30_bits = 0x3FFFFFFF
    parts = [
        seed1 & low_30_bits,
        seed1 >> 30 & low_30_bits,
        seed2 & low_30_bits,
        seed2 >> 30 & low_30_bits,
        (seed2 >> 60 << 4) + (seed1 >> 60),
    ]
    return np.array(parts, object) + 1


def _next_uint(state: _Exact) -> tuple[int, _Exact]:
    state = _TRANSITION @ state % MODULUS
    return state[0], state


def _next_double(state: _Exact) -> tuple[float, _Exact]:
    high, state = _next_uint(state)
    low, state = _next_uint(state)
    value = high * 0.000000000465661287524579692 + low * 0.0000000000000000002168404346990492787
    return value, state


@cache
def _seed_values(seed1: int, seed2: int) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint64]]:
    """Return the seed's values, shape (5,), oldest first, and the scrambling values, shape (2,)."""
    seed = _mrg_seed(seed1, seed2)
    state = _skip(seed, (50 << 128) + (7 << 64))
    drawn = []
    for _ in range(4):
        value, state = _next_uint(state)
        drawn.append(value)
    scramble = [(drawn[i] * 0xFFFFFFFF + drawn[i + 1]) % 2**64 for i in (0, 2)]
    return np.array(seed[::-1], np.uint32), np.array(scramble, np.uint64)


@cache
def _skip_tables() -> npt.NDArray[np.uint32]:
    """Return tables[k, :, value], the weights of a skip by value * 256**k * 2**64 steps."""
    power = _TRANSITION
    for _ in range(64):
        power = power @ power % MODULUS
    tables = np.empty((_SKIP_BYTES, 5, 256), np.uint32)
    modulus = np.uint64(MODULUS)
    for byte in range(_SKIP_BYTES):
        base = power.astype(np.uint64)
        current = np.eye(5, dtype=np.uint64)
        for value in range(256):
            tables[byte, :, value] = current[4, ::-1]
            products = current[:, :, None] * base[None, :, :] % modulus
            current = products.sum(axis=1) % modulus
        power = current.astype(object)
    return tables
