"""A limit of the seconds of a training, divided among its stages.

A stage goes through items, the most useful first, and leaves out those for which its share of the
time is too short.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import TypeVar

from hetero_bfs.support.messages import announce, number_of, progress

T = TypeVar("T")


def announce_limit(seconds: float, num_graphs: int) -> None:
    graphs = number_of(num_graphs, "graph")
    announce(f"this takes about {seconds:.0f} s: as many of {graphs} as fit")


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
        """Yield items while the stage has time for them; show progress.

        `costs` are expected seconds of the items, or a multiple of them; without them all items
        cost the same. An item is expected to take the most that a unit of cost has taken so far.
        The first one also loads code, so it counts only until a second one has run. If time is
        short, an item is left out; without costs the stage ends. The first `at_least` items are
        never left out. Without a limit the second item's seconds give an estimate of the whole,
        which is printed.
        """
        names, shares = list(self._shares), list(self._shares.values())
        here = names.index(stage)
        share = shares[here] / sum(shares[here:])
        left = self.seconds_left
        end = None if left is None else time.monotonic() + left * share
        of = costs or repeat(1.0)
        shown = progress(items, description, total, delay_seconds=0.0, costs=costs, end=end)
        began, before = time.monotonic(), math.inf
        rates: list[float] = []  # seconds of a unit of cost, of the items that ran
        left_out = 0
        for number, (item, cost) in enumerate(zip(shown, of, strict=False)):
            now = time.monotonic()
            if end is None and number == 2 and costs:
                seconds = (now - began) * sum(costs[2:]) / costs[1] / share
                rest = f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} minutes"
                announce(f"about {rest} are left, estimated from the second graph")
            if before < math.inf:
                rates.append((now - began) / before)
            began, before = now, cost
            most = max(rates[1:] or rates, default=0.0)
            if end is not None and number >= at_least and now + most * cost > end:
                if not costs:
                    announce(f"{description}: ended after {number} for lack of time")
                    return
                left_out, before = left_out + 1, math.inf
                continue
            yield item
        if left_out:
            announce(f"{description}: {left_out} of {len(costs)} left out for lack of time")
