"""Devices are opened only if their driver passes a self-test, which runs once for its version."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from made_devices import CPU

from hetero_bfs.devices.opencl import verdicts
from hetero_bfs.devices.opencl.driver import list_devices
from hetero_bfs.devices.opencl.verdicts import FAMILIES, VARIABLE, check_verdict, kept_verdict
from hetero_bfs.doctor.self_test import TESTS, Sample
from hetero_bfs.doctor.trials import library_of, vendor_files
from hetero_bfs.errors import ArgumentError, DeviceError
from hetero_bfs.support import private_cache
from hetero_bfs.support.processes import Answer
from tests.fuzz.failing_driver import library

STEP = {"step": "auto"}
PASSED = Answer([STEP, {"passed": True}], None)
CRASHED = Answer([STEP], "the process was ended by SIGSEGV")
KILLED = Answer([STEP], "the process was ended by SIGKILL")
HUNG = Answer([STEP], "no answer within 600 s")
WRONG = Answer([STEP, {"wrong": "level of vertex 7 is 2, right is 1"}], None)


@pytest.fixture
def told(tmp_path, monkeypatch):
    """A list of what the self-tests to come tell; each is taken once. Nothing is kept yet."""
    answers: list[Answer] = []
    monkeypatch.setenv(VARIABLE, "on")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(verdicts, "run_module", lambda *_, **__: answers.pop(0))
    monkeypatch.setattr(verdicts, "_of_this_process", {})
    private_cache.folder.cache_clear()
    yield answers
    private_cache.folder.cache_clear()


def another_process(monkeypatch) -> None:
    """Forget all but what is on disk."""
    monkeypatch.setattr(verdicts, "_of_this_process", {})


def kept_files() -> list[Path]:
    return sorted(private_cache.folder().glob("self-test-*"))


def test_a_driver_is_tested_once(told, monkeypatch):
    told.append(PASSED)
    check_verdict(CPU, "searches")
    check_verdict(CPU, "searches")
    another_process(monkeypatch)
    check_verdict(CPU, "searches")
    assert told == []
    assert kept_verdict(CPU, "searches").problem is None
    assert kept_verdict(CPU, "PageRank") is None


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (CRASHED, "step 'auto': the process was ended by SIGSEGV"),
        (HUNG, "step 'auto': no answer within 600 s"),
        (WRONG, "step 'auto': level of vertex 7 is 2, right is 1"),
        (Answer([STEP], None), "step 'auto': the process ended early"),
    ],
)
def test_a_driver_that_fails_is_refused_with_the_reason(told, monkeypatch, answer, words):
    told.append(answer)
    for _ in range(2):
        with pytest.raises(DeviceError, match="doctor --retest") as caught:
            check_verdict(CPU, "searches")
        assert words in str(caught.value)
        another_process(monkeypatch)
    assert told == []


def test_a_process_that_others_ended_says_nothing_of_the_driver(told, monkeypatch):
    told += [KILLED, PASSED]
    with pytest.raises(DeviceError, match="SIGKILL"):
        check_verdict(CPU, "searches")
    another_process(monkeypatch)
    check_verdict(CPU, "searches")


@pytest.mark.parametrize("answer", [Answer([], "no module named numpy"), OSError("no process")])
def test_a_test_that_does_not_start_says_nothing(told, monkeypatch, answer):
    def run(*_, **__):
        if isinstance(answer, OSError):
            raise answer
        return answer

    monkeypatch.setattr(verdicts, "run_module", run)
    check_verdict(CPU, "searches")
    assert kept_verdict(CPU, "searches") is None


@pytest.mark.parametrize("field", ["platform", "name", "driver", "version"])
def test_another_driver_is_tested_anew(told, field):
    told += [CRASHED, PASSED]
    with pytest.raises(DeviceError):
        check_verdict(CPU, "searches")
    check_verdict(replace(CPU, **{field: "another"}), "searches")
    assert told == []


def test_other_kernels_are_tested_anew(told, monkeypatch):
    told += [CRASHED, PASSED]
    with pytest.raises(DeviceError):
        check_verdict(CPU, "searches")
    monkeypatch.setattr(verdicts, "_kernels_digest", lambda: "another")
    check_verdict(CPU, "searches")


@pytest.mark.parametrize("content", [b"", b"{}", bytes(200)])
def test_a_damaged_verdict_is_ignored(told, monkeypatch, content):
    told += [CRASHED, PASSED]
    with pytest.raises(DeviceError):
        check_verdict(CPU, "searches")
    (file,) = kept_files()
    file.write_bytes(content)
    another_process(monkeypatch)
    check_verdict(CPU, "searches")
    assert told == []


def test_a_verdict_that_others_may_write_is_ignored(told, monkeypatch):
    told += [CRASHED, PASSED]
    with pytest.raises(DeviceError):
        check_verdict(CPU, "searches")
    private_cache.folder().chmod(0o777)
    private_cache.folder.cache_clear()
    another_process(monkeypatch)
    with pytest.warns(RuntimeWarning, match="not kept"):
        check_verdict(CPU, "searches")


def test_it_may_be_left_out(told, monkeypatch):
    monkeypatch.setenv(VARIABLE, "off")
    check_verdict(CPU, "searches")  # there is no answer to take
    monkeypatch.setenv(VARIABLE, "perhaps")
    with pytest.raises(ArgumentError, match="'perhaps'; set it"):
        check_verdict(CPU, "searches")


def test_a_long_test_is_announced(told, monkeypatch, capsys):
    monkeypatch.setattr(verdicts, "_QUIET_SECONDS", 0.0)
    monkeypatch.setattr(
        verdicts.threading.Timer, "start", lambda timer: timer.function(*timer.args, **timer.kwargs)
    )
    told.append(PASSED)
    check_verdict(CPU, "searches")
    assert capsys.readouterr().err.startswith(f"testing searches on {CPU.name}")


def test_there_is_a_test_for_each_family():
    assert tuple(TESTS) == FAMILIES


@pytest.mark.parametrize("directed", [False, True])
def test_the_right_answers(directed):
    import numpy as np
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components, dijkstra

    sample = Sample(directed)
    weights = np.arange(len(sample.edges)) * 37 % 101 + 1
    src, dst = np.array(sample.edges).T
    if not directed:  # an edge that is there both ways has the smaller weight
        least: dict = {}
        for u, v, weight in zip(src.tolist(), dst.tolist(), weights.tolist(), strict=True):
            pair = min(u, v), max(u, v)
            least[pair] = min(weight, least.get(pair, weight))
        src, dst = np.array(list(least)).T
        weights_of = np.array(list(least.values()))
    else:
        weights_of = weights
    matrix = coo_array((weights_of.astype(float), (src, dst)), shape=(sample.num_vertices,) * 2)
    distance = dijkstra(matrix.tocsr(), directed, 9)
    assert sample.distances(9, weights).tolist() == distance.tolist()
    hops = dijkstra(matrix.tocsr(), directed, 9, unweighted=True)
    assert sample.levels(9).tolist() == np.where(np.isinf(hops), -1, hops).astype(int).tolist()
    _, label = connected_components(matrix.tocsr(), directed=True, connection="weak")
    least_of = {kind: int(np.flatnonzero(label == kind)[0]) for kind in set(label.tolist())}
    assert sample.least(True).tolist() == [least_of[kind] for kind in label.tolist()]
    assert abs(sample.ranks().sum() - 1) < 1e-12


# A real driver, behind one that fails (tests/fuzz/failing_driver.c).

needs_driver = pytest.mark.skipif(
    shutil.which("cc") is None or len(vendor_files()) != 1 or not list_devices(),
    reason="no C compiler, or not exactly one OpenCL driver",
)
COMMAND = """
import sys
from hetero_bfs.cli.main import main
from hetero_bfs.algorithms import base
from hetero_bfs.devices.opencl import verdicts
from hetero_bfs.scheduling import run_chooser
base.why_no_device = lambda *_: None
run_chooser.run_costs = lambda *_: {}
base.RunChooser.choose = lambda chooser, **_: run_chooser.RunChoice("device", {}, "")
verdicts._TIMEOUT_SECONDS = float(sys.argv.pop(1))
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.sampled(3)
@needs_driver
@pytest.mark.parametrize(
    ("fault", "timeout_seconds", "words"),
    [
        ("CreateKernel 1 2 0 0", 100, "the process was ended by SIGABRT"),
        ("CreateKernel 1 1 0 0", 5, "no answer within 5 s"),
        ("EnqueueReadBuffer 1 3 0 0", 100, "component of vertex"),
    ],
)
def test_a_failing_driver_is_left_out(tmp_path, fault, timeout_seconds, words):
    """The command ends well, on the CPU."""
    (tmp_path / "f.icd").write_text(f"{library()}\n")
    (tmp_path / "graph.el").write_text("0 1\n2 3\n")
    cache = tmp_path / f"hetero_bfs-{os.geteuid()}"
    shutil.copytree(private_cache.folder(), cache, copy_function=os.link)
    for file in cache.glob("self-test*"):
        file.unlink()
    changed = {
        "OCL_ICD_VENDORS": str(tmp_path),
        "FAILING_DRIVER": library_of(vendor_files()[0]),
        "FAILING_CALL": fault,
        "NUMBA_CACHE_DIR": str(tmp_path),
        VARIABLE: "on",
    }
    components = ["components", "graph.el"]
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, str(timeout_seconds), *components],
        cwd=tmp_path,
        env=os.environ | changed,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "is left out of components: " in done.stderr
    assert " failed its self-test of components on " in done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr
