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
        self._runs = dict.fromkeys(choices, 0)
        self._least: dict[Choice, float] = {}

    def __iter__(self) -> Iterator[Choice]:
        return iter(self._runs)

    def choose(self, among: Sequence[Choice] = ()) -> Choice:
        """Return how to run next: each choice twice, then the fastest so far.

        `among` are those that may be taken, by default all. The first run of a choice does not
        count, since it may compile.
        """
        allowed = among or [*self._runs]
        for choice in allowed:
            if self._runs.get(choice, 0) < _TRIALS:
                return choice
        return min(allowed, key=self._least.__getitem__)

    def note(self, choice: Choice, seconds: float) -> None:
        """Take a run into account."""
        runs = self._runs.get(choice, 0)
        if runs:
            self._least[choice] = min(seconds, self._least.get(choice, seconds))
        self._runs[choice] = runs + 1


Places = Trials[Place]
