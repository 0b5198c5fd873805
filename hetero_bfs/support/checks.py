"""Checks of arguments of the Python interface: errors that name argument, value and remedy.

Checks of numbers return Python's own types, since code is compiled for each type separately.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.errors import ArgumentError, GraphError
from hetero_bfs.support.messages import setting, shown

MOST_EXACT = 1 << 53
"""Up to here float64 holds all integers."""


def check_flag(name: str, value: Any) -> None:
    if not isinstance(value, (bool, np.bool_)):
        raise ArgumentError(f"{setting(name)} is {shown(value)}; give True or False")


def check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(f'"{choice}"' for choice in choices)
        raise ArgumentError(f"{setting(name)} is {shown(value)}; give one of {listed}")


def check_type(name: str, value: Any, types: type | tuple[type, ...], remedy: str) -> None:
    """Raise `ArgumentError` for another type; `remedy` ends the message."""
    if not isinstance(value, types):
        raise ArgumentError(f"{setting(name)} is {shown(value)}; give {remedy}")


def as_integer(value: Any) -> int | None:
    """Return an integer as Python's int, None for anything else.

    NumPy's integers, zero-dimensional arrays of integers, and objects with `__index__` count as
    integers. True, False and masked entries do not.
    """
    if type(value) is int:
        return value
    if isinstance(value, (bool, np.bool_)) or np.ma.is_masked(value):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


def check_integer(
    name: str, value: Any, low: int | None = None, high: int | None = None, remedy: str = ""
) -> int:
    """Return an integer from `low` to `high` as Python's int; see `as_integer`."""
    fits = ""
    if low is not None:
        fits = f" of at least {low}" if high is None else f" from {low} to {high}"
    number = as_integer(value)
    if number is None:
        raise ArgumentError(f"{setting(name)} is {shown(value)}; give an integer{fits}{remedy}")
    if (low is not None and number < low) or (high is not None and number > high):
        raise ArgumentError(f"{setting(name)} is {shown(number)}; give an integer{fits}{remedy}")
    return number


def check_real(name: str, value: Any) -> float:
    """Return a number as Python's float; raise `ArgumentError` for other values.

    Integers and zero-dimensional arrays of a number are numbers; True and False are not.
    """
    number = value
    if isinstance(value, np.ndarray) and value.ndim == 0 and not np.ma.is_masked(value):
        number = value[()]
    if isinstance(number, (bool, np.bool_)) or not isinstance(number, Real):
        raise ArgumentError(f"{setting(name)} is {shown(value)}; give a number")
    try:
        return float(number)
    except OverflowError:
        raise ArgumentError(
            f"{setting(name)} is {shown(value)}; give a number of at most 1.8e308"
        ) from None


def refuse_masked(name: str, values: Any) -> None:
    """Raise `GraphError` for an array with masked entries, since the mask would be lost."""
    if not isinstance(values, np.ma.MaskedArray) or values.dtype.names is not None:
        return
    masked = int(np.count_nonzero(np.ma.getmaskarray(values)))
    if masked:
        raise GraphError(
            f"{name} has {masked} of {values.size} entries masked; give an array without them, "
            "such as .compressed() of it"
        )


def as_array(name: str, values: Any) -> npt.NDArray[Any]:
    refuse_masked(name, values)
    try:
        return np.asarray(values)
    except (ValueError, TypeError, RuntimeError, OverflowError, BufferError) as error:
        reason = " ".join(str(error).split())
        raise GraphError(
            f"{name} is {shown(values)}, of which NumPy makes no array ({reason}); give a NumPy "
            "array, or a list of numbers"
        ) from error


def numbers_of_vertices(
    name: str, values: Any, num_vertices: int, kinds: str = "iu"
) -> npt.NDArray[Any]:
    """Return one number per vertex; `kinds` are the allowed kinds of dtype."""
    array = as_array(name, values)
    if array.shape != (num_vertices,):
        raise ArgumentError(
            f"{name} has shape {array.shape}; give one number for each of {num_vertices} vertices"
        )
    if array.size and array.dtype.kind not in kinds:
        wanted = "numbers" if "f" in kinds else "integers"
        raise ArgumentError(f"{name} holds {array.dtype}; give {wanted}")
    return array
