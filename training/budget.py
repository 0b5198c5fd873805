"""A limit of the seconds of a training, divided among its stages.

A stage goes through items, the most useful first. It ends early when its share of the time is used.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from hetero_bfs.support.messages import announce, progress

T = TypeVar("T")

_LONG_SECONDS = 120.0  # are shown as minutes


class Budget:
    """Seconds for several stages, in proportion to their shares. None for no limit.

    Shares are in the order of the stages. What a stage does not use is left to the later ones, all
    of it if the stage does not run.
    """

    def __init__(self, seconds: float | None, **shares: float) -> None:
        self._end = None if seconds is None else time.monotonic() + seconds
        self._shares = shares

    @property
    def seconds_left(self) -> float | None:
        return None if self._end is None else max(self._end - time.monotonic(), 0.0)

    def within(
        self,
        stage: str,
        items: Iterable[T],
        description: str,
        total: int | None = None,
        at_least: int = 1,
        costs: Sequence[float] = (),
    ) -> Iterator[T]:
        """Yield items until the stage's seconds are used; show progress.

        An item is left out if there is less time than the longest item took. The first `at_least`
        items are never left out. `costs` are expected seconds of the items, or a multiple of them.
        Without a limit the second item's seconds give an estimate of the whole, which is printed;
        the first item also loads code.
        """
        names, shares = list(self._shares), list(self._shares.values())
        here = names.index(stage)
        share = shares[here] / sum(shares[here:])
        left = self.seconds_left
        end = None if left is None else time.monotonic() + left * share
        longest, began = 0.0, time.monotonic()
        shown = progress(items, description, total, delay_seconds=0.0, costs=costs)
        for number, item in enumerate(shown):
            now = time.monotonic()
            if end is None and number == 2 and costs:
                seconds = (now - began) * sum(costs[2:]) / costs[1] / share
                announce(f"about {_duration(seconds)} are left, estimated from the second graph")
            longest, began = max(longest, now - began), now
            if end is not None and number >= at_least and now + longest > end:
                announce(f"{description}: ended after {number} for lack of time")
                return
            yield item


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < _LONG_SECONDS else f"{seconds / 60:.0f} minutes"
