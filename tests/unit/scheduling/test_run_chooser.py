"""Which option runs next, by predicted seconds and those of the runs so far."""

from __future__ import annotations

import json

import pytest
from made_devices import CPU
from made_models import model_json, ship

from hetero_bfs.errors import ModelError
from hetero_bfs.scheduling.model_files import MODELS_VARIABLE, read_model
from hetero_bfs.scheduling.run_chooser import RunChooser, choose_place, run_costs
from hetero_bfs.scheduling.speed_model import GraphSize


def options_of(chooser: RunChooser[str], seconds: dict[str, float], count: int) -> list[str]:
    """Return the options of several runs, which take these seconds."""
    chosen = []
    for _ in range(count):
        option = chooser.choose().option
        chosen.append(option)
        chooser.opened(option)
        chooser.learn(option, seconds[option])
    return chosen


def runs(seconds: dict[str, float], disturbed: float, count: int) -> list[str]:
    """Return the options of several runs; the second one of the first option is disturbed."""
    chooser, chosen = RunChooser(list(seconds)), []
    for _ in range(count):
        option = chooser.choose().option
        chosen.append(option)
        is_disturbed = option == next(iter(seconds)) and chosen.count(option) == 2
        chooser.learn(option, disturbed if is_disturbed else seconds[option])
    return chosen


@pytest.mark.parametrize("others", [["device"], ["device", "both"]])
def test_an_option_that_was_disturbed_is_taken_in_the_end(others):
    seconds = {"cpu": 0.2} | dict.fromkeys(others, 4.0)
    chosen = runs(seconds, 5.0, 800)
    assert "cpu" not in chosen[2:40]
    assert set(chosen[-100:]) == {"cpu"}


def test_slower_options_take_a_small_share_of_the_time():
    seconds = {"cpu": 1.0, "device": 3.0, "both": 2.0}
    chosen = runs(seconds, 1.0, 5000)
    assert set(chosen[6:350]) == {"cpu"}
    lost = [seconds[option] - 1.0 for option in chosen[6:] if option != "cpu"]
    assert len(lost) > 5
    assert sum(lost) < 0.01 * sum(seconds[option] for option in chosen)


def test_a_rival_of_nearly_the_same_prediction_is_tried_at_once():
    """Shortest paths on a core with tails, on an H200: 4.6 and 4.4 ms expected."""
    expected, seconds = {"cpu": 4.6, "device": 4.4}, {"cpu": 2.5, "device": 4.6}
    chooser = RunChooser(["cpu", "device"], expected)
    assert options_of(chooser, seconds, 10) == ["device"] * 2 + ["cpu"] * 8


def test_a_prediction_is_corrected_by_the_error_of_the_others():
    """64 searches of a grid, on an H200: 240 and 800 ms expected."""
    expected, seconds = {"cpu": 240.0, "device": 800.0}, {"cpu": 1175.0, "device": 2591.0}
    chooser = RunChooser(["cpu", "device"], expected)
    assert options_of(chooser, seconds, 5) == ["cpu"] * 5
    assert chooser.choose().seconds["device"] == pytest.approx(800.0 * (1175.0 / 240.0) ** 0.5)


def test_the_first_run_of_an_option_does_not_count():
    chooser = RunChooser(["cpu", "device"])
    for option, measured in {"cpu": [9.0, 0.5], "device": [0.1, 0.6]}.items():
        for value in measured:
            chooser.learn(option, value)
    assert chooser.choose().option == "cpu", "the device's first run was short"
    chooser.learn("device", 0.4)
    assert chooser.choose().option == "device"


def test_without_predictions_each_option_runs_twice():
    assert options_of(RunChooser(["a", "b"]), {"a": 1.0, "b": 2.0}, 5) == list("aabba")


def test_predictions_choose_the_first_run():
    seconds = {"cpu": 1.0, "device": 40.0}
    chooser = RunChooser(["cpu", "device"], seconds, {"device": 5.0})
    choice = chooser.choose()
    assert choice == ("cpu", seconds, "fastest by prediction")
    chosen = options_of(chooser, seconds, 100)
    assert set(chosen) == {"cpu"}


def test_an_option_that_predictions_undervalue_is_found():
    expected, seconds = {"cpu": 1.0, "device": 2.0}, {"cpu": 1.0, "device": 0.1}
    chosen = options_of(RunChooser(["cpu", "device"], expected, {"device": 5.0}), seconds, 200)
    assert "device" not in chosen[:50]
    assert set(chosen[-50:]) == {"device"}


def test_an_option_that_predictions_overvalue_is_left():
    expected, seconds = {"cpu": 1.0, "device": 0.1}, {"cpu": 1.0, "device": 3.0}
    chosen = options_of(RunChooser(["cpu", "device"], expected), seconds, 300)
    assert chosen[:2] == ["device"] * 2
    assert chosen[2:].count("device") < 10


def test_an_opening_waits_until_it_has_paid():
    expected = {"cpu": 1.0, "device": 0.5}
    chooser = RunChooser(["cpu", "device"], expected, {"device": 3.0})
    chosen = options_of(chooser, expected, 12)
    assert chosen[:5] == ["cpu"] * 5
    assert set(chosen[5:]) == {"device"}
    cost = sum(expected[option] for option in chosen) + 3.0
    assert cost < 2 * min(12 * 1.0, 12 * 0.5 + 3.0)


def test_an_opening_pays_at_once_for_a_long_run_or_many():
    for expected, count in (({"cpu": 9.0, "device": 0.5}, 1), ({"cpu": 1.0, "device": 0.5}, 6)):
        chooser = RunChooser(["cpu", "device"], expected, {"device": 3.0})
        assert chooser.choose(runs=count).option == "device"
    assert chooser.choose(runs=5).option == "cpu"


def test_an_option_that_cannot_run_is_dropped():
    chooser = RunChooser(["cpu", "device"], {"cpu": 2.0, "device": 1.0})
    chooser.drop("device")
    assert chooser.choose() == ("cpu", {"cpu": 2.0}, "no other place is in use")
    assert list(chooser) == ["cpu"]


def costs(constant: float, edges: float) -> dict[str, dict[str, float]]:
    return {
        "run": {"constant": constant, "edges": edges},
        "opening": {"constant": 0.25, "edges": 1e-9},
    }


@pytest.fixture
def shipped(monkeypatch, tmp_path):
    """A shipped model with costs of one algorithm."""
    data = model_json("some__card") | {
        "algorithms": {
            "cpu": {"shortest paths": costs(1e-6, 1e-9)},
            "device": {"shortest paths": costs(1e-3, 1e-11)},
        }
    }
    monkeypatch.setenv(MODELS_VARIABLE, str(tmp_path / "own"))
    ship(monkeypatch, tmp_path / "shipped", data)
    return data


def test_costs_come_from_a_model(shipped):
    chooser = choose_place("shortest paths", GraphSize(5, 10, 1e6), CPU)
    assert chooser.choose().seconds == pytest.approx({"cpu": 1e-6 + 1e-3, "device": 1e-3 + 1e-5})
    assert run_costs("colouring", CPU) == {}
    assert read_model(json.dumps(shipped), "it").to_json()["algorithms"] == shipped["algorithms"]


def test_lists_that_a_device_holds_are_not_uploaded_again(shipped):
    """The device saves 0.099 s a run. Opening it takes 0.25 s, and 0.1 s for the upload."""

    def runs_on_the_host(resident):
        chooser = choose_place("shortest paths", GraphSize(5, 10, 1e8), CPU, resident)
        for run in range(9):
            option = chooser.choose().option
            if option == "device":
                return run
            chooser.learn(option, 0.1)
        return None

    assert runs_on_the_host(0.0) == 3
    assert runs_on_the_host(1.0) == 2


def test_a_lucky_run_does_not_decide():
    chooser = RunChooser(["cpu", "device"])
    for place, seconds in [("cpu", 9.0)] + [("cpu", 0.5)] + [("cpu", 1.2)] * 6:
        chooser.learn(place, seconds)
    for seconds in (9.0, 0.6, 0.6):
        chooser.learn("device", seconds)
    assert chooser.choose().option == "device"


def test_unknown_columns_are_refused(shipped):
    shipped["algorithms"]["cpu"]["shortest paths"]["run"]["depth"] = 1.0
    with pytest.raises(ModelError, match="unknown column 'depth'"):
        read_model(json.dumps(shipped), "it")
