"""--optimize from the command line to the report."""

from __future__ import annotations

import json
import time

import pytest
from cli_runs import run
from made_models import power_json

from hetero_bfs import Engine, KroneckerEdges
from hetero_bfs.errors import ModelError

WATTS = {"TC": {"cpu": 90.0}, "BC": {"cpu": 60.0}}
G500 = ["graph500", "--scale", "8", "--sources", "4", "--device", "cpu", "--selector", "learned"]


@pytest.fixture
def with_watts(trained):
    """This machine's model, with watts of the processor."""

    def change(data):
        data["power"] = power_json(WATTS, cpu=30.0)

    return trained(None, change)


class ClockMeter:
    """Draws 40 W by the clock, whatever runs."""

    name, domain, resolution_seconds = "clock", "cpu", 0.01

    def period_seconds(self):
        return 0.002

    def watch(self):
        return None

    def start(self):
        self.begin = time.perf_counter()

    def stop(self):
        return 40.0 * (time.perf_counter() - self.begin)


@pytest.mark.usefixtures("with_watts")
@pytest.mark.parametrize("objective_name", ["energy", "edp"])
def test_the_report_has_the_objective_its_figures_and_the_metered_ones(
    monkeypatch, tmp_path, capsys, objective_name
):
    monkeypatch.setattr("hetero_bfs.graph500.protocol.meters_of", lambda *_: ([ClockMeter()], []))
    out, trace = tmp_path / "r.json", tmp_path / "t.csv"
    assert run(*G500, "--optimize", objective_name, "--json", out, "--trace", trace) == 0
    text = capsys.readouterr().out
    assert ("objective: least energy of the cpu" in text) == (objective_name == "energy")
    assert ("objective: least energy-delay product of the cpu" in text) == (objective_name == "edp")
    assert "TC 90 +- 0.5, BC 60 +- 0.5; idle 30" in text
    assert "metered cpu" in text
    assert "updates every 2 ms" in text
    data = json.loads(out.read_text())
    optimize = data["optimize"]
    assert (optimize["objective"], optimize["domains"], optimize["idle_watts"]) == (
        objective_name,
        ["cpu"],
        30.0,
    )
    rows = [line.split(",") for line in trace.read_text().splitlines()]
    columns = {name: rows[0].index(name) for name in ("strategy", "seconds", "transfer_seconds")}
    joules = net = 0.0
    for row in rows[1:]:
        seconds = sum(float(row[columns[c]]) for c in ("seconds", "transfer_seconds"))
        watts = WATTS[row[columns["strategy"]]]["cpu"]
        joules, net = joules + seconds * watts, net + seconds * (watts - 30.0)
    assert optimize["model_joules_per_search"] == pytest.approx(joules / 4)
    assert optimize["model_net_joules_per_search"] == pytest.approx(net / 4)
    (total,) = data["energy"]["totals"]
    assert total["joules"] == pytest.approx(40.0 * total["seconds"], rel=0.05)
    assert total["period_seconds"] == 0.002


@pytest.mark.usefixtures("with_watts")
def test_time_is_the_default_and_says_nothing_of_watts(tmp_path, capsys):
    out = tmp_path / "r.json"
    assert run(*G500, "--json", out) == 0
    assert "objective:" not in capsys.readouterr().out
    assert json.loads(out.read_text())["optimize"] == {"objective": "time"}


@pytest.mark.usefixtures("with_watts")
def test_one_search(tmp_path, capsys):
    graph = tmp_path / "g.txt"
    graph.write_text("0 1\n1 2\n2 3\n")
    options = ["--source", 0, "--device", "cpu", "--json", tmp_path / "r.json"]
    assert run("bfs", graph, *options, "--optimize", "energy") == 0
    assert "objective: least energy of the cpu" in capsys.readouterr().out
    optimize = json.loads((tmp_path / "r.json").read_text())["optimize"]
    assert optimize["watts"] == {"TC": 90.0, "BC": 60.0}
    assert optimize["model_joules"] > optimize["model_net_joules"] > 0


@pytest.mark.parametrize("selector", ["alpha-beta", "daga", "yasui", "zhang", "fixed:TC,BC"])
def test_selectors_that_know_no_objective_are_wrong_usage(capsys, selector):
    assert run(*G500, "--selector", selector, "--optimize", "energy") == 2
    error = capsys.readouterr().err
    assert f"goes with --selector auto, learned, thresholds; {selector} knows no objective" in error


def test_an_unknown_objective_is_wrong_usage(capsys):
    assert run(*G500, "--optimize", "power") == 2
    assert "choose from" in capsys.readouterr().err


def test_missing_watts_are_found_before_the_graph(trained, capsys):
    trained(None)
    absent = ["bfs", "absent.txt", "--source", 0, "--device", "cpu"]
    assert run(*absent, "--optimize", "edp") == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "--optimize edp needs measured watts" in captured.err
    assert "train --power-only" in captured.err
    assert "--power-log FILE" in captured.err
    assert "Traceback" not in captured.err


def test_power_only_goes_without_a_folder(tmp_path, capsys):
    assert run("train", "--power-only", "--out", tmp_path) == 2
    assert "--power-only adds watts to the installed model" in capsys.readouterr().err


@pytest.mark.usefixtures("with_watts")
def test_an_engine_with_an_objective():
    edges = KroneckerEdges(8).materialise()
    with Engine(edges, selector="learned", device="cpu", optimize="energy") as engine:
        assert engine.objective.objective_name == "energy"
        engine.set_selector("thresholds")
        assert engine.objective.objective_name == "energy", (
            "the objective stays until another one is given"
        )
        engine.set_selector("fixed:TC", "time")
        assert engine.objective is None
        with pytest.raises(ModelError, match="fixed:TC knows no objective"):
            engine.set_selector("fixed:TC", "edp")
        assert engine.optimize == "time", "what was refused changes nothing"
