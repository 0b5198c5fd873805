"""benchmarks/hostile: a short campaign of damaged files, and that a campaign finds faults."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2]))

from benchmarks.hostile import __main__ as hostile
from benchmarks.hostile import files
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.io import registry as io

ROOT = Path(__file__).parents[2]
FORMS_OF_EDGES = {"edges", "edges.gz", "mtx", "mtx.gz", "wel", "wel.gz", "wmtx"}


@pytest.mark.parametrize("form", files.FORMATS)
def test_damaged_files_are_read_right_or_refused_in_a_line(tmp_path: Path, form: str) -> None:
    outcomes = [files.attempt(form, number, 7, tmp_path) for number in range(300)]
    assert [(path.name, wrong) for path, wrong in outcomes if wrong is not None] == []


def test_an_input_depends_on_its_number_and_the_seed_alone(tmp_path: Path) -> None:
    for form in files.FORMATS:
        later = files.attempt(form, 40, 7, tmp_path)[0].read_bytes()
        files.attempt(form, 41, 7, tmp_path)
        assert files.attempt(form, 40, 7, tmp_path)[0].read_bytes() == later


def run(monkeypatch: pytest.MonkeyPatch, *words: object) -> int:
    monkeypatch.setattr(sys, "argv", ["hostile", "files", *map(str, words)])
    return hostile.main()


def test_a_fault_is_counted_kept_and_replayed(tmp_path, monkeypatch, capsys) -> None:
    def forgetful(path, directed, weighted):
        graph = sound(path, directed, weighted)
        if isinstance(graph, EdgeList):
            weights = None if graph.weights is None else graph.weights[1:]
            return EdgeList(graph.src[1:], graph.dst[1:], graph.num_vertices, directed, weights)
        return graph

    sound = io.read
    monkeypatch.setattr(io, "read", forgetful)
    assert run(monkeypatch, "--count", 20, "--out", tmp_path) == 1
    kept = sorted(tmp_path.iterdir())
    assert {path.name.split("-")[0] for path in kept} == FORMS_OF_EDGES
    out = capsys.readouterr().out
    assert f"--replay {kept[0]}" in out
    assert f"edges{20:>13} tried" in out
    assert run(monkeypatch, "--replay", kept[0]) == 1
    monkeypatch.setattr(io, "read", sound)
    assert run(monkeypatch, "--replay", kept[0]) == 0
    assert run(monkeypatch, "--replay", tmp_path / "other-1-1.el") == 2


def test_it_runs_from_a_checkout(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.hostile", "files", "--count", "2", "--start", "5"]
    done = subprocess.run(
        [*command, "--out", tmp_path / "out"], cwd=ROOT, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "inputs 5 to 6 of each format" in done.stdout
    assert "go on with --seed 1 --start 7" in done.stdout
