"""How the messages to a vertex combine into one: operations, and their identities."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import ismethod
from typing import Any, Literal

import numpy as np

Operation = Literal[
    "minimum", "maximum", "plus", "bitwise_or", "any_one", "most_frequent", "a method"
]


@dataclass(frozen=True)
class Monoid:
    """An operation on two messages: associative, commutative, with an identity.

    `any_one` takes any of the messages, and has no identity. `most_frequent` is an operation on all
    messages of a vertex together.
    """

    operation: Operation

    def identity(self, dtype: np.dtype[Any]) -> Any:
        """Return the identity as a Python number, or None for `any_one`."""
        if self.operation == "any_one":
            return None
        if self.operation in ("plus", "bitwise_or"):
            return False if dtype.kind == "b" else dtype.type(0).item()
        low = self.operation == "maximum"  # most_frequent: no message has the greatest number
        if dtype.kind == "f":
            return -np.inf if low else np.inf
        if dtype.kind == "b":
            return not low
        limits = np.iinfo(dtype)
        return int(limits.min if low else limits.max)

    def suits(self, dtype: np.dtype[Any]) -> bool:
        """Tell whether it can combine messages of this type."""
        if self.operation == "most_frequent":
            return dtype.kind in "iu"
        return dtype.kind != "f" if self.operation == "bitwise_or" else True

    def of(self, first: Any, second: Any) -> Any:
        """Combine two messages in plain Python. `any_one` takes the first.

        `most_frequent` takes the least of two messages, as they are equally frequent.
        """
        if self.operation in ("minimum", "most_frequent"):
            return second if second < first else first
        if self.operation == "maximum":
            return second if second > first else first
        if self.operation == "plus":
            return first + second
        return first | second if self.operation == "bitwise_or" else first


@dataclass(frozen=True)
class OwnMonoid(Monoid):
    """A program's own method `combine`, with the class's `identity`."""

    method: Callable[[Any, Any], Any]
    neutral: Any

    def identity(self, dtype: np.dtype[Any]) -> Any:
        """Return the identity, converted to a type."""
        return np.asarray(self.neutral).astype(dtype).item()

    def of(self, first: Any, second: Any) -> Any:
        return self.method(first, second)


minimum = Monoid("minimum")
"""The least of the messages."""

maximum = Monoid("maximum")
"""The greatest of the messages."""

plus = Monoid("plus")
"""The sum of the messages."""

bitwise_or = Monoid("bitwise_or")
"""The bits that any of the messages has."""

any_one = Monoid("any_one")
"""Any one of the messages."""

most_frequent = Monoid("most_frequent")
"""The most frequent message; the least one if several are equally frequent. For integers, in
programs whose vertices are all active. The greatest number of the type must not be a message:
vertices without messages get it."""


def monoid_of(program: Any) -> Monoid | None:
    """Return how a program combines messages; None unless `combine` is a monoid or a method."""
    combine = getattr(program, "combine", None)
    if ismethod(combine):
        return OwnMonoid("a method", combine, getattr(program, "identity", None))
    return combine if isinstance(combine, Monoid) else None
