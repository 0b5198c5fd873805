"""Measuring with fake meters: reports with exact arithmetic."""

import json
import statistics

import pytest
from energy_fakes import FakeTime, searches_of

from hetero_bfs.energy import (
    EnergyReport,
    MeterError,
    MeterReading,
    Unmeasured,
    format_report,
    measure,
)
from hetero_bfs.energy.meters import sampling_error_seconds


class FakeMeter:
    """Draws `idle` watts in its first measurement and `busy` watts in those after it."""

    def __init__(self, clock, name, domain, idle, busy, resolution_seconds=0.001):
        self.clock, self.name, self.domain = clock, name, domain
        self.powers, self.resolution_seconds = [idle, busy], resolution_seconds
        self.running = False

    def start(self):
        self.running, self.begin = True, self.clock.now

    def period_seconds(self):
        return self.resolution_seconds

    def stop(self):
        self.running = False
        power = self.powers.pop(0) if len(self.powers) > 1 else self.powers[0]
        if isinstance(power, Exception):
            raise power
        return power * (self.clock.now - self.begin)


def test_report_arithmetic(clock):
    run = searches_of(clock, 1.0)
    meter = FakeMeter(clock, "A", "device", idle=50.0, busy=200.0)
    report = measure(run, [meter], [], minimum_seconds=4.0, idle_seconds=2.0)
    assert run.calls == 4
    assert (report.searches, report.nedge, report.seconds) == (16, 32_000_000, 4.0)
    (reading,) = report.meters
    assert reading == MeterReading(
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
        period_seconds=0.001,
        error_joules=pytest.approx(200 * 0.001 / 6**0.5),
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


def test_a_meter_found_to_be_coarser_than_thought_takes_longer(clock):
    meter = FakeMeter(clock, "A", "cpu", 1.0, 2.0, resolution_seconds=0.1)
    meter.period_seconds = lambda: 0.8
    report = measure(searches_of(clock, 1.0), [meter], [], minimum_seconds=3.0)
    assert report.seconds == 8.0
    assert report.meters[0].period_seconds == 0.8
    assert report.meters[0].error_joules == pytest.approx(2.0 * 0.8 / 6**0.5)


def test_the_error_is_that_of_two_ends_anywhere_between_updates():
    """What a counter that is updated every period says, over many measurements of 1 s."""
    period = 0.1
    begins = [i * 0.00737 % period for i in range(5000)]
    ends = [begin + 1.0 + (i * 0.0313) % period for i, begin in enumerate(begins)]
    seen = [e // period - b // period for b, e in zip(begins, ends, strict=True)]
    off = [s * period - (e - b) for s, b, e in zip(seen, begins, ends, strict=True)]
    assert statistics.stdev(off) == pytest.approx(sampling_error_seconds(period), rel=0.05)


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
        "package-0 updates every 1 ms: joules +- 0.014 % over 3 s",
        "package-1 updates every 1 ms: joules +- 0.014 % over 3 s",
        "board updates every 1 ms: joules +- 0.014 % over 3 s",
        "whole system system unmeasured: absent: no meter",
        "package-1, idle cpu unmeasured: not yet",
    ]
    assert len({len(line) for line in lines[:5]}) == 1
