"""A first model: measured from little, kept, and used by engines of machines without a model."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest
from graphs import nasty
from made_models import model_json, ship
from oracle import check_search, engine_on

import hetero_bfs as hb
from hetero_bfs.devices.machine import machine_slug
from hetero_bfs.devices.opencl import verdicts
from hetero_bfs.errors import DeviceError
from hetero_bfs.scheduling import first_model as keeping
from hetero_bfs.scheduling.model_files import MODELS_VARIABLE, read_model
from hetero_bfs.scheduling.strategies import available
from hetero_bfs.support import private_cache
from hetero_bfs.training import first_model as measuring


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setattr(measuring, "GRAPHS", ("kronecker6", "grid8"))
    monkeypatch.setattr(measuring, "_MOST_SEARCHES", 4)


@pytest.fixture
def unknown(monkeypatch, tmp_path):
    """A machine without a model; one of another machine is shipped. Nothing was measured yet."""
    monkeypatch.setenv(verdicts.VARIABLE, "on")
    monkeypatch.setenv(MODELS_VARIABLE, str(tmp_path / "models"))
    ship(monkeypatch, tmp_path / "shipped", model_json("another__machine"))
    monkeypatch.setattr(private_cache, "folder", lambda: tmp_path)
    monkeypatch.setattr(keeping, "_of_this_process", {})
    monkeypatch.setattr(verdicts, "check_verdict", lambda *_: None)


@pytest.fixture
def measured(monkeypatch):
    """The number of measurements; each gives the model of a file."""
    calls = []

    def measure(device):
        calls.append(device)
        name = machine_slug(device)
        return read_model(json.dumps(model_json(name)), name)

    monkeypatch.setattr(measuring, "measure_first_model", measure)
    return calls


@pytest.mark.usefixtures("tiny", "one_thread")
def test_all_strategies_and_migrations_are_fitted(place):
    model = measuring.measure_first_model(place)
    assert model.name == machine_slug(place)
    assert model.lacking(available(place is not None)) == []
    assert model.zhang is None
    for migration in (*model.switch.values(), *model.convert.values()):
        assert "num_vertices" not in migration.columns, "small graphs do not show it"
    assert set(model.about["graphs"]) <= {"kronecker6", "grid8"}
    assert model.about["samples"] == sum(model.about["graphs"].values())
    again = read_model(json.dumps(model.to_json()), "a file")
    assert again.learned == model.learned


@pytest.mark.usefixtures("tiny", "one_thread")
def test_no_graph_is_measured_after_the_budget(monkeypatch):
    monkeypatch.setattr(measuring, "BUDGET_SECONDS", 0.0)
    of_all = measuring.measure_first_model(None).about["graphs"]
    assert set(of_all) == {"kronecker6", "grid8"}, "each once, unless it takes far too long"
    monkeypatch.setattr(measuring, "MOST_SECONDS", 0.0)
    assert set(measuring.measure_first_model(None).about["graphs"]) == {"kronecker6"}


@pytest.mark.usefixtures("tiny", "one_thread")
def test_a_very_slow_device_is_not_measured(opencl_device, monkeypatch):
    monkeypatch.setattr(measuring, "SLOWEST_SEARCH", 0.0)
    assert measuring.measure_first_model(opencl_device) is None


@pytest.mark.usefixtures("unknown")
def test_it_is_measured_once_and_kept(measured, monkeypatch):
    assert keeping.first_model(None, measures=False) is None
    found = keeping.first_model(None, measures=True)
    assert keeping.first_model(None, measures=True) is found
    monkeypatch.setattr(keeping, "_of_this_process", {})  # as in another process
    assert keeping.first_model(None, measures=False).learned == found.learned
    assert measured == [None]


@pytest.mark.usefixtures("unknown")
def test_a_damaged_one_is_measured_again(measured, monkeypatch, tmp_path):
    found = keeping.first_model(None, measures=True)
    (path,) = tmp_path.glob("first-model-*.bin")
    path.write_bytes(path.read_bytes()[:-9])
    monkeypatch.setattr(keeping, "_of_this_process", {})
    assert keeping.first_model(None, measures=True).learned == found.learned
    assert len(measured) == 2


@pytest.mark.usefixtures("unknown")
@pytest.mark.parametrize("failure", [None, DeviceError("it is gone"), ValueError("bad numbers")])
def test_a_failure_is_final_for_the_process(monkeypatch, failure):
    calls = []

    def fail(device):
        calls.append(device)
        if failure is not None:
            raise failure

    monkeypatch.setattr(measuring, "measure_first_model", fail)
    assert [keeping.first_model(None, measures=True) for _ in range(2)] == [None, None]
    assert len(calls) == 1


@pytest.mark.usefixtures("unknown")
def test_processes_that_compile_beside_others_measure_nothing(measured, monkeypatch):
    monkeypatch.setattr(keeping, "_may_measure", True)
    keeping.leave_unmeasured()
    assert keeping.first_model(None, measures=True) is None
    assert not measured


@pytest.mark.usefixtures("unknown")
def test_a_model_that_lacks_a_strategy_is_not_kept(monkeypatch, tmp_path):
    def measure(device):
        data = model_json(machine_slug(device))
        del data["learned"]["BC"]
        return read_model(json.dumps(data), "of this machine")

    monkeypatch.setattr(measuring, "measure_first_model", measure)
    assert keeping.first_model(None, measures=True) is None
    assert not list(tmp_path.glob("first-model-*.bin"))


@pytest.mark.usefixtures("unknown")
def test_other_threads_and_versions_need_another_one(measured, monkeypatch):
    keeping.first_model(None, measures=True)
    for name, value in (("VERSION", "9.9"), ("most_threads", lambda: 77)):
        monkeypatch.setattr(keeping, name, value)
        keeping.first_model(None, measures=True)
    assert len(measured) == 3


def test_waits_within_each_other_count_once():
    before = verdicts.seconds_of_tests()
    with verdicts.waiting("outer"), verdicts.waiting("inner"):
        time.sleep(0.05)
    assert 0.05 <= verdicts.seconds_of_tests() - before < 0.1


@pytest.mark.usefixtures("unknown")
def test_devices_that_are_used_untested_are_not_measured(measured, monkeypatch):
    keeping.first_model(None, measures=True)
    monkeypatch.setenv(verdicts.VARIABLE, "off")
    assert keeping.first_model(None, measures=True) is None
    assert len(measured) == 1


@pytest.mark.usefixtures("unknown", "tiny", "one_thread")
def test_an_engine_begins_with_it(place):
    edges = nasty("Kronecker 10")
    with engine_on(place, edges, selector="auto") as engine:
        assert engine.selector.model.name == machine_slug(place)
        assert any("begin with a short measurement" in note for note in engine.notes)
        check_search(engine, edges, int(np.flatnonzero(engine.graph.input_degree)[0]))
    with engine_on(place, edges, selector="learned") as engine:
        assert engine.selector.model.name == machine_slug(place)


@pytest.mark.usefixtures("unknown", "one_thread")
def test_without_corrections_nothing_is_measured(measured):
    with hb.Engine(hb.KroneckerEdges(6), device="cpu", correction=False) as engine:
        assert engine.selector.name == "alpha-beta"
        assert any("choose by Beamer's rule" in note for note in engine.notes)
    assert not measured
