"""Joules of searches that are repeated for a window of time, by domain (hetero_bfs/energy)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from hetero_bfs import energy
from hetero_bfs.energy import Domain, Meter

LEAST_WINDOW_SECONDS = 1.0
SETTLE_SECONDS = 0.2
"""Searches of a kind before its window begins: power and clocks follow the load with a delay."""

Batch = Callable[[], int]
"""Runs some searches and returns how many."""


@dataclass(frozen=True)
class Window:
    """What the meters said while a batch was repeated; a domain that failed is not there."""

    searches: int
    seconds: float
    joules: Mapping[Domain, float]

    def joules_of(self, domains: Iterable[Domain]) -> float:
        """Return the joules of one search in disjoint domains together."""
        return sum(self.joules[domain] for domain in domains) / self.searches

    @property
    def seconds_of(self) -> float:
        """Seconds of one search, what the host does between two of them included."""
        return self.seconds / self.searches


class Metering:
    """All meters of a machine at once, by domain.

    Parameters
    ----------
    meters : sequence of Meter
        At least one.

    Attributes
    ----------
    window_seconds : float
        How long a window must last for the coarsest meter.
    failures : dict from domain to str
        Why nothing more is known of it.
    """

    def __init__(self, meters: Sequence[Meter]) -> None:
        self.meters = list(meters)
        self._periods = [meter.period_seconds() for meter in self.meters]
        trusted = energy.trusted_seconds(self.meters, self._periods)
        self.window_seconds = max(LEAST_WINDOW_SECONDS, trusted)
        self.failures: dict[Domain, str] = {}

    def domains(self) -> list[Domain]:
        """List the domains in which nothing has failed yet."""
        return [d for d in self.names() if d not in self.failures]

    def names(self) -> dict[Domain, str]:
        """Return the names of the meters in each domain."""
        names: dict[Domain, str] = {}
        for meter in self.meters:
            before = names.get(meter.domain)
            names[meter.domain] = meter.name if before is None else f"{before} + {meter.name}"
        return names

    def periods(self) -> dict[Domain, float]:
        """Return the seconds between updates of each domain's slowest meter."""
        pairs = list(zip(self.meters, self._periods, strict=True))
        return {d: max(p for m, p in pairs if m.domain == d) for d in self.names()}

    def window(self, batch: Batch) -> Window:
        """Repeat a batch of searches for a window, after some that are not metered."""
        _repeat(batch, SETTLE_SECONDS)
        work = partial(_repeat, batch, self.window_seconds)
        searches, seconds, outcomes = energy.metered(self.meters, work)
        return Window(searches, seconds, self._by_domain(outcomes))

    def rest(self) -> Window:
        """Meter the machine at rest for a window."""
        rest = partial(time.sleep, self.window_seconds)
        _, seconds, outcomes = energy.metered(self.meters, rest)
        return Window(0, seconds, self._by_domain(outcomes))

    def _by_domain(self, outcomes: Sequence[float | str]) -> dict[Domain, float]:
        """Add up each domain; of system meters, which contain each other, take the largest."""
        joules: dict[Domain, float] = {}
        for meter, outcome in zip(self.meters, outcomes, strict=True):
            domain = meter.domain
            if isinstance(outcome, str):
                self.failures.setdefault(domain, f"{meter.name}: {outcome}")
            elif domain == "system":
                joules[domain] = max(joules.get(domain, 0.0), outcome)
            else:
                joules[domain] = joules.get(domain, 0.0) + outcome
        return {d: j for d, j in joules.items() if d not in self.failures}


def _repeat(batch: Batch, seconds: float) -> int:
    begin = time.perf_counter()
    searches = batch()
    while time.perf_counter() - begin < seconds:
        searches += batch()
    return searches
