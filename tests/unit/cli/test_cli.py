"""The command line: exit status 0 done, 1 failure, 2 wrong usage; one line for every error."""

from __future__ import annotations

import subprocess
import sys

import numba
import pytest
from cli_runs import CPU, SMALL, command, one_line, run

import hetero_bfs as hb
from hetero_bfs.algorithms.bfs.host import CPUExecutor
from hetero_bfs.cli import argument_groups
from hetero_bfs.cli.argument_groups import MAX_VERTEX
from hetero_bfs.cli.arguments import make_parser
from hetero_bfs.devices.opencl.driver import NO_RUNTIME, list_devices
from hetero_bfs.graph.list_checks import MAX_VERTICES

COMMANDS = list(next(a for a in make_parser("0")._actions if a.dest == "command").choices)


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
    assert capsys.readouterr().out.split() == ["hetero-bfs", hb.__version__]


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
        ["graph500", "--devices", "all"],
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
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("hetero-bfs")
    assert ": error: " in captured.err


@pytest.mark.parametrize(
    ("text", "size"),
    [("4", 4), ("256M", 2**28), ("1k", 1024), ("2 GiB", 2**31), ("3gb", 3 * 2**30), ("1T", 2**40)],
)
def test_sizes(text, size):
    assert argument_groups.byte_count(text) == size


# Failures: status 1 and one line.


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


def test_a_folder_that_is_not_there(graph, tmp_path, capsys):
    for option in ("--out", "--levels"):
        target = tmp_path / "none" / "x.npy"
        assert run("bfs", graph, "--source", 0, option, target, *CPU) == 1
        assert str(target) in one_line(capsys)
    for option in ("--json", "--trace"):
        target = tmp_path / "none" / "x"
        assert run(*SMALL, option, target) == 1
        captured = capsys.readouterr()
        assert "there is no folder" in captured.err
        assert str(target.parent) in captured.err
        assert captured.out == ""


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_are_those_of_the_search_too(monkeypatch, threads):
    if threads > numba.config.NUMBA_NUM_THREADS:
        pytest.skip("one core")
    pools = []
    monkeypatch.setattr(CPUExecutor, "prepare", lambda self: pools.append(self.threads))
    usual = numba.get_num_threads()
    try:
        assert run("graph500", "--scale", 13, "--sources", 1, "--threads", threads, *CPU) == 0
        assert numba.get_num_threads() == threads
    finally:
        numba.set_num_threads(usual)
    assert pools == [threads]


def test_a_search_loads_only_what_it_needs(graph, tmp_path):
    """pandas reads text, and only text."""
    hb.load(graph).save(tmp_path / "g.hbg")
    code = f"""
import sys
from hetero_bfs.cli.main import main
assert main(["bfs", {str(tmp_path / "g.hbg")!r}, "--source", "0", "--device", "cpu"]) == 0
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


def test_a_graph_without_keys(tmp_path, capsys):
    path = tmp_path / "g.txt"
    path.write_text("0 0\n")
    assert run("graph500", "--graph", path, *CPU) == 1
    assert "no search key" in one_line(capsys)


def test_memory_and_interrupts_are_one_line_too(monkeypatch, capsys):
    for error, status, words in ((MemoryError, 1, "out of memory"), (KeyboardInterrupt, 130, "")):

        def fail(options, error=error):
            raise error

        monkeypatch.setattr("hetero_bfs.cli.commands.devices", fail)
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


@pytest.mark.parametrize(("keys", "reader"), [(64, "head -1"), (1, "true")])
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


# What arguments and headers show is found before anything else.


@pytest.mark.parametrize("suffix", ["hbg", "sg", "mtx", "mtx.gz"])
def test_a_wrong_source_by_the_header_alone(graph, tmp_path, capsys, monkeypatch, suffix):
    path = tmp_path / f"g.{suffix}"
    assert run("convert", graph, path) == 0
    capsys.readouterr()
    monkeypatch.setattr("hetero_bfs.cli.algorithms.read_graph", lambda *_: pytest.fail("read"))
    assert run("bfs", path, "--source", 9, *CPU) == 1
    assert "vertex 9 is not in the graph; its ids are 0 to 8" in one_line(capsys)


def test_a_wrong_source_of_an_edge_list_before_the_graph_is_built(graph, capsys, monkeypatch):
    monkeypatch.setattr(
        "hetero_bfs.engine.engine.build_search_graph", lambda *_: pytest.fail("built")
    )
    assert run("bfs", graph, "--source", 9, *CPU) == 1
    assert "vertex 9 is not in the graph; its ids are 0 to 8" in one_line(capsys)


@pytest.mark.parametrize("device", ["", " "])
def test_a_device_without_a_name(graph, capsys, device):
    assert run("bfs", graph, "--source", 0, "--device", device) == 1
    assert f"--device is {device!r}; give the index or part of the name" in one_line(capsys)


def test_errors_name_options_here_and_arguments_in_python(graph, capsys):
    assert run("bfs", graph, "--source", 0, "--device", "cpu", "--selector", "daga") == 1
    assert "--selector daga runs bottom-up" in one_line(capsys)
    edges = hb.load(graph)
    with pytest.raises(hb.ModelError, match=r"^selector='daga' runs bottom-up"):
        hb.Engine(edges, "daga", device="cpu")


@pytest.mark.skipif(not list_devices(), reason=NO_RUNTIME)
def test_devices_that_are_not_there_by_option_and_argument(graph, capsys):
    assert run("bfs", graph, "--source", 0, "--device", "voodoo") == 1
    assert (
        "no OpenCL device matches --device voodoo; give an index or a part of a name, found"
        in one_line(capsys)
    )
    with pytest.raises(hb.DeviceError, match="matches device='voodoo'; give"):
        hb.Engine(hb.load(graph), device="voodoo")


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("-1", "vertex -1 is not in the graph; its ids are 0 to "),
        (10**12, f"vertex {10**12} is not in the graph; its ids are 0 to "),
        ("x", "'x' is not a vertex id, and the graph has no names; give an id, or --renumber"),
    ],
)
def test_vertices_that_a_file_without_names_lacks(graph, tmp_path, capsys, source, why):
    assert run("convert", graph, tmp_path / "g.hbg") == 0
    capsys.readouterr()
    assert run("bfs", tmp_path / "g.hbg", "--source", source) == 1
    assert why in one_line(capsys)


def test_the_largest_vertex_id_is_that_of_the_largest_graph():
    assert MAX_VERTEX == MAX_VERTICES - 1


def test_a_number_of_threads_names_the_limit_of_this_machine(capsys):
    assert run("graph500", "--threads", 0) == 1
    assert "--threads is 0; give an integer from 1 to " in one_line(capsys)


def test_an_unknown_ending_of_an_output(graph, tmp_path, capsys):
    assert run("convert", graph, tmp_path / "g.xyz", "--format", ".txt") == 1
    assert one_line(capsys).endswith(".hbg: give the file one of these")


@pytest.mark.parametrize("name", ["007", "-1", "1_000", "0049301234567", "99999999999"])
def test_names_that_look_like_numbers(tmp_path, capsys, name):
    path = tmp_path / "names.txt"
    path.write_text(f"{name} b\nb c\n")
    assert run("bfs", path, "--renumber", "--source", name) == 0
    assert "reached 3 of 3 vertices" in capsys.readouterr().out
