"""The protocol of a meter, and sensors: a counter of joules, or watts integrated over time."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, Protocol

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

    def watch(self) -> Callable[[], bool] | None:
        """Return a function: whether the reading was updated since this call to `watch`.

        None if the reading is interpolated.
        """
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

    def watch(self) -> Callable[[], bool] | None:
        if self.power:
            return None
        before = self._value()
        return lambda: self._value() != before

    def _value(self) -> float | None:
        try:
            return self.read()
        except MeterError:  # the measurement itself reports it
            return None

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
