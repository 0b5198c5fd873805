"""Checks of arguments of the Python interface: errors that name argument, value and remedy.

Checks of numbers return Python's own types, since code is compiled for each type separately.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np

from hetero_bfs.errors import ArgumentError, GraphError
from hetero_bfs.support.wording import setting


def check_flag(name: str, value: Any) -> None:
    """Raise `ArgumentError` unless the value is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise ArgumentError(f"{setting(name)} is {value!r}; give True or False")


def check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    """Raise `ArgumentError` unless the value is one of these texts."""
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(f'"{choice}"' for choice in choices)
        raise ArgumentError(f"{setting(name)} is {value!r}; give one of {listed}")


def check_type(name: str, value: Any, types: type | tuple[type, ...], remedy: str) -> None:
    """Raise `ArgumentError` for a value of another type; `remedy` ends the message."""
    if not isinstance(value, types):
        raise ArgumentError(f"{setting(name)} is {value!r}; give {remedy}")


def as_integer(value: Any) -> int | None:
    """Return an integer as Python's int, None for anything else.

    NumPy's integers, zero-dimensional arrays of integers, and objects with `__index__` count as
    integers. True and False do not.
    """
    if isinstance(value, (bool, np.bool_)):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


def check_integer(
    name: str, value: Any, low: int | None = None, high: int | None = None, remedy: str = ""
) -> int:
    """Return an integer from `low` to `high` (if given) as Python's int; see `as_integer`.

    Raises
    ------
    ArgumentError
        The value is another one; the message ends in `remedy`.
    """
    fits = ""
    if low is not None:
        fits = f" of at least {low}" if high is None else f" from {low} to {high}"
    number = as_integer(value)
    if number is None:
        raise ArgumentError(f"{setting(name)} is {value!r}; give an integer{fits}{remedy}")
    if (low is not None and number < low) or (high is not None and number > high):
        raise ArgumentError(f"{setting(name)} is {number}; give an integer{fits}{remedy}")
    return number


def check_real(name: str, value: Any) -> float:
    """Return a number, integer or not, as Python's float; True and False are none.

    Raises
    ------
    ArgumentError
        The value is no number.
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ArgumentError(f"{setting(name)} is {value!r}; give a number")
    return float(value)


def refuse_masked(name: str, values: Any) -> None:
    """Raise `GraphError` for an array with masked entries, since the mask would be lost."""
    if np.ma.is_masked(values):
        raise GraphError(
            f"{name} has {int(values.mask.sum())} of {values.size} entries masked; give an "
            "array without them, such as .compressed() of it"
        )
