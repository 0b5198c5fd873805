"""Memory limits of control groups: read in both versions, and commands that run within one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hetero_bfs.support import environment, memory
from tests.fuzz.control_group import memory_group

ONE = {"limit": "memory.limit_in_bytes", "usage": "memory.usage_in_bytes", "prefix": "total_"}
TWO = {"limit": "memory.max", "usage": "memory.current", "prefix": ""}


@pytest.fixture
def mount(tmp_path, monkeypatch):
    """A folder in place of /sys/fs/cgroup, and a function that says which groups we are in."""
    monkeypatch.setattr(environment, "_MOUNT", tmp_path / "cgroup")
    monkeypatch.setattr(environment, "_MEMBERSHIPS", tmp_path / "memberships")
    return tmp_path / "cgroup"


def write_group(folder: Path, version, limit, usage: int, cache: int = 0):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / version["limit"]).write_text(f"{limit}\n")
    (folder / version["usage"]).write_text(f"{usage}\n")
    cached = (f"{version['prefix']}{name}_file {part}" for name, part in
              (("inactive", cache // 3), ("active", cache - cache // 3)))  # fmt: skip
    stat = "\n".join(["anon 5", *cached, "unevictable 0", ""])
    (folder / "memory.stat").write_text(stat)


def test_version_2(mount):
    (mount.parent / "memberships").write_text("0::/slice/job:1/step\n")
    write_group(mount / "slice", TWO, 9000, 8000, 500)  # what leaves the least counts
    write_group(mount / "slice" / "job:1", TWO, 5000, 1000)
    write_group(mount / "slice" / "job:1" / "step", TWO, "max", 700)
    assert memory.memory_limit() == (9000, 1500)


def test_version_1_in_a_container(mount):
    """The path is the host's, which the container does not see: the mount point is its group."""
    (mount.parent / "memberships").write_text("5:cpu,cpuacct:/docker/ab\n4:memory:/docker/ab\n")
    write_group(mount / "memory", ONE, 4000, 4100, 30)
    assert memory.memory_limit() == (4000, 0)
    assert memory.free_bytes() == 0


@pytest.mark.parametrize("memberships", [None, "", "0::/\n", "0::/gone\n3:freezer:/\n"])
def test_no_limit(mount, memberships):
    if memberships is not None:
        (mount.parent / "memberships").write_text(memberships)
    write_group(mount, TWO, "max", 3)
    assert memory.memory_limit() is None
    assert memory.free_bytes() > 0


def test_a_command_refuses_what_exceeds_its_group():
    command = [sys.executable, "-m", "hetero_bfs"]
    with memory_group(1 << 29) as join:
        if join is None:
            pytest.skip("no right to make a control group")
        options = {"capture_output": True, "text": True, "timeout": 200, "preexec_fn": join}
        large = subprocess.run([*command, "graph500", "--scale", "24"], **options)
        doctor = subprocess.run([*command, "doctor"], **options)
    assert large.returncode == 1
    assert "hetero-bfs: a graph of scale 24 needs about 4.2 GiB of memory, 0." in large.stderr
    assert "a control group's limit is 512 MiB" in doctor.stdout
