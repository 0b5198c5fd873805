"""Training without a device: collecting, going on after an interruption, fitting, the model."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from hetero_bfs.errors import HeteroBFSError
from hetero_bfs.speed_model import COLUMNS, read_model
from hetero_bfs.training import train
from hetero_bfs.training.collect import Plan, finished_graphs
from hetero_bfs.training.fit import fit_linear

TINY = Plan((6, 7), 2, 1)


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setattr(train, "QUICK_PLAN", TINY)


def run(folder) -> None:
    assert train.run_training(quick=True, devices="cpu", out=folder) == 0


def files(folder):
    (model,) = folder.glob("*.json")
    (samples,) = folder.glob("*.quick.samples.csv")
    return model, samples


@pytest.mark.usefixtures("tiny")
def test_a_model_comes_out(tmp_path):
    run(tmp_path)
    model_path, samples_path = files(tmp_path)
    assert finished_graphs(samples_path) == 12
    samples = pd.read_csv(samples_path)
    assert set(samples["measured"]) == {"TC", "BC", "start_cpu", "convert_cpu"}
    model = read_model(model_path.read_text(), str(model_path))
    assert model.name == model_path.stem
    assert set(model.learned) == {"TC", "BC"}
    assert 0 < model.alpha <= 1
    assert model.about["samples"] == len(samples)


@pytest.mark.usefixtures("tiny")
def test_interrupted_it_goes_on_where_it_stopped(tmp_path, monkeypatch):
    collected = train.collect

    def two_graphs(*arguments):
        steps = collected(*arguments)
        yield next(steps)
        yield next(steps)
        raise KeyboardInterrupt

    monkeypatch.setattr(train, "collect", two_graphs)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path)
    (samples_path,) = tmp_path.glob("*.csv")
    before = samples_path.read_text()
    assert finished_graphs(samples_path) == 2
    assert not list(tmp_path.glob("*.json"))
    monkeypatch.setattr(train, "collect", collected)
    run(tmp_path)
    assert samples_path.read_text().startswith(before)
    assert finished_graphs(samples_path) == 12


@pytest.mark.usefixtures("tiny")
def test_again_it_starts_anew_and_keeps_the_old(tmp_path):
    run(tmp_path)
    model_path, samples_path = files(tmp_path)
    old_model, old_samples = model_path.read_text(), samples_path.read_text()
    run(tmp_path)
    assert (tmp_path / f"{model_path.name}.previous").read_text() == old_model
    (previous,) = tmp_path.glob("*.previous.csv")
    assert previous.read_text() == old_samples
    assert json.loads(model_path.read_text())["name"] == model_path.stem


@pytest.mark.usefixtures("tiny")
def test_damaged_samples_are_refused(tmp_path):
    run(tmp_path)
    _, samples_path = files(tmp_path)
    samples_path.write_text(samples_path.read_text()[:-30])
    with pytest.raises(HeteroBFSError, match="move it away"):
        run(tmp_path)


def test_the_fit_recovers_coefficients():
    columns = COLUMNS["top-down"]
    rows = pd.DataFrame(
        {
            "frontier_vertices": [1, 10, 500, 3000, 20],
            "frontier_edges": [5, 100, 90000, 40000, 7],
            "expected_found": [2, 50, 1000, 9000, 3],
            "family": ["grid", "grid", "uniform", "uniform", "uniform"],
        }
    )
    rows["seconds"] = 1e-5 + 2e-9 * rows["frontier_edges"] + 3e-9 * rows["expected_found"]
    fitted = fit_linear(rows, columns)
    weights = dict(zip(fitted.columns, fitted.coefficients, strict=True))
    assert weights["constant"] == pytest.approx(1e-5, rel=1e-3)
    assert weights["frontier_edges"] == pytest.approx(2e-9, rel=1e-3)
    assert weights["expected_found"] == pytest.approx(3e-9, rel=1e-3)
    assert weights["frontier_vertices"] == pytest.approx(0, abs=1e-12)
