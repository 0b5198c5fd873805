"""Training's watts, in a world where each strategy's levels take known seconds and joules."""

from __future__ import annotations

import bisect
import json
import math

import pytest
from made_models import ship

from hetero_bfs.algorithms.bfs.search import Search
from hetero_bfs.devices.machine import machine_slug
from hetero_bfs.energy import MeterError, Unmeasured
from hetero_bfs.energy import meters as energy_meters
from hetero_bfs.engine import engine as engines
from hetero_bfs.errors import HeteroBFSError
from hetero_bfs.options import EngineOptions
from hetero_bfs.scheduling.model_files import find_model, read_model
from hetero_bfs.training import metering, run_power_training
from hetero_bfs.training import strategy_watts as power
from hetero_bfs.training.metering import Metering, Window

SCALE = 10
SECONDS = {"TC": 1e-3, "BC": 2e-3, "TG": 0.5e-3, "BG": 0.4e-3, "BGC": 0.45e-3}
WATTS = {"TC": 90.0, "BC": 60.0, "TG": 200.0, "BG": 300.0, "BGC": 290.0}
START_SECONDS, START_WATTS, IDLE_WATTS = 3e-3, 45.0, 30.0


class World:
    """Time, and joules drawn since its beginning; stands in for the module `time` too."""

    def __init__(self):
        self.now = self.joules = 0.0
        self.history = [(0.0, 0.0)]

    def pass_by(self, seconds, watts):
        self.now += seconds
        self.joules += seconds * watts
        self.history.append((self.now, self.joules))

    def joules_at(self, now):
        i = bisect.bisect_left(self.history, (now, 0.0))
        (t0, j0), (t1, j1) = self.history[max(i - 1, 0)], self.history[i]
        return j0 + (j1 - j0) * (now - t0) / (t1 - t0) if t1 > t0 else j1

    def sleep(self, seconds):
        self.pass_by(seconds, IDLE_WATTS)

    def perf_counter(self):
        return self.now

    def searched(self, strategies):
        self.pass_by(START_SECONDS, START_WATTS)
        for name in strategies:
            self.pass_by(SECONDS[name], WATTS[name])


class WorldMeter:
    """Knows the world's joules as they were at its last update; `wrong` is raised instead."""

    resolution_seconds = 0.1

    def __init__(self, world, domain="cpu", share=1.0, wrong=None, period=0.0, counts=True):
        self.world, self.domain, self.share, self.wrong = world, domain, share, wrong
        self.name = f"meter of the {domain}"
        self.period, self.counts = period, counts

    def read(self):
        if not self.period:
            return self.world.joules
        update = self.world.now // self.period
        return self.world.joules_at(update * self.period)

    def period_seconds(self):
        return self.period or 0.001

    def watch(self):
        before = self.read()
        return (lambda: self.read() != before) if self.counts else None

    def start(self):
        self.begin = self.read()

    def stop(self):
        if self.wrong is not None:
            raise self.wrong
        return self.share * (self.read() - self.begin)


@pytest.fixture
def world(monkeypatch):
    made = World()

    class TimedSearch(Search):
        def run(self, max_levels=None):
            super().run(max_levels)
            made.searched([trace.strategy for trace in self.traces])
            return self.seconds

    for module in (metering, power, energy_meters):
        monkeypatch.setattr(module, "time", made)
    for module in (engines, power):
        monkeypatch.setattr(module, "Search", TimedSearch)
    return made


def measured(metering, info=None, missing=()):
    *windows, result = power.measure_power(info, SCALE, None, metering, missing)
    assert windows == [None] * len(windows)
    return result, len(windows)


def test_known_watts_are_found(world):
    """Starting, at 45 W, and the levels of other strategies are no part of a strategy's watts."""
    meters = Metering([WorldMeter(world)])
    found, windows = measured(meters)
    assert found.watts["TC"]["cpu"] == pytest.approx(WATTS["TC"], rel=1e-3)
    assert found.watts["BC"]["cpu"] == pytest.approx(WATTS["BC"], rel=1e-3)
    assert found.idle_watts["cpu"] == pytest.approx(IDLE_WATTS, rel=1e-3)
    assert found.resolution_seconds == {"cpu": 0.001}
    assert found.meters == {"cpu": "meter of the cpu"}
    assert found.remarks == {}
    assert windows == power.ROUNDS * len(power.planned(None, meters))


def test_a_coarse_counter_is_read_where_it_is_updated(world):
    """Of a counter that is updated every 0.1 s, whose windows last 1 s, the watts are known to
    what a tenth of that does; read anywhere it would be ten times as far off."""
    found, _ = measured(Metering([WorldMeter(world, period=0.1)]))
    assert found.remarks == {}
    for name in ("TC", "BC"):
        assert abs(found.watts[name]["cpu"] - WATTS[name]) <= 4 * found.error_watts[name]["cpu"]
        assert found.error_watts[name]["cpu"] < 0.1 * WATTS[name]


def test_sensors_that_are_interpolated_are_not_waited_for(world):
    """Both ends of both windows count, in watts of the difference; less with every round."""
    meters = Metering([WorldMeter(world, counts=False)])
    meters._periods[0] = 0.02
    found, _ = measured(meters)
    off, window = 0.02 / math.sqrt(6), 1.0
    # A window's mean watts are between those of starting and of the strategy.
    shares = [START_SECONDS + levels * SECONDS["TC"] for levels in (1, 2)]
    least = math.hypot(*(45.0 * off / window * s for s in shares))
    most = math.hypot(*(90.0 * off / window * s for s in shares))
    error = found.error_watts["TC"]["cpu"]
    assert least <= error * SECONDS["TC"] * math.sqrt(power.ROUNDS) * 1.02 <= 1.1 * most


def test_domains_are_kept_apart(world):
    meters = [WorldMeter(world, "cpu", 0.5), WorldMeter(world, "cpu", 0.1)]
    meters += [WorldMeter(world, "system"), WorldMeter(world, "system", 0.9)]
    found, _ = measured(Metering(meters))
    assert found.watts["TC"]["cpu"] == pytest.approx(0.6 * WATTS["TC"], rel=1e-3)
    assert found.watts["TC"]["system"] == pytest.approx(WATTS["TC"], rel=1e-3)  # the largest
    assert found.meters["cpu"] == "meter of the cpu + meter of the cpu"


def test_what_no_meter_sees_is_not_measured(world):
    missing = [Unmeasured("RAPL", "cpu", "absent: none")]
    found, windows = measured(Metering([WorldMeter(world, "device")]), missing=missing)
    assert found.watts == {}
    assert set(found.remarks) == {"TC", "BC"}
    assert "RAPL: absent: none" in found.remarks["TC"]
    assert found.idle_watts["device"] == pytest.approx(IDLE_WATTS, rel=1e-3)
    assert windows == power.ROUNDS, "only the machine at rest"


def test_a_meter_that_fails_takes_its_domain_along(world):
    wrong = MeterError("permission: refused")
    meters = Metering([WorldMeter(world), WorldMeter(world, "system", wrong=wrong)])
    found, _ = measured(meters)
    assert set(found.watts["TC"]) == set(found.idle_watts) == {"cpu"}
    assert meters.failures == {"system": "meter of the system: permission: refused"}


def test_a_device_that_is_the_processor_is_seen_by_its_meter(world, opencl_device):
    found, _ = measured(Metering([WorldMeter(world)]), opencl_device)
    names = set(SECONDS) if opencl_device.unified_memory else {"TC", "BC"}
    assert set(found.watts) == names
    for name in names:
        assert found.watts[name]["cpu"] == pytest.approx(WATTS[name], rel=1e-2)


# The difference of windows.


def window(searches, seconds, joules, error_seconds=0.0):
    return Window(searches, seconds, {"cpu": joules}, {"cpu": error_seconds})


def test_watts_are_of_the_difference():
    shorter = [window(1000, 1.0, 50.0)] * 3  # 1 ms and 50 mJ each
    longer = [window(500, 1.5, 250.0)] * 3  # 3 ms and 500 mJ
    watts, error = power.slope(longer, shorter, "cpu")
    assert watts == pytest.approx(0.45 / 0.002)
    assert error == pytest.approx(0.0, abs=1e-9)


def test_scatter_is_in_the_error():
    shorter = [window(1000, 1.0, 50.0)] * 4
    longer = [window(1000, 2.0, 150.0 + off) for off in (-4.0, 4.0, -4.0, 4.0)]
    watts, error = power.slope(longer, shorter, "cpu")
    assert watts == pytest.approx(100.0)
    assert error == pytest.approx(4.0 * math.sqrt(4 / 3) / math.sqrt(4))


def test_searches_that_are_no_longer_say_nothing():
    same = [window(1000, 1.0, 50.0)] * 3
    watts, error = power.slope(same, same, "cpu")
    assert math.isnan(watts)
    assert math.isinf(error)


@pytest.mark.parametrize(("off", "error_seconds"), [(0.0, 0.01), (0.5, 0.0)])
def test_a_poor_difference_gives_way_to_the_watts_of_the_search(world, off, error_seconds):
    """A strategy's levels that are a thousandth of a search tell little of its watts."""
    seconds = [1.0, 1.001, 1.001]
    extra = zip(seconds, (off, -off, 0.0), strict=True)
    base = {
        "idle": [window(0, 1.0, 30.0)] * 3,
        "first cpu": [window(100, s, 50.0, error_seconds) for s in seconds],
        "TC": [window(100, 2 * s, 150.0, error_seconds) for s in seconds],
        "BC": [window(100, 2.001 * s, 150.1 + more, error_seconds) for s, more in extra],
    }
    found = power.evaluate_windows(base, Metering([WorldMeter(world)]), "by hand", {})
    assert found.watts["TC"]["cpu"] == pytest.approx(100.0, rel=0.01)
    assert found.watts["BC"]["cpu"] == pytest.approx(75.0, rel=0.01)  # 150.1 J in 2.001 s
    assert found.error_watts["BC"]["cpu"] == pytest.approx(45.0, rel=0.02), "all above idle"
    assert set(found.remarks) == {"BC"}
    assert "too small a part of the search" in found.remarks["BC"]


# The command.


@pytest.fixture
def small_graph(monkeypatch):
    monkeypatch.setattr(power, "scale_for", lambda info, quick: SCALE)


@pytest.mark.usefixtures("small_graph")
def test_watts_are_added_to_a_model(world, trained, monkeypatch, capsys):
    name = trained(None)
    meters = [WorldMeter(world)], [Unmeasured("whole system", "system", "absent")]
    monkeypatch.setattr(power, "meters_of", lambda info, log, notes: meters)
    assert run_power_training(quick=True, engine=EngineOptions(device="cpu")) == 0
    model = find_model(*name.split("__"))
    assert model.power.watts["BC"]["cpu"] == pytest.approx(WATTS["BC"], rel=1e-3)
    again = read_model(json.dumps(model.to_json()), "again")
    assert again == model
    text = capsys.readouterr().out
    assert "idle 30 W" in text
    assert "updated every 1 ms" in text


@pytest.mark.usefixtures("small_graph")
def test_where_nothing_can_be_metered_it_says_so(world, trained, monkeypatch):
    trained(None)
    nothing = [], [Unmeasured("RAPL", "cpu", "absent")]
    monkeypatch.setattr(power, "meters_of", lambda info, log, notes: nothing)
    with pytest.raises(MeterError, match=r"no watts of any strategy.*--power-log FILE"):
        run_power_training(engine=EngineOptions(device="cpu"))


def test_watts_need_a_model_to_be_added_to(monkeypatch, tmp_path):
    monkeypatch.setenv("HETERO_BFS_MODELS", str(tmp_path))
    ship(monkeypatch, tmp_path / "shipped")
    with pytest.raises(HeteroBFSError, match=machine_slug(None)):
        run_power_training(engine=EngineOptions(device="cpu"))
