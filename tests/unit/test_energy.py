"""Meters on fake sysfs trees, a fake NVML and written logs; reports with exact arithmetic."""

import errno
import json
import sys
import types
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hetero_bfs import energy
from hetero_bfs.energy import (
    EnergyReport,
    MeterError,
    PowerLog,
    SensorMeter,
    Unmeasured,
    find_meters,
    format_report,
    measure,
)


class FakeTime:
    """A clock that only `sleep` and the tests move; replaces the module `time`."""

    def __init__(self, now=1_700_000_000.0):
        self.now = now

    def time(self):
        return self.now

    perf_counter = time

    def sleep(self, seconds):
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    fake = FakeTime()
    monkeypatch.setattr(energy, "time", fake)
    return fake


@pytest.fixture
def no_thread(monkeypatch):
    """The polling thread starts but does not get to its first reading."""
    monkeypatch.setattr(energy, "POWER_POLL_SECONDS", 1000.0)


@pytest.fixture(autouse=True)
def no_nvml(monkeypatch):
    """No test sees the machine's own NVML; `None` makes the import fail."""
    monkeypatch.setitem(sys.modules, "pynvml", None)


def by_name(entries):
    return {entry.name: entry for entry in entries}


def write(folder, **files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in files.items():
        (folder / name).write_text(f"{value}\n")
    return folder


def zone(sysfs, key, name, microjoules=1_000_000, wraps_at=262_143_328_850):
    folder = sysfs / "class" / "powercap" / f"intel-rapl:{key}"
    return write(folder, name=name, energy_uj=microjoules, max_energy_range_uj=wraps_at)


# RAPL


def test_rapl_measures_packages_and_memory_but_not_what_they_contain(tmp_path):
    zone(tmp_path, "0", "package-0")
    zone(tmp_path, "0:0", "core")
    zone(tmp_path, "0:1", "dram")
    zone(tmp_path, "1", "package-1")
    zone(tmp_path, "10", "psys")
    meters, unmeasured = find_meters(None, sysfs=tmp_path)
    assert [(m.name, m.domain) for m in meters] == [
        ("RAPL package-0", "cpu"),
        ("RAPL package-0 dram", "cpu"),
        ("RAPL package-1", "cpu"),
        ("RAPL psys", "system"),
    ]
    assert [m.domain for m in unmeasured] == ["device"]


def test_rapl_zone_seen_flat_and_nested_counts_once(tmp_path):
    package = zone(tmp_path, "0", "package-0")
    memory = write(package / "intel-rapl:0:0", name="dram", energy_uj=1, max_energy_range_uj=9)
    (tmp_path / "class" / "powercap" / memory.name).symlink_to(memory)
    names = [meter.name for meter in find_meters(None, sysfs=tmp_path)[0]]
    assert names == ["RAPL package-0", "RAPL package-0 dram"]


def test_rapl_counts_joules_between_start_and_stop(tmp_path):
    folder = zone(tmp_path, "0", "package-0", 5_000_000)
    ((meter,), _) = find_meters(None, sysfs=tmp_path)
    meter.start()
    write(folder, energy_uj=17_500_000)
    assert meter.stop() == 12.5
    meter.start()
    write(folder, energy_uj=18_000_000)
    assert meter.stop() == 0.5


def test_rapl_counter_that_wraps_around(tmp_path):
    folder = zone(tmp_path, "0", "package-0", 999_000_000, wraps_at=1_000_000_000)
    ((meter,), _) = find_meters(None, sysfs=tmp_path)
    meter.start()
    write(folder, energy_uj=2_000_000)
    assert meter.stop() == 3.0


def test_rapl_thread_sees_every_wrap():
    values = iter([90.0, 10.0, 95.0, 5.0, 50.0])  # rises 20, 85, 10, 45; later readings stay
    seen = []

    def read():
        seen.append(next(values, 50.0))
        return seen[-1]

    meter = SensorMeter("counter", "cpu", read, 0.01, range_joules=100.0)
    assert meter.poll_seconds == 100 / energy.MOST_WATTS / 4
    meter.start()
    while len(seen) < 5:
        energy.time.sleep(0.001)
    assert meter.stop() == 160.0


def test_rapl_is_polled_several_times_before_it_can_wrap(tmp_path):
    zone(tmp_path, "0", "package-0")
    ((meter,), _) = find_meters(None, sysfs=tmp_path)
    assert meter.poll_seconds * energy.MOST_WATTS <= meter.range_joules / 2


def test_rapl_absent(tmp_path):
    meters, unmeasured = find_meters(None, sysfs=tmp_path)
    assert meters == []
    reason = f"absent: no intel-rapl zone under {tmp_path}/class/powercap"
    assert Unmeasured("RAPL", "cpu", reason) in unmeasured


def deny(monkeypatch, name, error=None):
    """Root reads everything, so refuse the file by name."""
    real = Path.read_text

    def read_text(self, *args, **kwargs):
        if self.name == name:
            raise error or PermissionError(errno.EACCES, "Permission denied", str(self))
        return real(self, *args, **kwargs)

    monkeypatch.setattr(Path, "read_text", read_text)


def test_rapl_without_permission_says_how_to_get_it(tmp_path, monkeypatch):
    path = zone(tmp_path, "0", "package-0") / "energy_uj"
    deny(monkeypatch, "energy_uj")
    meters, unmeasured = find_meters(None, sysfs=tmp_path)
    assert meters == []
    found = by_name(unmeasured)["RAPL package-0"]
    assert found.domain == "cpu"
    assert found.reason == (
        f"permission: {path} is readable by root only; run `sudo chmod a+r {path}`"
    )
    assert "RAPL" not in by_name(unmeasured)


def test_rapl_that_loses_permission_midway_is_unmeasured(tmp_path, monkeypatch, clock):
    zone(tmp_path, "0", "package-0")
    meters, unmeasured = find_meters(None, sysfs=tmp_path)
    deny(monkeypatch, "energy_uj")
    report = measure(searches_of(clock, 1.0), meters, unmeasured)
    assert report.meters == []
    reasons = [m.reason for m in report.unmeasured if m.name == "RAPL package-0"]
    assert len(reasons) == 1
    assert reasons[0].startswith("permission: ")


def test_rapl_with_a_malformed_counter(tmp_path):
    zone(tmp_path, "0", "package-0", "n/a")
    meters, unmeasured = find_meters(None, sysfs=tmp_path)
    assert meters == []
    assert "energy_uj cannot be read" in by_name(unmeasured)["RAPL package-0"].reason


# NVML


class NVMLError(Exception):
    def __init__(self, value, text="Not Supported"):
        super().__init__(text)
        self.value = value


class FakeNVML(types.ModuleType):
    """Devices are dicts; a value that is an exception is raised."""

    NVMLError = NVMLError
    NVML_ERROR_NO_PERMISSION = 4

    def __init__(self, *devices, init=None):
        super().__init__("pynvml")
        self.devices, self.init = devices, init

    def _get(self, device, key):
        if isinstance(device[key], Exception):
            raise device[key]
        return device[key]

    def nvmlInit(self):
        if self.init is not None:
            raise self.init

    def nvmlDeviceGetCount(self):
        return len(self.devices)

    def nvmlDeviceGetHandleByIndex(self, index):
        if isinstance(self.devices[index], Exception):
            raise self.devices[index]
        return self.devices[index]

    def nvmlDeviceGetName(self, device):
        return device["name"]

    def nvmlDeviceGetPciInfo(self, device):
        return types.SimpleNamespace(busId=device["pci"])

    def nvmlDeviceGetTotalEnergyConsumption(self, device):
        return self._get(device, "millijoules")

    def nvmlDeviceGetPowerUsage(self, device):
        return self._get(device, "milliwatts")


def gpu(name="NVIDIA H200", pci="00000000:3B:00.0", millijoules=1000, milliwatts=200_000):
    return {"name": name, "pci": pci, "millijoules": millijoules, "milliwatts": milliwatts}


@pytest.fixture
def nvml(monkeypatch):
    def install(*devices, init=None):
        monkeypatch.setitem(sys.modules, "pynvml", FakeNVML(*devices, init=init))

    return install


def device_of(found):
    meters, unmeasured = found
    (entry,) = [entry for entry in (*meters, *unmeasured) if entry.domain == "device"]
    return entry


def test_nvml_energy_counter(tmp_path, nvml):
    other, mine = gpu("NVIDIA T4"), gpu(millijoules=5_000)
    nvml(other, mine)
    meter = device_of(find_meters("NVIDIA H200", sysfs=tmp_path))
    assert meter.name == "NVML NVIDIA H200"
    meter.start()
    mine["millijoules"] = 12_250
    assert meter.stop() == 7.25
    assert meter.poll_seconds is None


def test_nvml_counter_that_goes_back_has_no_joules(tmp_path, nvml):
    device = gpu(millijoules=5_000)
    nvml(device)
    meter = device_of(find_meters("NVIDIA H200", sysfs=tmp_path))
    meter.start()
    device["millijoules"] = 1_000  # the driver was loaded anew
    with pytest.raises(MeterError, match=r"back from 5.0 J to 1.0 J"):
        meter.stop()


def test_nvml_without_energy_counter_integrates_power(tmp_path, nvml, clock, no_thread):
    device = gpu(millijoules=NVMLError(3), milliwatts=100_000)
    nvml(device)
    meter = device_of(find_meters("NVIDIA H200", sysfs=tmp_path))
    meter.start()
    clock.sleep(2)
    device["milliwatts"] = 300_000
    meter._sample()
    clock.sleep(1)
    assert meter.stop() == 2 * 200.0 + 1 * 300.0


def test_power_is_sampled_in_a_thread():
    watts = []

    def read():
        watts.append(10.0)
        return 10.0

    meter = SensorMeter("power", "device", read, 0.1, power=True)
    meter.start()
    while len(watts) < 4:
        energy.time.sleep(0.001)
    joules = meter.stop()
    assert len(watts) >= 5
    assert joules > 0
    assert not meter._thread.is_alive()


def test_a_failure_in_the_thread_is_raised_by_stop(monkeypatch):
    monkeypatch.setattr(energy, "POWER_POLL_SECONDS", 0.001)
    calls = []

    def read():
        calls.append(None)
        if len(calls) > 1:
            raise MeterError(f"failure {len(calls)}")
        return 10.0

    meter = SensorMeter("power", "device", read, 0.1, power=True)
    meter.start()
    meter._thread.join()
    with pytest.raises(MeterError, match="failure 2"):
        meter.stop()


def test_nvml_device_by_pci_address(tmp_path, nvml):
    first, second = gpu(pci="00000000:3B:00.0"), gpu(pci=b"00000000:AF:00.0")
    nvml(first, second)
    meter = device_of(find_meters("NVIDIA H200", "0000:af:00.0", sysfs=tmp_path))
    meter.start()
    second["millijoules"] += 2_000
    assert meter.stop() == 2.0


def test_two_devices_of_one_name_are_not_guessed_between(tmp_path, nvml):
    nvml(gpu(), gpu(pci="00000000:AF:00.0"))
    found = device_of(find_meters("NVIDIA H200", sysfs=tmp_path))
    assert isinstance(found, Unmeasured)
    assert "ambiguous: 2 times NVML device" in found.reason
    assert "give its PCI address" in found.reason


def test_nvml_passes_over_devices_that_refuse(tmp_path, nvml):
    nvml(NVMLError(4, "Insufficient Permissions"), gpu())
    assert device_of(find_meters("NVIDIA H200", sysfs=tmp_path)).name == "NVML NVIDIA H200"


@pytest.mark.parametrize(
    ("devices", "init", "reason"),
    [
        ([gpu("NVIDIA T4")], None, "absent: no NVML device is called 'NVIDIA H200'"),
        ([], NVMLError(12, "Library Not Found"), "absent: nvmlInit says Library Not Found"),
        ([NVMLError(4, "Insufficient Permissions")], None, "permission: nvmlDeviceGetHandle"),
        (
            [gpu(millijoules=NVMLError(3), milliwatts=NVMLError(4, "Insufficient Permissions"))],
            None,
            "permission: nvmlDeviceGetPowerUsage says Insufficient Permissions",
        ),
    ],
)
def test_nvml_reasons(tmp_path, nvml, devices, init, reason):
    nvml(*devices, init=init)
    found = device_of(find_meters("NVIDIA H200", sysfs=tmp_path))
    assert isinstance(found, Unmeasured)
    assert found.name == "NVIDIA H200"
    assert reason in found.reason


def test_nvml_package_absent(tmp_path):
    found = device_of(find_meters("NVIDIA H200", sysfs=tmp_path))
    assert isinstance(found, Unmeasured)
    assert "absent: the Python package nvidia-ml-py is not installed" in found.reason
    assert "absent: no hwmon sensor" in found.reason


def test_the_cpu_as_opencl_device(tmp_path):
    found = device_of(find_meters(None, sysfs=tmp_path))
    assert found.reason == "the OpenCL device is this CPU; its energy is in the cpu domain"


# hwmon


def hwmon(sysfs, number, driver="amdgpu", pci="0000:03:00.0", **files):
    """As the kernel has it: the sensor under its PCI device, links from the classes."""
    device = sysfs / "devices" / pci
    folder = write(device / "hwmon" / f"hwmon{number}", name=driver, **files)
    (folder / "device").symlink_to(device)
    for link, target in ((f"hwmon/hwmon{number}", folder), (f"drm/card{number}/device", device)):
        path = sysfs / "class" / link
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)
    return folder


def test_amdgpu_power_in_microwatts(tmp_path, clock, no_thread):
    folder = hwmon(tmp_path, 3, power1_average=40_000_000)
    meter = device_of(find_meters("gfx1030", sysfs=tmp_path))
    assert meter.name == "amdgpu hwmon3"
    meter.start()
    clock.sleep(2)
    write(folder, power1_average=60_000_000)
    assert meter.stop() == 100.0


def test_amdgpu_energy_counter_is_preferred(tmp_path):
    folder = hwmon(tmp_path, 3, power1_average=40_000_000, energy1_input=1_000_000)
    meter = device_of(find_meters("gfx1030", sysfs=tmp_path))
    meter.start()
    write(folder, energy1_input=3_500_000)
    assert meter.stop() == 2.5


def test_amdgpu_found_under_drm_alone(tmp_path):
    card = tmp_path / "class" / "drm" / "card0" / "device"
    write(card / "hwmon" / "hwmon5", name="amdgpu", power1_input=7_000_000)
    meter = device_of(find_meters("AMD Radeon RX 7900", sysfs=tmp_path))
    assert (meter.name, meter.read()) == ("amdgpu hwmon5", 7.0)


def test_amdgpu_by_pci_address(tmp_path):
    hwmon(tmp_path, 3, pci="0000:03:00.0", power1_average=1)
    hwmon(tmp_path, 4, pci="0000:83:00.0", power1_average=1)
    meter = device_of(find_meters("gfx1030", "83:00.0", sysfs=tmp_path))
    assert meter.name == "amdgpu hwmon4"
    absent = device_of(find_meters("gfx1030", "0000:99:00.0", sysfs=tmp_path))
    assert "no hwmon sensor of amdgpu or i915 or xe has 0000:99:00.0" in absent.reason
    unclear = device_of(find_meters("gfx1030", sysfs=tmp_path))
    assert "ambiguous: 2 times hwmon sensor" in unclear.reason


def test_another_vendors_sensor_is_not_the_devices(tmp_path):
    hwmon(tmp_path, 3, power1_average=1)
    hwmon(tmp_path, 4, "nvme", pci="0000:04:00.0", power1_average=1)
    assert isinstance(device_of(find_meters("NVIDIA H200", sysfs=tmp_path)), Unmeasured)


def test_hwmon_tries_the_next_file_if_one_fails(tmp_path, monkeypatch):
    hwmon(tmp_path, 3, power1_average=1, power1_input=9_000_000)
    deny(monkeypatch, "power1_average", OSError(errno.EINVAL, "Invalid argument"))
    assert device_of(find_meters("gfx1030", sysfs=tmp_path)).read() == 9.0


def test_hwmon_reasons(tmp_path, monkeypatch):
    folder = hwmon(tmp_path, 3)
    found = device_of(find_meters("gfx1030", sysfs=tmp_path))
    assert "has neither energy1_input nor power1_average" in found.reason
    write(folder, power1_average=1)
    deny(monkeypatch, "power1_average")
    assert "permission: " in device_of(find_meters("gfx1030", sysfs=tmp_path)).reason


def test_a_malformed_pci_address_is_the_users_error(tmp_path):
    for text in ("3b", "0000:zz:00.0"):
        with pytest.raises(MeterError, match=f"'{text}' is not a PCI address"):
            find_meters("gfx1030", text, sysfs=tmp_path)


# Power log


def log_of(tmp_path, text):
    path = tmp_path / "meter.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return PowerLog(path)


@pytest.mark.parametrize(
    "text",
    [
        "1000,10\n1001,30\n1002,30\n",
        "\ufefftimestamp,watts\r\n1000,10\r\n1001,30\r\n1002,30\r\n",
        "No,P [W],U,Time (s)\n1,10,230,1000\n2,30,230,1001.0\n\n3,30,230,1.002e3\n",
        "Date, Power\n1970-01-01T00:16:40Z, 10\n1970-01-01 01:16:41+01:00, 30\n1002, 30\n",
        "1000,10\n1001,30\n1002,30\n1003,3",  # the last line is still being written
    ],
)
def test_log_forms(tmp_path, text):
    log = log_of(tmp_path, text)
    assert log.samples() == ([1000.0, 1001.0, 1002.0], [10.0, 30.0, 30.0])
    assert log.joules(1000, 1002) == 20.0 + 30.0
    assert log.resolution_seconds == 1.0


def test_a_stamp_without_zone_is_local_time(tmp_path):
    log = log_of(tmp_path, "2024-05-06T07:08:09.5,10\n2024-05-06 07:08:10,10\n")
    local = datetime(2024, 5, 6, 7, 8, 9, 500_000).timestamp()
    assert log.samples()[0] == [local, local + 0.5]


def test_log_interpolates_at_both_ends(tmp_path):
    log = log_of(tmp_path, "1000,0\n1002,20\n1004,20\n")
    assert log.joules(1001, 1003) == 15.0 + 20.0
    assert log.joules(1000.5, 1001.5) == 10.0


def test_log_with_two_samples_of_one_stamp(tmp_path):
    log = log_of(tmp_path, "1000,10\n1001,10\n1001,50\n1002,50\n")
    assert log.joules(1000, 1002) == 60.0


@pytest.mark.parametrize(("start", "end"), [(999.0, 1001.0), (1001.0, 1002.5)])
def test_log_that_does_not_cover_names_both_intervals(tmp_path, start, end):
    found = log_of(tmp_path, "1000,1\n1002,1\n").joules(start, end)
    assert isinstance(found, Unmeasured)
    assert (found.name, found.domain) == ("power log meter.csv", "system")

    def local(stamp):
        moment = datetime.fromtimestamp(stamp, UTC).astimezone()
        return moment.isoformat(timespec="milliseconds")

    assert found.reason == (
        f"the log covers {local(1000)} to {local(1002)}; "
        f"the measurement lasts from {local(start)} to {local(end)}"
    )


def test_log_without_samples(tmp_path):
    found = log_of(tmp_path, "time,watts\n").joules(1000, 1001)
    assert found.reason.startswith("the log has no samples; the measurement lasts from")


def test_log_with_a_gap(tmp_path):
    stamps = [*range(1000, 1010), *range(1040, 1050)]
    log = log_of(tmp_path, "".join(f"{stamp},10\n" for stamp in stamps))
    assert log.joules(1001, 1009) == 80.0
    assert log.joules(1041, 1044) == 30.0
    for start, end in [(1005, 1045), (1005, 1020), (1015, 1020), (1020, 1045)]:
        found = log.joules(start, end)
        assert isinstance(found, Unmeasured)
        assert "the log has nothing between" in found.reason


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("time,watts\n1000,10\n1001,OVER\n", "line 3: 'OVER' is not a number of watts"),
        ("1000,nan\n", "line 1: 'nan' is not a number of watts"),
        ("1000,-3\n", "line 1: '-3' is not a number of watts"),
        ("1000,1\n\nnoon,1\n", "line 3: 'noon' is not a time stamp"),
        ("1700000000000,1\n", "line 1: '1700000000000' is not a time stamp in Unix seconds"),
        ("1000,1\n1001\n", "line 2: '1001' has no column 2"),
        ("1001,1\n1000,1\n", "line 2: time stamp '1000' is before the last one"),
        ("time,volts\n", "line 1: 'time,volts' must name one column time and one watts"),
        ("date,time,w\n", "line 1: 'date,time,w' must name one column time and one watts"),
        (b"\xff\xfe,1\n", "cannot be read"),
    ],
)
def test_log_errors_name_file_line_and_value(tmp_path, text, message):
    with pytest.raises(MeterError) as raised:
        log_of(tmp_path, text)
    assert message in str(raised.value)
    assert "meter.csv" in str(raised.value)


def test_log_that_does_not_exist(tmp_path):
    with pytest.raises(MeterError, match=r"none\.csv cannot be read"):
        find_meters(None, power_log=tmp_path / "none.csv", sysfs=tmp_path)


def test_log_meter_waits_for_the_log_to_reach_the_end(tmp_path, clock, monkeypatch):
    log = log_of(tmp_path, f"{clock.now - 1},50\n{clock.now},50\n")
    end = clock.now + 3

    def sleep(seconds):  # the meter writes on while we wait
        clock.now += seconds
        if clock.now > end + 0.25:
            log.path.write_text(f"{end - 4},50\n{end - 2},50\n{end + 0.25},50\n")

    log.start()
    clock.sleep(3)
    monkeypatch.setattr(clock, "sleep", sleep)
    assert log.stop() == 150.0


def test_log_meter_gives_up(tmp_path, clock):
    log = log_of(tmp_path, f"{clock.now - 1},50\n{clock.now},50\n")
    log.start()
    clock.sleep(3)
    with pytest.raises(MeterError, match="the log covers"):
        log.stop()
    assert clock.now >= 1_700_000_003 + log.patience_seconds


def test_find_meters_puts_the_log_last_in_the_system_domain(tmp_path):
    zone(tmp_path, "0", "package-0")
    log = log_of(tmp_path, "1000,1\n")
    meters, unmeasured = find_meters(None, power_log=log.path, sysfs=tmp_path)
    assert [m.domain for m in meters] == ["cpu", "system"]
    assert "system" not in [m.domain for m in unmeasured]


def test_the_whole_system_is_unmeasured_without_log_and_psys(tmp_path):
    found = by_name(find_meters(None, sysfs=tmp_path)[1])["whole system"]
    assert found.domain == "system"
    assert found.reason.startswith("absent: no power log given and no psys zone under")


# Measuring


class FakeMeter:
    """Draws `idle` watts in its first measurement and `busy` watts in those after it."""

    def __init__(self, clock, name, domain, idle, busy, resolution_seconds=0.001):
        self.clock, self.name, self.domain = clock, name, domain
        self.powers, self.resolution_seconds = [idle, busy], resolution_seconds
        self.running = False

    def start(self):
        self.running, self.begin = True, self.clock.now

    def stop(self):
        self.running = False
        power = self.powers.pop(0) if len(self.powers) > 1 else self.powers[0]
        if isinstance(power, Exception):
            raise power
        return power * (self.clock.now - self.begin)


def searches_of(clock, seconds, searches=4, nedge=8_000_000):
    def run():
        clock.now += seconds
        run.calls += 1
        return searches, nedge

    run.calls = 0
    return run


def test_report_arithmetic(clock):
    run = searches_of(clock, 1.0)
    meter = FakeMeter(clock, "A", "device", idle=50.0, busy=200.0)
    report = measure(run, [meter], [], minimum_seconds=4.0, idle_seconds=2.0)
    assert run.calls == 4
    assert (report.searches, report.nedge, report.seconds) == (16, 32_000_000, 4.0)
    (reading,) = report.meters
    assert reading == energy.MeterReading(
        name="A",
        domain="device",
        joules=800.0,
        seconds=4.0,
        watts=200.0,
        idle_watts=50.0,
        net_joules=600.0,
        searches=16,
        joules_per_search=50.0,
        mteps_per_watt=8 / 200,
    )
    assert report.unmeasured == []


def test_domains_are_never_added_up(clock):
    meters = [
        FakeMeter(clock, "package-0", "cpu", 10.0, 100.0),
        FakeMeter(clock, "package-1", "cpu", 20.0, 60.0),
        FakeMeter(clock, "board", "device", 50.0, 300.0),
        FakeMeter(clock, "psys", "system", 90.0, 500.0),
        FakeMeter(clock, "wall", "system", 100.0, 600.0),
    ]
    report = measure(searches_of(clock, 1.0), meters, [], minimum_seconds=2.0)
    totals = {total.domain: total for total in report.totals}
    assert list(totals) == ["cpu", "device", "system"]
    assert totals["cpu"].name == "package-0 + package-1"
    assert (totals["cpu"].watts, totals["cpu"].idle_watts) == (160.0, 30.0)
    assert totals["cpu"].joules == 320.0
    assert totals["cpu"].mteps_per_watt == 8 / 160
    assert (totals["device"].name, totals["device"].joules) == ("board", 600.0)
    assert (totals["system"].name, totals["system"].joules) == ("wall", 1200.0)  # psys is inside


def test_measuring_lasts_as_long_as_the_coarsest_meter_needs(clock):
    meters = [
        FakeMeter(clock, "fine", "cpu", 1.0, 1.0),
        FakeMeter(clock, "coarse", "device", 1.0, 1.0, resolution_seconds=2.0),
    ]
    run = searches_of(clock, 1.0)
    begin = clock.now
    report = measure(run, meters, [], minimum_seconds=3.0, idle_seconds=1.0)
    assert run.calls == 20
    assert report.seconds == 20.0
    assert clock.now - begin == 40.0


def test_without_meters_nothing_runs(clock):
    run = searches_of(clock, 1.0)
    missing = Unmeasured("RAPL", "cpu", "absent: none")
    report = measure(run, [], [missing])
    assert run.calls == 0
    assert clock.now == FakeTime().now
    assert report == EnergyReport(None, None, None, [], [], [missing])


def test_a_meter_that_fails_or_stands_still_is_unmeasured(clock):
    meters = [
        FakeMeter(clock, "broken", "device", 5.0, MeterError("permission: refused")),
        FakeMeter(clock, "still", "cpu", 0.0, 0.0),
        FakeMeter(clock, "good", "system", 5.0, 10.0),
    ]
    report = measure(searches_of(clock, 1.0), meters, [])
    assert [reading.name for reading in report.meters] == ["good"]
    assert [total.domain for total in report.totals] == ["system"]
    assert report.unmeasured == [
        Unmeasured("broken", "device", "permission: refused"),
        Unmeasured("still", "cpu", "the reading did not advance during the measurement"),
    ]


def test_idle_alone_can_be_unmeasured(clock):
    meter = FakeMeter(clock, "A", "device", MeterError("not yet"), 10.0)
    report = measure(searches_of(clock, 1.0), [meter], [])
    (reading,) = report.meters
    assert (reading.idle_watts, reading.net_joules, reading.watts) == (None, None, 10.0)
    assert report.totals[0].net_joules is None
    assert report.unmeasured == [Unmeasured("A, idle", "device", "not yet")]


def test_idle_not_asked_for(clock):
    begin = clock.now
    meter = FakeMeter(clock, "A", "device", 10.0, 10.0)
    report = measure(searches_of(clock, 1.0), [meter], [], idle_seconds=0)
    assert clock.now - begin == 3.0
    assert report.meters[0].idle_watts is None
    assert report.unmeasured[0].reason == "no idle time was asked for"


def test_meters_stop_when_a_search_fails(clock):
    meter = FakeMeter(clock, "A", "device", 1.0, 1.0)

    def run():
        assert meter.running
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        measure(run, [meter], [])
    assert not meter.running


def test_a_batch_without_searches_is_refused(clock):
    meter = FakeMeter(clock, "A", "device", 1.0, 1.0)
    with pytest.raises(MeterError, match="a batch of 0 searches"):
        measure(searches_of(clock, 1.0, searches=0), [meter], [])
    assert not meter.running


def test_report_survives_json(clock):
    meter = FakeMeter(clock, "A", "device", MeterError("not yet"), 10.0)
    missing = Unmeasured("RAPL", "cpu", "absent: none")
    report = measure(searches_of(clock, 1.0), [meter], [missing])
    parsed = json.loads(json.dumps(report.to_dict()))
    assert parsed == report.to_dict()
    assert parsed["unmeasured"][0] == {"name": "RAPL", "domain": "cpu", "reason": "absent: none"}
    assert parsed["meters"][0]["joules"] == 30.0
    assert parsed["meters"][0]["idle_watts"] is None
    assert [total["domain"] for total in parsed["totals"]] == ["device"]


def test_unmeasured_is_never_zero():
    report = measure(lambda: (1, 1), [], [Unmeasured("RAPL", "cpu", "absent: none")])
    line = " ".join(format_report(report).split())
    assert line == "RAPL cpu unmeasured: absent: none"
    assert "0" not in json.dumps(report.to_dict())


def test_format_report(clock):
    meters = [
        FakeMeter(clock, "package-0", "cpu", 10.0, 1000.0),
        FakeMeter(clock, "package-1", "cpu", MeterError("not yet"), 500.0),
        FakeMeter(clock, "board", "device", 1e-7, 2e-6),
    ]
    missing = [Unmeasured("whole system", "system", "absent: no meter")]
    lines = format_report(measure(searches_of(clock, 1.0), meters, missing)).splitlines()
    assert [" ".join(line.split()) for line in lines] == [
        "meter domain joules watts idle W net J J/search MTEPS/W",
        "package-0 cpu 3,000.0 1,000.0 10 2,970.0 250 0.008",
        "package-1 cpu 1,500.0 500 unmeasured unmeasured 125 0.016",
        "board device 6e-06 2e-06 1e-07 5.7e-06 5e-07 4,000,000.0",
        "all meters cpu 4,500.0 1,500.0 unmeasured unmeasured 375 0.005333",
        "whole system system unmeasured: absent: no meter",
        "package-1, idle cpu unmeasured: not yet",
    ]
    assert len({len(line) for line in lines[:5]}) == 1
