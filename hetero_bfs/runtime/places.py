"""Which place runs an algorithm: the host or a device, by the seconds of the runs so far."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

_TRIALS = 2  # runs of a place before it is compared

Place = Literal["cpu", "device"]
"""Where an algorithm runs."""


class Places:
    """The places that can run an algorithm, and how long each of their runs took."""

    def __init__(self, places: Sequence[Place]) -> None:
        self._seconds: dict[Place, list[float]] = {place: [] for place in places}

    def __iter__(self) -> Iterator[Place]:
        return iter(self._seconds)

    def choose(self) -> Place:
        """Return where to run next: each place twice, then the fastest so far.

        A place's first run does not count, since it may compile.
        """
        for place, seconds in self._seconds.items():
            if len(seconds) < _TRIALS:
                return place
        return min(self._seconds, key=lambda place: min(self._seconds[place][1:]))

    def note(self, place: Place, seconds: float) -> None:
        """Take a run into account."""
        self._seconds[place].append(seconds)
