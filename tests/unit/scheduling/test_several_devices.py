"""Engines with two OpenCL devices: those opened, what a model predicts, searches on both."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import made_models
import numpy as np
import pytest
from selector_levels import GPU, SPEEDS, START, model

from hetero_bfs.devices.opencl import driver
from hetero_bfs.devices.opencl.driver import choose_devices, list_devices
from hetero_bfs.errors import ArgumentError, DeviceError
from hetero_bfs.scheduling import schema
from hetero_bfs.scheduling.columns import NUM_COLUMNS, NUM_MIGRATION_COLUMNS, SWITCH
from hetero_bfs.scheduling.device_policy import OPENCL, pack_policy
from hetero_bfs.scheduling.model_selectors import model_selector
from hetero_bfs.scheduling.policy import ROW, choose
from hetero_bfs.scheduling.strategies import MOST_DEVICES, STRATEGIES, available

SEARCHES = f"""
import json
import sys
sys.path.insert(0, {str(Path(made_models.__file__).parent)!r})
from made_models import model_json
import hetero_bfs as hb
from hetero_bfs.algorithms.bfs.check import validate
from hetero_bfs.graph.generators.kronecker import KroneckerEdges
from hetero_bfs.scheduling.model_files import read_model
from hetero_bfs.scheduling.model_selectors import model_selector

edges = KroneckerEdges(9).materialise()
key, ran = int(edges.src[0]), []
with hb.Engine(edges, device="all", threads=1) as engine:
    for selector in ["fixed:TG,TG@2,BG@2,BC", "fixed:TG@2", "fixed:TC,BGC@2,TG", "learned"]:
        engine.set_selector(selector)
        for _ in range(2):
            result = engine.bfs(key)
            validate(edges, key, result.parent).raise_if_invalid()
        ran.append([trace.strategy for trace in result.traces])
    data = model_json("second")
    for name in data["learned"]:
        data["learned"][name] = {{"constant": 1e-12}}
    second = read_model(json.dumps(data), "made")
    model = read_model(json.dumps(model_json("first")), "made").joined(second, 2)
    engine.set_selector(model_selector("learned", model, engine.candidates))
    for _ in range(8):
        engine.bfs(key)
    names, factors = [s.name for s in engine.candidates], sorted(engine.corrections)
    print(json.dumps([ran, names, factors, engine.notes]))
"""


@pytest.fixture
def four_devices(monkeypatch):
    """Two of one name, a smaller one, and a CPU."""
    names = {
        0: ("cpu", "CPU", 4),
        1: ("small", "GPU", 8),
        2: ("big", "GPU", 9),
        3: ("big", "GPU", 9),
    }
    found = [
        replace(GPU, index=i, name=name, type=kind, compute_units=units)
        for i, (name, kind, units) in names.items()
    ]
    monkeypatch.setattr(driver, "list_devices", lambda: found)


@pytest.mark.parametrize(
    ("wanted", "most", "expected"),
    [
        (None, 2, [2]),
        ("all", 1, [2]),
        ("all", 2, [2, 1]),
        ("all", 9, [2, 1, 0]),
        ("3,0", 2, [3, 0]),
        ("auto", 2, [2]),
        ("cpu", 1, []),
        ("CPU", 9, []),
        ("small", 1, [1]),
    ],
)
def test_which_devices_are_meant(four_devices, wanted, most, expected):
    assert [device.index for device in choose_devices(wanted, most)] == expected


@pytest.mark.parametrize(
    ("wanted", "error", "words"),
    [
        ("2,big", ArgumentError, "names a device twice"),
        ("0,1,2", DeviceError, "names 3 devices; a search runs on at most 2"),
        ("0,9", DeviceError, "no OpenCL device matches"),
        ("0,", ArgumentError, "give the index"),
        ("0,cpu", ArgumentError, "'cpu' stands alone"),
        ("all,1", ArgumentError, "'all' stands alone"),
    ],
)
def test_what_is_refused(four_devices, wanted, error, words):
    with pytest.raises(error, match=words):
        choose_devices(wanted, MOST_DEVICES)


def test_a_device_is_predicted_by_its_own_model():
    first = model(**SPEEDS, to_device=10, to_cpu=20)
    second = model(**{name: 100 * seconds for name, seconds in SPEEDS.items()}, to_device=1000)
    selector = model_selector("learned", first.joined(second, 2), available(2))
    names = [s.name for s in selector.candidates]
    on_second = np.full(schema.record_width(len(names)), np.nan)
    START.write_state(on_second)
    on_second[schema.PLACE] = 2
    predicted, total = np.zeros(len(names)), np.zeros(len(names))
    choose(selector.policy, 1000, 9000, on_second, predicted, total)
    found = dict(zip(names, predicted.tolist(), strict=True))
    assert found["TG@2"] == 100 * SPEEDS["TG"]
    assert found["TC"] == SPEEDS["TC"] + 20
    assert found["TG"] == SPEEDS["TG"] + 10 + 20, "through the host"
    on_second[schema.PLACE] = 1
    choose(selector.policy, 1000, 9000, on_second, predicted, total)
    assert predicted[names.index("BG@2")] == 100 * SPEEDS["BG"] + 1000 + 20
    packed = pack_policy(selector.policy, 1000, 9000, 1, 1)
    candidate = 2 * NUM_COLUMNS + 3
    begin = OPENCL["MIGRATIONS"] + 6 * NUM_MIGRATION_COLUMNS + candidate * names.index("BG@2")
    for weights in (packed[begin:], packed[begin + NUM_COLUMNS :]):  # small and large levels
        assert weights[0] == 100 * SPEEDS["BG"] + 1000, "the device adds the way to the host"
    assert selector.policy.migrations[SWITCH, :, 0].tolist() == [20, 10, 1000]
    assert selector.policy.traits[names.index("BG@2"), ROW] == list(STRATEGIES).index("BG")


@pytest.mark.skipif(
    not any("pthread" in device.name for device in list_devices()),
    reason="PoCL alone can pose as two devices",
)
def test_searches_on_two_devices():
    environment = os.environ | {
        "POCL_DEVICES": "pthread basic",
        "PYOPENCL_BUILD_OPTIONS": "-cl-opt-disable",
    }
    done = subprocess.run(
        [sys.executable, "-c", SEARCHES],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    ran, candidates, factors, notes = json.loads(done.stdout)
    assert ran[0][:3] == ["TG", "TG@2", "BG@2"]
    assert set(ran[1]) == {"TG@2"}
    assert ran[2][:3] == ["TC", "BGC@2", "TG"]
    assert candidates == [s.name for s in available(2)]
    assert [name for name in factors if "@2" in name], "its searches are learned from, too"
    assert notes[0].startswith("searches choose between the host, pthread")
