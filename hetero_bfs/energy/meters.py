"""Meters of energy, and measurements by all of them at once.

A sensor is a counter of joules, or watts integrated over time.
"""

from __future__ import annotations

import math
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise
from typing import Any, Literal, Protocol, TypeVar

from hetero_bfs.errors import HeteroBFSError

Domain = Literal["cpu", "device", "system"]
DOMAINS: tuple[Domain, ...] = ("cpu", "device", "system")

TRUSTED_RESOLUTIONS = 10
"""A measurement, idle or busy, lasts at least this many times every meter's resolution."""

MOST_WATTS = 500
"""Highest sustained power of a RAPL zone; it bounds how fast its counter can wrap around."""

POWER_POLL_SECONDS = 0.05
"""Interval between readings of a power sensor without an energy counter."""

_PROBE_SECONDS = 1.0
_PROBE_UPDATES = 8
_PROBE_STEP_SECONDS = 0.0005


class MeterError(HeteroBFSError, RuntimeError):
    """A meter that cannot be read; reports give the message as the reason."""


class Meter(Protocol):
    """One energy meter.

    `resolution_seconds` is the longest time between two updates of its readings. It determines how
    long measurements last.
    """

    name: str
    domain: Domain
    resolution_seconds: float

    def start(self) -> None:
        """Begin a measurement; a sensor that fails here raises in `stop`."""
        ...

    def stop(self) -> float:
        """Return the joules since `start`; raise `MeterError` if they are unknown."""
        ...

    def period_seconds(self) -> float:
        """Return the observed seconds between two updates of its readings."""
        ...


@dataclass(frozen=True)
class Unmeasured:
    name: str
    domain: Domain
    reason: str


@dataclass(eq=False)
class SensorMeter:
    """Adds up joules between readings: at both ends and, with `poll_seconds`, in a thread.

    `read` returns the joules of a counter that wraps around at `range_joules`. For a `power` sensor
    it returns watts, which are integrated by trapezoids.
    """

    name: str
    domain: Domain
    read: Callable[[], float]
    resolution_seconds: float
    range_joules: float | None = None
    power: bool = False

    @property
    def poll_seconds(self) -> float | None:
        """Seconds between readings of the thread; None if readings at both ends are enough."""
        if self.power:
            return POWER_POLL_SECONDS
        # Four readings within the shortest time to wrap around, so that no wrap is missed.
        return None if self.range_joules is None else self.range_joules / MOST_WATTS / 4

    def start(self) -> None:
        self._joules = 0.0
        self._last: tuple[float, float] | None = None
        self._error: MeterError | None = None
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._poll, daemon=True)
        self._sample()
        if self.poll_seconds is not None:
            self._thread.start()

    def stop(self) -> float:
        self._done.set()
        if self.poll_seconds is not None:
            self._thread.join()
        self._sample()
        if self._error is not None:
            raise self._error
        return self._joules

    def period_seconds(self) -> float:
        """Watch the sensor until it has changed several times; return the median gap in seconds.

        If it does not change three times within a second, return its `resolution_seconds`.
        """
        changes: list[float] = []
        begin = time.perf_counter()
        try:
            last = self.read()
            while (now := time.perf_counter()) < begin + _PROBE_SECONDS:
                if len(changes) > _PROBE_UPDATES:
                    break
                if (value := self.read()) != last:
                    changes.append(now)
                    last = value
                time.sleep(_PROBE_STEP_SECONDS)
        except MeterError:  # the measurement itself reports it
            changes = []
        if len(changes) < 3:  # the time before the first change is not a period
            return self.resolution_seconds
        period = statistics.median(b - a for a, b in pairwise(changes))
        return max(period, POWER_POLL_SECONDS) if self.power else period

    def _poll(self) -> None:
        while self._error is None and not self._done.wait(self.poll_seconds):
            self._sample()

    def _sample(self) -> None:
        try:
            now = time.perf_counter(), self.read()
            if self._last is not None:
                self._joules += self._joules_between(self._last, now)
            self._last = now
        except MeterError as error:
            self._error = self._error or error

    def _joules_between(self, last: tuple[float, float], now: tuple[float, float]) -> float:
        if self.power:
            return (now[0] - last[0]) * (now[1] + last[1]) / 2
        joules = now[1] - last[1]
        if joules < 0 and self.range_joules is None:
            raise MeterError(f"the counter went back from {last[1]} J to {now[1]} J")
        return joules if joules >= 0 else joules + (self.range_joules or 0.0)


_T = TypeVar("_T")


@dataclass(frozen=True)
class MeterReading:
    """The measurement of one meter, or of a domain's meters together.

    `net_joules` and `idle_watts` are None if idle power is unmeasured. The meter is updated every
    `period_seconds`, so each end of the measurement is off by up to this time. `error_joules` is
    the resulting standard error of the joules.
    """

    name: str
    domain: Domain
    joules: float
    seconds: float
    watts: float
    idle_watts: float | None
    net_joules: float | None
    searches: int
    joules_per_search: float
    mteps_per_watt: float
    period_seconds: float
    error_joules: float


@dataclass(frozen=True)
class EnergyReport:
    """The measurements of all meters over the same searches.

    `totals` has one entry per measured domain, named by its meters. `searches`, `nedge` (traversed
    edges) and `seconds` count all repetitions; they are None if nothing was run.
    """

    searches: int | None
    nedge: int | None
    seconds: float | None
    meters: list[MeterReading]
    totals: list[MeterReading]
    unmeasured: list[Unmeasured]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def measure(
    run_searches: Callable[[], tuple[int, int]],
    meters: Sequence[Meter],
    unmeasured: Sequence[Unmeasured],
    minimum_seconds: float = 3.0,
    idle_seconds: float = 1.0,
) -> EnergyReport:
    """Measure the idle machine, then repeat searches until the meters can be trusted.

    `run_searches` runs a batch of searches, compiled and warm, and returns (searches, traversed
    edges). Without meters nothing runs. `minimum_seconds` and `idle_seconds` grow to
    `TRUSTED_RESOLUTIONS` times the coarsest meter's resolution. `idle_seconds=0` leaves idle power
    unmeasured.
    """
    if not meters:
        return EnergyReport(None, None, None, [], [], list(unmeasured))
    periods = [meter.period_seconds() for meter in meters]
    trusted = TRUSTED_RESOLUTIONS * max(*(one.resolution_seconds for one in meters), *periods)
    idle: list[float | str] = ["no idle time was asked for"] * len(meters)
    idle_span = 0.0
    if idle_seconds > 0:
        _, idle_span, idle = _metered(meters, partial(time.sleep, max(idle_seconds, trusted)))
    repeat = partial(_repeat, run_searches, max(minimum_seconds, trusted))
    (searches, nedge), seconds, busy = _metered(meters, repeat)
    readings: list[MeterReading] = []
    missing = list(unmeasured)
    for meter, joules, rest, period in zip(meters, busy, idle, periods, strict=True):
        if isinstance(joules, str):
            missing.append(Unmeasured(meter.name, meter.domain, joules))
            continue
        if isinstance(rest, str):
            missing.append(Unmeasured(f"{meter.name}, idle", meter.domain, rest))
        watts = None if isinstance(rest, str) else rest / idle_span
        name, domain = meter.name, meter.domain
        counts = searches, nedge
        readings.append(_reading(name, domain, joules, seconds, watts, counts, period))
    totals = _totals(readings, nedge)
    return EnergyReport(searches, nedge, seconds, readings, totals, missing)


def sampling_error_seconds(period_seconds: float) -> float:
    """Return the standard error of a measurement's length.

    Each end is uniformly distributed between two updates: a variance of period**2 / 12.
    """
    return period_seconds / math.sqrt(6.0)


def _metered(
    meters: Sequence[Meter], work: Callable[[], _T]
) -> tuple[_T, float, list[float | str]]:
    """Return the work's result, its seconds, and each meter's joules or the reason for none."""
    for meter in meters:
        meter.start()
    begin = time.perf_counter()
    try:
        result = work()
        seconds = time.perf_counter() - begin
    finally:
        outcomes = [_stopped(meter) for meter in meters]
    return result, seconds, outcomes


def _stopped(meter: Meter) -> float | str:
    try:
        joules = meter.stop()
    except MeterError as error:
        return str(error)
    return joules if joules > 0 else "the reading did not advance during the measurement"


def _repeat(run_searches: Callable[[], tuple[int, int]], seconds: float) -> tuple[int, int]:
    begin = time.perf_counter()
    searches = nedge = 0
    while searches == 0 or time.perf_counter() - begin < seconds:
        more_searches, more_edges = run_searches()
        if more_searches < 1:
            raise MeterError(f"a batch of {more_searches} searches; energy needs at least one")
        searches, nedge = searches + more_searches, nedge + more_edges
    return searches, nedge


def _reading(
    name: str,
    domain: Domain,
    joules: float,
    seconds: float,
    idle_watts: float | None,
    counts: tuple[int, int],
    period_seconds: float,
) -> MeterReading:
    searches, nedge = counts
    watts = joules / seconds
    net_joules = None if idle_watts is None else joules - idle_watts * seconds
    mteps = nedge / seconds / 1e6
    return MeterReading(
        name,
        domain,
        joules,
        seconds,
        watts,
        idle_watts,
        net_joules,
        searches,
        joules / searches,
        mteps / watts,
        period_seconds,
        watts * sampling_error_seconds(period_seconds),
    )


def _totals(readings: list[MeterReading], nedge: int) -> list[MeterReading]:
    totals = []
    for domain in DOMAINS:
        inside = [reading for reading in readings if reading.domain == domain]
        if domain == "system":
            inside = sorted(inside, key=lambda reading: reading.joules)[-1:]
        if not inside:
            continue
        idle = [reading.idle_watts for reading in inside if reading.idle_watts is not None]
        total = _reading(
            " + ".join(reading.name for reading in inside),
            domain,
            math.fsum(reading.joules for reading in inside),
            inside[0].seconds,
            math.fsum(idle) if len(idle) == len(inside) else None,
            (inside[0].searches, nedge),
            max(reading.period_seconds for reading in inside),
        )
        totals.append(total)
    return totals


def format_report(report: EnergyReport) -> str:
    heads = ("joules", "watts", "idle W", "net J", "J/search", "MTEPS/W")
    names = [reading.name for reading in report.meters]
    width = max(len(name) for name in [*names, *(m.name for m in report.unmeasured), "all meters"])
    lines = []
    if report.meters:
        lines.append(f"{'meter':{width}}  domain" + "".join(f"{head:>12}" for head in heads))
    lines += [_line(reading, reading.name.ljust(width)) for reading in report.meters]
    for total in report.totals:
        if total.domain != "system" and " + " in total.name:
            lines.append(_line(total, "all meters".ljust(width)))
    for reading in report.meters:
        error, period = reading.error_joules / reading.joules, 1e3 * reading.period_seconds
        lines.append(
            f"{reading.name:{width}}  updates every {_figure(period)} ms: joules +- "
            f"{100 * error:.2g} % over {reading.seconds:.3g} s"
        )
    for missing in report.unmeasured:
        lines.append(f"{missing.name:{width}}  {missing.domain:6}  unmeasured: {missing.reason}")
    return "\n".join(lines)


def _line(reading: MeterReading, name: str) -> str:
    r = reading
    values = (r.joules, r.watts, r.idle_watts, r.net_joules, r.joules_per_search, r.mteps_per_watt)
    cells = ["unmeasured" if value is None else _figure(value) for value in values]
    return f"{name}  {r.domain:6}" + "".join(f"{cell:>12}" for cell in cells)


def _figure(value: float) -> str:
    return f"{value:,.1f}" if abs(value) >= 1000 else f"{value:.4g}"
