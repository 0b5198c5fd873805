"""The tables of Zhang et al. 2018: `hetero-bfs study --paper zhang`."""

from __future__ import annotations

import json
import weakref

import numpy as np
import pandas as pd
import pytest
from study_runs import TINY, study, table

from hetero_bfs.devices.opencl.driver import list_devices
from hetero_bfs.study import PAPERS, paper_named, zhang
from hetero_bfs.training.collect import Plan

SCALES = (5, 7)


def run(out, *more) -> int:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(zhang, "QUICK_PLAN", Plan((6,), 2, 1))
        patch.setattr(zhang, "model_of", lambda info: None)
        arguments = ["--paper", "zhang", "--scale", *SCALES, "--quick", *TINY, "--device", "cpu"]
        return study(*([] if out is None else [out]), *arguments, *more)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    out = tmp_path_factory.mktemp("paper") / "out"
    assert run(out) == 0
    return out


def test_every_section_has_its_files(made):
    sections = [section.name for section in paper_named("zhang").sections]
    assert {path.stem for path in made.glob("*.csv")} == set(sections)
    for section in paper_named("zhang").sections:
        assert list(table(made, section.name).columns) == list(section.columns)
    assert (made / "throughput.svg").exists()
    page = (made / "index.html").read_text()
    for title in (
        "Table 2",
        "Table 5",
        "Table 6",
        "Figure 4",
        "Figure 5",
        "Figures of the paper, and ours",
    ):
        assert title in page


def test_figure_4(made):
    """On the CPU alone there is no daga; the page says why."""
    rows = table(made, "throughput")
    assert set(rows["selector"]) == {"yasui", "zhang", "auto"}
    assert set(rows["graph"]) == {f"kronecker{s}" for s in SCALES}
    assert (rows["harmonic_mean_gteps"] > 0).all()
    notes = json.loads((made / "study.json").read_text())["notes"]
    assert any("daga is left out" in note for note in notes)
    assert any("2 Kronecker graphs" in note and "edges/s" in note for note in notes)


def test_preprocessing_by_step(made):
    rows = table(made, "preprocessing")
    assert set(rows["order"]) == {"degree", "given"}
    shares = rows.groupby(["graph", "order"])["share"].sum()
    np.testing.assert_allclose(shares, 1.0)
    assert (rows["seconds"] > 0).all()
    assert set(rows.loc[rows["remaps"], "step"]) == {"relabelling"}


def test_one_order_of_the_graph_is_in_memory_at_a_time(tmp_path, monkeypatch):
    """A graph of scale 26 takes half of 24 GiB. A device may share the host's arrays."""
    built: list = []
    construct = zhang.construct

    def watched(edges, order):
        assert [lists for lists in built if lists() is not None] == []
        graph, seconds = construct(edges, order)
        built.append(weakref.ref(graph.graph.indices))
        return graph, seconds

    monkeypatch.setattr(zhang, "construct", watched)
    device = "0" if list_devices() else "cpu"
    assert run(tmp_path / "out", "--device", device) == 0
    assert len(built) == 2 * (1 + len(SCALES))


def test_table_6(made):
    rows = table(made, "relabelling").set_index("scale")
    assert rows.loc[7, "vertices"] == 128
    left = 1 - rows["vertices_left"] / rows["vertices"]
    np.testing.assert_allclose(rows["removed_share"], left)


def test_claims_follow_from_the_tables(made):
    claims = table(made, "claims").set_index("claim")
    gteps = table(made, "throughput").groupby("selector")["harmonic_mean_gteps"].mean()
    ours = claims.loc["speed of zhang over yasui"]
    assert ours["ours"] == pytest.approx(gteps["zhang"] / gteps["yasui"])
    assert ours["ours_auto"] == pytest.approx(gteps["auto"] / gteps["yasui"])
    assert (ours[zhang.A10], ours[zhang.RYZEN]) == (1.1, 1.1)
    assert np.isnan(claims.loc["speed of zhang over daga", "ours"])
    removed = table(made, "relabelling")["removed_share"].mean()
    assert claims.loc["vertices that remapping removes", "ours"] == pytest.approx(removed)
    mix = claims.loc[
        "best single strategy over the best of each level (from Table 5, no migrations)"
    ]
    assert mix[zhang.A10] == pytest.approx(11.98 / 0.51)
    levels = table(made, "levels")
    levels = levels[levels["graph"] == "kronecker7"]
    single = levels.groupby("strategy")["seconds"].sum().min()
    best = levels.groupby("level")["seconds"].min().sum()
    assert mix["ours"] == pytest.approx(single / best)


def test_energy_is_over_dagas(made):
    """In the widest domain where Daga was measured."""
    rows = [
        ("g", "daga", "cpu", 2.0),
        ("g", "zhang", "cpu", 5.0),
        ("h", "daga", "cpu", 4.0),
        ("h", "zhang", "cpu", 7.0),
        ("g", "daga", "device", None),
        ("g", "zhang", "device", 3.0),
    ]
    energy = pd.DataFrame(rows, columns=["graph", "selector", "domain", "mteps_per_watt"])
    names = [section.name for section in paper_named("zhang").sections if section.name != "claims"]
    claims = zhang.claim_rows({name: table(made, name) for name in names} | {"energy": energy})
    found = {row["claim"]: row["ours"] for row in claims}
    assert found["energy efficiency of zhang over daga"] == pytest.approx(6.0 / 3.0)
    assert found["energy efficiency of zhang over yasui"] is None


def test_regenerated_edges_give_the_same_searches(made, tmp_path):
    assert run(tmp_path / "again", "--regenerate") == 0
    same = ["graph", "vertices", "vertices_left"]
    again = table(tmp_path / "again", "relabelling")
    pd.testing.assert_frame_equal(again[same], table(made, "relabelling")[same])
    same = ["graph", "key", "level", "strategy", "frontier_vertices", "frontier_edges"]
    again = table(tmp_path / "again", "levels")
    pd.testing.assert_frame_equal(again[same], table(made, "levels")[same])
    steps = table(tmp_path / "again", "preprocessing")
    assert (steps["seconds"] > 0).all(), "the time of generating is counted for no step"


def test_without_a_folder_tables_are_printed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(None, "--json", "-") == 0
    captured = capsys.readouterr()
    summary = json.loads(captured.out)
    assert {"strategies", "throughput", "levels", "claims"} <= summary["tables"].keys()
    assert "paper: A10-7850K" in captured.err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "name OUT_DIR"),
        (["out", "--regenerate"], "--regenerate goes with --paper zhang"),
        (["--paper", "zhang", "--graph", "g.txt"], "--paper zhang has no --graph; leave it out"),
        (["--paper", "zhang", "--families"], "has no --families"),
        (["--paper", "zhang", "--budget", "9"], "has no --budget"),
        (["--paper", "frog", "--keys", "3"], "has no --keys"),
        (["--paper", "gpregel", "--power-log", "m.csv"], "has no --power-log"),
        (["--paper", "wolfpath", "--regenerate"], "has no --regenerate"),
        (["--paper", "nobody"], "choose from"),
    ],
)
def test_wrong_usage(arguments, words, capsys):
    assert study(*arguments) == 2
    assert words in capsys.readouterr().err


def test_every_paper_has_a_module():
    for name in PAPERS:
        assert paper_named(name).name == name
