"""Sorts neighbour lists by weight: a search stops in a list at the first edge that is too heavy."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from numba import njit

from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.intrinsics import bits_of
from hetero_bfs.support.parallel import in_parallel

Array = npt.NDArray[Any]

_INSERTION = 48  # longest list sorted by insertion
_PARTS_PER_THREAD = 16
_DIGIT_BITS = 8
_WORD_BITS = 64


def sort_by_weight(indptr: Array, indices: Array, weights: Array) -> tuple[Array, Array]:
    """Return neighbours and weights, shape (indptr[-1],), each list sorted stably by rising weight.

    Weights must not be negative.
    """
    neighbours, sorted_weights = indices.copy(), weights.copy()
    parts = _PARTS_PER_THREAD * numba.get_num_threads()
    shares = np.linspace(0, indptr[-1], parts + 1)
    bounds = np.searchsorted(indptr, shares).astype(np.int64)
    bounds[0], bounds[-1] = 0, indptr.size - 1
    in_parallel(
        _sort_lists,
        parts,
        bounds=bounds,
        indptr=indptr,
        neighbours=neighbours,
        weights=sorted_weights,
        longest=int(np.diff(indptr).max(initial=0)),
    )
    return neighbours, sorted_weights


@kernel(inner=True)
def _sort_lists(given, part, parts):
    indptr, neighbours, weights = given.indptr, given.neighbours, given.weights
    first, last = given.bounds[part], given.bounds[part + 1]
    other_neighbours = np.empty(0, neighbours.dtype)
    other_weights = np.empty(0, weights.dtype)
    for v in range(first, last):
        begin, end = indptr[v], indptr[v + 1]
        if end - begin <= _INSERTION:
            _insert(neighbours, weights, begin, end)
            continue
        if other_weights.size < end - begin:
            other_neighbours = np.empty(given.longest, neighbours.dtype)
            other_weights = np.empty(given.longest, weights.dtype)
        size = end - begin
        _radix_sort(
            neighbours[begin:end], weights[begin:end], other_neighbours[:size], other_weights[:size]
        )


@njit(inline="always")
def _insert(neighbours, weights, begin, end):
    for i in range(begin + 1, end):
        v, w = neighbours[i], weights[i]
        k = i
        while k > begin and weights[k - 1] > w:
            neighbours[k], weights[k] = neighbours[k - 1], weights[k - 1]
            k -= 1
        neighbours[k], weights[k] = v, w


@kernel(inner=True)
def _radix_sort(neighbours, weights, other_neighbours, other_weights):
    """Sort by the bits of the weights, digit by digit from the lowest; weights are at least 0."""
    differing = bits_of(weights[0]) ^ bits_of(weights[0])
    for i in range(weights.size):
        differing |= bits_of(weights[i]) ^ bits_of(weights[0])
    slot = np.empty((1 << _DIGIT_BITS) + 1, np.int64)
    mask = (1 << _DIGIT_BITS) - 1
    shift = 0
    while shift < _WORD_BITS and differing >> shift:
        if (differing >> shift) & mask:
            slot[:] = 0
            for i in range(weights.size):
                slot[((bits_of(weights[i]) >> shift) & mask) + 1] += 1
            for digit in range(1, slot.size):
                slot[digit] += slot[digit - 1]
            for i in range(weights.size):
                digit = (bits_of(weights[i]) >> shift) & mask
                other_neighbours[slot[digit]] = neighbours[i]
                other_weights[slot[digit]] = weights[i]
                slot[digit] += 1
            neighbours[:] = other_neighbours
            weights[:] = other_weights
        shift += _DIGIT_BITS
