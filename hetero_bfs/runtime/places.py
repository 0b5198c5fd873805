"""How to run an algorithm, such as on the host or a device, by the seconds of the runs so far."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Generic, Literal, TypeVar

_TRIALS = 2  # runs of a choice before it is compared

Place = Literal["cpu", "device"]
"""Where an algorithm runs."""


Choice = TypeVar("Choice")


class Trials(Generic[Choice]):
    """The choices of how to run an algorithm, and how long each of their runs took."""

    def __init__(self, choices: Sequence[Choice] = ()) -> None:
        self._seconds: dict[Choice, list[float]] = {choice: [] for choice in choices}

    def __iter__(self) -> Iterator[Choice]:
        return iter(self._seconds)

    def choose(self, among: Sequence[Choice] = ()) -> Choice:
        """Return how to run next: each choice twice, then the fastest so far.

        `among` are those that may be taken, by default all. The first run of a choice does not
        count, since it may compile.
        """
        allowed = [*among] or [*self._seconds]
        for choice in allowed:
            if len(self._seconds.setdefault(choice, [])) < _TRIALS:
                return choice
        return min(allowed, key=lambda choice: min(self._seconds[choice][1:]))

    def note(self, choice: Choice, seconds: float) -> None:
        """Take a run into account."""
        self._seconds[choice].append(seconds)


Places = Trials[Place]
