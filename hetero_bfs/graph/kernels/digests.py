"""Digests of arrays: whether memory changed between two calls, and the checksum of .hbg files."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

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
    if words.size < _PARTS_FROM:
        total = sum_of_words(words, 0)
    else:
        sums = np.empty(numba.get_num_threads(), np.uint64)
        in_parallel(_sum_up_part, words=words, sums=sums)
        total = sums.sum()
    return int(total).to_bytes(8) + held[words.size * 8 :].tobytes()


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


@kernel(counted=False, inner=True)
def _sum_up_part(given, part, parts):
    first, last = part_of(given.words.size, part, parts)
    given.sums[part] = sum_of_words(given.words[first:last], first)
