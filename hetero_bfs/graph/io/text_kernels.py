"""Compiled parser of lines of two vertex ids."""

from __future__ import annotations

import numpy as np
from numba import njit

from hetero_bfs.support.compiling import kernel

SHORTEST_LINE = 4
"""Bytes of the shortest line that holds a pair, its end included."""

LONGEST_ID = 99
"""Most digits of an id, leading zeros included."""

_NEWLINE, _RETURN, _SPACE, _TAB, _HASH, _PERCENT, _ZERO = (np.uint8(ord(c)) for c in "\n\r \t#%0")
_TEN = np.uint8(10)


@njit(inline="always")
def _skip_spaces(text, at):
    while text[at] == _SPACE or text[at] == _TAB:
        at += 1
    return at


@njit(inline="always")
def _read_id(text, at, highest):
    """Return the number that starts at a position, and its end; -1 if it is no id."""
    value, begin = np.int64(0), at
    while text[at] - _ZERO < _TEN and value <= highest:
        value = value * 10 + np.int64(text[at] - _ZERO)
        at += 1
    ends = begin < at <= begin + LONGEST_ID and value <= highest
    return value if ends else np.int64(-1), at


@njit(inline="always")
def _ends_word(byte):
    return byte <= _SPACE or byte == _HASH or byte == _PERCENT


@njit(inline="always")
def _ends_line(text, at):
    """Tell whether the line ends here or its rest is a comment."""
    byte = text[at]
    if byte == _RETURN:
        byte = text[at + 1]
    return byte == _NEWLINE or byte == _HASH or byte == _PERCENT


@njit(inline="always")
def _next_line(text, at):
    """Return the start of the next line; -1 if this line has a byte that plain text lacks."""
    while text[at] != _NEWLINE:
        byte = text[at]
        if byte < _SPACE and byte != _TAB and not (byte == _RETURN and text[at + 1] == _NEWLINE):
            return -1
        at += 1
    return at + 1


@kernel
def parse_pairs(text, longest, lowest, highest, src, dst):
    """Parse lines that begin with two ids, and store the ids less `lowest`.

    `text` is uint8 and ends with a newline, `src` and `dst` are uint32 with room for all pairs.
    Return the number of pairs, -1 if any line is unusual or longer than `longest` bytes.
    """
    count, at = 0, 0
    while at < text.size:
        begin = at
        at = _skip_spaces(text, at)
        if not _ends_line(text, at):
            first, at = _read_id(text, at, highest)
            if first < lowest or (text[at] != _SPACE and text[at] != _TAB):
                return -1
            at = _skip_spaces(text, at)
            second, at = _read_id(text, at, highest)
            if second < lowest or not _ends_word(text[at]):
                return -1
            src[count] = first - lowest
            dst[count] = second - lowest
            count += 1
        at = _next_line(text, at)
        if at < 0 or at - begin - 1 > longest:
            return -1
    return count
