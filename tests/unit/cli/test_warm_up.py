"""`hetero-bfs warm-up`: its jobs, what it says, and that their code is found afterwards."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from functools import partial

import pytest
from cli_runs import one_line, run
from made_devices import CPU

from hetero_bfs import warm_up
from hetero_bfs.devices.opencl import verdicts
from hetero_bfs.devices.opencl.verdicts import FAMILIES, Verdict
from hetero_bfs.options import EngineOptions
from hetero_bfs.support import code_cache, private_cache
from hetero_bfs.support.code_cache import was_compiled
from hetero_bfs.support.environment import COMPILING_VARIABLE
from hetero_bfs.support.processes import Answer


@pytest.fixture
def ran(monkeypatch):
    """The jobs that processes would run; "paths" fails."""
    arguments: list = []

    def run_module(module, timeout, *given, **variables):
        assert variables == {COMPILING_VARIABLE: "wait,quiet"}
        arguments.append(given)
        return Answer([{"functions": 2}], "it broke" if given[0] == "paths" else None)

    monkeypatch.setattr(warm_up, "run_module", run_module)
    return arguments


def test_all_jobs_run_and_are_reported(ran, capsys, tmp_path):
    path = tmp_path / "report.json"
    assert run("warm-up", "--device", "cpu", "--json", path) == 1
    assert sorted(ran) == sorted((job, "cpu") for job in warm_up.JOBS)
    assert ran[0] == ("opening", "cpu")
    out, err = capsys.readouterr()
    total = len(warm_up.JOBS)
    assert out.splitlines()[0] == f"{2 * total} functions compiled, 1 of {total} jobs failed"
    assert f"1 of {total}: opening: 2 functions compiled" in err
    assert "paths: it broke" in err
    report = json.loads(path.read_text())
    assert report["folder"] == str(private_cache.folder())
    assert report["devices"] == []
    assert [job["job"] for job in report["jobs"]] == list(warm_up.JOBS)
    assert {job["problem"] for job in report["jobs"]} == {None, "it broke"}
    assert {job["functions"] for job in report["jobs"]} == {2}


def test_devices_are_tested(ran, monkeypatch):
    info, tested = CPU, []
    verdict = Verdict("2026-11-26", 1.0, None)

    def test(info, family):
        tested.append(family)
        return verdict

    monkeypatch.setattr(verdicts, "kept_verdict", lambda _, family: None)
    monkeypatch.setattr(verdicts, "test", test)
    found = list(warm_up.warm_up(("graphs",), [info]))
    assert ran == [("graphs", str(info.index))]
    assert set(tested) == set(FAMILIES)
    assert [one.job for one in found[1:]] == [f"{info.name}: {family}" for family in FAMILIES]
    assert len(warm_up.JOBS) + len(FAMILIES) == warm_up.count_jobs([info])
    monkeypatch.setattr(verdicts, "kept_verdict", lambda _, family: verdict)
    tested.clear()
    assert all(one.problem is None for one in warm_up.warm_up(("graphs",), [info]))
    assert tested == []


def test_a_device_that_is_not_there(ran, capsys):
    assert run("warm-up", "--device", "no such device") == 1
    assert "no such device" in one_line(capsys)
    assert ran == []


def test_nothing_is_compiled_where_nothing_can_be_kept(ran, capsys, monkeypatch):
    monkeypatch.setattr(private_cache, "folder", lambda: None)
    assert run("warm-up", "--device", "cpu") == 1
    assert ran == []


CALLS = """
import numpy as np
from numba.core import event
import hetero_bfs as hb
ends = np.random.default_rng(0).integers(0, 500, (2, 4000))
with event.install_recorder("numba:compile") as recorder:
    graph = hb.CSRGraph.from_edges(*ends)
    hb.bfs(graph, 0)
    hb.connected_components(graph)
print([one.data["dispatcher"].py_func.__name__ for _, one in recorder.buffer])
"""


def test_a_job_compiles_what_calls_use():
    """In real processes, with this suite's cache."""
    jobs = "graphs", "searches", "components"
    for outcome in warm_up.warm_up(jobs):
        assert outcome.problem is None
    done = subprocess.run(
        [sys.executable, "-c", CALLS], capture_output=True, text=True, check=True, env=os.environ
    )
    assert done.stdout == "[]\n"
    for job in jobs:
        assert was_compiled(job)


def test_devices_are_tested_beside_a_first_use_before_its_code_counts(monkeypatch):
    """Else the first engine of a process would wait for the tests of the device."""
    order: list = []
    jobs = {name: partial(order.append, name) for name in ("graphs", "Engine", "PageRanks")}
    monkeypatch.setattr(warm_up, "JOBS", jobs)
    monkeypatch.setattr(warm_up, "_AT_FIRST_USE", jobs)
    monkeypatch.setattr(EngineOptions, "find_devices", lambda _: ([CPU], []))
    monkeypatch.setattr(warm_up, "_run_device", lambda _, family: order.append(family))
    monkeypatch.setattr(code_cache, "was_compiled", lambda name: f"{name} noted" in order)
    monkeypatch.setattr(code_cache, "note_compiled", lambda name: order.append(f"{name} noted"))
    monkeypatch.setattr(os, "nice", lambda _: 0)
    monkeypatch.setattr(signal, "alarm", lambda _: 0)
    warm_up.compile_in_background("Engine")
    assert order == [
        *("Engine", "searches", "Engine noted"),
        *("graphs", "graphs noted", "PageRanks", "PageRanks noted"),
    ]


@pytest.mark.parametrize("job", ["graphs", "csgraph", "checks", "programs", "files"])
def test_jobs_call_what_there_is(job, monkeypatch):
    monkeypatch.setenv(COMPILING_VARIABLE, "wait,quiet")
    monkeypatch.setitem(warm_up._engine_options, "device", "cpu")
    warm_up.JOBS[job]()
