"""Calibration: a model for this machine comes out, fitted to a few probes."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from made_models import model_json, ship

from hetero_bfs.devices.machine import machine_slug
from hetero_bfs.errors import ModelError
from hetero_bfs.options import EngineOptions
from hetero_bfs.scheduling import model_files, schema
from hetero_bfs.scheduling.model_files import MODELS_VARIABLE, read_model
from hetero_bfs.scheduling.speed_model import Linear
from hetero_bfs.training import calibrate as calibration
from hetero_bfs.training.calibrate import choose_base, is_small, run_calibration

HOST = EngineOptions(device="cpu")


def made_rows(count=60, seed=3) -> pd.DataFrame:
    """Levels of all sizes, of four graphs of two families."""
    random = np.random.default_rng(seed)
    rows = {
        name: 10 ** random.uniform(0, 6, count) for name in schema.COLUMNS if name != "constant"
    }
    rows["family"] = np.where(np.arange(count) % 3, "kronecker", "grid")
    rows["graph"] = np.arange(count) % 4
    rows["examined"] = rows["unvisited_edges"] / 2
    return pd.DataFrame(rows)


def seconds_of(linear, rows) -> pd.Series:
    return sum(
        value * (1.0 if name == "constant" else rows[name])
        for name, value in linear.to_json().items()
    ) + pd.Series(0.0, rows.index)


def samples_of(model) -> pd.DataFrame:
    """What a machine would measure that is as this model says."""
    tables = {"": model.learned, "start_": model.start, "to_": model.switch}
    tables["convert_"] = model.convert
    parts = []
    for number, (prefix, table) in enumerate(tables.items()):
        for name, linear in table.items():
            rows = made_rows(seed=number)
            seconds = seconds_of(linear, rows)
            if not prefix:
                of_small_levels = seconds_of(model.learned_small[name], rows)
                seconds = seconds.where(~is_small(rows), of_small_levels)
            parts.append(rows.assign(measured=f"{prefix}{name}", seconds=seconds))
    return pd.concat(parts, ignore_index=True).assign(root=0, level=0)


def times(factor, table) -> dict[str, Linear]:
    return {
        name: replace(linear, coefficients=tuple(factor * v for v in linear.coefficients))
        for name, linear in table.items()
    }


# The command.


@pytest.fixture
def tiny(monkeypatch, tmp_path):
    """Small graphs, and one shipped model."""
    monkeypatch.setattr(calibration, "FITTED_GRAPHS", ("kronecker6", "grid8"))
    monkeypatch.setattr(calibration, "JUDGED_GRAPHS", ("kronecker7",))
    monkeypatch.setenv(MODELS_VARIABLE, str(tmp_path / "own"))
    ship(monkeypatch, tmp_path / "shipped", model_json("other__card"))


@pytest.mark.usefixtures("tiny", "one_thread")
def test_a_model_comes_out_and_the_old_one_is_kept(tmp_path, capsys):
    path = tmp_path / f"{machine_slug(None)}.json"
    path.write_text("the old one")
    assert run_calibration(engine=HOST, out=tmp_path) == 0
    assert (tmp_path / f"{path.name}.previous").read_text() == "the old one"
    model = read_model(path.read_text(), str(path))
    assert model.name == machine_slug(None)
    assert set(model.learned) == {"TC", "BC"} == set(model.zhang.edges_per_second)
    assert set(model.start) == set(model.convert) == {"cpu"}
    about = model.about
    assert about["calibrated_from"]["name"] == "other__card"
    assert about["probes"] == ["kronecker6", "grid8"]
    assert {"version", "date", "features", "samples", "seconds", "machine"} <= about.keys()
    errors = about["median_relative_error"]
    assert set(errors["after"]) >= {"TC", "BC", "start_cpu", "convert_cpu"}
    printed = capsys.readouterr().out
    for words in ("other__card", machine_slug(None), "TC", "before", "after", str(path)):
        assert words in printed


@pytest.mark.usefixtures("tiny", "one_thread")
def test_without_a_folder_commands_find_the_model():
    assert run_calibration(engine=HOST) == 0
    model = model_files.find_model(*machine_slug(None).split("__"))
    assert model.about["probes"] == ["kronecker6", "grid8"]


@pytest.mark.usefixtures("tiny")
def test_the_model_is_fitted_to_the_probes_alone(monkeypatch, tmp_path):
    """This machine is 3 times as slow as the other, at small levels 15 times; BC is not alike."""
    there = read_model(json.dumps(model_json("other__card")), "there")
    here = times(3, there.learned)
    here["BC"] = Linear(("constant", "expected_examined"), (1e-6, 1e-8))
    here = replace(there, learned=here, learned_small=times(15, there.learned))
    samples = samples_of(here)
    monkeypatch.setattr(calibration, "measure_graphs", lambda *_: samples)
    assert run_calibration(engine=HOST, out=tmp_path) == 0
    (path,) = tmp_path.glob("*.json")
    model = read_model(path.read_text(), str(path))
    errors = model.about["median_relative_error"]
    assert all(errors["before"][name] > 0.5 for name in ("TC", "BC", "BG"))
    assert max(errors["after"].values()) < 0.1
    assert {"TC small", "BC small"} <= set(errors["after"])
    start = model_json("third__card")
    start["learned"]["TC"]["constant"] *= 1e4
    del start["learned"]["BC"], start["start"]["on_cpu"]
    ship(monkeypatch, tmp_path / "shipped", start)
    assert run_calibration(engine=HOST, out=tmp_path, source="third__card") == 0
    again = read_model(path.read_text(), str(path))
    assert (again.learned, again.learned_small) == (
        model.learned,
        model.learned_small,
    )
    assert again.about["calibrated_from"]["name"] == "third__card"


@pytest.mark.usefixtures("tiny")
def test_no_model_to_start_from(monkeypatch, tmp_path):
    with pytest.raises(ModelError, match=r"named 'that'; .*none; shipped: other__card"):
        choose_base(None, "that")
    ship(monkeypatch, tmp_path / "shipped")
    with pytest.raises(ModelError, match="no speed model is installed"):
        choose_base(None, None)
