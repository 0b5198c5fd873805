"""Graph500 under mpirun: the keys and edges of one process, one voice, and an end for all ranks."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hetero_bfs.devices.opencl.driver import NO_RUNTIME, list_devices

MPIRUN = Path(sys.executable).with_name("mpirun")
SMALL = ["graph500", "--scale", "10", "--sources", "6", "--devices", "cpu"]

pytestmark = pytest.mark.skipif(not MPIRUN.exists(), reason="pip install 'hetero_bfs[mpi]'")


def ranks(count: int, *arguments) -> list[str]:
    return ["-n", str(count), sys.executable, "-m", "hetero_bfs", *map(str, arguments)]


def mpirun(*arguments) -> subprocess.CompletedProcess:
    return subprocess.run(
        [MPIRUN, *arguments], capture_output=True, text=True, timeout=200, check=False
    )


def figures(path: Path):
    report = json.loads(path.read_text())
    return report, [(root["root"], root["nedge"], root["reached"]) for root in report["roots"]]


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The searches of one process."""
    path = tmp_path_factory.mktemp("alone") / "report.json"
    command = [sys.executable, "-m", "hetero_bfs", *SMALL, "--json", str(path)]
    subprocess.run(command, check=True, capture_output=True, timeout=200)
    return figures(path)[1]


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_keys_and_edges_are_those_of_one_process(count, alone, tmp_path):
    path, trace = tmp_path / "report.json", tmp_path / "trace.csv"
    done = mpirun(*ranks(count, *SMALL, "--json", path, "--trace", trace))
    assert done.returncode == 0, done.stderr
    report, found = figures(path)
    assert found == alone
    assert report["valid"]
    assert report["num_mpi_processes"] == count
    assert done.stdout.count("num_mpi_processes:") == 1
    assert len(trace.read_text().splitlines()) > 6


@pytest.mark.skipif(not list_devices(), reason=NO_RUNTIME)
def test_ranks_search_on_devices(alone, tmp_path):
    path = tmp_path / "report.json"
    options = [*SMALL[:-2], "--device", "0", "--selector", "fixed:TC,BG", "--json", path]
    done = mpirun(*ranks(2, *options))
    assert done.returncode == 0, done.stderr
    report, found = figures(path)
    assert found == alone
    assert list(report["rank_devices"].values()) == [2]


def test_a_graph_file_with_duplicates(tmp_path):
    graph, path = tmp_path / "graph.el", tmp_path / "report.json"
    graph.write_text("0 1\n1 0\n1 2\n2 2\n2 3\n3 0\n7 8\n")
    done = mpirun(*ranks(3, "graph500", "--graph", graph, "--sources", "9", "--json", path))
    assert done.returncode == 0, done.stderr
    assert {nedge for _, nedge, _ in figures(path)[1]} == {1, 5}


def test_a_converted_file_remembers_duplicates(tmp_path):
    graph, converted, path = (tmp_path / name for name in ("graph.el", "graph.hbg", "report.json"))
    graph.write_text("0 1\n1 0\n1 2\n2 2\n2 3\n3 0\n7 8\n")
    convert = [sys.executable, "-m", "hetero_bfs", "convert", graph, converted]
    subprocess.run(convert, check=True, capture_output=True, timeout=200)
    done = mpirun(*ranks(2, "graph500", "--graph", converted, "--sources", "9", "--json", path))
    assert done.returncode == 0, done.stderr
    assert {nedge for _, nedge, _ in figures(path)[1]} == {1, 5}


REFUSED = {
    "no file": (["graph500", "--graph", "absent.el"], "absent.el: no such file"),
    "too large": (["graph500", "--scale", "31"], "a smaller scale or more machines"),
    "other kernel": (["graph500", "--kernel", "sssp"], "start without mpirun"),
    "other command": (["devices"], "only graph500 runs on several"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_is_said_once(name):
    arguments, message = REFUSED[name]
    done = mpirun(*ranks(2, *arguments))
    said = [line for line in done.stderr.splitlines() if line.startswith("hetero-bfs: ")]
    assert done.returncode == 1
    assert len(said) == 1
    assert message in said[0]


def test_ranks_with_other_options_are_refused():
    done = mpirun(*ranks(1, *SMALL), ":", *ranks(1, *SMALL, "--seed1", "9"))
    assert done.returncode == 1
    assert done.stderr.count("different options") == 1


def test_a_launcher_of_another_mpi_is_refused():
    foreign = {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "0"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "hetero_bfs", *SMALL],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
        env=os.environ | foreign,
    )
    assert done.returncode == 1
    assert "the launcher started 2 processes, but MPI sees 1" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_all_ranks_end_within_ten_seconds_of_one(number):
    whole = [*SMALL[:2], "20", *SMALL[3:]]
    with subprocess.Popen(
        [MPIRUN, *ranks(2, *whole)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        victim = _first_rank()
        time.sleep(2)
        os.kill(victim, number)
        process.communicate(timeout=10)
        assert process.returncode != 0
    assert not Path(f"/proc/{victim}").exists()


def _first_rank() -> int:
    """Return the process id of a rank, once there is one."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        for entry in Path("/proc").glob("[0-9]*/status"):
            try:
                environment = (entry.parent / "environ").read_bytes()
                words = (entry.parent / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"PMI_RANK=0" in environment and b"hetero_bfs" in words and b"20" in words:
                return int(entry.parent.name)
        time.sleep(0.05)
    raise AssertionError("no rank started")
