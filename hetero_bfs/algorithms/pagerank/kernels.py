"""PageRank on the host: sweeps over all vertices that replace scores in place.

A vertex of score x contributes the *portion* x / given along each edge, where `given` is its
degree. A sweep computes for each vertex, from the current portions,

    t = alpha * (sum of portions) + base,

and stores its new portion at once. Later vertices of the sweep read the new portion (Gauss-Seidel).
Threads run their chunks in any order, which makes it a chaotic relaxation (Chazan and Miranker,
1969). `base` holds the restarts and the mass of dangling vertices. Vertices outside the searched
range are isolated and always have the score `base`, so their mass is known in closed form.

Sweeps in place do not keep the sum of the scores. Most sweeps would then only correct the sum. To
avoid that, restarts are in proportion to the current sum, and the scores are divided by their sum
at the end. It is S = s + base * outside, with s the sum over the searched range. By its definition

    base = (1 - alpha) S + alpha (dangling + base * outside), base * within
         = (1 - alpha) s + alpha dangling.

Over-relaxation (Young, 1950) goes from x to x + r (t - x). An undirected graph has a real spectrum.
With r = 2 / (1 + sqrt(1 - alpha^2)), each sweep multiplies changes by r - 1. So the loop changes to
over-relaxation once they fall more slowly than that. If too many threads run in lockstep, changes
may fall even more slowly than in the power method. The loop then changes back for good.

The bound. A portion that a sweep read was the old or the new one of its vertex. So a step of the
power method from the end of the sweep would change the scores by at most

    alpha |change| + (r - 1) / r |change| + (1 - alpha) |change of the sum|

in L1. The loop's `change` is this bound divided by alpha. For float32 the rounding of portions is
added.

State (n searched vertices):

    single      float32 (n,)        portions of the first sweeps
    double      float64 (n,)        portions of the later ones, where float32 is too coarse
    given       uint32 or float64 (n,)  degree, or sum of weights; 0: the vertex is dangling, and
                                    its portion, which nobody reads, is its score
    restart     float64 (n,)        share of restarts that lead to a vertex
    numbers     float64 (8,)        ALPHA, BASE, RELAXATION, SCALE; RESTART_STEP 0: all vertices
                                    have the share restart[0], 1: each has its own
    bounds      int64 (chunks + 1,) first vertices of the chunks, which have about as many edges
    sums        float64 (chunks, 8) of each chunk's sweep: CHANGE, MASS, DANGLING
    place       int64 (1,)          address of the scores, float64 for each of the caller's vertices
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from hetero_bfs.devices.cpu.thread_pool import chunk_of, even_size, share
from hetero_bfs.graph.edge_source import NO_ID
from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.intrinsics import array_at, bits_of, clock_seconds

ALPHA, BASE, RELAXATION, SCALE, RESTART_STEP = range(5)
CHANGE, MASS, DANGLING = range(3)
STRATEGY, SECONDS = range(2)
"""Columns of a record."""

RECORD_WIDTH = 2

_START, _SWEEP, _SWEEP_DOUBLE, _WIDEN, _WRITE, _WRITE_DOUBLE = range(6)
NUM_TASKS = 6

_ROUNDING = 3 * 2.0**-24
"""Most rounding of float32, relative to the sum of scores: a portion's own, and two in sums of
eight portions."""

_FINE = 2.0**-19
"""Sweeps continue in float64 once a step of the power method changes the scores by less."""

_LEAST_VERTICES = 1 << 13  # vertices of a chunk, where none reads neighbours
_ZERO = np.int64(0)


@kernel(counted=False, inner=True)
def _start(control, arrays, chunk, me):
    begin, end = chunk_of(control, chunk)
    equal = 1.0 / arrays.new_of_old.size
    given, portions = arrays.given, arrays.single
    dangling = _ZERO
    for v in range(begin, end):
        dangling += np.int64(given[v] == 0)
        portions[v] = equal / given[v] if given[v] > 0 else equal
    return dangling, _ZERO, _ZERO


@njit(inline="always")
def _along(neighbours, weights, portions, k):
    """Return the portion that a vertex gets along an edge."""
    if weights is None:
        return portions[neighbours[k]]
    return portions[neighbours[k]] * np.float64(weights[k])


@njit(inline="always")
def _sum_of(neighbours, weights, portions, k, last):
    """Return the sum of portions along a vertex's edges `k` to `last`, without `last`.

    Both are unsigned, since Numba would check whether a signed index is negative. Eight portions at
    a time are added in their own type, with few roundings: conversions to float64 are slow.
    """
    one, two, eight = np.uint64(1), np.uint64(2), np.uint64(8)
    even, odd = 0.0, 0.0
    while k + eight <= last:
        a = _along(neighbours, weights, portions, k)
        b = _along(neighbours, weights, portions, k + one)
        c = _along(neighbours, weights, portions, k + two)
        d = _along(neighbours, weights, portions, k + np.uint64(3))
        a += _along(neighbours, weights, portions, k + np.uint64(4))
        b += _along(neighbours, weights, portions, k + np.uint64(5))
        c += _along(neighbours, weights, portions, k + np.uint64(6))
        d += _along(neighbours, weights, portions, k + np.uint64(7))
        even += np.float64(a + c)
        odd += np.float64(b + d)
        k += eight
    while k + two <= last:
        even += _along(neighbours, weights, portions, k)
        odd += _along(neighbours, weights, portions, k + one)
        k += two
    if k < last:
        even += _along(neighbours, weights, portions, k)
    return even + odd


@njit(inline="always")
def _sweep(arrays, portions, weights, chunk):
    """Replace the scores of a chunk; the module's docstring has the formulas."""
    indptr, neighbours, given = arrays.indptr, arrays.neighbours, arrays.given
    restart, step = arrays.restart, np.int64(arrays.numbers[RESTART_STEP])
    alpha, base = arrays.numbers[ALPHA], arrays.numbers[BASE]
    relaxation = arrays.numbers[RELAXATION]
    begin, end = arrays.bounds[chunk], arrays.bounds[chunk + 1]
    change, mass, dangling = 0.0, 0.0, 0.0
    first = np.uint64(indptr[begin])
    for v in range(begin, end):
        last = np.uint64(indptr[v + 1])
        parts = np.float64(given[v])
        if parts == 0.0:
            parts = 1.0
        # Few operations follow the sum, since the next vertex may wait for this one's portion.
        pull = relaxation / parts
        old = np.float64(portions[v])
        stay = (1.0 - relaxation) * old + pull * base * restart[v * step]
        new = stay + pull * alpha * _sum_of(neighbours, weights, portions, first, last)
        portions[v] = new
        new = np.float64(portions[v])  # the rounded value
        change += abs(new - old) * parts
        mass += new * parts
        if given[v] == 0:
            dangling += new
        first = last
    sums = arrays.sums[chunk]
    sums[CHANGE], sums[MASS], sums[DANGLING] = change, mass, dangling
    return _ZERO, _ZERO, _ZERO


@njit(inline="always")
def _write(control, arrays, portions, chunk):
    """Write the scores of the caller's vertices."""
    begin, end = chunk_of(control, chunk)
    given, new_of_old = arrays.given, arrays.new_of_old
    rank = array_at(arrays.place[0], new_of_old.size)  # typed as int64
    scale = arrays.numbers[SCALE]
    outside = bits_of(arrays.numbers[BASE] * arrays.restart[0] * scale)
    for v in range(begin, end):
        new = new_of_old[v]
        if new == NO_ID:
            rank[v] = outside
        else:
            parts = np.float64(given[new]) if given[new] > 0 else 1.0
            rank[v] = bits_of(portions[new] * parts * scale)
    return _ZERO, _ZERO, _ZERO


@kernel(counted=False, inner=True)
def _sweep_single(control, arrays, chunk, me):
    return _sweep(arrays, arrays.single, None, chunk)


@kernel(counted=False, inner=True)
def _sweep_double(control, arrays, chunk, me):
    return _sweep(arrays, arrays.double, None, chunk)


@kernel(counted=False, inner=True)
def _sweep_single_weighted(control, arrays, chunk, me):
    return _sweep(arrays, arrays.single, arrays.weights, chunk)


@kernel(counted=False, inner=True)
def _sweep_double_weighted(control, arrays, chunk, me):
    return _sweep(arrays, arrays.double, arrays.weights, chunk)


@kernel(counted=False, inner=True)
def _widen(control, arrays, chunk, me):
    begin, end = chunk_of(control, chunk)
    for v in range(begin, end):
        arrays.double[v] = arrays.single[v]
    return _ZERO, _ZERO, _ZERO


@kernel(counted=False, inner=True)
def _write_single(control, arrays, chunk, me):
    return _write(control, arrays, arrays.single, chunk)


@kernel(counted=False, inner=True)
def _write_double(control, arrays, chunk, me):
    return _write(control, arrays, arrays.double, chunk)


@njit(inline="always")
def _each(control, arrays, task, items):
    """Run a task over `items` vertices, in even chunks."""
    return share(control, arrays, task, items, even_size(arrays, items, _LEAST_VERTICES))


@njit(inline="always")
def _sum_chunks(arrays):
    """Return change, mass and dangling mass of a sweep, summed in the order of the chunks."""
    change, mass, dangling = 0.0, 0.0, 0.0
    for chunk in range(arrays.sums.shape[0]):
        change += arrays.sums[chunk, CHANGE]
        mass += arrays.sums[chunk, MASS]
        dangling += arrays.sums[chunk, DANGLING]
    return change, mass, dangling


@kernel(counted=False)
def iterate(control, arrays, goal, within, outside, is_symmetric, records):
    """Compute the scores; return the number of sweeps, and the last change.

    Sweeps end once the change is below `goal`. `within` and `outside` are the shares of the
    restarts that lead into the searched range, and out of it. Sweeps may over-relax if
    `is_symmetric`. `records`, float64 (max_iter, RECORD_WIDTH), gets a row for each sweep.
    """
    numbers, n, all_vertices = arrays.numbers, arrays.single.size, arrays.new_of_old.size
    alpha = numbers[ALPHA]
    best = 2.0 / (1.0 + math.sqrt(1.0 - alpha * alpha))
    dangling_vertices, _, _ = _each(control, arrays, _START, n)
    mass, dangling = n / all_vertices, dangling_vertices / all_vertices
    relaxation, may_relax, before = 1.0, is_symmetric, np.inf
    patience = np.int64(4.0 / (2.0 - best))  # over-relaxation is slow at first
    left, mark = patience, np.inf
    is_double, sweeps, change, whole = False, 0, np.inf, 1.0
    while sweeps < records.shape[0]:
        began = clock_seconds()
        base = ((1.0 - alpha) * mass + alpha * dangling) / within
        numbers[BASE], numbers[RELAXATION] = base, relaxation
        share(control, arrays, _SWEEP_DOUBLE if is_double else _SWEEP, arrays.sums.shape[0], 1)
        moved, total, dangling = _sum_chunks(arrays)
        step = (alpha + (relaxation - 1.0) / relaxation) * moved + (1.0 - alpha) * abs(total - mass)
        mass, whole = total, total + base * outside
        change = (step / whole + (0.0 if is_double else _ROUNDING)) / alpha
        records[sweeps, STRATEGY] = 2 * np.int64(is_double) + np.int64(relaxation > 1.0)
        records[sweeps, SECONDS] = clock_seconds() - began
        sweeps += 1
        if change < goal:
            break
        if relaxation > 1.0:
            left -= 1
            if left == 0:
                if moved > mark * alpha**patience:
                    relaxation, may_relax = 1.0, False
                left, mark = patience, moved
        elif may_relax and moved > (best - 1.0) * before and change * moved >= goal * before:
            relaxation, left, mark = best, patience, moved
        before = moved
        if not is_double and step < _FINE * whole:
            is_double = True
            _each(control, arrays, _WIDEN, n)
    numbers[SCALE] = 1.0 / whole
    _each(control, arrays, _WRITE_DOUBLE if is_double else _WRITE, all_vertices)
    return sweeps, change


_LAST = _widen, _write_single, _write_double
PHASES = dict(enumerate((_start, _sweep_single, _sweep_double, *_LAST)))
WEIGHTED_PHASES = dict(enumerate((_start, _sweep_single_weighted, _sweep_double_weighted, *_LAST)))
