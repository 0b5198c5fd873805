"""Speed models: what a file says is what is predicted, and a bad file is refused clearly."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from made_devices import CPU
from made_models import model_json, ship

from hetero_bfs.devices.machine import DEVICELESS, SMALL_VERTICES, Tuning
from hetero_bfs.errors import ModelError
from hetero_bfs.scheduling import model_files, schema
from hetero_bfs.scheduling.model_files import (
    MODELS_VARIABLE,
    find_model,
    read_model,
    similar_model,
    user_models_folder,
)
from hetero_bfs.scheduling.speed_model import FORMAT, Linear
from hetero_bfs.scheduling.strategies import STRATEGIES, available
from hetero_bfs.scheduling.trace import LevelFeatures

LEVEL = LevelFeatures(
    level=2,
    frontier_vertices=10,
    frontier_edges=50,
    unvisited_vertices=40,
    unvisited_edges=80,
    num_vertices=100,
    num_edges=200,
    growth=2.0,
    device_kind="cpu",
    representation="bitmap",
)


def read(data, origin="some.json"):
    return read_model(json.dumps(data), origin)


def test_round_trip():
    data = model_json("cpu__card")
    data["about"] = {"machine": {"device": {"type": "GPU"}}, "samples": 12}
    model = read(data)
    assert model.to_json() == data
    again = read(model.to_json())
    assert again == model
    assert (again.name, again.about["samples"]) == ("cpu__card", 12)


def test_tuning_round_trips():
    small = Tuning(group_size=512)
    tuning = Tuning(group_size=128, registers=40, one_launch=False, small=small)
    assert tuning.for_graph(SMALL_VERTICES - 1) == small
    assert tuning.for_graph(SMALL_VERTICES) == tuning
    assert not tuning.step_by_step().for_graph(1).one_launch
    data = model_json("m") | {"tuning": tuning.to_json()}
    model = read_model(json.dumps(data), "m.json")
    assert model.tuning == tuning
    assert read_model(json.dumps(model.to_json()), "m.json") == model


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"tuning": {"group_sise": 128}}, "tuning: group_sise = 128"),
        ({"tuning": {"registers": -1}}, "tuning: registers is -1; give an integer of at least 0"),
        ({"tuning": {"group_size": 100}}, "tuning: group_size is 100; it must be a power of two"),
        ({"tuning": {"small": {"registers": -1}}}, "tuning: registers is -1; give an integer"),
        ({"tuning": {"small": 3}}, "tuning: small = 3 is not a setting"),
        ({"tuning": {"registers": 1.5}}, "tuning: registers = 1.5"),
    ],
)
def test_bad_tuning(change, words):
    with pytest.raises(ModelError, match=words):
        read_model(json.dumps(model_json("m") | change), "m.json")


def test_learned_by_hand():
    data = model_json("m")
    data["learned"]["TC"] = {
        "constant": 1.0, "frontier_vertices": 2.0, "frontier_edges": 3.0, "expected_found": 4.0
    }  # fmt: skip
    data["learned"]["BG"] = {
        "num_vertices": 1.0, "unvisited_vertices": 10.0, "expected_examined": 100.0
    }  # fmt: skip
    model = read(data)
    top_down = 1 + 2 * 10 + 3 * 50 + 4 * LEVEL.expected_found
    assert model.learned_seconds(LEVEL, STRATEGIES["TC"]) == pytest.approx(top_down)
    bottom_up = 100 + 10 * 40 + 100 * LEVEL.expected_examined
    assert model.learned_seconds(LEVEL, STRATEGIES["BG"]) == pytest.approx(bottom_up)


def test_small_levels_have_formulas_of_their_own():
    data = model_json("m") | {"learned_small": {"TC": {"constant": 7.0}}}
    model = read(data)
    large = replace(LEVEL, frontier_edges=schema.LEAST_SHARED_EDGES)
    small = replace(LEVEL, frontier_edges=schema.LEAST_SHARED_EDGES - 1)
    assert model.learned_seconds(small, STRATEGIES["TC"]) == 7.0
    without = read(model_json("m"))
    for level, name in ((large, "TC"), (large, "BG"), (small, "BG")):
        expected = without.learned_seconds(level, STRATEGIES[name])
        assert model.learned_seconds(level, STRATEGIES[name]) == expected
    assert model.to_json()["learned_small"] == {"TC": {"constant": 7.0}}
    assert read(model.to_json()) == model


def test_the_papers_model_by_hand():
    """The paper's equations: e_frontier / speed, and alpha x e_left / speed."""
    data = model_json("m")
    data["zhang"]["alpha"] = 0.25
    data["zhang"]["edges_per_second"] = {"TC": 5.0, "TG": 10.0, "BC": 4.0}
    model = read(data).zhang
    assert model.seconds(LEVEL, STRATEGIES["TC"]) == pytest.approx(50 / 5)
    assert model.seconds(LEVEL, STRATEGIES["TG"]) == pytest.approx(50 / 10)
    assert model.seconds(LEVEL, STRATEGIES["BC"]) == pytest.approx(0.25 * 80 / 4)


def test_a_model_from_before_the_papers_own_is_read():
    """Its `average` was fitted in another way, and is left out."""
    data = model_json("m")
    del data["zhang"]
    data["average"] = {"alpha": 0.25, "edges_per_second": {"TC": 5.0}}
    model = read(data)
    assert model.zhang is None
    assert not {"average", "zhang"} & model.to_json().keys()


def test_columns():
    assert LEVEL.columns["constant"] == 1.0
    assert LEVEL.columns["frontier_edges"] == 50.0
    assert LEVEL.columns["expected_found"] == LEVEL.expected_found
    for columns in (*(s.columns for s in STRATEGIES.values()), schema.MIGRATION_COLUMNS):
        assert set(columns) <= set(schema.COLUMNS)
    for name in schema.COLUMNS:
        assert LEVEL.columns[name] >= 0


def test_weights_have_a_place_for_every_column():
    linear = Linear(("frontier_edges", "constant"), (3.0, 7.0))
    weights = dict(zip(schema.COLUMNS, linear.weights(), strict=True))
    assert {k: v for k, v in weights.items() if v} == {"constant": 7.0, "frontier_edges": 3.0}
    by_columns = sum(w * LEVEL.columns[name] for name, w in weights.items())
    assert linear.seconds(LEVEL) == by_columns == 157.0


# Refused.


def corrupt(change):
    data = model_json("m")
    change(data)
    return json.dumps(data)


BAD = {
    "nothing": "",
    "no JSON": "{",
    "half a file": json.dumps(model_json("m"))[:200],
    "a list": "[]",
    "a number": "3",
    "null": "null",
    "empty": "{}",
    "no name": corrupt(lambda d: d.pop("name")),
    "no learned": corrupt(lambda d: d.pop("learned")),
    "no alpha": corrupt(lambda d: d["zhang"].pop("alpha")),
    "no start": corrupt(lambda d: d.pop("start")),
    "no switch": corrupt(lambda d: d.pop("switch")),
    "no convert": corrupt(lambda d: d.pop("convert")),
    "learned is a list": corrupt(lambda d: d.update(learned=[1])),
    "a strategy is a number": corrupt(lambda d: d["learned"].update(TC=1)),
    "a word for a number": corrupt(lambda d: d["learned"]["TC"].update(constant="fast")),
    "null for a number": corrupt(lambda d: d["zhang"].update(alpha=None)),
    "switch is null": corrupt(lambda d: d.update(switch=None)),
    "no about": corrupt(lambda d: d.pop("about")),
    "about is a list": corrupt(lambda d: d.update(about=[])),
    "more digits than a float has": json.dumps(model_json("m")).replace("1e-06", "1" + 400 * "0"),
    "nested too deep": 100_000 * "[",
    "the machine is a word": corrupt(lambda d: d["about"].update(machine="fast")),
}


@pytest.mark.parametrize("name", BAD)
def test_a_corrupt_file(name):
    with pytest.raises(ModelError) as caught:
        read_model(BAD[name], "/models/x.json")
    assert "/models/x.json" in str(caught.value)
    assert "train again with `hetero-bfs train`" in str(caught.value)


@pytest.mark.parametrize("number", [0, FORMAT - 1, FORMAT + 1, str(FORMAT), None])
def test_another_format(number):
    data = model_json("m") | {"format": number}
    with pytest.raises(ModelError, match=rf"x\.json.*format {number}, this program reads {FORMAT}"):
        read(data, "x.json")


def test_a_format_to_come_names_the_program_that_wrote_it():
    data = model_json("m") | {"format": FORMAT + 1, "about": {"version": "9.1.0"}}
    with pytest.raises(ModelError, match=r"newer hetero_bfs \(9\.1\.0\); update this one"):
        read(data, "x.json")


@pytest.mark.parametrize(
    ("change", "candidates", "lacking"),
    [
        (lambda d: None, available(True), []),
        (lambda d: d["learned"].pop("BGC"), available(True), ["BGC"]),
        (lambda d: d["learned"].pop("BGC"), available(False), []),
        (lambda d: d["switch"].pop("to_device"), available(True), ["switch to device"]),
        (lambda d: d["start"].pop("on_cpu"), available(False), ["start on cpu"]),
        (lambda d: d.update(switch={}), available(False), []),
        (lambda d: d.update(convert={}), available(True), ["convert on cpu", "convert on device"]),
    ],
)
def test_what_a_model_lacks(change, candidates, lacking):
    """Otherwise it would count as free."""
    data = model_json("m")
    change(data)
    assert read(data).lacking(candidates) == lacking


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d["learned"].update(ZZ={"constant": 1.0}), ["'ZZ'", "TC, TG, BC, BG, BGC"]),
        (lambda d: d["zhang"]["edges_per_second"].update(ZZ=1.0), ["'ZZ'"]),
        (lambda d: d["learned"]["TC"].update(warp=1.0), ["'warp'", "frontier_edges"]),
        (lambda d: d["switch"]["to_cpu"].update(unvisited_edges=1.0), ["'unvisited_edges'"]),
        (lambda d: d["switch"]["to_cpu"].update(warp=1.0), ["'warp'"]),
        (lambda d: d["start"].update(on_moon={}), ["on_moon"]),
        (lambda d: d["switch"].update(moon={}), []),
    ],
)
def test_what_this_program_does_not_know(change, words):
    data = model_json("m")
    change(data)
    with pytest.raises(ModelError) as caught:
        read(data, "x.json")
    for word in [*words, "x.json"]:
        assert word in str(caught.value)


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-1.0"])
@pytest.mark.parametrize("where", ["learned", "switch"])
def test_coefficients_are_finite_and_not_negative(value, where):
    """Otherwise comparisons with NaN would silently choose the first candidate."""
    text = json.dumps(model_json("m"))
    key = "TC" if where == "learned" else "to_cpu"
    data = json.loads(text)
    data[where][key] = {"constant": float(value)}
    with pytest.raises(ModelError, match=r"x\.json"):
        read_model(json.dumps(data), "x.json")


@pytest.mark.parametrize("value", [0.0, -5.0])
def test_speeds_are_positive(value):
    data = model_json("m")
    data["zhang"]["edges_per_second"]["TC"] = value
    with pytest.raises(ModelError, match=r"x\.json"):
        read(data, "x.json")


# Finding.


def own(tmp_path, name, text=None):
    """Put a model where training would."""
    (tmp_path / "models").mkdir(exist_ok=True)
    content = json.dumps(model_json(name)) if text is None else text
    (tmp_path / "models" / f"{name}.json").write_text(content)


@pytest.fixture
def shipped(monkeypatch, tmp_path):
    """Ship a model of host and card that says so; the user's folder is tmp_path / models."""
    monkeypatch.setenv(MODELS_VARIABLE, str(tmp_path / "models"))
    model = model_json("host__card") | {"about": {"from": "wheel"}}
    ship(monkeypatch, tmp_path / "shipped", model)


def test_the_users_models_come_first(shipped, tmp_path):
    assert find_model("host", "card").about == {"from": "wheel"}
    own(tmp_path, "host__card")
    assert find_model("host", "card").about != {"from": "wheel"}
    assert find_model("host", "another") is None
    assert find_model("hos", "card") is None
    assert find_model("another", "card") is None


def test_a_tuning_beside_samples_is_no_model(shipped, tmp_path):
    own(tmp_path, "host__b")
    own(tmp_path, "host__b.full.samples.tuning", "{}")
    assert find_model("host", None).name == "host__b"


def test_the_host_alone_takes_its_own_model_or_any_of_the_host(shipped, tmp_path):
    assert find_model("hosts", None) is None
    own(tmp_path, "hosts-2__card")
    assert find_model("hosts", None) is None
    assert find_model("host", None).about == {"from": "wheel"}
    for device, date in (("a", "2026-11-21"), ("b", "2026-11-22"), ("c", "2026-10-30")):
        dated = model_json(f"host__{device}") | {"about": {"date": date}}
        own(tmp_path, f"host__{device}", json.dumps(dated))
    own(tmp_path, "host__without-date")
    assert find_model("host", None).name == "host__b"
    own(tmp_path, "host__b", "{}")
    assert find_model("host", None).name == "host__a", "a bad one does not hide the others"
    own(tmp_path, "bad__a", "{}")
    with pytest.raises(ModelError, match="bad__a"):
        find_model("bad", None)
    own(tmp_path, "host__no-device")
    assert find_model("host", None).name == "host__no-device"
    assert find_model("host", "card").name == "host__card"


def test_folder(monkeypatch):
    monkeypatch.setenv(MODELS_VARIABLE, "/some/models")
    assert str(user_models_folder()) == "/some/models"
    monkeypatch.delenv(MODELS_VARIABLE)
    assert user_models_folder().name == "models"
    assert "hetero_bfs" in str(user_models_folder())


def test_default_is_the_most_similar_machine(monkeypatch, tmp_path):
    def made(name, cores, *device):
        found = dict(zip(("type", "compute_units", "name"), device, strict=False))
        return model_json(name) | {"about": {"machine": {"cores": cores, "device": found}}}

    def name_for(kind, units=8, name="another"):
        return similar_model(replace(CPU, type=kind, compute_units=units, name=name)).name

    monkeypatch.setattr(model_files, "usable_cores", lambda: 8)
    ship(
        monkeypatch,
        tmp_path,
        *(made("a", 2, "CPU", 2), made("b", 16, "GPU", 130, "B200"), made("c", 4, "GPU", 10)),
        *(made("d", 64), made("e", 4, "CPU", 8)),
    )
    assert name_for("GPU", 12) == "c"
    assert name_for("GPU", 100) == "b"
    assert name_for("GPU", 10, "B200") == "b", "the same device counts more than its size"
    assert name_for("CPU") == "e"
    assert name_for("ACCELERATOR") == "e"
    assert similar_model(None).name == "d"
    assert similar_model(None, "GPU").name == "b", "of as similar ones the first by name"
    ship(monkeypatch, tmp_path)
    assert similar_model(None) is None


def test_shipped_models_are_usable(monkeypatch):
    """Each is found by its name, and has every strategy and every migration of its machine."""
    monkeypatch.setenv(MODELS_VARIABLE, "/nowhere")
    for model in model_files.shipped_models():
        host, device = model.name.split("__")
        has_device = device != DEVICELESS
        assert find_model(host, device if has_device else None) == model
        for name in (s.name for s in available(has_device)):
            assert name in model.learned
        for migrations in (model.start, model.switch, model.convert):
            assert not has_device or set(migrations) == {"cpu", "device"}
        assert model.about["machine"]["cpu"]


def test_unknown_parts_are_left_out():
    """Watts, and the selectors that `auto` took."""
    parts = {"power": {"watts": {"TX": 1.0}}, "auto": {"deep": {"selector": "learned"}}}
    model = read_model(json.dumps(model_json("m") | parts), "m.json")
    assert model.to_json() == model_json("m")


@pytest.mark.parametrize("device", ["card", None])
def test_a_corrupt_model_of_this_machine_is_not_passed_over(shipped, tmp_path, device):
    own(tmp_path, "host__card", "{")
    with pytest.raises(ModelError, match="host__card"):
        find_model("host", device)


def test_a_corrupt_model_of_another_machine_does_not_matter(shipped, tmp_path, monkeypatch):
    """Such as one in a format to come, in a home folder that machines share."""
    own(tmp_path, "another__card", "{")
    ship(monkeypatch, tmp_path / "shipped", {"name": "a-third__card", "format": FORMAT - 1})
    own(tmp_path, "host__card")
    assert find_model("host", "card").name == "host__card"
    assert find_model("host", None).name == "host__card"


def test_a_model_that_is_no_text(shipped, tmp_path):
    own(tmp_path, "host__card")
    (tmp_path / "models" / "host__card.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ModelError, match="host__card"):
        find_model("host", "card")
