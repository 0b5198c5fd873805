"""A device's meter: a fake NVML, hwmon on fake sysfs trees, power read in a thread."""

import errno
import sys
import time
import types

import pytest
from energy_fakes import deny, device_of, write

from hetero_bfs.energy import MeterError, SensorMeter, Unmeasured, find_meters, meters

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
        time.sleep(0.001)
    joules = meter.stop()
    assert len(watts) >= 5
    assert joules > 0
    assert not meter._thread.is_alive()


def test_a_failure_in_the_thread_is_raised_by_stop(monkeypatch):
    monkeypatch.setattr(meters, "POWER_POLL_SECONDS", 0.001)
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


# INA sensors of rails


def ina(sysfs, number, driver="ina3221", **files):
    return write(sysfs / "class" / "hwmon" / f"hwmon{number}", name=driver, **files)


def jetson(sysfs, *labels, number=1):
    """Give channel n 5 V and n A; the seventh label is that of the sum of shunt voltages."""
    files = {}
    for n, label in enumerate(labels, 1):
        files |= {f"in{n}_label": label, f"in{n}_input": 5_000, f"curr{n}_input": 1_000 * n}
    return ina(sysfs, number, in7_label="sum of shunt voltages", **files)


def test_rails_of_a_jetson(tmp_path, clock, no_thread):
    folder = jetson(tmp_path, "VDD_IN", "VDD_GPU", "VDD_CPU")
    found, unmeasured = find_meters("NVIDIA Tegra X1", sysfs=tmp_path)
    watts = {(meter.name, meter.domain): meter.read() for meter in found}
    assert watts == {
        ("ina3221 VDD_CPU", "cpu"): 15.0,
        ("ina3221 VDD_GPU", "device"): 10.0,
        ("ina3221 VDD_IN", "system"): 5.0,
    }
    assert unmeasured == []
    (board,) = [meter for meter in found if meter.domain == "system"]
    board.start()
    clock.sleep(2)
    write(folder, curr1_input=3_000)
    assert board.stop() == 2 * (5.0 + 15.0) / 2


@pytest.mark.parametrize("rail", ["VDD_CPU_GPU_CV", "VDD_GPU_SOC"])
def test_a_rail_of_more_than_one_is_in_no_domain(tmp_path, rail):
    jetson(tmp_path, "VDD_IN", rail, "VDD_SOC")
    found, unmeasured = find_meters("Orin", sysfs=tmp_path)
    assert [meter.name for meter in found] == ["ina3221 VDD_IN"]
    assert [meter.domain for meter in unmeasured] == ["cpu", "device"]


@pytest.mark.parametrize(
    ("device", "pci"), [(None, None), ("NVIDIA H200", None), ("Orin", "0000:03:00.0")]
)
def test_the_rail_of_a_jetsons_gpu_is_no_other_devices(tmp_path, device, pci):
    jetson(tmp_path, "GPU", "CPU", "SOC")
    assert isinstance(device_of(find_meters(device, pci, sysfs=tmp_path)), Unmeasured)


@pytest.mark.parametrize("driver", ["ina219", "ina226", "ina230", "ina231", "ina2xx"])
def test_ina_power_in_microwatts(tmp_path, driver):
    ina(tmp_path, 2, driver, label="VDD_IN", power1_input=7_500_000)
    (meter,), _ = find_meters(None, sysfs=tmp_path)
    assert (meter.name, meter.domain, meter.read()) == (f"{driver} VDD_IN", "system", 7.5)


@pytest.mark.parametrize(
    ("driver", "files"), [("ina231", {}), ("ina3221", {"in7_label": "sum of shunt voltages"})]
)
def test_an_ina_sensor_without_label_is_unmeasured(tmp_path, driver, files):
    ina(tmp_path, 2, driver, power1_input=7_500_000, **files)
    found, unmeasured = find_meters(None, sysfs=tmp_path)
    (sensor,) = [meter for meter in unmeasured if meter.domain == "system"]
    assert (found, sensor.name) == ([], f"{driver} hwmon2")
    assert "has no label, so its rail is unknown" in sensor.reason


def test_a_rail_that_is_switched_off_is_unmeasured(tmp_path, monkeypatch):
    jetson(tmp_path, "POM_5V_IN")
    deny(monkeypatch, "in1_input", OSError(errno.ENODATA, "No data available"))
    found, unmeasured = find_meters(None, sysfs=tmp_path)
    (board,) = [meter for meter in unmeasured if meter.domain == "system"]
    assert (found, board.name) == ([], "ina3221 POM_5V_IN")
    assert "in1_input cannot be read" in board.reason


# The period of updates


@pytest.mark.parametrize("period", [0.02, 0.1])
def test_the_period_of_a_counter_is_found(clock, period):
    meter = SensorMeter("counter", "device", lambda: clock.now // period, 0.1)
    assert meter.period_seconds() == pytest.approx(period, rel=0.1)


def test_power_is_not_read_more_often_than_it_is_polled(clock):
    meter = SensorMeter("power", "device", lambda: clock.now // 0.02, 0.1, power=True)
    assert meter.period_seconds() == meters.POWER_POLL_SECONDS


@pytest.mark.parametrize("error", [None, MeterError("permission: refused")])
def test_a_sensor_that_stands_still_is_as_coarse_as_it_may_be(clock, error):
    def read():
        if error is not None:
            raise error
        return 1.0

    meter = SensorMeter("still", "device", read, 0.1)
    assert meter.period_seconds() == 0.1
