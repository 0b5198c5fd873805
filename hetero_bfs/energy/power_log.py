"""A meter of the whole system: the log that an external power meter writes."""

from __future__ import annotations

import csv
import io
import math
import re
import statistics
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hetero_bfs.energy.meters import TRUSTED_RESOLUTIONS, Domain, MeterError, Unmeasured

_MOST_STEP_SECONDS = 60.0  # a measurement lasts many steps
_MOST_AHEAD_SECONDS = 86_400.0  # allows for different clocks and wrong time zones
_MOST_WATTS = 1e9
_MOST_TITLE_LINES = 20  # before the header, and the header
_NAMES = {"date": "date", "time": "time", "timestamp": "time"} | dict.fromkeys(
    ("watts", "w", "power", "p"), "power"
)
_OTHERS = frozenset(("factor", "apparent", "reactive", "elapsed", "start", "integ"))
"""Words of columns that are neither the stamp nor the power."""

_WATTS_OF_UNIT = {"mw": 1e-3, "w": 1.0, "kw": 1e3}


class PowerLog:
    """An external meter that writes a CSV file of time stamps and watts.

    A header may name the columns: time, timestamp or date, or a date and a time; and watts, w,
    power or p, with a unit (W, mW, kW) after the name. Lines before it, such as a meter's model,
    are ignored. Without a header they are the first two columns. A stamp is Unix seconds or ISO
    8601, also with `/`; without a time zone it is local time. A last line without newline may be
    incomplete and is ignored. The file is read again at every call. A line that cannot be parsed
    raises a `MeterError` that names file, line and value.
    """

    domain: Domain = "system"

    def __init__(self, path: Path) -> None:
        self.path, self.name = Path(path), f"power log {Path(path).name}"
        self.resolution_seconds = _median_step(self.samples()[0])
        if self.resolution_seconds > _MOST_STEP_SECONDS:
            raise MeterError(
                f"the power log {self.path} has a sample every {self.resolution_seconds:.3g} s; "
                f"samples must be at most {_MOST_STEP_SECONDS:g} s apart: set the meter's interval"
            )
        self.patience_seconds = 2 * self.resolution_seconds + 1

    def start(self) -> None:
        self._start = time.time()

    def stop(self) -> float:
        """Return the joules since `start`; wait, for a limited time, until the log covers them."""
        end = time.time()
        while isinstance(joules := self.joules(self._start, end), Unmeasured):
            if time.time() >= end + self.patience_seconds:
                raise MeterError(joules.reason)
            time.sleep(0.1)
        return joules

    def period_seconds(self) -> float:
        return self.resolution_seconds

    def joules(self, start_unix_seconds: float, end_unix_seconds: float) -> float | Unmeasured:
        """Integrate over an interval that the log must cover, interpolating at its ends.

        Two samples more than ten times the median step apart are a gap, which is not covered.
        """
        start, end = start_unix_seconds, end_unix_seconds
        stamps, watts = self.samples()
        if problem := _not_covered(stamps, start, end):
            wanted = f"the measurement lasts from {_local(start)} to {_local(end)}"
            return Unmeasured(self.name, self.domain, f"{problem}; {wanted}")
        inside = [i for i, stamp in enumerate(stamps) if start < stamp < end]
        times = np.array([start, *(stamps[i] for i in inside), end])
        power = np.interp(times, stamps, watts)
        power[1:-1] = [watts[i] for i in inside]  # interp drops all but one sample per stamp
        return float(np.sum(np.diff(times) * (power[1:] + power[:-1]) / 2))

    def samples(self) -> tuple[list[float], list[float]]:
        stamps: list[float] = []
        watts: list[float] = []
        rows = list(self._rows())
        first, columns = 0, _Columns((0,), 1, 1.0)
        for number, (line, row) in enumerate(rows[:_MOST_TITLE_LINES]):
            named = _header(row, f"{self.path}, line {line}")
            if named is not None:
                first, columns = number + 1, named
                break
        for line, row in rows[first:]:
            where = f"{self.path}, line {line}"
            most = max(*columns.stamp, columns.power)
            if len(row) <= most:
                raise MeterError(f"{where}: {_shown(row)} has no column {most + 1}")
            stamp = " ".join(row[i] for i in columns.stamp)
            stamps.append(_stamp(stamp, where))
            watts.append(columns.watts * _number(row[columns.power], where))
            if stamps[-1] < max(stamps[-2:]):
                raise MeterError(f"{where}: time stamp {_shown(stamp)} is before the last one")
        return stamps, watts

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        try:
            if not self.path.exists():
                raise OSError("there is no such file; start the meter's log first")
            if not self.path.is_file():
                raise OSError("it is not a regular file")
            text = self.path.read_bytes().decode("utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise MeterError(f"the power log {self.path} cannot be read: {error}") from error
        rows = csv.reader(io.StringIO(text[: text.rfind("\n") + 1], newline=""))
        try:
            for row in rows:
                if any(cell.strip() for cell in row):
                    yield rows.line_num, [cell.strip() for cell in row]
        except csv.Error as error:
            raise MeterError(f"{self.path}, line {rows.line_num}: {error}") from error


def _shown(cells: str | list[str]) -> str:
    return repr((cells if isinstance(cells, str) else ",".join(cells))[:60])


class _Columns(NamedTuple):
    """Columns of the stamp (one, or date and time) and of the power, and the watts of its unit."""

    stamp: tuple[int, ...]
    power: int
    watts: float


def _header(row: list[str], where: str) -> _Columns | None:
    words = [re.split(r"[^a-z]+", cell.lower()) for cell in row]
    of_name: dict[str, list[int]] = {}
    for i, cell in enumerate(words):
        names = [] if _OTHERS & {*cell} else [_NAMES[word] for word in cell if word in _NAMES]
        of_name.setdefault(names[0] if names else "", []).append(i)
    dates, times, powers = (of_name.get(name, []) for name in ("date", "time", "power"))
    if not dates and not times and not powers:
        return None
    if len(powers) != 1 or len(dates) > 1 or len(times) > 1 or not dates + times:
        raise MeterError(f"{where}: {_shown(row)} must name one column time and one watts")
    units = [_WATTS_OF_UNIT[word] for word in words[powers[0]] if word in _WATTS_OF_UNIT]
    return _Columns((*dates, *times), powers[0], units[-1] if units else 1.0)


def _stamp(text: str, where: str) -> float:
    stamp = math.nan
    try:
        stamp = float(text)
    except ValueError:
        with suppress(ValueError, OverflowError, OSError):
            stamp = datetime.fromisoformat(text.replace("/", "-")).timestamp()
    if not 0 <= stamp < 1e11:  # the year 5138; larger numbers are milliseconds
        raise MeterError(f"{where}: {_shown(text)} is not a time stamp in Unix seconds or ISO 8601")
    if stamp > time.time() + _MOST_AHEAD_SECONDS:
        raise MeterError(f"{where}: {_shown(text)} is in the future; compare the meter's clock")
    return stamp


def _number(text: str, where: str) -> float:
    with suppress(ValueError):
        if 0 <= (watts := float(text)) < _MOST_WATTS:
            return watts
    raise MeterError(f"{where}: {_shown(text)} is not a number of watts")


def _median_step(stamps: list[float]) -> float:
    steps = [b - a for a, b in pairwise(stamps) if b > a]
    return statistics.median(steps) if steps else 1.0


def _not_covered(stamps: list[float], start: float, end: float) -> str:
    if not stamps:
        return "the log has no samples"
    if stamps[0] > start or stamps[-1] < end:
        return f"the log covers {_local(stamps[0])} to {_local(stamps[-1])}"
    widest = TRUSTED_RESOLUTIONS * _median_step(stamps)
    for a, b in pairwise(stamps):
        if b - a > widest and a < end and b > start:
            return f"the log has nothing between {_local(a)} and {_local(b)}"
    return ""


def _local(unix_seconds: float) -> str:
    return datetime.fromtimestamp(unix_seconds).astimezone().isoformat(timespec="milliseconds")
