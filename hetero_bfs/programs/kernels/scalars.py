"""Operations that Python, Numba and C define differently; scalars.cl does the same.

Division by zero gives infinity or NaN for floats, as in NumPy, and 0 for integers.
"""

from __future__ import annotations

import numpy as np

from hetero_bfs.support.compiling import inlined

_LEAST, _GREATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
_GREATEST_UNSIGNED = np.uint64(2**64 - 1)


@inlined(error_model="numpy")
def divide(left, right):
    return left / right


@inlined(error_model="numpy")
def floor_divide(left, right):
    """Divide integers, rounded down; 0 if `right` is 0."""
    if right == 0:
        return left - left
    if right < 0 and right + 1 == 0:  # -1: the least integer divided by it would overflow
        return -left
    return left // right


@inlined(error_model="numpy")
def modulo(left, right):
    """Return the remainder of `floor_divide`, with the sign of `right`."""
    if right == 0 or (right < 0 and right + 1 == 0):
        return left - left
    return left % right


@inlined
def shift_left(value, count):
    """Shift to the left; 0 if `count` is out of range."""
    if count < 0 or count >= 64:
        return value - value
    return value << count


@inlined
def shift_right(value, count):
    """Shift to the right, filled with the sign."""
    if count < 0 or count >= 64:
        return value >> 63 >> 1
    return value >> count


@inlined
def lesser(left, right):
    """Return the lesser, or `left` if equal, as Python's min does."""
    return right if right < left else left


@inlined
def greater(left, right):
    """Return the greater, or `left` if equal, as Python's max does."""
    return right if right > left else left


@inlined
def to_int64(value):
    """Convert a float towards zero; clamped to int64, 0 for NaN."""
    if value != value:
        return np.int64(0)
    if value >= 2.0**63:
        return np.int64(_GREATEST)
    if value <= -(2.0**63):
        return np.int64(_LEAST)
    return np.int64(value)


@inlined
def to_uint64(value):
    """Convert a float towards zero; clamped to uint64, 0 for NaN."""
    if value != value or value <= 0:
        return np.uint64(0)
    if value >= 2.0**64:
        return _GREATEST_UNSIGNED
    return np.uint64(value)
