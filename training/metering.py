"""Joules of searches that are repeated for a window of time, by domain (hetero_bfs/energy).

A counter that is updated every 0.1 s measures a window of 1 s only to 4 %. Therefore windows begin
and end just after an update of the coarsest counter, and searches continue until then. The error
then depends on how often the counter is read, not on its period.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from hetero_bfs import energy
from hetero_bfs.energy import Domain, Meter
from hetero_bfs.engine.engine import Engine

LEAST_WINDOW_SECONDS = 1.0
SETTLE_SECONDS = 0.2
"""Seconds of searches before a window begins: power and clocks follow the load with a delay."""

_PATIENCE = 5  # periods to wait for an update
_LOOKS = 10  # readings in a period of the coarsest counter, at the ends of a window

Batch = Callable[[], int]
"""Runs some searches and returns their number."""


def batch_of(engine: Engine, keys: Sequence[int]) -> Batch:
    def run() -> int:
        for key in keys:
            engine.search(key)
        return len(keys)

    return run


@dataclass(frozen=True)
class Window:
    """Measurements of the meters while a batch was repeated; failed domains are missing.

    `error_seconds` is the standard error of the window's length by a domain's meters.
    """

    searches: int
    seconds: float
    joules: Mapping[Domain, float]
    error_seconds: Mapping[Domain, float]

    def joules_of(self, domains: Iterable[Domain]) -> float:
        """Return the joules of one search, summed over disjoint domains."""
        return sum(self.joules[domain] for domain in domains) / self.searches

    @property
    def seconds_of(self) -> float:
        """Seconds of one search, including the host's work between searches."""
        return self.seconds / self.searches


class Metering:
    """All meters of a machine at once, by domain; at least one meter.

    `window_seconds` is the length of a window, which the coarsest meter determines. `failures`
    gives the reason why a domain failed.
    """

    def __init__(self, meters: Sequence[Meter]) -> None:
        self.meters = list(meters)
        self._periods = [meter.period_seconds() for meter in self.meters]
        self._coarsest = self.meters[self._periods.index(max(self._periods))]
        trusted = energy.trusted_seconds(self.meters, self._periods)
        self.window_seconds = max(LEAST_WINDOW_SECONDS, trusted)
        self.failures: dict[Domain, str] = {}

    def domains(self) -> list[Domain]:
        return [d for d in self.names() if d not in self.failures]

    def names(self) -> dict[Domain, str]:
        names: dict[Domain, str] = {}
        for meter in self.meters:
            before = names.get(meter.domain)
            names[meter.domain] = meter.name if before is None else f"{before} + {meter.name}"
        return names

    def periods(self) -> dict[Domain, float]:
        return self._slowest(self._periods)

    def _slowest(self, periods: Sequence[float]) -> dict[Domain, float]:
        pairs = list(zip(self.meters, periods, strict=True))
        return {d: max(p for m, p in pairs if m.domain == d) for d in self.names()}

    def window(self, batch: Batch) -> Window:
        _repeat(batch, SETTLE_SECONDS)
        return self._window(partial(_repeat, batch))

    def rest(self) -> Window:
        return self._window(lambda seconds: time.sleep(seconds) or 0)

    def _window(self, work: Callable[[float], int]) -> Window:
        """Meter a window; `work` works for about the seconds that it is given."""
        self._work_until_update(work)

        def measured() -> tuple[int, float | None]:
            done = work(self.window_seconds)
            more, look_seconds = self._work_until_update(work)
            return done + more, look_seconds

        (searches, look_seconds), seconds, outcomes = energy.metered(self.meters, measured)
        known_within = [
            min(period, look_seconds) if look_seconds and meter is self._coarsest else period
            for meter, period in zip(self.meters, self._periods, strict=True)
        ]
        within = self._slowest(known_within)
        errors = {d: energy.sampling_error_seconds(p) for d, p in within.items()}
        return Window(searches, seconds, self._by_domain(outcomes), errors)

    def _work_until_update(self, work: Callable[[float], int]) -> tuple[int, float | None]:
        """Work until the coarsest counter is updated; return the searches and the seconds between
        readings.

        The seconds are None if the meter is not a counter, or is not updated.
        """
        period = max(self._periods)
        updated = self._coarsest.watch()
        if updated is None:
            return 0, None
        searches, looks = 0, 0
        begin = time.perf_counter()
        while time.perf_counter() < begin + _PATIENCE * period:
            searches += work(period / _LOOKS)
            looks += 1
            if updated():
                return searches, (time.perf_counter() - begin) / looks
        return searches, None

    def _by_domain(self, outcomes: Sequence[float | str]) -> dict[Domain, float]:
        """Add up each domain; for the system take the largest, as its meters include each other."""
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
