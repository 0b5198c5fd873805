"""Checks of arguments of the Python interface: errors that name argument, value and remedy.

A check of a number returns it as Python's own: compiled code is made anew for each type.
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
        listing = ", ".join(f'"{choice}"' for choice in choices)
        raise ArgumentError(f"{setting(name)} is {value!r}; give one of {listing}")


def check_type(name: str, value: Any, types: type | tuple[type, ...], remedy: str) -> None:
    """Raise `ArgumentError`, ending in "give" and the remedy, for a value of another type."""
    if not isinstance(value, types):
        raise ArgumentError(f"{setting(name)} is {value!r}; give {remedy}")


def as_integer(value: Any) -> int | None:
    """Return an integer as Python's int, None for anything else.

    Integers are NumPy's too, arrays of one integer without dimensions, and objects with
    `__index__`; True and False are none.
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
    """Return an integer from `low` to `high`, where given, as Python's int; see `as_integer`.

    Raises
    ------
    ArgumentError
        Another value; the message ends in `remedy`.
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
        Another value.
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ArgumentError(f"{setting(name)} is {value!r}; give a number")
    return float(value)


def refuse_masked(name: str, values: Any) -> None:
    """Raise `GraphError` for a masked array with masked entries, whose mask would be lost."""
    if np.ma.is_masked(values):
        raise GraphError(
            f"{name} has {int(values.mask.sum())} of {values.size} entries masked; give an "
            "array without them, such as .compressed() of it"
        )
