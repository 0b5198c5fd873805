"""The study: its files, that pictures and CSV agree, the page by itself, folders and bad input."""

from __future__ import annotations

import itertools
import json
import os
import re
from base64 import b64decode
from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

from hetero_bfs import energy
from hetero_bfs.cli import main as cli
from hetero_bfs.devices.opencl.driver import NO_RUNTIME, list_devices
from hetero_bfs.runtime.options import EngineOptions
from hetero_bfs.selection.model_store import MODELS_VARIABLE
from hetero_bfs.selection.strategies import available
from hetero_bfs.selection.trace import LevelFeatures, LevelTrace
from hetero_bfs.study import StudyOptions, choice_figures, figures, findings, run, run_study, style
from hetero_bfs.study import efficiency as power
from hetero_bfs.study.choices import strategies_of
from hetero_bfs.study.page import Part, page
from hetero_bfs.study.sections import SECTIONS
from hetero_bfs.support.files import replacing
from hetero_bfs.training.oracle import schedule_text

NAMES = [section.name for section in SECTIONS]
TINY = ["--keys", "2", "--rounds", "1"]


def study(*arguments) -> int:
    """Run the command in this process."""
    return cli.main(["study", *map(str, arguments)])


@pytest.fixture(scope="module")
def graph_file(tmp_path_factory):
    """A path of 30 vertices with a triangle at its end, and two vertices apart."""
    file = tmp_path_factory.mktemp("graphs") / "tail.txt"
    pairs = [(v, v + 1) for v in range(30)] + [(28, 30)]
    file.write_text("# Nodes: 33\n" + "".join(f"{u} {v}\n" for u, v in pairs))
    return file


@pytest.fixture(scope="module", params=["cpu", pytest.param("device", marks=pytest.mark.slow)])
def made(request, graph_file, tmp_path_factory):
    """A study of scales 5 and 6 and a file: its folder, and the strategies it must have.

    On the CPU alone, then with an OpenCL device.
    """
    on_device = request.param == "device"
    if on_device and not any(info.problem is None for info in list_devices()):
        pytest.skip(NO_RUNTIME)
    out = tmp_path_factory.mktemp("study") / "out"
    arguments = ["--scale", 5, 6, "--graph", graph_file, *TINY]
    arguments += [] if on_device else ["--devices", "cpu"]
    assert study(out, *arguments) == 0
    return out, {s.name for s in available(on_device)}


def table(folder, name) -> pd.DataFrame:
    return pd.read_csv(folder / f"{name}.csv")


def pictures(folder) -> list[str]:
    """Name the figures of which there must be a picture: those with something measured."""
    energy_measured = table(folder, "energy")["mteps_per_watt"].notna().any()
    absent = {name for name in NAMES if table(folder, name).empty}
    absent |= set() if energy_measured else {"energy"}
    return [name for name in NAMES if name not in absent]


# What is written.


def test_every_figure_has_png_and_csv(made):
    out, _ = made
    expected = {f"{name}.csv" for name in NAMES} | {f"{name}.png" for name in pictures(out)}
    assert {path.name for path in out.iterdir()} == expected | {"index.html", "study.json"}
    for section in SECTIONS:
        assert tuple(table(out, section.name).columns) == section.columns
    for name in pictures(out):
        assert (out / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_the_tables_hold_together(made):
    out, strategies = made
    graphs = {"kronecker5", "kronecker6", "tail"}
    for name in ("levels", "throughput", "relabelling", "schedule", "regret", "energy"):
        assert set(table(out, name)["graph"]) == graphs
    levels = table(out, "levels")
    assert set(levels["strategy"]) == strategies
    at_level = levels.groupby(["graph", "key", "level"])
    assert (
        levels[levels["fastest"]]["seconds"]
        == at_level["seconds"].transform("min")[levels["fastest"]]
    ).all()
    assert at_level["fastest"].sum().min() >= 1
    speeds = table(out, "throughput")
    assert strategies < set(speeds["selector"])
    assert (speeds["harmonic_mean_gteps"] > 0).all()
    worth = table(out, "relabelling")
    ratio = worth["as_given_seconds"] / worth["relabelled_seconds"]
    np.testing.assert_allclose(worth["speedup"], ratio, rtol=1e-6)
    assert set(worth[worth["graph"] == "tail"]["removed_vertices"]) == {2}
    assert set(worth[worth["graph"] == "tail"]["vertices"]) == {33}


def test_regret_is_that_of_its_seconds(made):
    out, _ = made
    rows = table(out, "regret")
    np.testing.assert_allclose(
        rows["regret"], rows["seconds"] / rows["oracle_seconds"] - 1, atol=1e-6
    )
    assert {"oracle", "none", "fixed:TC", "alpha-beta"} <= set(rows["selector"])


def test_schedules_are_those_of_regret(made):
    out, _ = made
    whole = table(out, "regret").set_index(["graph", "root", "selector"])["schedule"]
    levels = table(out, "schedule")
    for place, one in levels.groupby(["graph", "key", "selector"]):
        assert schedule_text(list(one.sort_values("level")["strategy"])) == whole[place]
    oracle = levels[levels["selector"] == "oracle"]
    assert (oracle["strategy"] == oracle["oracle_strategy"]).all()


def test_the_page_needs_nothing_else(made):
    out, _ = made
    text = (out / "index.html").read_text()
    assert "http" not in text.replace(' http-equiv="', "")
    assert "<script" not in text
    assert "<link" not in text
    for source in re.findall(r'src="([^"]*)"', text):
        assert source.startswith("data:image/png;base64,")
    embedded = [b64decode(data) for data in re.findall(r"base64,([^\"]*)\"", text)]
    assert embedded == [(out / f"{name}.png").read_bytes() for name in pictures(out)]
    links = set(re.findall(r'href="([^#"]*)"', text))
    assert links == {path.name for path in out.iterdir()} - {"index.html", "study.json"}
    for word in ("commit", "Numba", "hetero-bfs"):
        assert word in text[text.index("<footer>") :]


def test_pictures_carry_command_and_machine(made):
    out, _ = made
    for name in pictures(out):
        data = (out / f"{name}.png").read_bytes()
        assert b"hetero-bfs" in data
        assert b"commit" in data


def test_summary(made):
    out, _ = made
    summary = json.loads((out / "study.json").read_text())
    assert set(summary["findings"]) == set(NAMES)
    assert set(summary["files"]) == {p.name for p in out.iterdir()} - {"study.json"}
    assert summary["machine"]["cpu"]


# Pictures are drawn from the numbers of the CSV.


def lines_of(axes, vertical=True) -> dict[str, np.ndarray]:
    return {
        line.get_label(): np.asarray(line.get_ydata() if vertical else line.get_xdata(), float)
        for line in axes.get_lines()
        if line.get_label() in style.looks()
    }


def test_levels_are_drawn_as_in_the_csv(made):
    rows = table(made[0], "levels")
    panels = [axes for axes in figures.levels(rows).axes if axes.get_lines()]
    assert len(panels) == len(figures.shown_graphs(rows))
    for axes, graph in zip(panels, figures.shown_graphs(rows), strict=True):
        one = rows[rows["graph"] == graph]
        one = one[one["key"] == one["key"].iloc[0]]
        drawn = lines_of(axes)
        assert set(drawn) == set(one["strategy"])
        for name, seconds in drawn.items():
            expected = one[one["strategy"] == name].sort_values("level")["seconds"]
            np.testing.assert_array_equal(seconds, expected)
        assert axes.get_ylabel().endswith("(s)")


def test_throughput_is_drawn_as_in_the_csv(made):
    rows = table(made[0], "throughput")
    generated, files = figures.throughput(rows).axes
    for axes, part, vertical in (
        (generated, rows[rows["scale"].notna()], True),
        (files, rows[rows["scale"].isna()], False),
    ):
        drawn = lines_of(axes, vertical)
        assert set(drawn) == set(part["selector"])
        for name, values in drawn.items():
            expected = part[part["selector"] == name]["harmonic_mean_gteps"]
            np.testing.assert_array_equal(values, expected)
    named = {text.get_text() for text in generated.texts}
    assert named == set(rows["selector"])


def test_one_scale_is_drawn_among_the_files(made):
    rows = table(made[0], "throughput")
    (axes,) = figures.throughput(rows[rows["graph"] != "kronecker5"]).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["kronecker6", "tail"]


@pytest.mark.parametrize(
    "heights", [[], [0.5], [0.0, 0.0], [0.1, 0.11, 0.12, 0.9], [0.98, 0.99, 1.0], [0.5] * 40]
)
def test_names_at_ends_of_lines_have_room(heights):
    gap = 0.05
    found = style.spread(heights, gap)
    assert len(found) == len(heights)
    assert all(-1e-9 <= height <= 1 + 1e-9 for height in found)
    least = min(gap, 1 / max(len(heights) - 1, 1))
    assert all(b - a >= least - 1e-9 for a, b in itertools.pairwise(found))


def test_names_with_room_stay_where_they_are():
    assert style.spread([0.1, 0.4, 0.8], 0.05) == pytest.approx([0.1, 0.4, 0.8])


def test_relabelling_is_drawn_as_in_the_csv(made):
    rows = table(made[0], "relabelling")
    left, right = figures.relabelling(rows).axes
    shares = 100 * rows.drop_duplicates("graph")["removed_share"]
    np.testing.assert_allclose([bar.get_width() for bar in left.patches], shares)
    drawn = {line.get_label(): line.get_xdata() for line in right.get_lines()}
    for name in set(rows["selector"]):
        np.testing.assert_array_equal(drawn[name], rows[rows["selector"] == name]["speedup"])


def test_regret_is_drawn_as_in_the_csv(made):
    rows = table(made[0], "regret")
    (axes,) = choice_figures.regret(rows).axes
    percent = choice_figures.regret_by_family(rows)
    assert len(axes.texts) == percent.size
    for y, selector in enumerate(percent.index):
        one = rows[(rows["selector"] == selector) & (rows["family"] == "file")]
        expected = 100 * np.expm1(np.log1p(one["regret"]).mean())
        column = list(percent.columns).index("file")
        assert percent.loc[selector, "file"] == pytest.approx(expected)
        text = axes.texts[y * percent.shape[1] + column].get_text()
        assert float(text.replace(",", "")) == pytest.approx(expected, abs=0.51)


def test_cells_name_strategies_and_hatch_what_differs():
    rows = pd.DataFrame(
        [
            {
                "graph": "g",
                "scale": None,
                "key": 3,
                "selector": selector,
                "level": level,
                "strategy": strategy,
                "oracle_strategy": "BC" if level else "TC",
            }
            for selector, schedule in (("oracle", "TC BC*2"), ("learned", "TC*2 BC"))
            for level, strategy in enumerate(strategies_of(schedule))
        ]
    )
    (axes,) = choice_figures.schedule(rows).axes
    assert [text.get_text() for text in axes.texts] == ["TC", "TC", "BC", "TC", "BC", "BC"]
    hatched = [cell.get_hatch() is not None for cell in axes.patches]
    assert hatched == [False, False, False, True, False, False]


def predictions_table() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "strategy": ["TC", "TC", "BC"],
            "measured_seconds": [1e-6, 1e-3, 2e-5],
            "predicted_seconds": [2e-6, 1.5e-3, 1e-5],
            "relative_error": [1.0, 0.5, -0.5],
        }
    )


def test_predictions_are_drawn_with_their_median_error():
    top_down, bottom_up = figures.predictions(predictions_table()).axes
    assert "75 %" in top_down.get_title(loc="left")
    assert "50 %" in bottom_up.get_title(loc="left")
    points = top_down.get_lines()[-1]
    np.testing.assert_array_equal(points.get_xdata(), [1e-6, 1e-3])
    np.testing.assert_array_equal(points.get_ydata(), [2e-6, 1.5e-3])


def test_looks_differ_without_colour():
    shapes = [
        (look["marker"], look["linestyle"], look["markerfacecolor"] == "white")
        for look in map(style.look_of, style.looks())
    ]
    assert len(set(shapes)) == len(shapes)
    assert all(max(to_rgb(look.color)) < 1.0 for look in style.looks().values())  # seen on white


# Energy, with and without meters.


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
    subject, way = SimpleNamespace(row=dict), SimpleNamespace(name="TG", kind="strategy")
    row = power._measured(subject, way, reading)
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

    ways = [
        SimpleNamespace(name=name, kind="selector", selector=schedule)
        for name, schedule in {
            "TC": [("TC", 1.0)],
            "nearly TG": [("TC", 0.05), ("TG", 0.95)],
            "daga": [("TC", 0.2), ("BG", 0.8)],
        }.items()
    ]
    subject = SimpleNamespace(
        keys=[1], nedge={1: 10}, row=dict, about=SimpleNamespace(name="g"), ways=ways, engine=Card()
    )
    rows = {row["selector"]: row for row in power.efficiency(subject, StudyOptions(), [])}
    assert {name: row["mteps_per_watt"] for name, row in rows.items()} == {
        "TC": None, "nearly TG": 3.0, "daga": None
    }  # fmt: skip
    assert rows["daga"]["unmeasured_because"].startswith("daga spends 20 % of its time where no")
    finding = findings.energy_finding(pd.DataFrame(rows.values()).assign(graph="g"))
    assert "nearly TG on g does most" in finding
    assert "unmeasured" not in finding, "the device's energy is measured"


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
    subject, way = SimpleNamespace(keys=[1], engine=engine), SimpleNamespace(name="daga")
    assert power._unseen(subject, way, ["cpu", "device"]) == {"cpu": None, "device": None}
    assert None not in power._unseen(subject, way, ["device"]).values()
    traces[0] = LevelTrace(first, "TC", 0.01, 0.0, 0.0, 1, {}, "")
    found = power._unseen(subject, way, ["cpu", "device"])
    assert found["device"] is None
    assert found["cpu"] == "daga spends hardly any time where this meter looks"
    assert power._unseen(subject, way, []) == {}


@pytest.mark.slow
def test_domains_stay_apart(tmp_path, monkeypatch):
    monkeypatch.setattr("hetero_bfs.study.efficiency._IDLE_SECONDS", 0.01)
    meters = [ConstantMeter("package", "cpu", 2.0), ConstantMeter("wall", "system", 8.0)]
    absent = [energy.Unmeasured("GPU", "device", "no such meter")]
    monkeypatch.setattr(energy, "find_meters", lambda *_: (meters, absent))
    options = StudyOptions(scales=(5,), keys=2, rounds=1, energy_seconds=0.01)
    options = replace(options, engine=EngineOptions(devices="cpu"))
    run_study(tmp_path / "out", options)
    rows = table(tmp_path / "out", "energy")
    assert set(rows["domain"]) == {"cpu", "system"}  # without a device none of its own
    assert rows["unmeasured_because"].isna().all()
    for _, one in rows.groupby("domain"):
        assert one["meters"].nunique() == 1
    both = rows.pivot(index="selector", columns="domain", values="joules_per_search")
    assert (both["system"] > 0).all()
    panels = figures.energy(rows).axes
    titles = [axes.get_title(loc="left") for axes in panels if axes.get_lines()]
    assert any(title.startswith("energy of the CPU") for title in titles)
    assert any(title.startswith("energy of the whole system") for title in titles)


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """A study of a machine that has neither a meter nor a model: its folder."""
    absent = [energy.Unmeasured("RAPL", "cpu", "absent: no such zone")]
    folder = tmp_path_factory.mktemp("bare")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(energy, "find_meters", lambda *_: ([], absent))
        patch.setenv(MODELS_VARIABLE, str(folder))
        patch.setattr("hetero_bfs.study.levels.model_of", lambda info: None)
        assert study(folder / "out", "--scale", 5, *TINY, "--devices", "cpu") == 0
    return folder / "out"


def test_without_a_meter_it_says_unmeasured(bare):
    rows = table(bare, "energy")
    assert rows["mteps_per_watt"].isna().all()
    assert set(rows["unmeasured_because"]) == {"absent: no such zone"}
    text = (bare / "index.html").read_text()
    assert "unmeasured" in text
    assert "absent: no such zone" in text
    assert not (bare / "energy.png").exists()
    assert "energy.png" not in text


def test_without_a_model_nothing_is_predicted(bare):
    assert table(bare, "predictions").empty
    assert "hetero-bfs train" in (bare / "index.html").read_text()


# Folders.


@pytest.fixture
def quickly(monkeypatch):
    """Measure nothing: every table is empty."""
    monkeypatch.setattr(run, "measure_graph", lambda *_: None)


@pytest.fixture
def never(monkeypatch):
    """Fail if anything is measured."""

    def measured(*_):
        raise AssertionError("measured")

    monkeypatch.setattr(run, "measure_graph", measured)


def study_in(folder) -> int:
    return study(folder, "--scale", 5, "--devices", "cpu")


def contents(folder) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.usefixtures("quickly")
def test_an_earlier_study_is_replaced_as_a_whole(tmp_path):
    out = tmp_path / "out"
    assert study_in(out) == 0
    names = set(contents(out))
    (out / "levels.csv").write_text("old")
    summary = json.loads((out / "study.json").read_text())
    summary["files"].append("figure-of-an-older-version.png")
    (out / "study.json").write_text(json.dumps(summary))
    (out / "figure-of-an-older-version.png").write_text("old")
    assert study_in(out) == 0
    assert set(contents(out)) == names
    assert (out / "levels.csv").read_text() != "old"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.usefixtures("quickly")
def test_a_link_to_a_study_stays_a_link(tmp_path):
    assert study_in(tmp_path / "out") == 0
    link = tmp_path / "link"
    link.symlink_to("out")
    (tmp_path / "out" / "levels.csv").write_text("old")
    assert study_in(link) == 0
    assert link.is_symlink()
    assert (tmp_path / "out" / "levels.csv").read_text() != "old"


@pytest.mark.usefixtures("quickly")
def test_an_empty_folder_will_do(tmp_path):
    (tmp_path / "out").mkdir()
    assert study_in(tmp_path / "out") == 0
    assert (tmp_path / "out" / "index.html").exists()


@pytest.mark.usefixtures("quickly")
def test_what_came_meanwhile_is_kept(tmp_path, monkeypatch, capsys):
    out = tmp_path / "out"
    assert study_in(out) == 0
    monkeypatch.setattr(run, "measure_graph", lambda *_: (out / "notes.txt").write_text("mine"))
    assert study_in(out) == 0
    assert not (out / "notes.txt").exists()
    (aside,) = (path for path in tmp_path.iterdir() if path != out)
    assert contents(aside) == {"notes.txt": b"mine"}
    assert str(aside) in capsys.readouterr().err


def refused(folder, capsys, *words) -> None:
    """Check that no study is begun and that the message has the words."""
    assert study_in(folder) == 1
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith("hetero-bfs: ")
    for word in (folder.name, *words):
        assert word in error


@pytest.mark.usefixtures("never")
def test_other_folders_are_refused_before_any_work(tmp_path, capsys):
    (tmp_path / "thesis.tex").write_text("mine")
    (tmp_path / "index.html").write_text("mine")
    refused(tmp_path, capsys, "thesis.tex", "new one")
    refused(tmp_path / "thesis.tex", capsys, "is a file")
    refused(tmp_path / "thesis.tex" / "below", capsys, "thesis.tex is a file")
    refused(tmp_path / "no" / "such", capsys, "there is no folder", "make it first")
    (tmp_path / "link").symlink_to("nowhere")
    refused(tmp_path / "link", capsys, "link to nothing")
    assert (tmp_path / "index.html").read_text() == "mine"


@pytest.mark.usefixtures("quickly")
def test_a_study_with_other_files_is_refused(tmp_path, monkeypatch, capsys):
    out = tmp_path / "out"
    assert study_in(out) == 0
    (out / "notes.txt").write_text("mine")
    before = contents(out)
    refused(out, capsys, "notes.txt", "earlier study")
    assert contents(out) == before


@pytest.mark.usefixtures("never")
def test_the_current_folder_is_refused(tmp_path, monkeypatch, capsys):
    (tmp_path / "out").mkdir()
    monkeypatch.chdir(tmp_path / "out")
    refused(tmp_path / "out", capsys, "current folder", str(tmp_path / "out" / "study"))


@pytest.mark.usefixtures("never")
def test_where_nothing_can_be_written_is_told(tmp_path, monkeypatch, capsys):
    def locked(*_, **__):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("hetero_bfs.support.files.os.open", locked)
    refused(tmp_path / "out", capsys, "Read-only file system", str(tmp_path))


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError, MemoryError])
def test_stopped_it_leaves_nothing(tmp_path, monkeypatch, error):
    def stop(*_):
        raise error

    monkeypatch.setattr(run, "measure_graph", stop)
    assert study(tmp_path / "out", "--scale", 5, "--devices", "cpu") != 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("quickly")
@pytest.mark.parametrize("earlier", [False, True])
@pytest.mark.parametrize("failing", ["write_bytes", "rename"])
def test_failing_to_write_it_leaves_all_as_it_was(tmp_path, monkeypatch, failing, earlier):
    out = tmp_path / "out"
    if earlier:
        assert study_in(out) == 0
    before = contents(out) if earlier else None
    rename = os.rename

    def stop(source, target):
        if ".tmp" in str(source):  # the new study; the earlier one may step aside and back
            raise OSError(28, "No space left on device")
        rename(source, target)

    def full(path, data):
        raise OSError(28, "No space left on device")

    if failing == "rename":
        monkeypatch.setattr("hetero_bfs.study.folder.os.rename", stop)
    else:
        monkeypatch.setattr("pathlib.Path.write_bytes", full)
    assert study_in(out) == 1
    assert (contents(out) if out.exists() else None) == before
    assert [path.name for path in tmp_path.iterdir()] == (["out"] if earlier else [])


# Bad input: one line, no traceback.


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["out", "--scale"],
        ["out", "--scale", "0"],
        ["out", "--scale", "40"],
        ["out", "--scale", "big"],
        ["out", "--keys", "0"],
        ["out", "--rounds", "0"],
        ["out", "--device", "0", "--devices", "cpu"],
        ["out", "--directed"],
    ],
)
def test_wrong_usage(arguments, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert study(*arguments) == 2
    assert "error: " in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def graph_with(path, text):
    with replacing(path) as stream:
        stream.write(text)
    return path


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, ["bad.txt", "no such file"]),
        ("0 x\n", ["bad.txt", "1"]),
        ("", ["bad.txt"]),
        ("3 3\n", ["bad", "nothing to search"]),
    ],
)
def test_bad_graphs(tmp_path, capsys, text, words):
    path = tmp_path / "bad.txt"
    if text is not None:
        graph_with(path, text)
    assert study(tmp_path / "out", "--graph", path, "--devices", "cpu") == 1
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith("hetero-bfs: ")
    for word in words:
        assert word in error
    assert not (tmp_path / "out").exists()


def test_two_graphs_of_one_name_are_refused(tmp_path, capsys):
    (tmp_path / "a").mkdir()
    first = graph_with(tmp_path / "g.txt", "0 1\n")
    second = graph_with(tmp_path / "a" / "g.txt", "0 1\n")
    assert study(tmp_path / "out", "--graph", first, second, "--devices", "cpu") == 1
    assert "rename" in capsys.readouterr().err


def test_a_wrong_result_is_never_timed(tmp_path, monkeypatch, capsys):
    def timed(*_):
        raise AssertionError("timed")

    from hetero_bfs.runtime.engine import Engine

    right = Engine.bfs

    def wrong(self, source):
        result = right(self, source)
        result.parent[source] = -1
        return result

    monkeypatch.setattr(Engine, "bfs", wrong)
    monkeypatch.setattr(run, "throughput", timed)
    monkeypatch.setattr(run, "regret_rows", timed)
    assert study(tmp_path / "out", "--scale", 5, *TINY, "--devices", "cpu") == 1
    assert "source" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_names_are_escaped_on_the_page():
    part = Part("n", "a < b", "read", "f & g", "c<d", pd.DataFrame({"x<y": ["<b>"]}), b"png")
    text = page("t<i>", "m&m", [part], ["<script>"], "f<g")
    assert "<script>" not in text
    assert "&lt;b&gt;" in text
    assert "a &lt; b" in text
