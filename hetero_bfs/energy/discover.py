"""Finds this machine's meters: RAPL through powercap, INA sensors of rails, then the device's.

The device's meter is NVML's, hwmon's or a Jetson's rail.
"""

from __future__ import annotations

import re
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from hetero_bfs.energy.meters import (
    POWER_POLL_SECONDS,
    Domain,
    Meter,
    MeterError,
    SensorMeter,
    Unmeasured,
)
from hetero_bfs.energy.power_log import PowerLog

GPU_DRIVERS = {"amdgpu": ("amd", "radeon", "gfx"), "i915": ("arc(tm)",), "xe": ("arc(tm)",)}
"""hwmon names of GPU drivers. The name of each driver's OpenCL device contains one of the words."""

RAILS: dict[str, Domain] = {
    **dict.fromkeys(("VDD_IN", "POM_5V_IN"), "system"),
    **dict.fromkeys(("CPU", "VDD_CPU", "VDD_SYS_CPU", "POM_5V_CPU"), "cpu"),
    **dict.fromkeys(("GPU", "VDD_GPU", "VDD_SYS_GPU", "POM_5V_GPU"), "device"),
}
"""Labels of INA sensors on Jetson modules. A rail of more than one unit is in no domain."""

JETSON_GPUS = ("tegra", "xavier", "orin")
"""Names of Jetson modules' OpenCL devices contain one of the words."""

_T = TypeVar("_T")


def find_meters(
    device_name: str | None,
    device_pci: str | None = None,
    power_log: Path | None = None,
    sysfs: Path = Path("/sys"),
) -> tuple[list[Meter], list[Unmeasured]]:
    """Find the meters of this machine and its OpenCL device.

    device_name : None if the device is this CPU
    device_pci : PCI address such as "0000:3b:00.0"; without it the name must match a single device
    power_log : log of an external meter; it must exist and may grow
    """
    rails, device = _rails(sysfs / "class" / "hwmon"), _device(device_name, device_pci, sysfs)
    on_module = device_pci is None and any(w in (device_name or "").lower() for w in JETSON_GPUS)
    if on_module and isinstance(device, Unmeasured):
        device = next((rail for rail in rails if rail.domain == "device"), device)
    rails = [rail for rail in rails if rail.domain != "device"]
    found = [*_rapl(sysfs / "class" / "powercap"), *rails]
    if not any(meter.domain == "cpu" for meter in found):
        reason = f"absent: no intel-rapl zone under {sysfs}/class/powercap"
        found.append(Unmeasured("RAPL", "cpu", reason))
    found.append(device)
    if power_log is not None:  # last: its `stop` may wait, and no other meter should measure that
        found.append(PowerLog(power_log))
    if not any(meter.domain == "system" for meter in found):
        reason = f"absent: no power log given and no psys zone under {sysfs}/class/powercap"
        found.append(Unmeasured("whole system", "system", reason))
    unmeasured = [meter for meter in found if isinstance(meter, Unmeasured)]
    return [meter for meter in found if not isinstance(meter, Unmeasured)], unmeasured


def _rapl(powercap: Path) -> list[Meter | Unmeasured]:
    """Return meters of packages, their memory and psys; a package includes cores and graphics."""
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
    return found


def _rapl_meter(name: str, domain: Domain, zone: Path) -> Meter | Unmeasured:
    try:
        range_joules = _micro(zone / "max_energy_range_uj")
        read = partial(_micro, zone / "energy_uj")
        read()
    except MeterError as error:
        return Unmeasured(name, domain, str(error))
    return SensorMeter(name, domain, read, 0.01, range_joules)


def _rails(hwmon: Path) -> list[Meter | Unmeasured]:
    """Return meters of the `RAILS` that INA sensors measure, and sensors without any label."""
    found: list[Meter | Unmeasured] = []
    for folder in sorted(hwmon.glob("hwmon*")):
        chip = _label(folder)
        if not chip.startswith("ina"):
            continue
        labels = {file.name[2]: _label(folder, file.name) for file in folder.glob("in[1-3]_label")}
        for channel, rail in sorted((labels or {"1": _label(folder, "label")}).items()):
            if rail in RAILS:
                found.append(_rail_meter(f"{chip} {rail}", RAILS[rail], folder, channel))
            elif not rail:
                reason = f"absent: {folder} has no label, so its rail is unknown"
                found.append(Unmeasured(f"{chip} {folder.name}", "system", reason))
    return found


def _rail_meter(name: str, domain: Domain, folder: Path, channel: str) -> Meter | Unmeasured:
    read = partial(_rail_watts, folder, channel)
    try:
        read()
    except MeterError as error:
        return Unmeasured(name, domain, str(error))
    return SensorMeter(name, domain, read, 2 * POWER_POLL_SECONDS, power=True)


def _rail_watts(folder: Path, channel: str) -> float:
    if (folder / f"power{channel}_input").exists():
        return _micro(folder / f"power{channel}_input")
    millivolts, milliamperes = folder / f"in{channel}_input", folder / f"curr{channel}_input"
    return _micro(millivolts) * 1e3 * (_micro(milliamperes) * 1e3)


def _label(folder: Path, file: str = "name") -> str:
    try:
        return (folder / file).read_text().strip()
    except OSError:
        return ""


def _micro(path: Path) -> float:
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
    match = re.fullmatch(r"(?:(\w+):)?(\w+):(\w+)(?:\.(\d))?", text)
    try:
        return tuple(int(part or "0", 16) for part in match.groups()) if match else None
    except ValueError:
        return None


def _nvml(function: str, *arguments: Any) -> Any:
    """Call a function of NVML. It is imported here since most machines lack its driver."""
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
