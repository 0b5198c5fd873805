"""Compiled loops of the graph generators (see kronecker.py for the mathematics).

Edges are made in blocks of 256, one edge per lane. Each step (a draw, a bit of both ids, the
scrambling) is a loop over all lanes without branches, which LLVM vectorises. `ends` is uint32
(2, 256), the ids of each lane so far.

Residues modulo P = 2**31 - 1 are uint32, their products uint64. Numba widens uint32 arithmetic to
64 bits; casting every result back keeps the loops at 32, with twice as many lanes per instruction.
For the same reason scrambling is modulo 2**32, not 2**64: only the low `scale` bits count.
Numba inlines the functions that these loops call. If LLVM 14 (Numba 0.60) inlined them, the loops
would not vectorise.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.parallel import parallel_kernel, part_of

_LANES = 256
_BLOCKS_PER_RUN = 16  # blocks that a thread makes with the same scratch arrays
_P = np.uint64(2**31 - 1)
_P_32 = np.uint32(2**31 - 1)
_X = np.uint64(107374182)
_Y = np.uint64(104480)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
# Initiator in units of 1/10000, and the values a draw is rejected below to avoid modulo bias.
_BELOW_01 = np.uint32(1900)
_BELOW_10 = np.uint32(3800)
_BELOW_00 = np.uint32(9500)
_DENOMINATOR = np.uint32(10000)
_REJECT_BELOW = np.uint32((2**31 - 1) % 10000)
_WEIGHT_UNIT = 0.000000000465661287524579692  # 1 / P, as the reference rounds it


@njit(inline="always")
def _fold(value):
    """Return a smaller value of the same residue modulo P: the low 31 bits plus the others."""
    return (value & _P) + (value >> np.uint64(31))


@njit(inline="always")
def _less_p(value):
    """Return value modulo P, for a uint32 below 2 P: a negative value - P wraps to more."""
    return min(value, np.uint32(value - _P_32))


@njit(inline="always")
def _draw(newest, oldest):
    # Below 2**59 before and below 2 P after folding.
    return _less_p(np.uint32(_fold(_X * np.uint64(newest) + _Y * np.uint64(oldest))))


@njit(inline="always")
def _extend(values):
    """Draw four more values, 5 to 8, after the first five."""
    for k in range(5, 9):
        values[k] = _draw(values[k - 1], values[k - 5])


@njit(inline="always")
def _five(values, k):
    return values[k], values[k + 1], values[k + 2], values[k + 3], values[k + 4]


@njit(inline="always")
def _weights(tables, byte, digit):
    return (
        tables[byte, 0, digit],
        tables[byte, 1, digit],
        tables[byte, 2, digit],
        tables[byte, 3, digit],
        tables[byte, 4, digit],
    )


@njit(inline="always")
def _combine(values, weights):
    """Return the sum of the five products modulo P; four fit into 64 bits, five do not."""
    total = np.uint64(values[0]) * np.uint64(weights[0])
    total += np.uint64(values[1]) * np.uint64(weights[1])
    total += np.uint64(values[2]) * np.uint64(weights[2])
    total += np.uint64(values[3]) * np.uint64(weights[3])
    # No factor exceeds P - 1, so this is at most 2**62 + 2**31 - 13, and the next fold < 2**32.
    total = _fold(total) + np.uint64(values[4]) * np.uint64(weights[4])
    return _less_p(_less_p(np.uint32(_fold(total))))


@kernel(counted=False, inner=True)
def _skip(values, tables, byte, digit):
    """Skip the first five values ahead by digit * 256**byte * 2**64 steps."""
    _extend(values)
    weights = _weights(tables, byte, digit)
    for k in range(5):
        values[k] = _combine(_five(values, k), weights)


@kernel(counted=False, inner=True)
def _start_lanes(values, tables, ring):
    """Set each lane's five values: `values` skipped ahead by lane * 2**64 steps."""
    _extend(values)
    for k in range(5):
        five = _five(values, k)
        for lane in range(_LANES):
            ring[k, lane] = _combine(five, _weights(tables, 0, lane))


@kernel(counted=False, inner=True)
def _draw_lanes(ring, newest, oldest):
    """Draw one value per lane into the oldest row; return whether some must be rejected."""
    least = _P_32
    for lane in range(_LANES):
        drawn = _draw(ring[newest, lane], ring[oldest, lane])
        ring[oldest, lane] = drawn
        least = min(least, drawn)
    return least < _REJECT_BELOW


@kernel(counted=False, inner=True)
def _redraw_rejected(ring, newest):
    """Draw again in lanes with a rejected value, about one draw in 600 000."""
    for lane in range(_LANES):
        while ring[newest, lane] < _REJECT_BELOW:
            drawn = _draw(ring[newest, lane], ring[(newest + 1) % 5, lane])
            for k in range(1, 5):
                ring[(newest + k) % 5, lane] = ring[(newest + k + 1) % 5, lane]
            ring[newest, lane] = drawn


@kernel(counted=False, inner=True)
def _append_bits(ring, row, ends):
    """Append the bits of each lane's draw to both of its ids."""
    for lane in range(_LANES):
        value = ring[row, lane] % _DENOMINATOR
        # Quadrants in the reference's order: 01, 10, 00, 11.
        differ = value < _BELOW_10
        both = value >= _BELOW_00
        # While both ids are equal, 10 becomes 01 (the graph is undirected).
        is_01 = (value < _BELOW_01) | (ends[0, lane] == ends[1, lane])
        ends[0, lane] = np.uint32(ends[0, lane] << 1) | np.uint32(both | (differ & ~is_01))
        ends[1, lane] = np.uint32(ends[1, lane] << 1) | np.uint32(both | (differ & is_01))


@kernel(counted=False, inner=True)
def _kronecker_block(block, scale, seed_values, tables, values, ring, ends):
    """Make the unscrambled ids of edges 256 * block, 256 * block + 1, ..."""
    for k in range(5):
        values[k] = seed_values[k]
    byte = 1
    while block:
        _skip(values, tables, byte, block & 255)
        block >>= 8
        byte += 1
    _start_lanes(values, tables, ring)
    ends[:] = 0
    for level in range(scale):
        row = level % 5
        if _draw_lanes(ring, (level + 4) % 5, row):
            _redraw_rejected(ring, row)
        _append_bits(ring, row, ends)


@kernel(counted=False, inner=True)
def _draw_weights(ring, scale, first_lane, weights):
    """Draw one more value in each lane after the draws of its edge, and store it as a weight.

    The reference converts it to float32 and multiplies it in float64, so the largest draws give 1.
    """
    row = scale % 5
    _draw_lanes(ring, (scale + 4) % 5, row)
    for i in range(weights.size):
        weights[i] = np.float64(np.float32(ring[row, first_lane + i])) * _WEIGHT_UNIT


@njit(inline="always")
def _reverse_bits(x):
    # LLVM knows these lines and has instructions for them.
    x = (x >> 16) | np.uint32(x << 16)
    x = ((x >> 8) & 0x00FF00FF) | ((x & 0x00FF00FF) << 8)
    x = ((x >> 4) & 0x0F0F0F0F) | ((x & 0x0F0F0F0F) << 4)
    x = ((x >> 2) & 0x33333333) | ((x & 0x33333333) << 2)
    return np.uint32(((x >> 1) & 0x55555555) | ((x & 0x55555555) << 1))


@kernel(counted=False, inner=True)
def _scramble(vertices, scale, value0, value1, result):
    """Graph500's bijection on [0, 2**scale): multiply by an odd number, reverse, twice."""
    shift = np.uint32((32 - scale) & 31)  # spares LLVM a check for shifts above 31
    summand = np.uint32(value0 + value1)
    factor0 = np.uint32(value0 | np.uint64(0x4519840211493211))
    factor1 = np.uint32(value1 | np.uint64(0x3050852102C843A5))
    for i in range(result.size):
        vertex = np.uint32(np.uint32(vertices[i] + summand) * factor0)
        vertex = np.uint32(_reverse_bits(vertex) >> shift)
        vertex = np.uint32(vertex * factor1)
        result[i] = np.uint32(_reverse_bits(vertex) >> shift)


def runs(start: int, size: int) -> int:
    """Return the parts in which edges start, ..., start + size - 1 are made."""
    return -(-(-(-(start + size) // _LANES) - start // _LANES) // _BLOCKS_PER_RUN)


@parallel_kernel("start scale seed_values scramble tables src dst weights")
def kronecker_range(given, run, runs):
    """Fill src and dst (uint32) with edges start, start + 1, ... of the Graph500 graph.

    `seed_values` is uint32 (5,), oldest first; `scramble` uint64 (2,); `tables` uint32
    (bytes, 5, 256), the weights of kronecker.py. `weights` (float32) gets the edges' weights, or is
    empty.
    """
    start, scale, scramble = given.start, given.scale, given.scramble
    stop = start + given.src.size
    values = np.empty(9, np.uint32)
    ring = np.empty((5, _LANES), np.uint32)
    ends = np.empty((2, _LANES), np.uint32)
    first = start // _LANES + run * _BLOCKS_PER_RUN
    for block in range(first, min(first + _BLOCKS_PER_RUN, -(-stop // _LANES))):
        _kronecker_block(block, scale, given.seed_values, given.tables, values, ring, ends)
        skipped = max(start - block * _LANES, 0)
        low, high = max(start, block * _LANES) - start, min(stop, (block + 1) * _LANES) - start
        _scramble(ends[0, skipped:], scale, scramble[0], scramble[1], given.src[low:high])
        _scramble(ends[1, skipped:], scale, scramble[0], scramble[1], given.dst[low:high])
        if given.weights.size:
            _draw_weights(ring, scale, skipped, given.weights[low:high])


@njit(inline="always")
def splitmix(z):
    """Finaliser of splitmix64 (Steele, Lea, Flood 2014)."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@kernel(counted=False, inner=True)
def _rmat_block(first, scale, seed, thresholds, states, ends):
    """Make the unscrambled ids of edges first, first + 1, ..., first + 255."""
    key = splitmix(seed)
    below_00, below_01, below_10 = thresholds[0], thresholds[1], thresholds[2]
    for lane in range(_LANES):
        states[lane] = splitmix(key ^ (np.uint64(first + lane) * _GOLDEN))
    ends[:] = 0
    for _ in range(scale):
        for lane in range(_LANES):
            states[lane] += _GOLDEN
            draw = np.int64(splitmix(states[lane]) >> np.uint64(11))
            src_bit = draw >= below_01
            dst_bit = ((draw >= below_00) & (draw < below_01)) | (draw >= below_10)
            ends[0, lane] = np.uint32(ends[0, lane] << 1) | np.uint32(src_bit)
            ends[1, lane] = np.uint32(ends[1, lane] << 1) | np.uint32(dst_bit)


@parallel_kernel("start scale seed thresholds src dst")
def rmat_range(given, run, runs):
    """Fill src and dst (uint32) with R-MAT edges start, start + 1, ...

    `thresholds` is int64 (3,): a, a + b, a + b + c in units of 2**-53, rounded up.
    """
    scale, src, dst = given.scale, given.src, given.dst
    value0 = splitmix(given.seed + _GOLDEN)
    value1 = splitmix(value0 + _GOLDEN)
    states = np.empty(_LANES, np.uint64)
    ends = np.empty((2, _LANES), np.uint32)
    begin = run * _BLOCKS_PER_RUN * _LANES
    for low in range(begin, min(begin + _BLOCKS_PER_RUN * _LANES, src.size), _LANES):
        high = min(low + _LANES, src.size)
        _rmat_block(given.start + low, scale, given.seed, given.thresholds, states, ends)
        _scramble(ends[0], scale, value0, value1, src[low:high])
        _scramble(ends[1], scale, value0, value1, dst[low:high])


@parallel_kernel("degree seed src dst", counted=False)
def preferential_edges(given, part, parts):
    """Fill src and dst (uint32) by preferential attachment, `degree` edges per vertex.

    All ends form one sequence: source and target of each edge in order. A target copies a random
    earlier end, so a vertex is chosen in proportion to its degree so far. That end may not be
    written yet, so its draw is repeated instead of reading it.
    """
    degree, src, dst = given.degree, given.src, given.dst
    key = splitmix(given.seed)
    begin, stop = part_of(src.size, part, parts)
    for edge in range(begin, stop):
        end = np.uint64(2 * edge + 1)
        while end & np.uint64(1):
            end = splitmix(key ^ (end * _GOLDEN)) % end
        src[edge] = edge // degree
        dst[edge] = end // np.uint64(2 * degree)
