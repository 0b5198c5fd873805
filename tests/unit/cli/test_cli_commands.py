"""The commands: what they print and write, and how outputs are guarded."""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
from cli_runs import CPU, SMALL, one_line, run
from made_models import model_json, ship

from hetero_bfs.cli.arguments import make_parser
from hetero_bfs.cli.main import outputs
from hetero_bfs.devices.opencl.driver import NO_RUNTIME, list_devices
from hetero_bfs.scheduling.model_files import MODELS_VARIABLE


def test_bfs(graph, tmp_path, capsys):
    files = {name: tmp_path / f"{name}.npy" for name in ("out", "levels")}
    report = tmp_path / "r.json"
    options = [f"--{k}={v}" for k, v in files.items()] + [f"--json={report}"]
    assert run("bfs", graph, "--source", 3, *options, *CPU) == 0
    text = capsys.readouterr().out
    assert "reached 4 of 9 vertices in 3 levels" in text
    assert "4 edges" in text
    assert ", valid" in text
    parent, level = np.load(files["out"]), np.load(files["levels"])
    assert parent.tolist() == [1, 2, 3, 3, -1, -1, -1, -1, -1]
    assert level.tolist() == [3, 2, 1, 0, -1, -1, -1, -1, -1]
    assert (parent.dtype, level.dtype) == (np.int64, np.int32)
    data = json.loads(report.read_text())
    assert (data["source"], data["reached"], data["depth"], data["nedge"]) == (3, 4, 3, 4)
    assert (data["num_vertices"], data["num_input_edges"]) == (9, 6)
    assert data["valid"] is True
    assert set(data["strategies"]) == {"TC"}


def test_bfs_follows_direction(graph, tmp_path):
    levels = tmp_path / "levels.npy"
    assert run("bfs", graph, "--source", 2, "--directed", "--levels", levels, *CPU) == 0
    assert np.load(levels).tolist() == [-1, -1, 0, 1, -1, -1, -1, -1, -1]


@pytest.mark.parametrize(
    "extra", [["--order", "given"], ["--no-validate"], ["--threads", "1"], ["-v"]]
)
def test_bfs_options(graph, tmp_path, capsys, extra):
    levels = tmp_path / "levels.npy"
    assert run("bfs", graph, "--source", 0, "--levels", levels, *CPU, *extra) == 0
    assert np.load(levels).tolist() == [0, 1, 2, 3, -1, -1, -1, -1, -1]
    text = capsys.readouterr().out
    assert ("valid" in text) == (extra != ["--no-validate"])
    assert ("frontier" in text) == (extra == ["-v"])


def test_bfs_from_several_sources_with_a_mask(graph, tmp_path, capsys):
    levels, masks = tmp_path / "levels.npy", [tmp_path / name for name in ("m.txt", "m.npy")]
    masks[0].write_text("# to pass over\n\n2\n")
    np.save(masks[1], np.arange(9) == 2)
    for mask in masks:
        options = ["--source", 5, "--mask", mask, "--levels", levels, *CPU]
        assert run("bfs", graph, "--source", 0, *options) == 0
        assert np.load(levels).tolist() == [0, 1, -1, -1, -1, 0, 1, -1, -1]
        assert ", valid" in capsys.readouterr().out


def test_bfs_to_a_target_backwards(graph, tmp_path, capsys):
    report = tmp_path / "r.json"
    options = ["--directed", "--reverse", "--target", 1, "--json", report, *CPU]
    assert run("bfs", graph, "--source", 3, *options) == 0
    assert "target 1: path 1 2 3\n" in capsys.readouterr().out
    data = json.loads(report.read_text())
    assert (data["path"], data["sources"], data["reached"]) == ([1, 2, 3], [3], 3)
    limited = ["--depth-limit", 1, "--target", 3, "--json", report, *CPU]
    assert run("bfs", graph, "--source", 0, *limited) == 0
    assert "target 3: is not reached\n" in capsys.readouterr().out
    assert json.loads(report.read_text())["path"] is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"1\nx\n", r"mask:2: 'x' is not a vertex id; give one id a line"),
        (b"9\n", r"vertex 9 is not in the graph"),
        (b"0\n", r"source 0 is masked"),
        (None, r"mask: no such file"),
    ],
)
def test_bfs_with_a_wrong_mask(graph, tmp_path, capsys, content, message):
    mask = tmp_path / "mask"
    if content is not None:
        mask.write_bytes(content)
    assert run("bfs", graph, "--source", 0, "--mask", mask, *CPU) == 1
    assert re.search(message, one_line(capsys))


def test_bfs_backwards_needs_a_direction(graph, capsys):
    assert run("bfs", graph, "--source", 0, "--reverse", *CPU) == 2
    assert "--reverse goes with --directed" in capsys.readouterr().err


def test_bfs_from_a_vertex_alone(graph, capsys):
    for source in (4, 8):
        assert run("bfs", graph, "--source", source, *CPU) == 0
        assert "reached 1 of 9 vertices in 0 levels" in capsys.readouterr().out


def test_json_on_standard_output_is_alone_there(graph, capsys):
    assert run("bfs", graph, "--source", 0, "--json", "-", *CPU) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["reached"] == 4
    assert "reached 4 of" in captured.err
    assert run(*SMALL, "--json", "-") == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["nbfs"] == 4
    assert "harmonic_mean_TEPS" in captured.err
    assert run("devices", "--json", "-") == 0
    data = json.loads(capsys.readouterr().out)["devices"]
    assert [device["name"] for device in data] == [device.name for device in list_devices()]


def test_every_output_of_a_command_is_checked():
    """Each option whose help begins with "write", whichever command has it."""
    parser = make_parser("0")
    commands = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    for name, command in commands.choices.items():
        named = {
            action.dest
            for action in command._actions
            if action.type is Path and (action.help or "").startswith("write")
        }
        assert named <= set(outputs(name)), name


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--out", "o.npy", "--levels", "o.npy"], "--levels o.npy is --out's file, too"),
        (["--out", "o.npy", "--json", "./o.npy"], "--json o.npy is --out's file, too"),
        (["--out", "g.txt"], "--out g.txt is an input, too"),
        (["--levels", "-"], "--levels -: only --json knows standard output"),
        (["--out", "pipe"], "pipe cannot be written: it is not a regular file"),
        (["--out", "o.txt"], "--out o.txt: its name must end in .npy, .csv, .npz or .parquet"),
    ],
)
def test_outputs_destroy_neither_each_other_nor_the_input(
    graph, tmp_path, capsys, monkeypatch, options, words
):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    before = graph.read_bytes()
    assert run("bfs", "g.txt", "--source", 0, *options, *CPU) == 1
    assert words in one_line(capsys)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["g.txt", "pipe"]
    assert graph.read_bytes() == before
    assert run("convert", "absent.txt", "pipe") == 1
    assert "pipe cannot be written" in one_line(capsys)
    assert run("convert", "g.txt", "g.txt") == 1
    assert "OUT g.txt is an input, too" in one_line(capsys)
    os.symlink("loop", "loop")
    assert run("bfs", "loop", "--source", 0, "--json", "loop", *CPU) == 1
    assert "loop" in one_line(capsys)


def test_a_study_folder_holds_nothing_else(tmp_path, capsys):
    folder = tmp_path / "study"
    assert run("study", folder, "--scale", 6, "--json", folder / "more.json") == 1
    assert "is in OUT_DIR" in one_line(capsys)


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("NUMBA_NUM_THREADS", "0", "NUMBA_NUM_THREADS is '0'; give a number"),
        ("NUMBA_NUM_THREADS", "many", "NUMBA_NUM_THREADS is 'many'; give a number"),
        ("NUMBA_DISABLE_JIT", "1", "NUMBA_DISABLE_JIT is set; unset it"),
        (MODELS_VARIABLE, __file__, "is not a folder"),
    ],
)
def test_settings_that_cannot_be(graph, monkeypatch, capsys, variable, value, words):
    monkeypatch.setenv(variable, value)
    assert run("bfs", graph, "--source", 0, "--device", "cpu") == 1
    assert words in one_line(capsys)


def test_a_bad_power_log_is_found_before_the_run(tmp_path, capsys):
    assert run(*SMALL, "--power-log", tmp_path / "absent.csv") == 1
    captured = capsys.readouterr()
    assert "absent.csv" in captured.err
    assert captured.out == ""


def test_graph500(tmp_path, capsys):
    files = [tmp_path / "r.json", tmp_path / "t.csv"]
    status = run(*SMALL, "--json", files[0], "--trace", files[1], "--edgefactor", 8, "-v")
    assert status == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == [
        "SCALE:                          8",
        "edgefactor:                     8",
        "NBFS:                           4",
    ]
    data = json.loads(files[0].read_text())
    assert data["valid"] is True
    assert (data["nbfs"], data["selector"], data["devices"]) == (4, "fixed:TC", ["cpu"])
    with open(files[1], newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [int(row["root"]) for row in rows if row["level"] == "0"] == [
        source["root"] for source in data["roots"]
    ]
    assert {row["strategy"] for row in rows} == {"TC"}


def test_graph500_without_a_list_of_edges(capsys):
    assert run(*SMALL, "--regenerate") == 0
    assert "edges: not held; generated anew for each of 3 passes" in capsys.readouterr().out


def test_graph500_of_a_file(graph, capsys):
    assert run("graph500", "--graph", graph, *CPU) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("SCALE:")
    assert "search keys instead of 64" in captured.err


@pytest.mark.parametrize("suffix", ["el", "txt.gz", "mtx", "mtx.gz", "sg", "hbg"])
def test_convert_and_search(graph, tmp_path, capsys, suffix):
    target = tmp_path / f"converted.{suffix}"
    assert run("convert", graph, target) == 0
    text = capsys.readouterr().out
    assert str(target) in text
    assert "9 vertices" in text
    assert f"{target.stat().st_size} bytes" in text
    levels = tmp_path / "levels.npy"
    assert run("bfs", target, "--source", 3, "--levels", levels, *CPU) == 0
    assert np.load(levels).tolist() == [3, 2, 1, 0, -1, -1, -1, -1, -1]


def test_convert_keeps_direction(graph, tmp_path):
    target = tmp_path / "d.hbg"
    assert run("convert", graph, target, "--directed") == 0
    levels = tmp_path / "levels.npy"
    assert run("bfs", target, "--source", 2, "--directed", "--levels", levels, *CPU) == 0
    assert np.load(levels).tolist() == [-1, -1, 0, 1, -1, -1, -1, -1, -1]


def test_devices(capsys):
    assert run("devices") == 0
    text = capsys.readouterr().out
    assert text.startswith("host: ")
    for device in list_devices():
        assert f"{device.index}: {device.name}" in text
        for part in (device.platform, device.driver, device.type, "compute units", "per buffer"):
            assert part in text
    assert ("(default)" in text) == any(d.problem is None for d in list_devices())


def test_devices_without_a_runtime(monkeypatch, capsys):
    monkeypatch.setattr("hetero_bfs.devices.opencl.driver.platform_devices", list)
    assert run("devices") == 0
    assert NO_RUNTIME in capsys.readouterr().out


def test_auto_says_what_it_lacks_or_finds(graph, trained, monkeypatch, tmp_path, capsys):
    ship(monkeypatch, tmp_path / "shipped")
    name = trained(None)
    assert run("bfs", graph, "--source", 0, "--device", "cpu") == 0
    assert "hetero-bfs train" not in capsys.readouterr().err
    os.remove(f"{os.environ['HETERO_BFS_MODELS']}/{name}.json")
    assert run("bfs", graph, "--source", 0, "--device", "cpu") == 0
    assert "hetero-bfs train" in capsys.readouterr().err


def test_a_model_of_another_machine_is_not_taken(graph, trained, tmp_path, monkeypatch):
    ship(monkeypatch, tmp_path / "shipped", model_json("other__card"))
    os.remove(f"{os.environ['HETERO_BFS_MODELS']}/{trained(None)}.json")
    report = tmp_path / "r.json"
    assert run("bfs", graph, "--source", 0, "--device", "cpu", "--json", report) == 0
    found = json.loads(report.read_text())
    assert (found["model"], found["selector"]) == (None, "alpha-beta")


@pytest.mark.parametrize(
    ("selector", "rule"),
    [("auto", "TC and BC, alpha 0.707, never back"), ("learned", None)],
)
def test_a_search_names_its_rule_and_model(graph, trained, tmp_path, selector, rule):
    def top_down(data):
        data["learned"]["BC"] = {"constant": 1.0}

    report, name = tmp_path / "r.json", trained(None, top_down)
    options = "--selector", selector, "--device", "cpu", "--json", report
    assert run("bfs", graph, "--source", 3, "--no-correction", *options) == 0
    data = json.loads(report.read_text())
    assert (data["model"]["name"], data["selector"]) == (name, selector)
    assert data["rule"] == rule


def test_a_training_may_write_into_a_folder_that_exists(monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr("hetero_bfs.training.run_training", lambda *given: asked.append(given) or 0)
    assert run("train", "--budget", 9, "--device", "cpu", "--out", tmp_path) == 0
    ((_, _, out, budget),) = asked
    assert (out, budget) == (tmp_path, 9)


@pytest.mark.parametrize("off", [False, True])
def test_corrections_are_reported_and_can_be_switched_off(trained, tmp_path, capsys, off):
    def seconds_for_all(data):
        for table in ("learned", "start", "convert"):
            data[table] = {name: {"constant": 1000.0} for name in data[table]}

    trained(None, seconds_for_all)
    arguments = ["graph500", "--scale", 8, "--sources", 8, "--device", "cpu", "--no-validate"]
    arguments += ["--selector", "learned", "--json", tmp_path / "report.json"]
    assert run(*arguments, *(["--no-correction"] if off else [])) == 0
    printed = capsys.readouterr().out
    corrections = json.loads((tmp_path / "report.json").read_text())["corrections"]
    said = "corrected by measured seconds: TC (small levels) x0.031" in printed
    assert said is not off
    assert ("TC x0.031" in printed) is not off
    assert corrections.get("BC") == (None if off else 1 / 32)


def test_the_device_in_use_is_named(graph, opencl_device, capsys):
    options = ["--device", opencl_device.index, "--selector", "fixed:TG", "--max-alloc", "64"]
    assert run("bfs", graph, "--source", 0, *options) == 0
    assert opencl_device.name in "".join(capsys.readouterr())


@pytest.mark.parametrize("command", ["components", "colour"])
def test_lists_stream_within_the_memory_that_is_allowed(tmp_path, opencl_device, command, capsys):
    ends = np.random.default_rng(1).integers(0, 500, (40_000, 2))
    ends += 500 * (np.arange(40_000) % 4)[:, None]  # no component is the largest
    np.savetxt(tmp_path / "random.txt", ends, fmt="%d")
    arguments = [command, tmp_path / "random.txt", "--device", opencl_device.index, "--json", "-"]
    assert run(*arguments) == 0
    whole = json.loads(capsys.readouterr().out)
    assert run(*arguments, "--device-memory", "200K") == 0
    out, err = capsys.readouterr()
    streamed = json.loads(out)
    assert (whole["streamed_bytes"], streamed["valid"]) == (0, True)
    assert streamed["streamed_bytes"] > 20_000
    assert "lists stream" in err
    assert " KiB of lists sent\n" in err
    result = "num_components" if command == "components" else "largest_classes"
    assert streamed[result] == whole[result]
