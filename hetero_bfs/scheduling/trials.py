"""Chooses how to run an algorithm, for example where, by the seconds of earlier runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Generic, Literal, TypeVar

_TRIALS = 2  # runs of each choice before they are compared
_AGAIN = 0.01
"""Share of the total time for trying slower choices again, since their runs may have been
disturbed."""

Place = Literal["cpu", "device"]


Choice = TypeVar("Choice")


class Trials(Generic[Choice]):
    """The choices of how to run an algorithm, and the seconds of their runs."""

    def __init__(self, choices: Sequence[Choice] = ()) -> None:
        self._runs = dict.fromkeys(choices, 0)
        self._least: dict[Choice, float] = {}
        self._total: dict[Choice, float] = {}

    def __iter__(self) -> Iterator[Choice]:
        return iter(self._runs)

    def choose(self, among: Sequence[Choice] = ()) -> Choice:
        """Return how to run next: each choice twice, then the fastest so far.

        A slower choice is tried again while these trials take a small share of the time. `among`
        are the allowed choices, by default all. The first run of a choice does not count, since it
        may compile.
        """
        allowed = among or [*self._runs]
        for choice in allowed:
            if self._runs.get(choice, 0) < _TRIALS:
                return choice
        fastest = min(allowed, key=self._least.__getitem__)
        others = [choice for choice in allowed if choice != fastest]
        if others:
            seldom = min(others, key=self._total.__getitem__)
            total = sum(self._total.values())
            if total - self._total[fastest] + self._least[seldom] <= _AGAIN * total:
                return seldom
        return fastest

    def learn(self, choice: Choice, seconds: float) -> None:
        runs = self._runs.get(choice, 0)
        if runs:
            self._least[choice] = min(seconds, self._least.get(choice, seconds))
            self._total[choice] = self._total.get(choice, 0.0) + seconds
        self._runs[choice] = runs + 1


Places = Trials[Place]
