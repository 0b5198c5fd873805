"""Energy of searches: NVML, RAPL, hwmon and the log of an external power meter.

Every meter belongs to one domain: "cpu" (processor packages and their memory), "device" (the
OpenCL device's board) or "system" (the whole machine: psys, or a meter at the wall). Domains are
never added up: the system contains the other two. What is not measured is an `Unmeasured` with
its reason, never 0. In order: sensors, power log, finding them, measuring, the report.
"""

from __future__ import annotations

import csv
import io
import math
import re
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

import numpy as np

from hetero_bfs.errors import HeteroBFSError

Domain = Literal["cpu", "device", "system"]
DOMAINS: tuple[Domain, ...] = ("cpu", "device", "system")

TRUSTED_RESOLUTIONS = 10
"""A measurement lasts at least this many times every meter's resolution, idle or busy."""

MOST_WATTS = 500
"""What one RAPL zone may draw for long; from this follows how soon its counter can wrap."""

POWER_POLL_SECONDS = 0.05
GPU_DRIVERS = {"amdgpu": ("amd", "radeon", "gfx"), "i915": ("arc(tm)",), "xe": ("arc(tm)",)}
"""hwmon names of GPU drivers; the name of an OpenCL device it drives holds one of the words."""

_T = TypeVar("_T")


class MeterError(HeteroBFSError, RuntimeError):
    """A meter that cannot be read; the message is the reason that a report gives."""


class Meter(Protocol):
    """One energy meter; `resolution_seconds` says how coarse its readings are in time."""

    name: str
    domain: Domain
    resolution_seconds: float

    def start(self) -> None:
        """Begin a measurement; a sensor that fails here is reported by `stop`."""
        ...

    def stop(self) -> float:
        """Return the joules since `start`; raise `MeterError` if they are not known."""
        ...


@dataclass(frozen=True)
class Unmeasured:
    """A meter that gives no value, and why."""

    name: str
    domain: Domain
    reason: str


@dataclass(eq=False)
class SensorMeter:
    """Adds up joules between readings: at both ends and, with `poll_seconds`, in a thread.

    `read` returns joules of a counter, which wraps around at `range_joules`, or, of a `power`
    sensor, watts, which are integrated by trapezoids.
    """

    name: str
    domain: Domain
    read: Callable[[], float]
    resolution_seconds: float
    range_joules: float | None = None
    power: bool = False

    @property
    def poll_seconds(self) -> float | None:
        """Seconds between readings of the thread; None if both ends are enough."""
        if self.power:
            return POWER_POLL_SECONDS
        # Four readings in the shortest time to wrap around: no wrap is missed.
        return None if self.range_joules is None else self.range_joules / MOST_WATTS / 4

    def start(self) -> None:
        """Take the first reading and start the polling thread, if there is one."""
        self._joules = 0.0
        self._last: tuple[float, float] | None = None
        self._error: MeterError | None = None
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._poll, daemon=True)
        self._sample()
        if self.poll_seconds is not None:
            self._thread.start()

    def stop(self) -> float:
        """Take the last reading and return the joules since `start`."""
        self._done.set()
        if self.poll_seconds is not None:
            self._thread.join()
        self._sample()
        if self._error is not None:
            raise self._error
        return self._joules

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


class PowerLog:
    """The meter behind a CSV file that it writes, perhaps still: time stamp and watts.

    A header may name the columns (time, timestamp or date; watts, w, power or p; a unit after it
    is ignored) among others; without one they are the first two. A stamp is Unix seconds or
    ISO 8601, local time if it names no zone. A last line without its newline may still be in
    writing and is left out. The file is read anew at every call; one that cannot be understood
    is a `MeterError` that names file, line and value.
    """

    domain: Domain = "system"

    def __init__(self, path: Path) -> None:
        self.path, self.name = Path(path), f"power log {Path(path).name}"
        self.resolution_seconds = _usual_step(self.samples()[0])
        self.patience_seconds = 2 * self.resolution_seconds + 1

    def start(self) -> None:
        """Remember the wall-clock time."""
        self._start = time.time()

    def stop(self) -> float:
        """Return the joules since `start`, once the log has reached now; wait so long at most."""
        end = time.time()
        while isinstance(joules := self.joules(self._start, end), Unmeasured):
            if time.time() >= end + self.patience_seconds:
                raise MeterError(joules.reason)
            time.sleep(0.1)
        return joules

    def joules(self, start_unix_seconds: float, end_unix_seconds: float) -> float | Unmeasured:
        """Integrate over an interval that the log must cover, interpolating at its ends.

        Two samples ten times as far apart as is usual in this log are a gap, not covered.
        """
        start, end = start_unix_seconds, end_unix_seconds
        stamps, watts = self.samples()
        if problem := _not_covered(stamps, start, end):
            wanted = f"the measurement lasts from {_local(start)} to {_local(end)}"
            return Unmeasured(self.name, self.domain, f"{problem}; {wanted}")
        inside = [i for i, stamp in enumerate(stamps) if start < stamp < end]
        times = np.array([start, *(stamps[i] for i in inside), end])
        power = np.interp(times, stamps, watts)
        power[1:-1] = [watts[i] for i in inside]  # of equal stamps interp sees only one
        return float(np.sum(np.diff(times) * (power[1:] + power[:-1]) / 2))

    def samples(self) -> tuple[list[float], list[float]]:
        """Return stamps (Unix seconds, never falling) and watts."""
        stamps: list[float] = []
        watts: list[float] = []
        columns: tuple[int, int] | None = None
        for line, row in self._rows():
            where = f"{self.path}, line {line}"
            if columns is None:
                columns = _header(row, where)
                if columns is not None:
                    continue
                columns = (0, 1)
            if len(row) <= max(columns):
                raise MeterError(f"{where}: {','.join(row)!r} has no column {max(columns) + 1}")
            stamps.append(_stamp(row[columns[0]], where))
            watts.append(_watts(row[columns[1]], where))
            if stamps[-1] < max(stamps[-2:]):
                raise MeterError(f"{where}: time stamp {row[columns[0]]!r} is before the last one")
        return stamps, watts

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        try:
            text = self.path.read_bytes().decode("utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise MeterError(f"the power log {self.path} cannot be read: {error}") from error
        rows = csv.reader(io.StringIO(text[: text.rfind("\n") + 1], newline=""))
        for row in rows:
            if any(cell.strip() for cell in row):
                yield rows.line_num, [cell.strip() for cell in row]


def _header(row: list[str], where: str) -> tuple[int, int] | None:
    words = [re.split(r"[^a-z]", cell.lower(), maxsplit=1)[0] for cell in row]
    times = [i for i, word in enumerate(words) if word in ("time", "timestamp", "date")]
    powers = [i for i, word in enumerate(words) if word in ("watts", "w", "power", "p")]
    if not times and not powers:
        return None
    if len(times) != 1 or len(powers) != 1:
        raise MeterError(f"{where}: {','.join(row)!r} must name one column time and one watts")
    return times[0], powers[0]


def _stamp(text: str, where: str) -> float:
    stamp = math.nan
    try:
        stamp = float(text)
    except ValueError:
        with suppress(ValueError, OverflowError, OSError):
            stamp = datetime.fromisoformat(text).timestamp()
    if not 0 <= stamp < 1e11:  # the year 5138; more are milliseconds
        raise MeterError(f"{where}: {text!r} is not a time stamp in Unix seconds or ISO 8601")
    return stamp


def _watts(text: str, where: str) -> float:
    with suppress(ValueError):
        if 0 <= (watts := float(text)) < math.inf:
            return watts
    raise MeterError(f"{where}: {text!r} is not a number of watts")


def _usual_step(stamps: list[float]) -> float:
    steps = [b - a for a, b in pairwise(stamps) if b > a]
    return statistics.median(steps) if steps else 1.0


def _not_covered(stamps: list[float], start: float, end: float) -> str:
    if not stamps:
        return "the log has no samples"
    if stamps[0] > start or stamps[-1] < end:
        return f"the log covers {_local(stamps[0])} to {_local(stamps[-1])}"
    widest = TRUSTED_RESOLUTIONS * _usual_step(stamps)
    for a, b in pairwise(stamps):
        if b - a > widest and a < end and b > start:
            return f"the log has nothing between {_local(a)} and {_local(b)}"
    return ""


def _local(unix_seconds: float) -> str:
    return datetime.fromtimestamp(unix_seconds).astimezone().isoformat(timespec="milliseconds")


def find_meters(
    device_name: str | None,
    device_pci: str | None = None,
    power_log: Path | None = None,
    sysfs: Path = Path("/sys"),
) -> tuple[list[Meter], list[Unmeasured]]:
    """Find what measures this machine and its OpenCL device.

    Parameters
    ----------
    device_name : str or None
        The OpenCL device's name; None if the device is this CPU.
    device_pci : str or None
        Its PCI address, such as "0000:3b:00.0"; without it the name must fit one device only.
    power_log : Path or None
        The log of an external meter; it must exist and may grow.
    sysfs : Path

    Raises
    ------
    MeterError
        A power log or a PCI address that cannot be understood.
    """
    found = [*_rapl(sysfs / "class" / "powercap"), _device(device_name, device_pci, sysfs)]
    if power_log is not None:  # last: its `stop` may wait, which no other meter should count
        found.append(PowerLog(power_log))
    if not any(meter.domain == "system" for meter in found):
        reason = f"absent: no power log given and no psys zone under {sysfs}/class/powercap"
        found.append(Unmeasured("whole system", "system", reason))
    unmeasured = [meter for meter in found if isinstance(meter, Unmeasured)]
    return [meter for meter in found if not isinstance(meter, Unmeasured)], unmeasured


def _rapl(powercap: Path) -> list[Meter | Unmeasured]:
    """Packages and their memory; cores and graphics are inside a package, psys around it."""
    nested = powercap.glob("intel-rapl:*/intel-rapl:*")
    zones = {zone.name: zone for zone in (*nested, *powercap.glob("intel-rapl:*"))}
    found: list[Meter | Unmeasured] = []
    for key in sorted(zones, key=lambda key: [int(part) for part in key.split(":")[1:]]):
        label = _label(zones[key])
        is_memory = label == "dram" and key.count(":") == 2
        if is_memory:
            label = f"{_label(zones[key.rpartition(':')[0]])} dram"
        if is_memory or label.startswith(("package", "psys")):
            domain: Domain = "system" if label.startswith("psys") else "cpu"
            found.append(_rapl_meter(f"RAPL {label}", domain, zones[key]))
    if not any(meter.domain == "cpu" for meter in found):
        found.append(Unmeasured("RAPL", "cpu", f"absent: no intel-rapl zone under {powercap}"))
    return found


def _rapl_meter(name: str, domain: Domain, zone: Path) -> Meter | Unmeasured:
    try:
        range_joules = _micro(zone / "max_energy_range_uj")
        read = partial(_micro, zone / "energy_uj")
        read()
    except MeterError as error:
        return Unmeasured(name, domain, str(error))
    return SensorMeter(name, domain, read, 0.01, range_joules)


def _label(folder: Path) -> str:
    try:
        return (folder / "name").read_text().strip()
    except OSError:
        return ""


def _micro(path: Path) -> float:
    """Read a number of micro-units from sysfs."""
    try:
        return int(path.read_text()) / 1e6
    except PermissionError as error:
        raise MeterError(
            f"permission: {path} is readable by root only; run `sudo chmod a+r {path}`"
        ) from error
    except (OSError, ValueError) as error:
        raise MeterError(f"absent: {path} cannot be read: {error}") from error


def _device(name: str | None, pci: str | None, sysfs: Path) -> Meter | Unmeasured:
    if name is None:
        reason = "the OpenCL device is this CPU; its energy is in the cpu domain"
        return Unmeasured("OpenCL device", "device", reason)
    address = None if pci is None else _pci(pci)
    if pci is not None and address is None:
        raise MeterError(f"{pci!r} is not a PCI address; give it like 0000:3b:00.0")
    reasons = []
    for find in (_nvml_meter, partial(_hwmon_meter, sysfs=sysfs)):
        try:
            return find(name, address)
        except MeterError as error:
            reasons.append(str(error))
    return Unmeasured(name, "device", "; ".join(reasons))


def _pci(text: str) -> tuple[int, ...] | None:
    """Domain, bus, device and function: drivers write the same address in several ways."""
    match = re.fullmatch(r"(?:(\w+):)?(\w+):(\w+)(?:\.(\d))?", text)
    try:
        return tuple(int(part or "0", 16) for part in match.groups()) if match else None
    except ValueError:
        return None


def _nvml(function: str, *arguments: Any) -> Any:
    """Call a function of NVML; it is imported here because most machines lack its driver."""
    try:
        pynvml: Any = import_module("pynvml")
    except ImportError as error:
        raise MeterError("absent: the Python package nvidia-ml-py is not installed") from error
    try:
        return getattr(pynvml, function)(*arguments)
    except pynvml.NVMLError as error:
        denied = error.value == pynvml.NVML_ERROR_NO_PERMISSION
        kind = "permission" if denied else "absent"
        raise MeterError(f"{kind}: {function} says {error}") from error


def _nvml_meter(name: str, pci: tuple[int, ...] | None) -> Meter:
    _nvml("nvmlInit")
    fitting, refused = [], None
    for i in range(_nvml("nvmlDeviceGetCount")):
        try:
            handle = _nvml("nvmlDeviceGetHandleByIndex", i)
            if pci is not None:
                fits = pci == _pci(_text(_nvml("nvmlDeviceGetPciInfo", handle).busId))
            else:
                fits = _text(_nvml("nvmlDeviceGetName", handle)).lower() == name.lower()
        except MeterError as error:  # such as another container's device
            fits, refused = False, error
        if fits:
            fitting.append(handle)
    if not fitting and refused is not None:
        raise refused
    handle = _only(fitting, "NVML device", name, pci)
    label = f"NVML {_text(_nvml('nvmlDeviceGetName', handle))}"
    energy = partial(_thousandth, "nvmlDeviceGetTotalEnergyConsumption", handle)
    power = partial(_thousandth, "nvmlDeviceGetPowerUsage", handle)
    try:
        energy()
    except MeterError:  # before Volta, or a virtual GPU
        power()
        return SensorMeter(label, "device", power, 2 * POWER_POLL_SECONDS, power=True)
    return SensorMeter(label, "device", energy, 0.1)


def _thousandth(function: str, handle: Any) -> float:
    return float(_nvml(function, handle)) / 1e3


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _only(fitting: list[_T], kind: str, name: str, pci: tuple[int, ...] | None) -> _T:
    if len(fitting) == 1:
        return fitting[0]
    wanted = f"is called {name!r}" if pci is None else "has {:04x}:{:02x}:{:02x}.{}".format(*pci)
    if not fitting:
        raise MeterError(f"absent: no {kind} {wanted}")
    raise MeterError(f"ambiguous: {len(fitting)} times {kind} {wanted}; give its PCI address")


def _hwmon_meter(name: str, pci: tuple[int, ...] | None, sysfs: Path) -> Meter:
    cards = sysfs.glob("class/drm/card*/device/hwmon/hwmon*")
    folders = {folder.name: folder for folder in (*cards, *sysfs.glob("class/hwmon/hwmon*"))}
    fitting = []
    for folder in folders.values():
        words = GPU_DRIVERS.get(_label(folder), ())
        if pci is not None:
            places = (folder / "device").resolve(), folder.resolve().parent.parent
            fits = bool(words) and pci in [_pci(place.name) for place in places]
        else:
            fits = any(word in name.lower() for word in words)
        if fits:
            fitting.append(folder)
    folder = _only(fitting, f"hwmon sensor of {' or '.join(GPU_DRIVERS)}", name, pci)
    return _hwmon_sensor(folder, f"{_label(folder)} {folder.name}")


def _hwmon_sensor(folder: Path, label: str) -> Meter:
    refused = MeterError(f"absent: {folder} has neither energy1_input nor power1_average")
    for file in ("energy1_input", "power1_average", "power1_input"):
        if (folder / file).exists():
            read = partial(_micro, folder / file)
            try:
                read()
            except MeterError as error:
                refused = error
                continue
            power = file.startswith("power")
            return SensorMeter(label, "device", read, 2 * POWER_POLL_SECONDS, power=power)
    raise refused


@dataclass(frozen=True)
class MeterReading:
    """What one meter, or a domain's together, measured; None where idle is unmeasured."""

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


@dataclass(frozen=True)
class EnergyReport:
    """What all meters measured over the same searches.

    `totals` has one entry per measured domain, named by the meters in it. `searches`, traversed
    edges `nedge` and `seconds`, over all repetitions, are None if nothing was run.
    """

    searches: int | None
    nedge: int | None
    seconds: float | None
    meters: list[MeterReading]
    totals: list[MeterReading]
    unmeasured: list[Unmeasured]

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON has it; a value that is None is unmeasured."""
        return asdict(self)


def measure(
    run_searches: Callable[[], tuple[int, int]],
    meters: Sequence[Meter],
    unmeasured: Sequence[Unmeasured],
    minimum_seconds: float = 3.0,
    idle_seconds: float = 1.0,
) -> EnergyReport:
    """Measure the idle machine, then repeat searches until the meters can be trusted.

    Parameters
    ----------
    run_searches : callable
        Runs a batch of searches, compiled and warm, and returns (searches, traversed edges).
    meters, unmeasured
        From `find_meters`. Without meters nothing runs.
    minimum_seconds, idle_seconds : float
        Both grow to `TRUSTED_RESOLUTIONS` times the coarsest meter's resolution;
        `idle_seconds=0` leaves idle unmeasured.
    """
    if not meters:
        return EnergyReport(None, None, None, [], [], list(unmeasured))
    trusted = TRUSTED_RESOLUTIONS * max(meter.resolution_seconds for meter in meters)
    idle: list[float | str] = ["no idle time was asked for"] * len(meters)
    idle_span = 0.0
    if idle_seconds > 0:
        _, idle_span, idle = _metered(meters, partial(time.sleep, max(idle_seconds, trusted)))
    repeat = partial(_repeat, run_searches, max(minimum_seconds, trusted))
    (searches, nedge), seconds, busy = _metered(meters, repeat)
    readings: list[MeterReading] = []
    missing = list(unmeasured)
    for meter, joules, rest in zip(meters, busy, idle, strict=True):
        if isinstance(joules, str):
            missing.append(Unmeasured(meter.name, meter.domain, joules))
            continue
        if isinstance(rest, str):
            missing.append(Unmeasured(f"{meter.name}, idle", meter.domain, rest))
        watts = None if isinstance(rest, str) else rest / idle_span
        name, domain = meter.name, meter.domain
        readings.append(_reading(name, domain, joules, seconds, watts, searches, nedge))
    totals = _totals(readings, nedge)
    return EnergyReport(searches, nedge, seconds, readings, totals, missing)


def _metered(
    meters: Sequence[Meter], work: Callable[[], _T]
) -> tuple[_T, float, list[float | str]]:
    """Return work's result, its seconds, and per meter joules or why there are none."""
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
    searches: int,
    nedge: int,
) -> MeterReading:
    watts = joules / seconds
    net_joules = None if idle_watts is None else joules - idle_watts * seconds
    mteps = nedge / seconds / 1e6
    each = joules / searches
    return MeterReading(
        name, domain, joules, seconds, watts, idle_watts, net_joules, searches, each, mteps / watts
    )


def _totals(readings: list[MeterReading], nedge: int) -> list[MeterReading]:
    """Add up each domain; of system meters, which contain each other, take the largest."""
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
            inside[0].searches,
            nedge,
        )
        totals.append(total)
    return totals


def format_report(report: EnergyReport) -> str:
    """Return lines to print: a table of meters and domains, then what is unmeasured and why."""
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
