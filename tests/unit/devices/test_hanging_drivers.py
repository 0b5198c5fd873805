"""Commands end by a signal while an OpenCL driver hangs and keeps Python's lock."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")

# The loader loads every driver as it is asked for platforms.
DRIVER = """
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((constructor)) static void hang(void)
{
    FILE *file = fopen(getenv("HANGS"), "w");
    fprintf(file, "%d\\n", getpid());
    fclose(file);
    for (;;) pause();
}
"""


@pytest.fixture(scope="module")
def vendors(tmp_path_factory) -> Path:
    """A folder that names a driver which hangs as it is loaded, as $OCL_ICD_VENDORS takes it."""
    folder = tmp_path_factory.mktemp("vendors")
    source, library = folder / "hangs.c", folder / "hangs.so"
    source.write_text(DRIVER)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    (folder / "hangs.icd").write_text(f"{library}\n")
    return folder


def interrupt(line: str, vendors: Path, folder: Path, number: signal.Signals) -> int:
    """Signal a command and its children once its driver hangs; return the command's status.

    Fails if the process in which the driver hangs stays behind.
    """
    hangs = folder / "hangs"
    with subprocess.Popen(
        [sys.executable, "-m", "hetero_bfs", *line.split()],
        cwd=folder,
        env={**os.environ, "OCL_ICD_VENDORS": str(vendors), "HANGS": str(hangs)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # it may be ignored here
    ) as process:
        try:
            wait_until(lambda: hangs.exists() and hangs.read_text().endswith("\n"), 100)
            os.killpg(process.pid, number)
            status = process.wait(30)
            wait_until(lambda: not is_alive(int(hangs.read_text())), 30)
            return status
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def wait_until(is_so: Callable[[], bool], seconds: float) -> None:
    """Wait; fail if it takes longer."""
    until = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.01)


def is_alive(pid: int) -> bool:
    """Tell whether a process exists and is more than an entry that nobody has collected."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_list_of_devices(vendors, tmp_path, number):
    """Nothing is to be cleaned up, so the system ends the command."""
    assert interrupt("devices --json found.json", vendors, tmp_path, number) == -number
    assert [path.name for path in tmp_path.iterdir()] == ["hangs"]


@pytest.mark.parametrize("more", ["", "--device 0"])
def test_a_search(vendors, tmp_path, more):
    (tmp_path / "graph.el").write_text("0 1\n")
    line = f"bfs graph.el --source 0 --json found.json {more}"
    assert interrupt(line, vendors, tmp_path, signal.SIGINT) == 130
    assert sorted(path.name for path in tmp_path.iterdir()) == ["graph.el", "hangs"]


def test_the_doctor(vendors, tmp_path):
    """It lists drivers in another process, which must not stay behind."""
    assert interrupt("doctor", vendors, tmp_path, signal.SIGINT) == 130


def test_the_doctor_that_is_killed(vendors, tmp_path, monkeypatch):
    """Then the time limit ends the other process."""
    hangs = tmp_path / "hangs"
    monkeypatch.setenv("OCL_ICD_VENDORS", str(vendors))
    monkeypatch.setenv("HANGS", str(hangs))
    code = "from hetero_bfs.doctor import trials\n"
    code += "from hetero_bfs.support import processes\n"
    code += "processes._GRACE_SECONDS = 0; processes.run_main(trials.load_drivers)"
    done = subprocess.run(
        [sys.executable, "-c", code, "0.2"], stdout=subprocess.DEVNULL, timeout=60
    )
    assert done.returncode == -signal.SIGALRM
