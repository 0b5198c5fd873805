"""Energy in a study, with and without meters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace

import pandas as pd
import pytest
from study_runs import TINY, study, table

from hetero_bfs import energy
from hetero_bfs.options import EngineOptions
from hetero_bfs.scheduling.trace import LevelFeatures, LevelTrace
from hetero_bfs.study import figures, findings
from hetero_bfs.study import measurements as power
from hetero_bfs.study.run import run_study
from hetero_bfs.study.searches import StudyOptions


@dataclass
class ConstantMeter:
    """Says that every measurement took so many joules."""

    name: str
    domain: str
    joules: float
    resolution_seconds: float = 0.001

    def start(self) -> None:
        pass

    def stop(self) -> float:
        return self.joules

    def period_seconds(self) -> float:
        return self.resolution_seconds


@pytest.mark.parametrize(("error_joules", "known"), [(4.9, True), (5.1, False)])
def test_what_is_hardly_above_idle_has_no_figure(error_joules, known):
    reading = energy.MeterReading(
        "NVML", "device", joules=100.0, seconds=1.0, watts=100.0, idle_watts=90.0,
        net_joules=10.0, searches=50, joules_per_search=2.0, mteps_per_watt=3.0,
        period_seconds=0.1, error_joules=error_joules,
    )  # fmt: skip
    subject, config = SimpleNamespace(row=dict), SimpleNamespace(name="TG", kind="strategy")
    row = power._measured(subject, config, reading)
    assert row["mteps_per_watt"] == 3.0
    assert row["mteps_per_watt_without_idle"] == (pytest.approx(30.0) if known else None)


def test_a_way_that_works_where_the_meter_does_not_look_has_no_figure(monkeypatch):
    reading = energy.MeterReading(
        "NVML", "device", joules=100.0, seconds=1.0, watts=100.0, idle_watts=90.0,
        net_joules=10.0, searches=50, joules_per_search=2.0, mteps_per_watt=3.0,
        period_seconds=0.1, error_joules=1.0,
    )  # fmt: skip
    report = energy.EnergyReport(50, 100, 1.0, [reading], [reading], [])
    monkeypatch.setattr(energy, "measure", lambda *_: report)
    monkeypatch.setattr(power, "meters_of", lambda *_: ([], []))
    first = LevelFeatures(0, 1, 4, 99, 396, 100, 400, 1.0, None, "queue")

    class Card:
        device_info = SimpleNamespace(unified_memory=False)

        def set_selector(self, schedule):
            self.schedule = schedule

        def search(self, key):
            traces = [LevelTrace(first, name, s, 0.0, 0.0, 1, {}, "") for name, s in self.schedule]
            return SimpleNamespace(traces=traces)

    configs = [
        SimpleNamespace(name=name, kind="selector", selector=schedule)
        for name, schedule in {
            "TC": [("TC", 1.0)],
            "nearly TG": [("TC", 0.05), ("TG", 0.95)],
            "daga": [("TC", 0.2), ("BG", 0.8)],
        }.items()
    ]
    subject = SimpleNamespace(
        keys=[1],
        nedge={1: 10},
        row=dict,
        about=SimpleNamespace(name="g"),
        configs=configs,
        engine=Card(),
    )
    rows = {row["selector"]: row for row in power.efficiency(subject, StudyOptions(), [])}
    assert {name: row["mteps_per_watt"] for name, row in rows.items()} == {
        "TC": None, "nearly TG": 3.0, "daga": None
    }  # fmt: skip
    assert rows["daga"]["unmeasured_because"].startswith("daga spends 20 % of its time where no")
    finding = findings.energy_finding(pd.DataFrame(rows.values()).assign(graph="g"))
    assert finding == "", "the device's energy is measured"


def test_two_meters_see_what_one_of_them_does_not():
    first = LevelFeatures(0, 1, 4, 99, 396, 100, 400, 1.0, None, "queue")
    traces = [
        LevelTrace(first, name, seconds, 0.0, 0.0, 1, {}, "")
        for name, seconds in (("TC", 0.2), ("BG", 0.8))
    ]
    engine = SimpleNamespace(
        device_info=SimpleNamespace(unified_memory=False),
        search=lambda _: SimpleNamespace(traces=traces),
    )
    subject, config = SimpleNamespace(keys=[1], engine=engine), SimpleNamespace(name="daga")
    assert power._unseen(subject, config, ["cpu", "device"]) == {"cpu": None, "device": None}
    assert None not in power._unseen(subject, config, ["device"]).values()
    traces[0] = LevelTrace(first, "TC", 0.01, 0.0, 0.0, 1, {}, "")
    found = power._unseen(subject, config, ["cpu", "device"])
    assert found["device"] is None
    assert found["cpu"] == "daga spends hardly any time where this meter looks"
    assert power._unseen(subject, config, []) == {}


@pytest.mark.slow
def test_domains_stay_apart(tmp_path, monkeypatch):
    monkeypatch.setattr("hetero_bfs.study.measurements._IDLE_SECONDS", 0.01)
    meters = [ConstantMeter("package", "cpu", 2.0), ConstantMeter("wall", "system", 8.0)]
    absent = [energy.Unmeasured("GPU", "device", "no such meter")]
    monkeypatch.setattr(energy, "find_meters", lambda *_: (meters, absent))
    options = StudyOptions(scales=(5,), keys=2, rounds=1, energy_seconds=0.01)
    options = replace(options, engine=EngineOptions(device="cpu"))
    run_study(tmp_path / "out", options)
    rows = table(tmp_path / "out", "energy")
    assert set(rows["domain"]) == {"cpu", "system"}  # without a device none of its own
    assert rows["unmeasured_because"].isna().all()
    for _, one in rows.groupby("domain"):
        assert one["meters"].nunique() == 1
    both = rows.pivot(index="selector", columns="domain", values="joules_per_search")
    assert (both["system"] > 0).all()
    panels = figures.energy(rows).axes
    titles = [axes.get_title(loc="left") for axes in panels if axes.patches]
    assert any(title.startswith("energy of the CPU") for title in titles)
    assert any(title.startswith("energy of the whole system") for title in titles)


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """A study of a machine that has no meter: its folder."""
    absent = [energy.Unmeasured("RAPL", "cpu", "absent: no such zone")]
    folder = tmp_path_factory.mktemp("bare")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(energy, "find_meters", lambda *_: ([], absent))
        assert study(folder / "out", "--scale", 5, *TINY, "--device", "cpu") == 0
    return folder / "out"


def test_without_a_meter_it_says_unmeasured(bare):
    rows = table(bare, "energy")
    assert rows["mteps_per_watt"].isna().all()
    assert set(rows["unmeasured_because"]) == {"absent: no such zone"}
    text = (bare / "index.html").read_text()
    assert "unmeasured" in text
    assert "absent: no such zone" in text
    assert not (bare / "energy.svg").exists()
    assert "energy.svg" not in text


def test_the_figure_names_meters_and_what_was_not_measured():
    known = {"graph": "k", "selector": "TG", "domain": "device", "meters": "NVML 0"}
    made = pd.DataFrame([{**known, "mteps_per_watt": 3.0, "mteps_per_watt_without_idle": None}])
    drawn = figures.energy(made)
    (axes,) = drawn.axes
    assert axes.get_title(loc="left") == "energy of the OpenCL device (NVML 0), idle included"
    missing = "not measured: energy of the CPU, energy of the whole system"
    assert drawn.axes[-1].get_xlabel() == missing
    assert figures.energy(made.assign(mteps_per_watt=None)) is None


def test_quartiles_are_drawn_if_they_are_known():
    table = pd.DataFrame({"graph": ["a", "b"], "selector": "TC", "harmonic_mean_gteps": [2.0, 9.0]})
    bare = figures.throughput(table)
    assert not bare.axes[0].collections
    known = table.assign(first_quartile_gteps=[1.0, 8.0], third_quartile_gteps=[3.0, 9.5])
    (lines,) = figures.throughput(known).axes[0].collections
    ends = [segment[:, 1].tolist() for segment in lines.get_segments()]
    assert ends == [[1.0, 3.0], [8.0, 9.5]]
