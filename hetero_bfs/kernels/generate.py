"""Compiled loops of the graph generators (see kronecker.py for the mathematics).

All arithmetic is on uint64; a product of two residues is below 2**62, and reducing modulo
2**31 - 1 adds the bits above 31 to those below.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

_P = np.uint64(2**31 - 1)
_SHIFT = np.uint64(31)
_X = np.uint64(107374182)
_Y = np.uint64(104480)
_ONE = np.uint64(1)
# Initiator in units of 1/10000, and the values a draw is rejected below to avoid modulo bias.
_BC = np.uint64(1900)
_A = np.uint64(5700)
_DENOMINATOR = np.uint64(10000)
_REJECT_BELOW = np.uint64((2**31 - 1) % 10000)
_BLOCK = 256


@njit(inline="always")
def _reduce(value):
    value = (value & _P) + (value >> _SHIFT)
    value = (value & _P) + (value >> _SHIFT)
    if value >= _P:
        value -= _P
    return value


@njit(inline="always")
def _half_reduce(value):
    return (value & _P) + (value >> _SHIFT)


@njit(cache=True, nogil=True)
def _transform(matrix, state, result):
    for i in range(5):
        total = np.uint64(0)
        for j in range(5):
            total += _half_reduce(matrix[i, j] * state[j])
        result[i] = _reduce(total)


@njit(inline="always")
def _reverse_bits(x):
    x = ((x >> np.uint64(32)) & np.uint64(0x00000000FFFFFFFF)) | (x << np.uint64(32))
    x = ((x >> np.uint64(16)) & np.uint64(0x0000FFFF0000FFFF)) | (
        (x & np.uint64(0x0000FFFF0000FFFF)) << np.uint64(16)
    )
    x = ((x >> np.uint64(8)) & np.uint64(0x00FF00FF00FF00FF)) | (
        (x & np.uint64(0x00FF00FF00FF00FF)) << np.uint64(8)
    )
    x = ((x >> np.uint64(4)) & np.uint64(0x0F0F0F0F0F0F0F0F)) | (
        (x & np.uint64(0x0F0F0F0F0F0F0F0F)) << np.uint64(4)
    )
    x = ((x >> np.uint64(2)) & np.uint64(0x3333333333333333)) | (
        (x & np.uint64(0x3333333333333333)) << np.uint64(2)
    )
    return ((x >> _ONE) & np.uint64(0x5555555555555555)) | (
        (x & np.uint64(0x5555555555555555)) << _ONE
    )


@njit(inline="always")
def _scramble(vertex, scale, value0, value1):
    """Graph500's bijection on [0, 2**scale): multiply by an odd number, reverse, twice."""
    shift = np.uint64(64 - scale)
    vertex = vertex + value0 + value1
    vertex *= value0 | np.uint64(0x4519840211493211)
    vertex = _reverse_bits(vertex) >> shift
    vertex *= value1 | np.uint64(0x3050852102C843A5)
    return _reverse_bits(vertex) >> shift


@njit(inline="always")
def _draw(z1, z5):
    return _reduce(_X * z1 + _Y * z5)


@njit(cache=True, nogil=True, inline="always")
def _kronecker_edge(state, scale):
    z1, z2, z3, z4, z5 = state[0], state[1], state[2], state[3], state[4]
    src = np.uint64(0)
    dst = np.uint64(0)
    for _ in range(scale):
        drawn = _draw(z1, z5)
        z1, z2, z3, z4, z5 = drawn, z1, z2, z3, z4
        while drawn < _REJECT_BELOW:
            drawn = _draw(z1, z5)
            z1, z2, z3, z4, z5 = drawn, z1, z2, z3, z4
        value = drawn % _DENOMINATOR
        # Quadrants in the reference's order: 01, 10, 00, 11.
        quadrant_01 = value < _BC
        quadrant_10 = (value >= _BC) & (value < _BC + _BC)
        quadrant_11 = value >= _BC + _BC + _A
        # While both ids agree so far, 10 becomes 01 (the graph is undirected).
        flip = (src == dst) & quadrant_10
        src_bit = quadrant_11 | (quadrant_10 & (not flip))
        dst_bit = quadrant_11 | quadrant_01 | flip
        src = (src << _ONE) | np.uint64(src_bit)
        dst = (dst << _ONE) | np.uint64(dst_bit)
    return src, dst


@njit(cache=True, nogil=True, parallel=True)
def kronecker_range(start, scale, seed_state, scramble, tables, src, dst):
    """Fill src and dst (uint32) with edges start, start + 1, ... of the Graph500 graph."""
    stop = start + src.size
    first_block = start // _BLOCK
    blocks = (stop + _BLOCK - 1) // _BLOCK - first_block
    for b in prange(blocks):
        block = first_block + b
        base = seed_state.copy()
        state = np.empty(5, np.uint64)
        remaining = block
        byte = 1
        while remaining:
            _transform(tables[byte, remaining & 255], base, state)
            base[:] = state
            remaining >>= 8
            byte += 1
        low = max(start, block * _BLOCK)
        high = min(stop, (block + 1) * _BLOCK)
        for edge in range(low, high):
            _transform(tables[0, edge & 255], base, state)
            u, v = _kronecker_edge(state, scale)
            src[edge - start] = _scramble(u, scale, scramble[0], scramble[1])
            dst[edge - start] = _scramble(v, scale, scramble[0], scramble[1])


@njit(inline="always")
def _splitmix(z):
    """Finaliser of splitmix64 (Steele, Lea, Flood 2014)."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> _SHIFT)


@njit(cache=True, nogil=True, parallel=True)
def rmat_range(start, scale, seed, thresholds, src, dst):
    """Fill src and dst (uint32) with R-MAT edges start, start + 1, ...

    `thresholds` is float64 (3,): a, a + b, a + b + c.
    """
    golden = np.uint64(0x9E3779B97F4A7C15)
    value0 = _splitmix(seed + golden)
    value1 = _splitmix(value0 + golden)
    to_unit = 1.0 / 9007199254740992.0  # 2**-53
    for i in prange(src.size):
        state = _splitmix(_splitmix(seed) ^ (np.uint64(start + i) * golden))
        u = np.uint64(0)
        v = np.uint64(0)
        for _ in range(scale):
            state += golden
            draw = np.float64(_splitmix(state) >> np.uint64(11)) * to_unit
            src_bit = draw >= thresholds[1]
            dst_bit = ((draw >= thresholds[0]) & (draw < thresholds[1])) | (draw >= thresholds[2])
            u = (u << _ONE) | np.uint64(src_bit)
            v = (v << _ONE) | np.uint64(dst_bit)
        src[i] = _scramble(u, scale, value0, value1)
        dst[i] = _scramble(v, scale, value0, value1)
