"""RAPL on fake sysfs trees; the sensor's counter that wraps around."""

import time

from energy_fakes import by_name, deny, searches_of, write, zone

from hetero_bfs.energy import SensorMeter, Unmeasured, find_meters, measure, meters


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
    assert meter.poll_seconds == 100 / meters.MOST_WATTS / 4
    meter.start()
    while len(seen) < 5:
        time.sleep(0.001)
    assert meter.stop() == 160.0


def test_rapl_is_polled_several_times_before_it_can_wrap(tmp_path):
    zone(tmp_path, "0", "package-0")
    ((meter,), _) = find_meters(None, sysfs=tmp_path)
    assert meter.poll_seconds * meters.MOST_WATTS <= meter.range_joules / 2


def test_rapl_absent(tmp_path):
    meters, unmeasured = find_meters(None, sysfs=tmp_path)
    assert meters == []
    reason = f"absent: no intel-rapl zone under {tmp_path}/class/powercap"
    assert Unmeasured("RAPL", "cpu", reason) in unmeasured


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
