"""The study: its files, that pictures and CSV agree, the page by itself, folders and bad input."""

from __future__ import annotations

import itertools
import json
import re
from base64 import b64decode

import numpy as np
import pandas as pd
import pytest
from in_browser import measured, picture
from json_page import differences, fields_of, sections
from matplotlib.colors import to_rgb
from study_runs import TINY, study, table

from hetero_bfs.devices.opencl.driver import NO_RUNTIME, list_devices
from hetero_bfs.scheduling.strategies import available
from hetero_bfs.study import figures, run, style
from hetero_bfs.study.page import SECTIONS
from hetero_bfs.study.searches import StudyOptions
from hetero_bfs.training import budget as budget_of

NAMES = [section.name for section in SECTIONS]


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
    arguments += [] if on_device else ["--device", "cpu"]
    assert study(out, *arguments) == 0
    return out, {s.name for s in available(on_device)}


def pictures(folder) -> list[str]:
    """Name the figures of which there must be a picture: those with something measured."""
    energy_measured = table(folder, "energy")["mteps_per_watt"].notna().any()
    absent = {name for name in NAMES if table(folder, name).empty}
    absent |= set() if energy_measured else {"energy"}
    return [name for name in NAMES if name not in absent]


# What is written.


def test_every_figure_has_svg_and_csv(made):
    out, _ = made
    expected = {f"{name}.csv" for name in NAMES} | {f"{name}.svg" for name in pictures(out)}
    expected |= {"index.html", "study.json"}
    assert {path.name for path in out.iterdir()} == expected
    for section in SECTIONS:
        assert tuple(table(out, section.name).columns) == section.columns
    for name in pictures(out):
        assert "<svg" in (out / f"{name}.svg").read_text()


def test_the_tables_hold_together(made):
    out, strategies = made
    graphs = {"kronecker5", "kronecker6", "tail"}
    for name in ("levels", "throughput", "relabelling", "regret", "energy"):
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


def test_the_page_needs_nothing_else(made):
    out, _ = made
    text = (out / "index.html").read_text()
    words = re.sub(r"base64,[A-Za-z0-9+/=]*", "", text)  # encoded bytes can spell any word
    assert "http" not in words.replace(' http-equiv="', "")
    assert "<script" not in words
    assert "<link" not in words
    for source in re.findall(r'src="([^"]*)"', text):
        assert source.startswith("data:image/svg+xml;base64,")
    embedded = [b64decode(data) for data in re.findall(r"base64,([^\"]*)\"", text)]
    assert embedded == [(out / f"{name}.svg").read_bytes() for name in pictures(out)]
    links = set(re.findall(r'href="([^#"]*)"', text))
    assert links == {path.name for path in out.iterdir()} - {"index.html", "study.json"}
    for word in ("commit", "Numba", "hetero-bfs"):
        assert word in text[text.index("<footer>") :]


@pytest.mark.slow
def test_the_page_in_a_browser(made, tmp_path):
    """Nothing is loaded, and every picture is there."""
    out, _ = made
    told = measured(out / "index.html", tmp_path)
    assert told["loaded"] == []
    assert told["broken"] == []
    assert picture(out / "index.html", tmp_path).startswith(b"\x89PNG")


def test_pictures_carry_command_and_machine(made):
    out, _ = made
    for name in pictures(out):
        data = (out / f"{name}.svg").read_text()
        assert "hetero-bfs" in data
        assert "commit" in data


def test_summary(made):
    out, _ = made
    summary = json.loads((out / "study.json").read_text())
    assert {"levels", "throughput", "programs"} <= set(summary["findings"]) < set(NAMES)
    assert set(summary["files"]) == {p.name for p in out.iterdir()} - {"study.json"}
    listed = sections()["Every command"] | sections()["study"]
    assert differences(fields_of(summary), listed) == []
    assert summary["seeds"] == {"seed1": 2, "seed2": 3, "families": 2018}


# Pictures are drawn from the numbers of the CSV.


def lines_of(axes) -> dict[str, np.ndarray]:
    return {
        line.get_label(): np.asarray(line.get_ydata(), float)
        for line in axes.get_lines()
        if line.get_label() in style.looks()
    }


def heights(panels) -> dict[str, list[float]]:
    """Return the heights of the bars of all panels by their names in the legend."""
    found: dict[str, list[float]] = {}
    for bars in (bars for axes in panels for bars in axes.containers):
        found.setdefault(bars.get_label(), []).extend(bar.get_height() for bar in bars)
    return found


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
    figure = figures.throughput(rows)
    drawn = heights(figure.axes)
    assert set(drawn) == set(rows["selector"])
    for name, values in drawn.items():
        expected = rows[rows["selector"] == name]["harmonic_mean_gteps"]
        np.testing.assert_array_equal(values, expected)
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_xticklabels()] == [*dict.fromkeys(rows["graph"])]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == style.order_of(rows["selector"])


@pytest.mark.parametrize(("graphs", "names"), [(1, 1), (7, 14), (23, 3), (2, 100)])
def test_bars_of_many_graphs_have_panels(graphs, names):
    """Every bar is drawn once, in panels that are no wider than a page can show."""
    values = np.arange(1.0, 1 + graphs * names).reshape(graphs, names)
    index = [f"graph{number}" for number in range(graphs)]
    cells = pd.DataFrame(values, index, [f"name{number:03}" for number in range(names)])
    panels = style.bars(style.Cells("title", "seconds", cells)).axes
    drawn = np.array([bars for axes in panels for bars in heights([axes]).values()], dtype=object)
    assert sorted(itertools.chain(*drawn)) == sorted(values.ravel())
    shown = [label.get_text() for axes in panels for label in axes.get_xticklabels()]
    assert shown == index
    for axes in panels:
        count = len(axes.get_xticklabels())
        assert count == 1 or (count <= 10 and count * names <= 72)


def test_bars_without_a_value_have_no_number():
    cells = pd.DataFrame({"TC": [1.0, np.nan], "auto": [2.0, 300.0]}, ["g", "h"])
    (axes,) = style.bars(style.Cells("", "times", cells, ratio=True)).axes
    assert [text.get_text() for text in axes.texts] == ["1", "2", "300"]
    strategy, selector = (bars[0].get_hatch() for bars in axes.containers)
    assert (strategy, selector) == ("///", None)
    assert axes.get_yscale() == "log"
    assert [line.get_ydata()[0] for line in axes.get_lines()] == [1.0]


def test_shares_are_stacked():
    shares = pd.DataFrame({"one": [0.25, 0.5], "two": [0.75, np.nan]}, ["g", "h"])
    (axes,) = style.stacked(shares, "share (%)").axes
    one, two = axes.containers
    assert [bar.get_width() for bar in one] == [25.0, 50.0]
    assert [(bar.get_x(), bar.get_width()) for bar in two] == [(25.0, 75.0), (50.0, 0.0)]


def test_relabelling_is_drawn_as_in_the_csv(made):
    rows = table(made[0], "relabelling")
    removed, faster = figures.relabelling(rows).axes
    shares = 100 * rows.drop_duplicates("graph")["removed_share"]
    np.testing.assert_allclose([bar.get_height() for bar in removed.patches], shares)
    drawn = heights([faster])
    assert set(drawn) == set(rows["selector"])
    for name, values in drawn.items():
        np.testing.assert_array_equal(values, rows[rows["selector"] == name]["speedup"])


def test_regret_is_drawn_as_in_the_csv(made):
    rows = table(made[0], "regret")
    (axes,) = figures.regret(rows).axes
    percent = figures.regret_by_family(rows)
    assert len(axes.texts) == percent.size
    for y, selector in enumerate(percent.index):
        one = rows[(rows["selector"] == selector) & (rows["family"] == "file")]
        expected = 100 * np.expm1(np.log1p(one["regret"]).mean())
        column = list(percent.columns).index("file")
        assert percent.loc[selector, "file"] == pytest.approx(expected)
        text = axes.texts[y * percent.shape[1] + column].get_text()
        assert float(text.replace(",", "")) == pytest.approx(expected, abs=0.51)


def test_looks_differ_without_colour():
    shapes = [
        (look["marker"], look["linestyle"], look["markerfacecolor"] == "white")
        for look in map(style.look_of, style.looks())
    ]
    assert len(set(shapes)) == len(shapes)
    assert all(max(to_rgb(look.color)) < 1.0 for look in style.looks().values())  # seen on white


def test_a_budget_leaves_out_the_last_graphs(monkeypatch):
    """Each of the graphs takes 50 s by a clock of the test, so that 120 s have time for two."""
    measured, clock = [], [0.0]

    def measure(study, graph, options):
        measured.append(graph.name)
        clock[0] += 50.0

    monkeypatch.setattr(run, "measure_graph", measure)
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    said = []
    for module in (run, budget_of):
        monkeypatch.setattr(module, "announce", said.append)
    for budget, count in ((120.0, 2), (10.0, 1), (None, 4)):
        measured.clear()
        said.clear()
        found = run.Study()
        options = StudyOptions(scales=(5, 6, 7, 8), budget_seconds=budget)
        run.measure_machine(found, options, None)
        assert measured == [f"kronecker{scale}" for scale in range(5, 5 + count)]
        length = f"this takes about {budget or 0:.0f} s: as many of 4 graphs as fit"
        assert (said[0] == length) == (budget is not None)
        wanted = ", ".join(f"kronecker{scale}" for scale in range(5 + count, 9))
        assert found.notes == ([f"the budget had no time for {wanted}"] if count < 4 else [])
