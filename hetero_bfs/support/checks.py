"""Checks of arguments of the Python interface: errors that name argument, value and remedy."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from hetero_bfs.errors import ArgumentError


def check_flag(name: str, value: Any) -> None:
    """Raise `ArgumentError` unless the value is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise ArgumentError(f"{name} is {value!r}; give True or False")


def check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    """Raise `ArgumentError` unless the value is one of these texts."""
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(f'"{choice}"' for choice in choices)
        raise ArgumentError(f"{name} is {value!r}; give one of {listed}")


def check_type(name: str, value: Any, types: type | tuple[type, ...], remedy: str) -> None:
    """Raise `ArgumentError`, ending in "give" and the remedy, for a value of another type."""
    if not isinstance(value, types):
        raise ArgumentError(f"{name} is {value!r}; give {remedy}")


def check_integer(name: str, value: Any, low: int, high: int | None = None) -> None:
    """Raise `ArgumentError` unless the value is an integer from `low` to `high`, if there is one.

    NumPy's integers are integers too; True and False are none.
    """
    fits = f"of at least {low}" if high is None else f"from {low} to {high}"
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool):
        raise ArgumentError(f"{name} is {value!r}; give an integer {fits}")
    if number < low or (high is not None and number > high):
        raise ArgumentError(f"{name} is {value}; give an integer {fits}")
