"""Calibration: made samples give their factors back, and a model for this machine comes out."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_models import model_json, ship

from hetero_bfs.devices.machine import machine_slug
from hetero_bfs.errors import ModelError
from hetero_bfs.runtime.options import EngineOptions
from hetero_bfs.selection import model_store, schema
from hetero_bfs.selection.model_format import (
    read_model,
)
from hetero_bfs.selection.model_store import (
    MODELS_VARIABLE,
)
from hetero_bfs.selection.speed_model import (
    Linear,
)
from hetero_bfs.selection.strategies import STRATEGIES
from hetero_bfs.training import calibrate as calibration
from hetero_bfs.training.calibrate import (
    CLEARLY,
    Factors,
    adapt,
    calibrate,
    choose_base,
    fit_factors,
    predict,
    run_calibration,
)
from hetero_bfs.training.fit import fit_linear

LINEAR = Linear(("constant", "frontier_edges", "expected_found"), (1e-6, 1e-9, 4e-9))
FACTOR = st.floats(0.01, 100)
HOST = EngineOptions(devices="cpu")


def made_rows(count=60, seed=3) -> pd.DataFrame:
    """Levels of all sizes, of four graphs of two families."""
    random = np.random.default_rng(seed)
    rows = {
        name: 10 ** random.uniform(0, 6, count) for name in schema.COLUMNS if name != "constant"
    }
    rows["family"] = np.where(np.arange(count) % 3, "kronecker", "grid")
    rows["graph"] = np.arange(count) % 4
    rows["examined"] = rows["unvisited_edges"] / 2
    rows["deep"] = (rows["family"] == "grid").astype(int)
    return pd.DataFrame(rows)


@settings(max_examples=50)
@given(constant=FACTOR, work=FACTOR)
def test_factors_come_back(constant, work):
    rows = made_rows()
    rows["seconds"] = predict(LINEAR.scaled(constant, work), rows)
    found = fit_factors(LINEAR, rows)
    errors = predict(LINEAR.scaled(found.constant, found.work), rows) / rows["seconds"] - 1
    assert np.median(np.abs(errors)) < 0.1


def test_a_disturbed_sample_moves_them_little():
    rows = made_rows()
    rows["seconds"] = predict(LINEAR.scaled(3, 5), rows)
    rows.loc[::10, "seconds"] *= 100
    found = fit_factors(LINEAR, rows)
    assert (found.constant, found.work) == pytest.approx((3, 5), rel=0.25)


def test_parts_that_no_sample_tells_apart_have_one_factor():
    rows = made_rows()
    rows["frontier_edges"] = rows["expected_found"] = 1.0  # the constant is all that there is
    rows["seconds"] = 7 * predict(LINEAR, rows)
    found = fit_factors(LINEAR, rows)
    assert found.constant == pytest.approx(7, rel=0.05)
    assert found.work == pytest.approx(7, rel=0.05)
    alone = Linear(("constant", "frontier_edges"), (0.0, 0.0))
    assert fit_factors(alone, rows) == Factors(1.0, 1.0)


OTHER_SHAPE = Linear(LINEAR.columns, (1e-6, 4e-9, 1e-11))


def test_a_formula_of_another_shape_is_fitted_to_the_probes_alone():
    rows = made_rows()
    rows["seconds"] = predict(OTHER_SHAPE, rows)
    found, factors = adapt(LINEAR, LINEAR.columns, rows)
    assert factors is None
    assert predict(found, rows) == pytest.approx(rows["seconds"], rel=0.01)


def test_of_a_single_graph_the_shape_is_kept():
    rows = made_rows().assign(graph=3)
    rows["seconds"] = predict(OTHER_SHAPE, rows)
    found, factors = adapt(LINEAR, LINEAR.columns, rows)
    assert factors is not None
    assert found == LINEAR.scaled(factors.constant, factors.work)


def test_coefficients_that_fit_only_what_they_have_seen_are_not_taken():
    """As many as there are levels: they fit even the noise, and no graph left out."""
    columns = ("constant", "frontier_edges", "expected_found", "num_vertices", "unvisited_edges")
    rows = made_rows(5).assign(family="kronecker")
    noise = np.random.default_rng(4).normal(0, 0.8, len(rows))
    rows["seconds"] = predict(LINEAR, rows) * np.exp(noise)
    factors = fit_factors(LINEAR, rows)
    seen, kept = (
        np.abs(np.log(predict(made, rows) / rows["seconds"])).mean()
        for made in (fit_linear(rows, columns), LINEAR.scaled(factors.constant, factors.work))
    )
    assert seen < kept - CLEARLY, "where they were fitted"
    assert adapt(LINEAR, columns, rows)[1] == factors


def test_few_disturbed_probes_keep_the_shape():
    random = np.random.default_rng(1)
    rows = made_rows(12)
    rows["seconds"] = predict(LINEAR.scaled(3, 5), rows) * np.exp(random.normal(0, 0.5, len(rows)))
    found, factors = adapt(LINEAR, LINEAR.columns, rows)
    assert factors is not None
    errors = predict(found, rows) / predict(LINEAR.scaled(3, 5), rows) - 1
    assert np.abs(errors).max() < 0.5


def samples_of(model) -> pd.DataFrame:
    """What a machine would measure that is as this model says."""
    tables = {"": model.learned, "start_": model.start, "to_": model.switch}
    tables["convert_"] = model.convert
    parts = []
    for number, (prefix, table) in enumerate(tables.items()):
        for name, linear in table.items():
            rows = made_rows(seed=number)
            parts.append(rows.assign(measured=f"{prefix}{name}", seconds=predict(linear, rows)))
    return pd.concat(parts, ignore_index=True)


def test_a_model_moved_to_another_machine():
    """There the host is 3 times as slow, the device 50, its constants 5 times, switching 2."""
    base = read_model(json.dumps(model_json("here")), "here")
    data = model_json("there")
    for name, columns in data["learned"].items():
        work = 3 if STRATEGIES[name].device_kind == "cpu" else 50
        constant = 3 if work == 3 else 5
        for key in columns:
            columns[key] *= constant if key == "constant" else work
    for columns in data["switch"].values():
        columns["constant"] *= 2
    samples = samples_of(read_model(json.dumps(data), "there"))
    found = calibrate(base, samples, samples)
    assert found.factors["TC"].work == pytest.approx(3, rel=0.1)
    assert found.factors["to_cpu"].constant == pytest.approx(2, rel=0.01)
    assert found.factors["start_cpu"].constant == pytest.approx(1, rel=0.01)
    assert found.before["BG"] > 0.5
    assert max(found.after.values()) < 0.1
    assert found.model.auto is None, "what was the fastest there says nothing here"


def test_which_formulas_keep_their_shape():
    """Elsewhere BG's seconds grow with what the other model takes for nothing."""
    base = read_model(json.dumps(model_json("here")), "here")
    there = base.learned | {"BG": Linear(("constant", "expected_examined"), (1e-6, 1e-8))}
    samples = samples_of(replace(base, learned=there))
    found = calibrate(base, samples, samples)
    assert [name for name, factors in found.factors.items() if factors is None] == ["BG"]
    assert found.before["BG"] > 0.5
    assert found.after["BG"] < 0.1
    by_factors = calibrate(base, samples, samples, clearly=math.inf)
    assert None not in by_factors.factors.values()
    assert by_factors.after["BG"] > found.after["BG"]


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
    assert set(model.learned) == {"TC", "BC"} == set(model.edges_per_second)
    assert set(model.start) == set(model.convert) == {"cpu"}
    about = model.about
    assert about["calibrated_from"]["name"] == "other__card"
    assert about["probes"] == ["kronecker6", "grid8"]
    assert {"version", "date", "features", "samples", "seconds", "machine"} <= about.keys()
    assert set(about["factors"]) >= {"TC", "BC", "start_cpu", "convert_cpu"}
    printed = capsys.readouterr().out
    for words in ("other__card", machine_slug(None), "TC", "before", "after", str(path)):
        assert words in printed


@pytest.mark.usefixtures("tiny", "one_thread")
def test_without_a_folder_of_its_own_whole_searches_say_what_auto_is(tmp_path, monkeypatch):
    fastest = {"shallow": {"selector": "learned"}, "deep": {"selector": "average"}}
    seen = []

    def compare(info, quick):
        seen.append(model_store.find_model(*machine_slug(None).split("__")).about["probes"])
        graphs, seconds = {"deep": ["grid8", "roads8"]}, {"deep": {"learned": [0.5, 0.25]}}
        return {"auto": fastest, "graphs": graphs, "seconds": seconds}

    monkeypatch.setattr("hetero_bfs.training.train.compare_selectors", compare)
    assert run_calibration(engine=HOST) == 0
    (path,) = (tmp_path / "own").glob("*.json")
    assert read_model(path.read_text(), str(path)).auto == fastest
    assert seen == [["kronecker6", "grid8"]], "the searches are by the model that was written"


@pytest.mark.usefixtures("tiny")
def test_a_model_that_lacks_something_is_no_base(monkeypatch, tmp_path):
    data = model_json("other__card")
    data["learned"].pop("BC")
    data["start"].pop("on_cpu")
    ship(monkeypatch, tmp_path / "shipped", data)
    with pytest.raises(ModelError, match="other__card lacks BC, start on cpu; choose another with"):
        choose_base(None, None)
    with pytest.raises(ModelError, match=r"named 'that'; .*none; shipped: other__card"):
        choose_base(None, "that")
    ship(monkeypatch, tmp_path / "shipped")
    with pytest.raises(ModelError, match="no speed model is installed"):
        choose_base(None, None)


def test_formulas_for_deep_graphs_get_factors_of_their_own():
    base = read_model(json.dumps(model_json("m")), "m.json")
    base = replace(base, learned_deep=base.learned)
    rows = samples_of(base)
    slower = (rows["measured"] == "TC") & (rows["deep"] > 0)
    rows.loc[slower, "seconds"] *= 4
    found = calibrate(base, rows, rows)
    assert found.factors["TC"].constant == pytest.approx(1, rel=0.1)
    assert found.factors["deep TC"].constant == pytest.approx(4, rel=0.1)
    assert found.model.predictor("TC", True).coefficients[0] == pytest.approx(
        4 * base.learned["TC"].coefficients[0], rel=0.1
    )
    assert found.after["TC"] < 0.1
