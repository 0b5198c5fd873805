"""How many digits the numbers of an expression may have, and which types hold them.

NumPy's result types do not answer this: int32 with uint32 gives int64, float32 with int32 gives
float64. The digits come from types that the program declares: fields, arrays and conversions such
as `np.float64(...)`. Python's own numbers, and weights, take the type of the other operand.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt


class Digits(IntEnum):
    """Digits of a number. An operation has the digits of the operand with most digits."""

    FEW = 0
    """Truth values, and Python's integers: they fit wherever they are used."""
    INTEGER32 = 1
    """32 bits, signed or not; integers wrap."""
    BEYOND_INT32 = 2
    """An argument that fits in uint32 but not in int32."""
    INTEGER64 = 3
    FRACTION = 4
    """Floats of no declared type, which may be rounded."""
    FLOAT32 = 5
    FLOAT64 = 6


_DECLARED = {
    "bool": Digits.FEW, "int32": Digits.INTEGER32, "uint32": Digits.INTEGER32,
    "int64": Digits.INTEGER64, "uint64": Digits.INTEGER64, "float32": Digits.FLOAT32,
    "float64": Digits.FLOAT64,
}  # fmt: skip
_MOST = {
    "bool": Digits.FLOAT64, "int32": Digits.INTEGER32, "uint32": Digits.BEYOND_INT32,
    "int64": Digits.INTEGER64, "uint64": Digits.INTEGER64, "float32": Digits.FLOAT32,
    "float64": Digits.FLOAT64,
}  # fmt: skip
TOLD = {
    Digits.INTEGER32: "an integer of 32 bits", Digits.BEYOND_INT32: "an integer beyond int32",
    Digits.INTEGER64: "an integer of 64 bits", Digits.FRACTION: "a float",
    Digits.FLOAT32: "a float32", Digits.FLOAT64: "a float64",
}  # fmt: skip
"""Names for error messages."""

_LARGEST = float(np.finfo(np.float32).max)


def declared(kind: str, weak: bool = False) -> Digits:
    if weak:
        return Digits.FRACTION if kind.startswith("float") else Digits.FEW
    return _DECLARED[kind]


def holds(kind: str, digits: Digits) -> bool:
    """Tell whether a type can hold `digits`. A bool holds all: it says that the number is not 0."""
    return digits <= _MOST[kind]


def holds_number(kind: str, number: Any) -> bool:
    """Tell whether a type can hold a constant: integers exactly, floats rounded."""
    if kind == "bool" or not math.isfinite(number):
        return True  # other checks refuse infinity and NaN for integer types
    if kind.startswith("float"):
        return bool(abs(number) <= float(np.finfo(kind).max))
    limits = np.iinfo(kind)
    return bool(number == int(number) and limits.min <= number <= limits.max)


def of_argument(value: int | float | npt.NDArray[Any]) -> Digits:
    """Return the digits of a run's argument, from its value or the values of its array."""
    array = np.asarray(value)
    if array.dtype.kind == "b" or array.size == 0:
        return Digits.FEW
    low, high = array.min(), array.max()
    if array.dtype.kind == "f":
        if low >= -_LARGEST and high <= _LARGEST:
            return Digits.FRACTION
        finite = np.abs(array[np.isfinite(array)])
        return Digits.FLOAT64 if finite.max(initial=0.0) > _LARGEST else Digits.FRACTION
    if low >= -(2**31) and high < 2**31:
        return Digits.FEW
    return Digits.BEYOND_INT32 if low >= 0 and high < 2**32 else Digits.INTEGER64


def type_of_messages(kind: str, digits: Digits, fields: Mapping[str, str]) -> str:
    """Return the type of messages for a program that does not declare it.

    `kind` and `digits` are NumPy's type and the digits of the value that `message` returns.
    """
    kinds = list(fields.values())
    if digits == Digits.FLOAT32 or digits == Digits.FLOAT64:
        return digits.name.lower()
    if digits == Digits.FRACTION:
        return next((k for k in kinds if k.startswith("float")), "float64")
    if digits == Digits.FEW and (kinds[0] != "bool" or kind == "bool"):
        return kinds[0]
    if digits != Digits.FEW and _DECLARED[kind] == digits:
        return kind
    suits = (k for k in kinds if "int" in k and holds(k, digits))
    return next(suits, "int64")
