"""The end of a program while daemon threads use the package: its own exit status, every time."""

from __future__ import annotations

import subprocess
import sys

import pytest
from checkout import TOP
from endings import ENDS, KINDS

from hetero_bfs.devices.opencl.driver import list_devices

pytestmark = pytest.mark.skipif(not list_devices(), reason="no OpenCL device")

PROGRAM = TOP / "tests/support/endings.py"


def ends(kind: str, runs: int, threads: int = 1, end: str = "return") -> tuple[str, str]:
    """Return the line that counts exit statuses, and what the runs wrote before."""
    done = subprocess.run(
        [sys.executable, PROGRAM, kind, str(runs), str(threads), end],
        capture_output=True,
        text=True,
        timeout=390,
    )
    *said, last = done.stdout.splitlines()
    return last.removeprefix(f"{kind} {threads} {end} "), "\n".join([*said, done.stderr])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", ["bfs", "engine", "streamed"])
def test_daemon_threads_leave_the_status_alone(kind):
    assert ends(kind, 3) == ("{0: 3}", "")


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS)
def test_every_use_leaves_the_status_alone(kind):
    assert ends(kind, 3)[0] == "{0: 3}"


@pytest.mark.thorough
def test_several_daemon_threads():
    assert ends("engine", 5, threads=4) == ("{0: 5}", "")


ABORTS = """
import ctypes, sys, threading, time
from hetero_bfs.devices.opencl import driver
driver._sleep_instead_of_aborting()
terminate = ctypes.CDLL("libstdc++.so.6")._ZSt9terminatev
threading.Thread(target=terminate, daemon=True).start()
time.sleep(0.2)
sys.exit(3)
"""


def test_a_thread_that_would_abort_sleeps():
    done = subprocess.run(
        [sys.executable, "-c", ABORTS], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (3, "")


STATUS = {"exit 3": 3, "raise": 1}


@pytest.mark.parametrize(
    "end",
    [
        end if end == "exit 3" else pytest.param(end, marks=pytest.mark.thorough)
        for end in ENDS
        if end != "return"
    ],
)
def test_every_way_to_end(end):
    """The status is the program's own, output is written, a driver that hangs does not keep it."""
    counted, said = ends("engine", 1, end=end)
    assert counted == f"{{{STATUS.get(end, 0)}: 1}}"
    if end in ("search at exit", "pool", "not daemon", "spawn"):
        assert said.split("\n") == ["reached True", "reached True", ""]
    assert "terminate" not in said
    assert "ValueError" in said or end != "raise"
