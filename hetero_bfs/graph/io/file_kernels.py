"""Compiled loops over the bytes of files: parsers of lines with two vertex ids, and optionally a
weight, and the checksum of sections of .hbg files.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hetero_bfs.graph.generators.kronecker_kernels import splitmix
from hetero_bfs.support.checks import MOST_EXACT
from hetero_bfs.support.compiling import kernel

SHORTEST_LINE = 4
"""Bytes of the shortest line that holds a pair, line end included."""

SHORTEST_WEIGHTED_LINE = 6

LONGEST_ID = 99
"""Most digits of an id, leading zeros included."""

_NEWLINE, _RETURN, _SPACE, _TAB, _HASH, _PERCENT, _ZERO = (np.uint8(ord(c)) for c in "\n\r \t#%0")
_PLUS, _MINUS, _POINT, _SMALL_C, _SMALL_E, _BIG_E = (np.uint8(ord(c)) for c in "+-.ceE")
_TEN = np.uint8(10)

_MOST_DIGITS = 18  # without leading zeros: any such number fits int64
_POWERS = np.array([float(10**k) for k in range(23)])  # the powers that float64 holds exactly
_LARGEST_EXPONENT = 1 << 20  # far beyond float64's

_WHOLE, _FRACTION, _HARD, _NO_NUMBER = range(4)
_INT32_LIMIT = 2**31


@njit(inline="always")
def _skip_spaces(text, at):
    while text[at] == _SPACE or text[at] == _TAB:
        at += 1
    return at


@njit(inline="always")
def _read_id(text, at, highest):
    """Return the number at position `at`, or -1 if it is not an id, and the position after it."""
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
    """Return whether the line ends here or its rest is a comment."""
    byte = text[at]
    if byte == _RETURN:
        byte = text[at + 1]
    return byte == _NEWLINE or byte == _HASH or byte == _PERCENT


@njit(inline="always")
def _is_blank(text, at, mark):
    """Return whether the rest of a line is empty or a comment; with a mark, `c` begins one too."""
    return _ends_line(text, at) or (mark > 0 and text[at] == _SMALL_C)


@njit(inline="always")
def _skip_mark(text, at, mark):
    """Return the position of a line's first id; -1 if the line lacks its mark."""
    if mark == 0:
        return at
    if text[at] != mark or (text[at + 1] != _SPACE and text[at + 1] != _TAB):
        return -1
    return _skip_spaces(text, at + 1)


@njit(inline="always")
def _next_line(text, at):
    """Return the start of the next line; -1 if this line has a control character."""
    while text[at] != _NEWLINE:
        byte = text[at]
        if byte < _SPACE and byte != _TAB and not (byte == _RETURN and text[at + 1] == _NEWLINE):
            return -1
        at += 1
    return at + 1


@kernel
def parse_pairs(text, longest, mark, lowest, highest, src, dst):
    """Parse lines that begin with two ids, and store the ids less `lowest`.

    `text` is uint8 and ends with a newline, `src` and `dst` are uint32 with room for all pairs.
    `mark` is the letter in front of the ids, or 0. Returns the number of pairs, or -1 if a line is
    unusual or longer than `longest` bytes.
    """
    count, at = 0, 0
    while at < text.size:
        begin = at
        at = _skip_spaces(text, at)
        if not _is_blank(text, at, mark):
            at = _skip_mark(text, at, mark)
            if at < 0:
                return -1
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


@kernel
def parse_weighted(text, longest, mark, lowest, highest, src, dst, weights, hard):
    """Parse lines of two ids and a number, like `parse_pairs`, and store the numbers in `weights`.

    `weights` is float64. Numbers whose nearest float64 is not found here are left to the caller.
    Each has a row in `hard`, int64 of shape (lines, 3): the index of its weight, and where its text
    begins and ends. Returns the number of lines (-1 as in `parse_pairs`), the number of rows of
    `hard`, and whether all weights are written as integers within int32.
    """
    count, num_hard, whole, at = 0, 0, True, 0
    while at < text.size:
        begin = at
        at = _skip_spaces(text, at)
        if not _is_blank(text, at, mark):
            at = _skip_mark(text, at, mark)
            if at < 0:
                return -1, 0, False
            first, at = _read_id(text, at, highest)
            if first < lowest or (text[at] != _SPACE and text[at] != _TAB):
                return -1, 0, False
            at = _skip_spaces(text, at)
            second, at = _read_id(text, at, highest)
            if second < lowest or (text[at] != _SPACE and text[at] != _TAB):
                return -1, 0, False
            at = _skip_spaces(text, at)
            number_begins = at
            kind, weight, at = _read_number(text, at)
            if kind == _NO_NUMBER or not _ends_word(text[at]):
                return -1, 0, False
            if kind == _HARD:
                hard[num_hard, 0] = count
                hard[num_hard, 1] = number_begins
                hard[num_hard, 2] = at
                num_hard += 1
            whole = whole and kind == _WHOLE
            src[count] = first - lowest
            dst[count] = second - lowest
            weights[count] = weight
            count += 1
        at = _next_line(text, at)
        if at < 0 or at - begin - 1 > longest:
            return -1, 0, False
    return count, num_hard, whole


@njit(inline="always")
def _read_digits(text, at, mantissa, digits):
    """Append digits to `mantissa`; return it, the number of significant digits, and the end.

    Digits after the first `_MOST_DIGITS` are only counted.
    """
    while text[at] - _ZERO < _TEN:
        digit = np.int64(text[at] - _ZERO)
        digits += mantissa > 0 or digit > 0
        if digits <= _MOST_DIGITS:
            mantissa = mantissa * 10 + digit
        at += 1
    return mantissa, digits, at


@njit
def _read_number(text, at):
    """Return kind and value of the decimal number at position `at`, and the position after it.

    The value is the nearest float64, since it is rounded once: either it is an int64, or float64
    holds both its mantissa and its power of ten exactly. Other numbers are `_HARD`.
    """
    negative = text[at] == _MINUS
    if negative or text[at] == _PLUS:
        at += 1
    begin = at
    mantissa, digits, at = _read_digits(text, at, np.int64(0), 0)
    num_read, power, plain = at - begin, 0, True
    if text[at] == _POINT:
        begin = at + 1
        mantissa, digits, at = _read_digits(text, begin, mantissa, digits)
        num_read += at - begin
        power, plain = begin - at, False
    if num_read == 0:
        return _NO_NUMBER, 0.0, at
    if text[at] == _SMALL_E or text[at] == _BIG_E:
        at += 1
        falls = text[at] == _MINUS
        if falls or text[at] == _PLUS:
            at += 1
        begin, exponent = at, 0
        while text[at] - _ZERO < _TEN:
            exponent = min(exponent * 10 + np.int64(text[at] - _ZERO), _LARGEST_EXPONENT)
            at += 1
        if at == begin:
            return _NO_NUMBER, 0.0, at
        power += -exponent if falls else exponent
        plain = False
    if plain:
        signed = -mantissa if negative else mantissa
        if digits > _MOST_DIGITS:
            return _HARD, 0.0, at
        within = -_INT32_LIMIT <= signed < _INT32_LIMIT
        return _WHOLE if within else _FRACTION, np.float64(signed), at
    value = np.float64(mantissa)
    if mantissa > 0:
        if digits > _MOST_DIGITS or mantissa >= MOST_EXACT or abs(power) >= _POWERS.size:
            return _HARD, 0.0, at
        value = value / _POWERS[-power] if power < 0 else value * _POWERS[power]
    return _FRACTION, -value if negative else value, at


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
