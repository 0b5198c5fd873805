"""Bad inputs of every command: status 1 and one line, or 2 and the usage; never a traceback.

Files that hold the wrong thing, outputs that cannot be written, options that contradict the
machine. An error of NetworkX, SciPy, MPI or NumPy that came through would be an "internal error".
"""

from __future__ import annotations

import gzip
import io
import os
from pathlib import Path

import numpy as np
import pytest
from cli_runs import command, run
from test_cli_run import LARGEST

from hetero_bfs.cli.arguments import make_parser
from hetero_bfs.scheduling.model_files import MODELS_VARIABLE


def npy(array) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=True)
    return stream.getvalue()


LISTS = {
    "objects.npy": npy(np.array([Path], object)),  # a pickle
    "cut.npy": npy(np.arange(9))[:-3],
    "vast.npy": npy(np.arange(9)).replace(b"(9,), }" + b" " * 15, b"(9%s,), }" % (b"9" * 15)),
    "floats.npy": npy(np.array([0.5, np.nan])),
}
FILES = {
    "empty.txt": b"",
    "words.txt": b"one two\n",
    "negative.txt": b"0 -1\n",
    "huge.txt": b"0 99999999999999999999\n",
    "alone.txt": b"0 1\n2\n",
    "binary.txt": bytes(range(256)),
    "nan.wel": b"0 1 nan\n",
    "minus.wel": b"0 1 -2\n",
    "noise.hbg": b"HBG or not",
    "noise.sg": b"\x01\x02\x03",
    "noise.wsg": b"\x00" * 40,
    "noise.gz": b"not compressed",
    "cut.txt.gz": gzip.compress(b"0 1\n" * 10_000)[:40],
    "shape.mtx": b"%%MatrixMarket matrix coordinate real general\n-3 2 1\n1 1 1\n",
    "header.mtx": b"%%MatrixMarket vector array\n",
    "short.mtx": b"%%MatrixMarket matrix coordinate pattern general\n3 3 9\n1 2\n",
    "what.xyz": b"0 1\n",
}
GRAPH_COMMANDS = {
    "bfs": ["bfs", "{graph}", "--source", "0", "--device", "cpu"],
    "sssp": ["sssp", "{graph}", "--source", "0", "--device", "cpu"],
    "components": ["components", "{graph}", "--device", "cpu"],
    "colour": ["colour", "{graph}", "--device", "cpu"],
    "pagerank": ["pagerank", "{graph}", "--device", "cpu"],
    "run": ["run", "{program}", "{graph}", "--argument", "largest=1", "--device", "cpu"],
    "layers": ["layers", "{graph}", "--root", "0", "--device", "cpu"],
    "convert": ["convert", "{graph}", "{folder}/out.hbg", "--weighted"],
    "graph500": ["graph500", "--graph", "{graph}", "--device", "cpu"],
    "study": ["study", "{folder}/study", "--graph", "{graph}", "--device", "cpu"],
}
WEIGHTS_REFUSED = {"sssp": ["nan.wel", "minus.wel"], "convert": ["nan.wel"]}
"""Files that are wrong by their weights alone, which the other commands do not read."""

OTHERS = [
    ["bfs", "{good}", "--source", "7"],
    ["bfs", "{good}", "--source", "0", "--device", "voodoo"],
    ["bfs", "{good}", "--source", "0", "--threads", "9999", "--device", "cpu"],
    ["bfs", "{good}", "--source", "0", "--selector", "fixed:TG", "--device", "cpu"],
    ["bfs", "{good}", "--source", "0", "--out", "{folder}"],
    ["bfs", "{good}", "--source", "0", "--out", "{good}"],
    ["bfs", "{good}", "--source", "0", "--levels", "{folder}/none/x.npy"],
    ["bfs", "{good}", "--source", "0", "--trace", "{good}/x.csv"],
    ["bfs", "{good}", "--source", "NaN"],
    ["bfs", "{good}", "--source", "0", "--target", "7"],
    ["bfs", "{good}", "--source", "0", "--mask", "{folder}/none.npy"],
    ["bfs", "{good}", "--source", "0", "--mask", "{folder}/objects.npy"],
    ["bfs", "{good}", "--source", "0", "--mask", "{folder}/cut.npy"],
    ["bfs", "{good}", "--source", "0", "--mask", "{folder}/vast.npy"],
    ["bfs", "{good}", "--source", "0", "--mask", "{folder}/floats.npy"],
    ["bfs", "{good}", "--source", "0", "--mask", "{folder}/words.txt"],
    ["bfs", "{good}", "--source", "0", "--mask", "{folder}/huge.txt"],
    ["sssp", "{good}", "--source", "0"],
    ["sssp", "{weighted}", "--source", "9"],
    ["sssp", "{weighted}", "--source", "0", "--parents", "{folder}"],
    ["components", "{good}", "--json", "{folder}"],
    ["components", "{good}", "--threads", "0"],
    ["colour", "{good}", "--out", "/dev/null/x"],
    ["colour", "{good}", "--order", "random"],
    ["pagerank", "{good}", "--alpha", "2"],
    ["pagerank", "{good}", "--alpha", "nan"],
    ["pagerank", "{good}", "--tol", "-1"],
    ["pagerank", "{good}", "--tol", "inf"],
    ["pagerank", "{good}", "--max-iter", "0"],
    ["pagerank", "{good}", "--weighted"],
    ["info", "{folder}/none.txt"],
    ["warm-up", "--device", "voodoo"],
    ["convert", "{good}", "{folder}/out.xyz"],
    ["convert", "{good}", "{good}"],
    ["convert", "{good}", "{folder}/out.wsg", "--weighted"],
    ["convert", "{weighted}", "{folder}/out.graph", "--weighted"],
    ["convert", "{good}", "{folder}/out.graph", "--directed"],
    ["convert", "{good}", "{folder}/out.max"],
    ["convert", "{good}", "{folder}/out.hbg", "--columns", "a,b"],
    ["convert", "{good}", "{folder}/out.hbg", "--columns", "a"],
    ["convert", "{good}", "{folder}/out.hbg", "--format", ".xyz"],
    ["bfs", "{good}", "--source", "ada", "--renumber"],
    ["bfs", "{good}", "--source", "0", "--target", "9999999999", "--renumber"],
    ["sssp", "{weighted}", "--source", "ada"],
    ["generate", "rings", "{folder}/out.hbg"],
    ["generate", "grid", "{folder}/out.xyz"],
    ["generate", "grid", "{folder}/out.hbg", "--scale", "5"],
    ["generate", "rmat", "{folder}/out.hbg", "--a", "0.9"],
    ["generate", "grid", "{folder}/none/out.hbg"],
    ["generate", "grid", "{folder}/out.hbg", "--rows", "99999", "--columns", "99999"],
    ["generate", "smallworld", "{folder}/out.hbg", "--scale", "2"],
    ["generate", "smallworld", "{folder}/out.hbg", "--rewired", "2"],
    ["generate", "kronecker", "{folder}/out.graph", "--directed"],
    ["graph500", "--scale", "31", "--device", "cpu"],
    ["graph500", "--scale", "5", "--power-log", "{good}", "--device", "cpu", "--sources", "1"],
    ["graph500", "--scale", "5", "--kernel", "sssp", "--selector", "daga"],
    ["graph500", "--scale", "5", "--json", "-", "--trace", "-"],
    ["run", "{good}", "{good}"],
    ["run", "{program}", "{good}", "--argument", "largest=@{folder}/none.csv"],
    *(
        ["run", "{program}", "{good}", "--argument", f"largest=@{{folder}}/{name}"]
        for name in LISTS
    ),
    ["run", "{program}", "{good}", "--argument", "largest=@{folder}/binary.txt"],
    ["run", "{program}", "{good}", "--argument", "largest=@{folder}"],
    ["run", "{program}", "{good}", "--argument", "largest=1", "--mode", "layered"],
    ["run", "{program}", "{good}", "--argument", "largest=1", "--root", "7", "--mode", "layered"],
    ["layers", "{good}", "--root", "7"],
    ["layers", "{good}", "--root", "0", "--weighted"],
    ["layers", "{good}", "--root", "0", "--out", "{folder}/x.mtx"],
    ["train", "--calibrate", "--device", "cpu"],
    ["train", "--out", "{good}", "--device", "cpu", "--quick"],
    ["train", "--power-log", "{folder}/none.csv", "--device", "cpu", "--quick"],
    ["train", "--device", "voodoo"],
    ["study", "{good}"],
    ["study", "{folder}"],
    ["study", "{folder}/s", "--keys", "0"],
    ["study", "{folder}/s", "--budget", "0"],
    ["study", "{folder}/s", "--budget", "9", "--paper", "zhang"],
    ["study", "{folder}/s", "--power-log", "{folder}/none.csv", "--device", "cpu"],
    ["devices", "--json", "{folder}"],
    ["devices", "--json", "{folder}/none/x.json"],
    ["devices", "what"],
    ["doctor", "--json", "{folder}"],
    ["doctor", "--fast"],
    ["completion"],
    ["completion", "fish"],
]


@pytest.fixture(scope="module")
def places(tmp_path_factory) -> dict[str, str]:
    """A folder with all files, a good graph and a weighted one."""
    folder = tmp_path_factory.mktemp("bad")
    for name, content in (FILES | LISTS).items():
        (folder / name).write_bytes(content)
    good, weighted = folder / "good.txt", folder / "weighted.wel"
    good.write_text("0 1\n1 2\n")
    weighted.write_text("0 1 1.5\n1 2 2\n")
    program = folder / "program.py"
    program.write_text(LARGEST)
    named = {"good": good, "weighted": weighted, "program": program, "folder": folder}
    return {name: str(path) for name, path in named.items()}


@pytest.fixture(autouse=True)
def no_models(monkeypatch, tmp_path):
    monkeypatch.setenv(MODELS_VARIABLE, str(tmp_path))


def refused(arguments: list[str], capsys) -> str:
    """Run a command, which must end with a line for its user; return it."""
    status = run(*arguments)
    captured = capsys.readouterr()
    errors = [
        line
        for line in captured.err.splitlines()
        if not line.startswith(("note: ", "compiling for", "searching a small graph", "generating"))
    ]
    assert "Traceback" not in captured.err
    assert "internal error" not in captured.err
    assert captured.out == ""
    if status == 2:
        assert len(errors) == 1
        assert " error: " in errors[0]
    else:
        assert status == 1
        assert errors[-1].startswith("hetero-bfs: ")
        assert len(errors[-1]) > 20
    return errors[-1]


def filled(arguments: list[str], places: dict[str, str], **more: str) -> list[str]:
    return [argument.format(**places, **more) for argument in arguments]


@pytest.mark.parametrize("name", GRAPH_COMMANDS)
def test_files_that_are_no_graph(name, places, capsys):
    before = sorted(os.listdir(places["folder"]))
    wrong = [file for file in FILES if not file.endswith(".wel")]
    for file in [*wrong, *WEIGHTS_REFUSED.get(name, []), "none.txt", "none.hbg", "."]:
        graph = str(Path(places["folder"]) / file)
        line = refused(filled(GRAPH_COMMANDS[name], places, graph=graph), capsys)
        assert file == "minus.wel" or Path(graph).name in line
    assert sorted(os.listdir(places["folder"])) == before


@pytest.mark.parametrize("arguments", OTHERS, ids=" ".join)
def test_options_that_cannot_be(arguments, places, capsys):
    refused(filled(arguments, places), capsys)


def test_every_command_has_its_bad_inputs():
    commands = next(a for a in make_parser("0")._actions if a.dest == "command").choices
    assert {arguments[0] for arguments in OTHERS} == set(commands)


def test_an_mpi_that_cannot_be_loaded(tmp_path):
    """A launcher started two processes, and mpi4py fails to load its library."""
    (tmp_path / "mpi4py").mkdir()
    (tmp_path / "mpi4py/__init__.py").write_text("raise RuntimeError('cannot load MPI library')\n")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    launched = {"PYTHONPATH": path, "PMI_RANK": "0", "PMI_SIZE": "2"}
    done = command("graph500", "--scale", "5", env={**os.environ, **launched})
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("hetero-bfs: ")
    assert "cannot load MPI library" in line


def test_a_mistake_of_the_program_is_a_line_too(monkeypatch, capsys):
    def fail(options):
        raise KeyError("some\nname")

    monkeypatch.setattr("hetero_bfs.cli.commands.devices", fail)
    assert run("devices") == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "internal error: KeyError: 'some\\nname'" in line
    assert "test_bad_inputs.py, line " in line
