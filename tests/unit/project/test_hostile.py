"""tests/fuzz: short campaigns, and that a campaign finds faults."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from checkout import TOP

import hetero_bfs as hb
from hetero_bfs.algorithms.components.algorithm import ComponentRuns
from hetero_bfs.devices.opencl.driver import NO_RUNTIME, list_devices
from hetero_bfs.errors import DeviceError
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.io import registry as io
from tests.fuzz import __main__ as hostile
from tests.fuzz import (
    commands,
    doors,
    drivers,
    endurance,
    failing_driver,
    files,
    foreign,
    models,
    ranks,
    searches,
)
from tests.fuzz.cases import Case
from tests.fuzz.failing_driver import DriverFault

FORMS_OF_EDGES = {"edges", "edges.gz", "mtx", "mtx.gz", "wel", "wel.gz", "wmtx", "konect", "gr"}


@pytest.mark.parametrize("form", files.FORMATS)
def test_damaged_files_are_read_right_or_refused_in_a_line(tmp_path: Path, form: str) -> None:
    outcomes = [files.attempt(form, number, 7, tmp_path) for number in range(100)]
    assert [(one.path.name, one.wrong) for one in outcomes if one.wrong is not None] == []


def test_an_input_depends_on_its_number_and_the_seed_alone(tmp_path: Path) -> None:
    for form in files.FORMATS:
        later = files.attempt(form, 40, 7, tmp_path).path.read_bytes()
        files.attempt(form, 41, 7, tmp_path)
        assert files.attempt(form, 40, 7, tmp_path).path.read_bytes() == later


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
    assert f"{'edges':18}{20:>8} tried" in out
    assert run(monkeypatch, "--replay", kept[0]) == 1
    monkeypatch.setattr(io, "read", sound)
    assert run(monkeypatch, "--replay", kept[0]) == 0
    assert run(monkeypatch, "--replay", tmp_path / "other-1-1.el") == 2


def test_it_runs_from_a_checkout(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.fuzz", "files", "--count", "2", "--start", "5"]
    done = subprocess.run(
        [*command, "--out", tmp_path / "out"], cwd=TOP, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "inputs 5 to 6 of each kind" in done.stdout
    assert "go on with --seed 1 --start 7" in done.stdout


def test_one_graph_by_many_doors_has_one_answer(tmp_path, monkeypatch) -> None:
    """The other kinds run in test_doors.py."""
    outcomes = [doors.attempt("lists", number, 3, tmp_path) for number in range(20)]
    assert [(one.path.name, one.wrong) for one in outcomes if one.wrong is not None] == []
    assert sum(one.tried for one in outcomes) > 20 * 15
    kept = outcomes[7].path
    assert doors.replay("lists", kept) == []
    monkeypatch.setitem(doors.DOORS, "csr", lambda *_: 1 / 0)
    assert "ZeroDivisionError" in doors.replay("lists", kept)[0]
    kept.write_text("[]")
    assert doors.replay("lists", kept) is None


@pytest.mark.parametrize("kind", ["components", "colour"])
def test_searches_are_right(tmp_path: Path, kind: str) -> None:
    """The other kinds need kernels that take long to compile; .ci/run tries all kinds."""
    outcomes = [searches.attempt(kind, number, 3, tmp_path) for number in range(2)]
    assert [(one.path.name, one.wrong) for one in outcomes if one.wrong is not None] == []
    assert sum(one.tried for one in outcomes) >= 2


def test_a_wrong_answer_is_found_made_small_and_replayed(tmp_path, monkeypatch) -> None:
    def forgetful(self, place=None):
        found = sound(self, place=place)
        found.component[-1] = found.component.size - 1
        return found

    sound = ComponentRuns.run
    monkeypatch.setattr(ComponentRuns, "run", forgetful)
    failed = [
        one
        for number in range(8)
        if (one := searches.attempt("components", number, 1, tmp_path)).wrong is not None
    ]
    assert failed
    for one in failed:
        case = Case.of(one.path.read_text())
        assert len(case.steps) == 1
        assert len(case.edges) < 60, "of a path, all edges to the last vertex are needed"
        assert searches.replay("components", one.path)
        monkeypatch.setattr(ComponentRuns, "run", sound)
        assert searches.replay("components", one.path) == []
        monkeypatch.setattr(ComponentRuns, "run", forgetful)
    broken = tmp_path / "components-1-1.json"
    broken.write_text("[]")
    assert searches.replay("components", broken) is None


def test_foreign_arrays_are_refused_or_answered_right(tmp_path: Path) -> None:
    for kind in ("matrices", "arrays"):
        one = foreign.attempt(kind, 0, 3, tmp_path)
        assert one.wrong is None
        assert one.tried >= 70


def test_a_crash_and_a_wrong_answer_with_foreign_arrays_are_found(tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(foreign.KINDS, "arrays", (lambda _: 1 / 0, 2))
    assert "ZeroDivisionError" in foreign.trouble("arrays", "1 arrays 0 0")
    worker = foreign.Worker()
    worker.process.kill()
    assert worker.ask("arrays", "1 arrays 0 0") == "the process ended with status -9"
    broken = tmp_path / "arrays-1-1.json"
    broken.write_text("{}")
    assert foreign.replay("arrays", broken) is None


@pytest.mark.skipif(
    not Path(sys.executable).with_name("mpirun").exists(), reason="pip install mpi4py mpich"
)
def test_runs_on_ranks_are_right_and_an_error_ends_all_ranks(tmp_path) -> None:
    step = {"sources": [0], "reverse": True}
    case = Case("cpu", 3, [(0, 1), (1, 2)], settings={"program": "bfs"}, steps=[step])
    path = tmp_path / "ranks2-1-1.json"
    path.write_text(f"[{case.text()}]")
    assert ranks.replay("ranks2", path) == []
    step["sources"] = [3]
    path.write_text(f"[{case.text()}]")
    (wrong,) = ranks.replay("ranks2", path)
    assert "AgreedError: " in wrong
    assert "ids are 0 to 2" in wrong


def test_damaged_models_are_refused_or_used(tmp_path, monkeypatch) -> None:
    outcomes = [models.attempt(kind, n, 2, tmp_path) for kind in models.KINDS for n in range(3)]
    assert [one.wrong for one in outcomes] == [None] * 6
    monkeypatch.setattr("hetero_bfs.scheduling.model_files.read_model", lambda *_: 1 / 0)
    assert "ZeroDivisionError" in models.replay("values", outcomes[0].path)[0]


needs_driver = pytest.mark.skipif(
    not any(info.problem is None for info in list_devices()) or shutil.which("cc") is None,
    reason=f"no C compiler, or {NO_RUNTIME}",
)


@needs_driver
def test_a_driver_that_fails_is_survived(monkeypatch) -> None:
    fault = drivers.Fault("EnqueueFillBuffer", 2, "error", -5, for_good=True)
    assert drivers.trouble("components", fault) is None
    with failing_driver.failing(fault) as driver:
        with pytest.raises(DeviceError, match="clEnqueueFillBuffer failed: OUT_OF_RESOURCES"):
            hb.Engine(hb.kronecker(5), device="0").close()
        assert driver.fault_came()
    for kind, apart in (("bfs", False), ("bfs", True), ("components", True)):
        flush = drivers.Fault("Flush", 2, "error", -6, for_good=False, apart=apart)
        assert drivers.trouble(kind, flush) is None
    monkeypatch.setattr("hetero_bfs.devices.opencl.driver.DeviceError", lambda *_: 1 / 0)
    assert "ZeroDivisionError" in drivers.trouble("components", fault)


FAULTS = {
    ("GetDeviceInfo", 2): "note: searching on the CPU only: asking for the properties of device",
    ("CreateCommandQueueWithProperties", 1): "is left out: opening ",
    ("EnqueueMapBuffer", 3): "is left out: mapping memory of",
    ("EnqueueUnmapMemObject", 1): "is left out: giving memory back to",
}


@needs_driver
def test_a_command_goes_on_without_a_driver_that_fails_for_good(graph: Path) -> None:
    """PyOpenCL ends a process that cannot unmap memory, even one that ends anyway."""
    for (function, call), note in FAULTS.items():
        fault = DriverFault(function, call, "error", -5, for_good=True)
        command = [*failing_driver.command(fault), "bfs", str(graph), "--source", "0"]
        done = subprocess.run(command, cwd=TOP, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, (function, done.stderr)
        assert note in done.stderr, (function, done.stderr)
        assert "reached" in done.stdout


def test_what_a_command_leaves_on_a_full_disk(tmp_path, monkeypatch) -> None:
    fault = commands.Fault("convert", 0.5, again=True, seed=1)
    assert commands.trouble("disk", fault) is None

    def careless(kind, fault, folder):
        ended = sound(kind, fault, folder)
        table = folder / "graph.hbg"
        table.write_bytes(table.read_bytes()[:-1])
        return ended

    sound = commands._disturbed
    monkeypatch.setattr(commands, "_disturbed", careless)
    assert "truncated" in commands.trouble("disk", fault)


def test_what_a_process_holds_is_watched(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(endurance, "_SEARCHES", 20)
    monkeypatch.setattr(endurance, "_BLOCKS_BEFORE", 1)
    monkeypatch.setattr(endurance, "KINDS", {"searches": endurance.KINDS["searches"]})
    monkeypatch.setattr(endurance, "_blocks", {"searches": 0})
    monkeypatch.setattr(endurance, "_before", {})
    first, second = (endurance.attempt("searches", n, 1, tmp_path) for n in range(2))
    assert (first.wrong, second.wrong, second.tried) == (None, None, 20)
    with open(os.devnull):
        leaking = endurance.attempt("searches", 2, 1, tmp_path)
    assert "after block 3 it holds" in leaking.wrong
    engine = endurance._shared_engine()
    monkeypatch.setattr(engine, "bfs", lambda _: engine.bfs_many([0]))
    assert "are wrong" in endurance.attempt("searches", 3, 1, tmp_path).wrong
    engine.close()
    endurance._shared_engine.cache_clear()
