"""Digests of arrays: whether memory changed between two calls, and the checksum of .hbg files."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from numba import njit

from hetero_bfs.graph.generators.kronecker_kernels import splitmix
from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.parallel import in_parallel, part_of

_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # odd: a change of one word always changes its sum
_PARTS_FROM = 1 << 18  # words for which threads pay


def digest_of(array: npt.NDArray[Any]) -> bytes:
    """Return a digest of a contiguous array's bytes, at about the speed of reading memory.

    Arrays that differ in one word of 8 bytes have unlike digests, others almost surely. It is no
    protection against arrays made to be alike.
    """
    held = array.reshape(-1).view(np.uint8) if array.size else np.empty(0, np.uint8)
    words = held[: held.size // 8 * 8].view(np.uint64)
    parts = numba.get_num_threads() if words.size >= _PARTS_FROM else 1
    sums = np.empty((parts, 8), np.uint64)
    if parts == 1:
        _sum_up(words, sums)
    else:
        in_parallel(_sum_up_part, parts, words=words, sums=sums)
    return sums.tobytes() + held[words.size * 8 :].tobytes()


@njit(inline="always")
def _mixed(before, word):
    """Mix a word into a sum; high bits reach low ones, so that changes do not cancel."""
    mixed = (before ^ word) * _FACTOR
    return mixed ^ (mixed >> np.uint64(32))


@njit(inline="always")
def _fill_sums(words, first, last, sums):
    a = b = c = d = e = f = g = h = np.uint64(0)
    whole = first + (last - first) // 8 * 8
    for k in range(np.uint64(first), np.uint64(whole), np.uint64(8)):
        a = _mixed(a, words[k])
        b = _mixed(b, words[k + np.uint64(1)])
        c = _mixed(c, words[k + np.uint64(2)])
        d = _mixed(d, words[k + np.uint64(3)])
        e = _mixed(e, words[k + np.uint64(4)])
        f = _mixed(f, words[k + np.uint64(5)])
        g = _mixed(g, words[k + np.uint64(6)])
        h = _mixed(h, words[k + np.uint64(7)])
    for i, one in enumerate((a, b, c, d, e, f, g, h)):
        sums[i] = one
    for k in range(np.uint64(whole), np.uint64(last)):
        sums[0] = _mixed(sums[0], words[k])


@kernel(counted=False)
def _sum_up(words, sums):
    _fill_sums(words, 0, words.size, sums[0])


@kernel(counted=False, inner=True)
def _sum_up_part(given, part, parts):
    first, last = part_of(given.words.size, part, parts)
    _fill_sums(given.words, first, last, given.sums[part])


@kernel
def sum_of_words(words, first):
    """Return the sum modulo 2**64 of splitmix(word + (position + 1) * step).

    `words` is uint64, and `first` is the position of its first word in the section. Splitmix is a
    bijection, so a change within one word always changes the sum. Any other change remains
    undetected with probability 2**-64. Sums of parts of a section can be added.
    """
    total = np.uint64(0)
    for i in range(words.size):
        total += splitmix(words[i] + np.uint64(first + i + 1) * _FACTOR)
    return total
