"""Graph500 under mpirun: the keys and edges of one process, one voice, and an end for all ranks."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from cli_runs import run

from hetero_bfs.devices.opencl.driver import NO_RUNTIME, list_devices
from hetero_bfs.support.environment import core_numbers

MPIRUN = Path(sys.executable).with_name("mpirun")
SMALL = ["graph500", "--scale", "10", "--sources", "6", "--device", "cpu"]

AS_TWO_HOSTS = os.environ | {"MPIR_CVAR_ODD_EVEN_CLIQUES": "1"}
"""For MPICH: ranks of even and of odd numbers share no memory."""

pytestmark = pytest.mark.skipif(not MPIRUN.exists(), reason="pip install mpi4py mpich")


def ranks(count: int, *arguments) -> list[str]:
    return ["-n", str(count), sys.executable, "-m", "hetero_bfs", *map(str, arguments)]


def mpirun(*arguments, **options) -> subprocess.CompletedProcess:
    return subprocess.run(
        [MPIRUN, *arguments], capture_output=True, text=True, timeout=200, check=False, **options
    )


def figures(path: Path):
    report = json.loads(path.read_text())
    return report, [(root["root"], root["nedge"], root["reached"]) for root in report["roots"]]


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The searches of one process."""
    path = tmp_path_factory.mktemp("alone") / "report.json"
    assert run(*SMALL, "--json", path) == 0
    return figures(path)[1]


@pytest.mark.parametrize("count", [1, 3])
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


def test_hosts_that_share_no_memory(alone, tmp_path):
    path = tmp_path / "report.json"
    for kernel in ("bfs", "sssp"):
        options = [*SMALL, "--kernel", kernel, "--json", path]
        done = mpirun(*ranks(2, *options), env=os.environ | {"MPIR_CVAR_NOLOCAL": "1"})
        assert done.returncode == 0, done.stderr
        report, found = figures(path)
        assert (report["kernel"], report["valid"], report["num_mpi_processes"]) == (kernel, True, 2)
        assert found == alone or kernel == "sssp"
    assert done.stdout.count("sssp harmonic_mean_TEPS:") == 1


def test_more_words_than_fit_in_boxes(tmp_path):
    path = tmp_path / "report.json"
    options = ["--device", "cpu", "--sources", "1", "--selector", "fixed:TC", "--json", path]
    done = mpirun(*ranks(4, "graph500", "--scale", "14", *options), env=AS_TWO_HOSTS)
    assert done.returncode == 0, done.stderr
    assert figures(path)[0]["valid"]


@pytest.mark.skipif(shutil.which("taskset") is None, reason="no taskset")
def test_ranks_that_share_a_core_sleep_while_they_wait(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from hetero_bfs.ranks.mpi import world\n"
        "ranks = world()\n"
        "assert ranks._naps\n"
        "assert ranks.collect(ranks.rank) == [0, 1, 2]\n"
    )
    done = subprocess.run(
        ["taskset", "-c", str(min(core_numbers())), MPIRUN, "-n", "3", sys.executable, script],
        capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not list_devices(), reason=NO_RUNTIME)
def test_ranks_search_on_devices_of_their_own(alone, tmp_path):
    path = tmp_path / "report.json"
    options = [*SMALL[:-2], "--device", "all", "--selector", "fixed:TC,BG", "--json", path]
    poses_as_two = os.environ | {"POCL_DEVICES": "pthread pthread"}
    done = mpirun(*ranks(2, *options), env=poses_as_two)
    assert done.returncode == 0, done.stderr
    report, found = figures(path)
    assert found == alone
    devices = report["rank_devices"]
    assert sum(devices.values()) == 2
    if any("pthread" in name for name in devices):
        assert [name[:2] for name in devices] == ["0:", "1:"], "each rank has a device of its own"


ONE_BY_ONE = """
import json, sys
from hetero_bfs.cli.main import main
statuses = [main(arguments) for arguments in json.loads(sys.argv[1])]
assert statuses == [int(sys.argv[2])] * len(statuses), statuses
"""


def by_two_ranks(commands, status: int, folder: Path):
    """Run commands one by one, since ranks take long to start."""
    words = json.dumps([[str(word) for word in command] for command in commands])
    done = mpirun("-n", "2", sys.executable, "-c", ONE_BY_ONE, words, str(status), cwd=folder)
    assert done.returncode == 0, done.stderr
    return done


def test_graph_files_with_duplicates(tmp_path):
    """A converted file remembers them."""
    graph, converted = tmp_path / "graph.el", tmp_path / "graph.hbg"
    graph.write_text("0 1\n1 0\n1 2\n2 2\n2 3\n3 0\n7 8\n")
    assert run("convert", graph, converted) == 0
    paths = {graph: tmp_path / "1.json", converted: tmp_path / "2.json"}
    by_two_ranks(
        [["graph500", "--graph", file, "--device", "cpu", "--json", path]
         for file, path in paths.items()], 0, tmp_path,
    )  # fmt: skip
    for path in paths.values():
        assert {nedge for _, nedge, _ in figures(path)[1]} == {1, 5}


def test_other_commands_find_what_one_process_finds(tmp_path):
    ends = np.random.default_rng(4).integers(0, 300, (700, 2))
    graph = tmp_path / "graph.el"
    graph.write_text("".join(f"{u} {v} {u % 9 + 1}\n" for u, v in ends.tolist()))
    mask = tmp_path / "mask.txt"
    mask.write_text("".join(f"{v}\n" for v in range(0, 300, 7) if v not in ends[0]))
    limits = ["--mask", mask, "--depth-limit", 4, "--target", ends[5, 1]]
    sources = ["--source", ends[0, 0], "--source", ends[0, 1]]
    commands = {
        "bfs": ["bfs", graph, "--directed", *sources, *limits],
        "sssp": ["sssp", graph, "--directed", "--source", ends[0, 0]],
        "components": ["components", graph, "--directed"],
        "pagerank": ["pagerank", graph, "--tol", "1e-10"],
        "weighted": ["pagerank", graph, "--tol", "1e-10", "--weighted", "--directed"],
    }
    kernels = {
        kernel: ["graph500", "--graph", graph, "--directed", "--sources", "12", "--device", "cpu",
                 "--kernel", kernel]
        for kernel in ("bfs", "sssp")
    }  # fmt: skip
    outs = {name: "--levels" if name == "bfs" else "--out" for name in commands}
    for name, command in commands.items():
        assert run(*command, "--device", "cpu", outs[name], tmp_path / f"{name}-alone.npy") == 0
    for kernel, command in kernels.items():
        assert run(*command, "--json", tmp_path / f"{kernel}-alone.json") == 0
    together = [[*command, outs[name], f"{name}.npy"] for name, command in commands.items()]
    together += [[*command, "--json", f"{kernel}.json"] for kernel, command in kernels.items()]
    done = by_two_ranks(together, 0, tmp_path)
    assert done.stdout.count("device none") == done.stdout.count(", valid") == len(commands)
    for name in commands:
        found, expected = (np.load(tmp_path / f"{name}{end}.npy") for end in ("", "-alone"))
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, atol=1e-9 * (expected.dtype == np.float64))
    for kernel in kernels:
        found, expected = (figures(tmp_path / f"{kernel}{end}.json") for end in ("", "-alone"))
        assert found[1] == expected[1]


REFUSED = {
    "absent.el: no such file": ["graph500", "--graph", "absent.el"],
    "a smaller scale or more machines": ["graph500", "--scale", "31"],
    "only breadth-first search uses devices": [
        "graph500",
        "--kernel",
        "sssp",
        "--device",
        "0",
    ],
    "vertex 9": ["sssp", "weighted.el", "--source", "9"],
    "source 0 is masked": ["bfs", "plain.el", "--source", "0", "--mask", "mask.txt"],
    "absent.txt: no such file": ["bfs", "plain.el", "--source", "0", "--mask", "absent.txt"],
    "weights": ["sssp", "plain.el", "--source", "1"],
    "only two columns": ["pagerank", "plain.el", "--weighted"],
    "--order needs a single process": ["components", "plain.el", "--order", "given"],
    "a single process must run devices; start without mpirun; graph500, bfs, sssp": ["devices"],
}
"""Arguments by a part of the message."""


def test_what_cannot_be_is_said_once(tmp_path):
    (tmp_path / "weighted.el").write_text("0 1 3\n1 2 1\n")
    (tmp_path / "plain.el").write_text("0 1\n1 2\n")
    (tmp_path / "mask.txt").write_text("0\n")
    done = by_two_ranks(REFUSED.values(), 1, tmp_path)
    said = [line for line in done.stderr.splitlines() if line.startswith("hetero-bfs: ")]
    assert len(said) == len(REFUSED), said
    for message, line in zip(REFUSED, said, strict=True):
        assert message in line


def test_ranks_with_other_options_are_refused():
    done = mpirun(*ranks(1, *SMALL), ":", *ranks(1, *SMALL, "--seed1", "9"))
    assert done.returncode == 1
    assert done.stderr.count("different options") == 1


OPEN_MPI = shutil.which("mpirun.openmpi")


@pytest.mark.skipif(OPEN_MPI is None, reason="Open MPI is not installed")
def test_open_mpi_over_the_library_of_mpich_is_refused():
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    done = subprocess.run(
        [OPEN_MPI, "--oversubscribe", *ranks(2, *SMALL)],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
        env=os.environ | root,
    )
    assert done.returncode == 1
    said = [line for line in done.stderr.splitlines() if line.startswith("hetero-bfs: ")]
    assert len(said) == 1
    assert "Open MPI's launcher started 2 processes, but mpi4py uses MPICH" in said[0]


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
    assert "launcher started 2 processes, but mpi4py uses MPICH" in done.stderr


def test_tasks_of_slurm_without_mpi_are_told_of(monkeypatch, capsys):
    monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "4")
    assert run("graph500", "--scale", "99") == 2
    assert run("sssp", "there-is-no-graph", "--source", "0") == 1
    assert "note: srun started 4 tasks without MPI" in capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_all_ranks_end_within_ten_seconds_of_one(number):
    whole = [*SMALL[:2], "23", *SMALL[3:]]  # takes far longer than the wait
    with subprocess.Popen(
        [MPIRUN, *ranks(2, *whole)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        both = _ranks_of(process.pid, 2)
        time.sleep(2)
        os.kill(both[0], number)
        process.communicate(timeout=10)
        assert process.returncode != 0
    assert not [rank for rank in both if Path(f"/proc/{rank}").exists()]


def _ranks_of(launcher: int, count: int) -> list[int]:
    """Return the process ids of a launcher's ranks, once there are so many."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        parents = {}
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                stat = (entry / "stat").read_text()
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1]), words
        found = [
            pid
            for pid, (parent, words) in parents.items()
            if b"hetero_bfs" in words
            and launcher in (parent, parents.get(parent, (0,))[0])
            and parent != launcher
        ]
        if len(found) == count:
            return found
        time.sleep(0.05)
    raise AssertionError("the ranks did not start")


def test_a_script_may_have_initialised_mpi():
    script = "from mpi4py import MPI; from hetero_bfs.ranks.mpi import world; world()"
    done = mpirun("-n", "2", sys.executable, "-c", script)
    assert (done.returncode, done.stderr) == (0, "")


PARTS = """
import numpy as np
from hetero_bfs.ranks.mpi import world
ranks = world()
whole = np.full(3, 9, np.uint32)
mine = whole[: 3 if ranks.rank == 0 else 0]
mine[:] = (1, 2, 3)[: mine.size]
ranks.gather_to_all(mine, whole, np.array([3, 0]), np.array([0, 3 if ranks.rank == 0 else 0]))
assert whole.tolist() == [1, 2, 3], whole
apart = np.zeros(3, np.uint32)
ranks.gather_to_all(whole[: mine.size].copy(), apart, np.array([3, 0]), np.array([0, 3]))
assert apart.tolist() == [1, 2, 3], apart
"""


def test_parts_are_gathered_in_place_though_one_is_empty():
    done = mpirun("-n", "2", sys.executable, "-c", PARTS)
    assert (done.returncode, done.stderr) == (0, "")


LONELY = """
from hetero_bfs.engine.rank_engine import RankEngine
import hetero_bfs as hb
from hetero_bfs.ranks.mpi import world

engine = RankEngine(hb.kronecker(8) if world().rank == 0 else None)
if world().rank == 1:
    raise ValueError("of one rank")
engine.bfs(0)
"""


def test_an_error_of_one_rank_of_a_script_ends_all():
    done = mpirun("-n", "2", sys.executable, "-c", LONELY)
    assert done.returncode != 0
    assert "ValueError: of one rank" in done.stderr


BOARDS = """
import numpy as np
from hetero_bfs.ranks.mpi import world

ranks = world()
assert (ranks.num_hosts, ranks.host_size) == (2, 2)
for counts in (np.array([3, 0, 5, 2]), np.array([30, 1, 0, 4])):
    board = ranks.board(counts, np.uint32)
    begin = board.places[ranks.rank]
    board.memory[begin : begin + counts[ranks.rank]] = 7 + ranks.rank
    board.complete()
    for rank, (begin, count) in enumerate(zip(board.places, counts)):
        assert (board.memory[begin : begin + count] == 7 + rank).all(), board.memory
    ranks.barrier()
"""


def test_each_host_has_the_parts_of_all_ranks_on_its_board():
    done = mpirun("-n", "4", sys.executable, "-c", BOARDS, env=AS_TWO_HOSTS)
    assert (done.returncode, done.stderr) == (0, "")
