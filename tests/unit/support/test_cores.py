"""Quotas of CPU time of control groups: read in both versions, and kept by default."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hetero_bfs.devices.machine import cpu_slug
from hetero_bfs.doctor.installation import MACHINE, check_machine
from hetero_bfs.support import environment
from tests.fuzz.control_group import cpu_group


@pytest.fixture
def mount(tmp_path, monkeypatch):
    """A folder in place of /sys/fs/cgroup, on a machine of eight cores."""
    monkeypatch.setattr(environment, "_MOUNT", tmp_path / "cgroup")
    monkeypatch.setattr(environment, "_MEMBERSHIPS", tmp_path / "memberships")
    monkeypatch.setattr(environment, "bound_cores", lambda: 8)
    environment.cpu_quota.cache_clear()
    yield tmp_path / "cgroup"
    environment.cpu_quota.cache_clear()


def write_group(folder: Path, quota: object, period: int = 100_000, version: int = 2):
    folder.mkdir(parents=True, exist_ok=True)
    if version == 2:
        (folder / "cpu.max").write_text(f"{quota} {period}\n")
        return
    (folder / "cpu.cfs_quota_us").write_text(f"{quota}\n")
    (folder / "cpu.cfs_period_us").write_text(f"{period}\n")


def test_version_2(mount):
    (mount.parent / "memberships").write_text("0::/slice/job:1/step\n")
    write_group(mount, "max")
    write_group(mount / "slice", 250_000)  # the least counts
    write_group(mount / "slice" / "job:1", 150_000, 50_000)
    write_group(mount / "slice" / "job:1" / "step", "max")
    assert environment.cpu_quota() == 2.5
    assert environment.usable_cores() == 3


def test_version_1_in_a_container(mount):
    """The path is the host's, which the container does not see: the mount point is its group."""
    (mount.parent / "memberships").write_text("5:cpuacct,cpu:/docker/ab\n4:memory:/docker/ab\n")
    write_group(mount / "cpu", 20_000, version=1)
    assert environment.cpu_quota() == 0.2
    assert environment.usable_cores() == 1
    assert cpu_slug().endswith("-1-cores")
    (finding,) = [one for one in check_machine() if one.name == "cores"]
    assert finding.topic == MACHINE
    assert finding.text.endswith("; a control group's quota is the time of 0.2")


@pytest.mark.parametrize("memberships", [None, "", "0::/\n", "0::/gone\n3:freezer:/\n1:cpu:/\n"])
def test_no_quota(mount, memberships, monkeypatch):
    if memberships is not None:
        (mount.parent / "memberships").write_text(memberships)
    write_group(mount, "max")
    write_group(mount / "cpu", -1, version=1)
    assert environment.cpu_quota() is None
    assert environment.usable_cores() == 8
    assert "quota" not in next(one.text for one in check_machine() if one.name == "cores")
    assert keep(monkeypatch, {}) == {}


def keep(monkeypatch: pytest.MonkeyPatch, given: dict[str, str]) -> dict[str, str]:
    """Return the environment after `keep_quota`, as if Numba were not loaded yet."""
    variables = dict(given)
    monkeypatch.setattr(os, "environ", variables)
    monkeypatch.setattr(environment, "_set_here", set())
    with monkeypatch.context() as without:
        without.delitem(sys.modules, "numba", raising=False)
        environment.keep_quota()
    return variables


@pytest.mark.parametrize(("quota", "threads"), [(300_000, "3"), (1_000, "1"), (800_000, None)])
def test_numba_is_told_if_the_quota_is_less_than_the_cores(mount, monkeypatch, quota, threads):
    (mount.parent / "memberships").write_text("0::/\n")
    write_group(mount, quota)
    assert keep(monkeypatch, {}).get("NUMBA_NUM_THREADS") == threads
    assert environment.numba_variables() == [], "what is set here is not the user's"
    assert keep(monkeypatch, {"NUMBA_NUM_THREADS": "5"}) == {"NUMBA_NUM_THREADS": "5"}
    assert environment.numba_variables() == ["NUMBA_NUM_THREADS"]
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.setattr(os, "environ", {})
    environment.keep_quota()
    assert os.environ == {}, "Numba would not read it, or raise an exception once it compiles"


ORDER = """
import importlib.abc, sys
import hetero_bfs, numpy, scipy, pandas, networkx, pyopencl

class Numba(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name in ("numba", "llvmlite"):
            after.append("hetero_bfs.support" in sys.modules)
            raise KeyboardInterrupt

sys.meta_path.insert(0, Numba())
after = []
entries = [f"from hetero_bfs import {name}" for name in hetero_bfs.__all__]
entries += ["import hetero_bfs; hetero_bfs.kronecker(3)"]
entries += ["from hetero_bfs.networkx_backend import backend_interface, conversion"]
entries += ["from hetero_bfs.cli.main import load_numba; load_numba()"]
entries += ["from hetero_bfs.doctor import trials; trials.search_small_graph()"]
entries += ["from hetero_bfs.engine import background_compiling"]
for entry in entries:
    for name in [name for name in sys.modules if name.startswith("hetero_bfs")]:
        del sys.modules[name]
    try:
        exec(entry, {})
    except KeyboardInterrupt:
        if not after[-1]:
            print(entry, "loads Numba too early")
print(len(after) > 9)
"""


def test_the_quota_is_read_before_anything_loads_numba():
    command = [sys.executable, "-c", ORDER]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.stdout == "True\n", done.stdout + done.stderr


SEARCH = """
import hetero_bfs as hb
with hb.Engine(hb.kronecker(12), device="cpu") as engine:
    engine.bfs(1)
import numba
print(numba.config.NUMBA_NUM_THREADS, numba.get_num_threads())
"""


def test_a_search_in_a_group_with_a_quota():
    with cpu_group(0.5) as join:
        if join is None:
            pytest.skip("no right to make a control group")
        environment = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA_NUM")}
        options = {"capture_output": True, "text": True, "timeout": 200, "preexec_fn": join}
        done = subprocess.run([sys.executable, "-c", SEARCH], env=environment, **options)
    assert done.stdout == "1 1\n", done.stderr
