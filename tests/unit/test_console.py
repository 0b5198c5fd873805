"""Standard streams that fail and signals, as the program and in this process."""

from __future__ import annotations

import ctypes
import errno
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hetero_bfs.cli import terminal as console

SMALL = "graph500 --scale 8 --roots 4 --devices cpu --selector fixed:TC"
needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")


def shell(line: str, folder: Path, **options) -> subprocess.CompletedProcess[str]:
    """Run `line`, in which H is the program, buffering as programs do."""
    program = f"{sys.executable} -m hetero_bfs"
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
    return subprocess.run(
        ["bash", "-c", line.replace("H ", f"{program} ")],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(
    ("line", "status", "words"),
    [
        ("H SMALL -v --json j --trace t | true; exit ${PIPESTATUS[0]}", 1, ""),
        ("H SMALL --json j --trace t >/dev/full", 1, "standard output: No space left"),
        ("H SMALL --json j --trace t >&-", 0, ""),
        ("H SMALL --json - --trace t 2>/dev/full >j", 0, ""),
        ("H SMALL --json - --trace t 2>&- >j", 0, ""),
    ],
)
@needs_full
def test_what_is_measured_outlives_the_streams(tmp_path, line, status, words):
    done = shell(line.replace("SMALL", SMALL), tmp_path)
    assert done.returncode == status, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    json.loads((tmp_path / "j").read_text())
    assert (tmp_path / "t").exists()


@needs_full
def test_help_that_cannot_be_written(tmp_path):
    done = shell("H --help >/dev/full", tmp_path)
    assert done.returncode == 1
    assert done.stderr == "hetero-bfs: standard output: No space left on device\n"


def test_streams_are_left_as_they_were(monkeypatch):
    class Full(io.StringIO):
        def write(self, text):
            raise OSError(errno.ENOSPC, "No space left")

    closed = io.StringIO()
    closed.close()
    ascii_only = io.TextIOWrapper(io.BytesIO(), "ascii")
    for stream, failed in ((Full(), True), (closed, False), (None, False), (ascii_only, False)):
        monkeypatch.setattr(sys, "stdout", stream)
        open_files = os.listdir("/proc/self/fd") if Path("/proc/self/fd").exists() else []
        with console.outputs() as (out, _):
            print("5 \u00b5s")
            print("again", flush=True)
        assert sys.stdout is stream
        assert (out.failure is not None) == failed
        assert out.closed_before == (stream is None or stream is closed)
        if open_files:
            assert len(os.listdir("/proc/self/fd")) == len(open_files)
    assert ascii_only.errors == "strict"
    assert ascii_only.buffer.getvalue() == b"5 \\xb5s\nagain\n"


def test_json_needs_a_standard_output(tmp_path):
    (tmp_path / "g.txt").write_text("0 1\n")
    done = shell("H bfs g.txt --source 0 --json - >&-", tmp_path)
    assert done.returncode == 1
    assert "--json -: standard output is closed" in done.stderr


def test_characters_that_the_encoding_lacks_are_escaped(tmp_path):
    """Measured is measured: the last line must not fail."""
    code = "from hetero_bfs.cli import terminal as console\nwith console.outputs(): print('5 \\u00b5s')"
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True)
    assert done.stdout == b"5 \\xb5s\n", done.stderr


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_leaves_no_temporary_file(tmp_path, number, status):
    code = """
import sys, time
from pathlib import Path
from hetero_bfs.cli import main as cli
from hetero_bfs.support import files
def write(options):
    with files.replacing(Path("out")) as stream:
        stream.write("half")
        print("ready", file=sys.__stdout__, flush=True)
        time.sleep(60)
cli._devices = write
sys.exit(cli.main(["devices"]))
"""
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as program:
        assert program.stdout.readline() == b"ready\n"
        program.send_signal(number)
        assert program.wait(30) == status
        assert b"interrupted" in program.stderr.read()
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_in_a_callback_is_not_lost():
    """Where C calls Python back, as LLVM does for Numba, exceptions are dropped."""
    call = ctypes.CFUNCTYPE(None)(lambda: signal.raise_signal(signal.SIGINT))

    def fail():
        raise RuntimeError("no compiled object yet")

    def work(*steps):
        with console.interruptible():
            for step in steps:
                step()

    with pytest.raises(KeyboardInterrupt):
        work(call, lambda: time.sleep(60))
    with pytest.raises(KeyboardInterrupt) as stopped:
        work(call, fail)
    assert stopped.value.number == signal.SIGINT
    terminate = ctypes.CFUNCTYPE(None)(lambda: signal.raise_signal(signal.SIGTERM))
    with pytest.raises(KeyboardInterrupt) as stopped:
        work(terminate, fail)
    assert stopped.value.number == signal.SIGTERM
    with pytest.raises(RuntimeError):
        work(fail)
