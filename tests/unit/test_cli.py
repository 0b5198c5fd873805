"""The command line: exit status 0 done, 1 failure, 2 wrong usage; one line for every error."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys

import numba
import numpy as np
import pytest
from made_models import model_json, ship

import hetero_bfs
from hetero_bfs.algorithms.bfs.cpu_executor import CPUExecutor
from hetero_bfs.cli import argument_groups
from hetero_bfs.cli import main as cli
from hetero_bfs.devices.opencl.driver import NO_RUNTIME, list_devices
from hetero_bfs.selection.model_store import MODELS_VARIABLE

COMMANDS = [
    "graph500",
    "bfs",
    "sssp",
    "components",
    "colour",
    "pagerank",
    "train",
    "study",
    "devices",
    "convert",
]
CPU = ["--devices", "cpu", "--selector", "fixed:TC"]
SMALL = ["graph500", "--scale", "8", "--sources", "4", *CPU]


@pytest.fixture
def graph(tmp_path):
    """0-1-2-3 back to back, a loop, a duplicate, 5-6 apart, 4, 7 and 8 alone."""
    path = tmp_path / "g.txt"
    path.write_text("# Nodes: 9\n0 1\n1 2\n2 2\n2 3\n1 2\n5 6\n")
    return path


def run(*arguments) -> int:
    """Run in this process."""
    return cli.main([str(argument) for argument in arguments])


def command(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "hetero_bfs", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        **options,
    )


def one_line(capsys) -> str:
    """Return the one line of standard error that an error is, without notes.

    The first run on a machine also says that it compiles.
    """
    captured = capsys.readouterr()
    assert captured.out == ""
    others = ("note: ", "compiling for this machine")
    lines = [line for line in captured.err.splitlines() if not line.startswith(others)]
    assert len(lines) == 1, lines
    assert lines[0].startswith("hetero-bfs: ")
    return lines[0]


# Help and usage.


@pytest.mark.parametrize("name", COMMANDS)
def test_help(name, capsys):
    assert run(name, "--help") == 0
    text = capsys.readouterr().out
    assert f"usage: hetero-bfs {name}" in text
    assert "show this help" in text


def test_help_of_all(capsys):
    assert run("--help") == 0
    text = capsys.readouterr().out
    for name in COMMANDS:
        assert name in text


def test_version(capsys):
    assert run("--version") == 0
    assert capsys.readouterr().out.split() == ["hetero-bfs", hetero_bfs.__version__]


def test_nothing_is_wrong_usage(capsys):
    assert run() == 2
    assert "graph500" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        ["frobnicate"],
        ["graph500", "--scale", "0"],
        ["graph500", "--scale", "32"],
        ["graph500", "--scale", "ten"],
        ["graph500", "--scale", "1.5"],
        ["graph500", "--edgefactor", "0"],
        ["graph500", "--sources", "0"],
        ["graph500", "--sources", "-3"],
        ["graph500", "--seed1", "-1"],
        ["graph500", "--seed2", str(2**64)],
        ["graph500", "--selector", "best"],
        ["graph500", "--selector", "fixed:XX"],
        ["graph500", "--selector", "fixed:"],
        ["graph500", "--selector", "fixed:TC,,BC"],
        ["graph500", "--max-alloc", "much"],
        ["graph500", "--max-alloc", "3"],
        ["graph500", "--max-alloc", "-5"],
        ["graph500", "--max-alloc", "0"],
        ["graph500", "--max-alloc", "1.5G"],
        ["graph500", "--devices", "gpu"],
        ["graph500", "--threads", "0"],
        ["graph500", "--decision-interval", "0"],
        ["graph500", "--regenerate", "--graph", "g.txt"],
        ["graph500", "--scale", "8", "--graph", "g.txt"],
        ["graph500", "--edgefactor", "16", "--graph", "g.txt"],
        ["graph500", "--frobnicate"],
        ["bfs"],
        ["bfs", "g.txt"],
        ["bfs", "--source", "3"],
        ["bfs", "g.txt", "--source", "-1"],
        ["bfs", "g.txt", "--source", "x"],
        ["bfs", "g.txt", "--source", str(2**32)],
        ["convert", "only-one.txt"],
        ["devices", "extra"],
    ],
)
def test_wrong_usage(arguments, capsys):
    assert run(*arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "usage: hetero-bfs" in captured.err
    assert "error: " in captured.err


@pytest.mark.parametrize(
    "command", [["graph500"], ["bfs", "g", "--source", 1], ["train"], ["study", "o"]]
)
def test_a_device_by_name_is_none_for_the_cpu_alone(command, capsys):
    assert run(*command, "--device", 0, "--devices", "cpu") == 2
    error = capsys.readouterr().err
    assert "--device 0 names an OpenCL device, --devices cpu wants none" in error


@pytest.mark.parametrize(
    ("text", "size"),
    [("4", 4), ("256M", 2**28), ("1k", 1024), ("2 GiB", 2**31), ("3gb", 3 * 2**30), ("1T", 2**40)],
)
def test_sizes(text, size):
    assert argument_groups.byte_count(text) == size


# Failures: status 1 and one line.


@pytest.mark.parametrize("name", ["bfs", "convert", "graph500"])
def test_missing_file(name, tmp_path, capsys):
    path = tmp_path / "none.txt"
    arguments = {
        "bfs": ["bfs", path, "--source", 0, *CPU],
        "convert": ["convert", path, tmp_path / "out.hbg"],
        "graph500": ["graph500", "--graph", path, *CPU],
    }[name]
    assert run(*arguments) == 1
    assert str(path) in one_line(capsys)


@pytest.mark.parametrize(
    ("content", "words"),
    [("0 1\n1 x\n", ["g.txt", "2"]), ("", ["g.txt"]), ("0 1\n-1 2\n", ["g.txt", "2", "-1"])],
)
def test_bad_files(tmp_path, capsys, content, words):
    path = tmp_path / "g.txt"
    path.write_text(content)
    assert run("bfs", path, "--source", 0, *CPU) == 1
    line = one_line(capsys)
    for word in words:
        assert word in line


def test_a_source_that_is_no_vertex(graph, capsys):
    assert run("bfs", graph, "--source", 9, *CPU) == 1
    assert "vertex 9 is not in the graph; its ids are 0 to 8" in one_line(capsys)


def test_a_folder_that_is_not_there(graph, tmp_path, capsys):
    for option in ("--out", "--levels"):
        target = tmp_path / "none" / "x.npy"
        assert run("bfs", graph, "--source", 0, option, target, *CPU) == 1
        assert str(target) in one_line(capsys)
    for option in ("--json", "--trace"):
        target = tmp_path / "none" / "x"
        assert run(*SMALL, option, target) == 1
        error = capsys.readouterr().err.splitlines()
        assert str(target) in error[-1]


def test_an_unknown_device(graph, capsys):
    assert run("bfs", graph, "--source", 0, "--device", "voodoo", "--selector", "fixed:TC") == 1
    line = one_line(capsys)
    assert "voodoo" in line or "no OpenCL runtime" in line


@pytest.mark.parametrize("selector", ["daga", "fixed:TG"])
def test_a_selector_that_needs_a_device(graph, capsys, selector):
    assert run("bfs", graph, "--source", 0, "--devices", "cpu", "--selector", selector) == 1
    assert selector in one_line(capsys)


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_are_those_of_the_search_too(monkeypatch, threads):
    if threads > numba.config.NUMBA_NUM_THREADS:
        pytest.skip("one core")
    pools = []
    monkeypatch.setattr(CPUExecutor, "start_workers", lambda self: pools.append(self.threads))
    usual = numba.get_num_threads()
    try:
        assert run("graph500", "--scale", 13, "--sources", 1, "--threads", threads, *CPU) == 0
        assert numba.get_num_threads() == threads
    finally:
        numba.set_num_threads(usual)
    assert pools == [threads]


def test_a_search_loads_only_what_it_needs(graph):
    code = f"""
import sys
from hetero_bfs.cli.main import main
assert main(["bfs", {str(graph)!r}, "--source", "0", "--devices", "cpu"]) == 0
print([name for name in ("pandas", "scipy.linalg", "sklearn") if name in sys.modules])
import scipy.linalg.cython_blas
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_too_many_threads(graph, capsys):
    assert run("bfs", graph, "--source", 0, "--threads", 10_000, *CPU) == 1
    error = one_line(capsys)
    most = numba.config.NUMBA_NUM_THREADS
    assert f"--threads is 10000; give an integer from 1 to {most}, or leave it out" in error


def test_a_corrupt_power_log(tmp_path, capsys):
    log = tmp_path / "power.csv"
    log.write_text("hello\nworld\n")
    assert run(*SMALL, "--power-log", log) == 1
    assert "power.csv" in one_line(capsys)


def test_formats_that_are_none(graph, tmp_path, capsys):
    assert run("convert", graph, tmp_path / "g.xyz") == 1
    assert "g.xyz" in one_line(capsys)
    (tmp_path / "h.xyz").write_text("0 1\n")
    assert run("convert", tmp_path / "h.xyz", tmp_path / "h.hbg") == 1
    assert "h.xyz" in one_line(capsys)


def test_a_graph_without_keys(tmp_path, capsys):
    path = tmp_path / "g.txt"
    path.write_text("0 0\n")
    assert run("graph500", "--graph", path, *CPU) == 1
    assert "no search key" in one_line(capsys)


def test_memory_and_interrupts_are_one_line_too(monkeypatch, capsys):
    for error, status, words in ((MemoryError, 1, "out of memory"), (KeyboardInterrupt, 130, "")):

        def fail(options, error=error):
            raise error

        monkeypatch.setattr("hetero_bfs.cli.devices.run", fail)
        assert run("devices") == status
        assert words in capsys.readouterr().err


def test_errors_have_no_traceback(tmp_path):
    """As a program, from another folder."""
    done = command("bfs", "none.txt", "--source", "0", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("hetero-bfs: none.txt")
    assert "Traceback" not in done.stderr
    done = command("graph500", "--scale", "99", cwd=tmp_path)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("keys", "reader"), [(64, "head -1"), (1, "head -1"), (1, "true")])
def test_a_closed_pipe_is_no_traceback(keys, reader):
    """Closed while much is written, or when the little that there is comes out at the end."""
    line = f"{sys.executable} -m hetero_bfs graph500 --scale 8 --sources {keys} -v"
    line += f" {' '.join(CPU)} | {reader}"
    done = subprocess.run(
        line, shell=True, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.startswith("" if reader == "true" else "SCALE:")
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


# What works.


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


def test_bfs_from_a_vertex_alone(graph, capsys):
    for source in (4, 8):
        assert run("bfs", graph, "--source", source, *CPU) == 0
        assert "reached 1 of 9 vertices in 0 levels" in capsys.readouterr().out


def test_json_on_standard_output_is_alone_there(graph, capsys):
    assert run("bfs", graph, "--source", 0, "--json", "-", *CPU) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["reached"] == 4
    assert captured.err.startswith("reached 4 of")
    assert run(*SMALL, "--json", "-") == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["nbfs"] == 4
    assert "harmonic_mean_TEPS" in captured.err
    assert run("devices", "--json", "-") == 0
    data = json.loads(capsys.readouterr().out)
    assert [device["name"] for device in data] == [device.name for device in list_devices()]


@pytest.mark.parametrize("option", ["--json", "--trace"])
def test_an_output_that_cannot_be_written_is_found_before_the_run(option, tmp_path, capsys):
    target = tmp_path / "absent" / "file"
    assert run(*SMALL, option, target) == 1
    captured = capsys.readouterr()
    assert "there is no folder" in captured.err
    assert captured.out == ""


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--out", "same", "--levels", "same"], "--levels same is --out's file, too"),
        (["--out", "same", "--json", "./same"], "--json same is --out's file, too"),
        (["--out", "g.txt"], "--out g.txt is an input, too"),
        (["--levels", "-"], "--levels -: only --json knows standard output"),
        (["--out", "pipe"], "pipe cannot be written: it is no regular file"),
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
        (MODELS_VARIABLE, __file__, "is no folder"),
    ],
)
def test_settings_that_cannot_be(graph, monkeypatch, capsys, variable, value, words):
    monkeypatch.setenv(variable, value)
    assert run("bfs", graph, "--source", 0, "--devices", "cpu") == 1
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
    monkeypatch.setattr("hetero_bfs.devices.opencl.driver._devices", list)
    assert run("devices") == 0
    assert NO_RUNTIME in capsys.readouterr().out


def test_auto_says_what_it_lacks_or_finds(graph, trained, monkeypatch, tmp_path, capsys):
    ship(monkeypatch, tmp_path / "shipped")
    name = trained(None)
    assert run("bfs", graph, "--source", 0, "--devices", "cpu") == 0
    assert "hetero-bfs train" not in capsys.readouterr().err
    os.remove(f"{os.environ['HETERO_BFS_MODELS']}/{name}.json")
    assert run("bfs", graph, "--source", 0, "--devices", "cpu") == 0
    assert "hetero-bfs train" in capsys.readouterr().err


@pytest.mark.parametrize("off", [False, True])
def test_corrections_are_reported_and_can_be_switched_off(trained, tmp_path, capsys, off):
    def seconds_for_all(data):
        for table in ("learned", "start", "convert"):
            data[table] = {name: {"constant": 1000.0} for name in data[table]}

    trained(None, seconds_for_all)
    arguments = ["graph500", "--scale", 8, "--sources", 2, "--devices", "cpu", "--no-validate"]
    arguments += ["--selector", "learned", "--json", tmp_path / "report.json"]
    assert run(*arguments, *(["--no-correction"] if off else [])) == 0
    printed = capsys.readouterr().out
    corrections = json.loads((tmp_path / "report.json").read_text())["corrections"]
    assert ("corrected by what was measured: TC x0.031" in printed) is not off
    assert corrections.get("BC") == (None if off else 1 / 32)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--from", "that"], "--from names the model that --calibrate starts from"),
        (["--calibrate", "--quick"], "not allowed with"),
    ],
)
def test_calibration_options_that_do_not_fit(options, words, capsys):
    assert run("train", *options) == 2
    assert words in capsys.readouterr().err


def test_calibrating_from_an_unknown_model_lists_own_and_shipped(monkeypatch, tmp_path, capsys):
    ship(monkeypatch, tmp_path / "shipped", model_json("theirs__card"))
    (tmp_path / "own").mkdir()
    monkeypatch.setenv(MODELS_VARIABLE, str(tmp_path / "own"))
    arguments = ["train", "--calibrate", "--from", "that", "--devices", "cpu"]
    assert run(*arguments) == 1
    error = one_line(capsys)
    assert f"yours, in {tmp_path / 'own'}: none; shipped: theirs__card" in error
    (tmp_path / "own" / "mine__card.json").write_text("{}")  # only its name is asked for
    assert run(*arguments) == 1
    assert "mine__card; shipped: theirs__card" in one_line(capsys)


def test_the_device_in_use_is_named(graph, opencl_device, capsys):
    options = ["--device", opencl_device.index, "--selector", "fixed:TG", "--max-alloc", "64"]
    assert run("bfs", graph, "--source", 0, *options) == 0
    assert opencl_device.name in "".join(capsys.readouterr())


# What arguments and headers show is found before anything else.


@pytest.mark.parametrize("suffix", ["hbg", "sg", "mtx", "mtx.gz"])
def test_a_wrong_source_by_the_header_alone(graph, tmp_path, capsys, monkeypatch, suffix):
    path = tmp_path / f"g.{suffix}"
    assert run("convert", graph, path) == 0
    capsys.readouterr()
    monkeypatch.setattr("hetero_bfs.cli.bfs.read", lambda *_: pytest.fail("read"))
    assert run("bfs", path, "--source", 9, *CPU) == 1
    assert "vertex 9 is not in the graph; its ids are 0 to 8" in one_line(capsys)


def test_a_wrong_source_of_an_edge_list_before_the_graph_is_built(graph, capsys, monkeypatch):
    monkeypatch.setattr(
        "hetero_bfs.runtime.engine.build_search_graph", lambda *_: pytest.fail("built")
    )
    assert run("bfs", graph, "--source", 9, *CPU) == 1
    assert "vertex 9 is not in the graph; its ids are 0 to 8" in one_line(capsys)


@pytest.mark.parametrize("suffix", ["hbg", "sg", "mtx"])
def test_a_header_that_is_damaged(tmp_path, capsys, suffix):
    path = tmp_path / f"g.{suffix}"
    path.write_bytes(b"\x07 nonsense of some length")
    assert run("bfs", path, "--source", 0, *CPU) == 1
    assert f"g.{suffix}" in one_line(capsys)


@pytest.mark.parametrize("device", ["", " "])
def test_a_device_without_a_name(graph, capsys, device):
    assert run("bfs", graph, "--source", 0, "--device", device) == 1
    assert f"--device is {device!r}; give the index or part of the name" in one_line(capsys)


def test_errors_name_options_here_and_arguments_in_python(graph, capsys):
    assert run("bfs", graph, "--source", 0, "--devices", "cpu", "--selector", "daga") == 1
    assert "--selector daga runs bottom-up" in one_line(capsys)
    edges = hetero_bfs.load(graph)
    with pytest.raises(hetero_bfs.ModelError, match=r"^selector='daga' runs bottom-up"):
        hetero_bfs.Engine(edges, "daga", devices="cpu")


@pytest.mark.skipif(not list_devices(), reason=NO_RUNTIME)
def test_devices_that_are_not_there_by_option_and_argument(graph, capsys):
    assert run("bfs", graph, "--source", 0, "--device", "voodoo") == 1
    assert "no OpenCL device matches --device voodoo; found" in one_line(capsys)
    with pytest.raises(hetero_bfs.DeviceError, match="matches device='voodoo'; found"):
        hetero_bfs.Engine(hetero_bfs.load(graph), device="voodoo")
