"""The checksum of sections of .hbg files."""

from __future__ import annotations

import numpy as np

from hetero_bfs.graph.generators.kronecker_kernels import splitmix
from hetero_bfs.support.compiling import kernel

_STEP = np.uint64(0x9E3779B97F4A7C15)


@kernel
def sum_of_words(words, first):
    """Return the sum modulo 2**64 of splitmix(word + (position + 1) * step).

    `words` is uint64, and `first` is the position of its first word in the section. Splitmix is a
    bijection, so a change within one word always changes the sum. Any other change remains
    undetected with probability 2**-64. Sums of parts of a section can be added.
    """
    total = np.uint64(0)
    for i in range(words.size):
        total += splitmix(words[i] + np.uint64(first + i + 1) * _STEP)
    return total
