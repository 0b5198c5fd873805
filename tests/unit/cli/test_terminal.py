"""Standard streams that fail and signals, as the program and in this process."""

from __future__ import annotations

import errno
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from hetero_bfs.cli import terminal

SMALL = "graph500 --scale 8 --sources 4 --device cpu --selector fixed:TC"
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
        with terminal.outputs() as (out, _):
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
    code = "from hetero_bfs.cli import terminal\nwith terminal.outputs(): print('5 \\u00b5s')"
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True)
    assert done.stdout == b"5 \\xb5s\n", done.stderr


ENDING = [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
COMMAND = """
import sys
from pathlib import Path
from hetero_bfs.cli import commands
from hetero_bfs.support import files
def work(options):
    print("waiting in a buffer", flush=False)
    with files.replacing(Path("out")) as stream:
        stream.write("half")
        ready = lambda: print("ready", file=sys.__stderr__, flush=True)
        WORK
commands.devices = work
from hetero_bfs.__main__ import main
sys.exit(main(["devices"]))
"""


def end(folder: Path, work: str, number: signal.Signals) -> tuple[int, str, str]:
    """Have a command do `work`, send it a signal once it calls ready(); return what came of it."""
    with subprocess.Popen(
        [sys.executable, "-c", COMMAND.replace("WORK", work)],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stderr.readline() == "ready\n"
        program.send_signal(number)
        out, err = program.communicate(timeout=60)
        return program.returncode, out, err


@pytest.mark.parametrize(("number", "status"), ENDING)
def test_a_signal_leaves_no_temporary_file(tmp_path, number, status):
    ended = end(tmp_path, "ready(); import time; time.sleep(60)", number)
    assert ended == (status, "waiting in a buffer\n", "\nhetero-bfs: interrupted\n")
    assert list(tmp_path.iterdir()) == []


FOREIGN = {
    "a callback": "import ctypes, time; f = ctypes.CFUNCTYPE(None)(lambda: (ready(),"
    " time.sleep(60))); f(); time.sleep(60)",
    "an import": "import importlib.abc, time, types; finder = types.SimpleNamespace("
    "find_spec=lambda *_: (ready(), time.sleep(60))); sys.meta_path.insert(0, finder);"
    " import no_such_module_anywhere",
    "compiled code": "import ctypes; ready()\n"  # again, as a signal ends a sleep
    "        while True: ctypes.CDLL(None).usleep(60_000_000)",
    "a destructor": "import time; X = type('X', (), {'__del__': lambda s: (ready(),"
    " time.sleep(60))}); X(); time.sleep(60)",
}


@pytest.mark.parametrize("place", FOREIGN)
def test_a_signal_in_foreign_code_ends_the_process(tmp_path, place):
    """Where exceptions are lost, or come only after the call."""
    status, _, err = end(tmp_path, FOREIGN[place], signal.SIGINT)
    assert (status, err) == (130, "\nhetero-bfs: interrupted\n")
    assert list(tmp_path.iterdir()) == []


def test_it_ends_also_if_cleaning_up_hangs(tmp_path):
    """Here a step that must not be cut short takes for ever."""
    hanging = "import time\n        with files.unbroken(): ready(); time.sleep(60)"
    status, _, _ = end(tmp_path, hanging, signal.SIGTERM)
    assert status == 143


def test_steps_that_belong_together_are_not_cut(tmp_path):
    steps = (
        "import time\n        with files.unbroken(): ready(); time.sleep(0.3);"
        " Path('first').touch(); Path('second').touch()\n        time.sleep(60)"
    )
    status, _, _ = end(tmp_path, steps, signal.SIGTERM)
    assert status == 143
    assert sorted(path.name for path in tmp_path.iterdir()) == ["first", "second"]


def test_signals_are_left_as_they_were():
    numbers = [number for number, _ in ENDING]
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup has it
    try:
        before = [signal.getsignal(number) for number in numbers]
        descriptors = os.listdir("/proc/self/fd") if Path("/proc/self/fd").exists() else []
        with terminal.interruptible():
            assert signal.getsignal(signal.SIGTERM) != before[1]
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
            signal.raise_signal(signal.SIGHUP)
            terminal.end_even_if_stuck()
        assert [signal.getsignal(number) for number in numbers] == before
        assert signal.set_wakeup_fd(-1) == -1
        if descriptors:
            assert len(os.listdir("/proc/self/fd")) == len(descriptors)
    finally:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


def test_other_threads_take_no_signals():
    before = signal.getsignal(signal.SIGTERM)
    found = []

    def work():
        with terminal.interruptible():
            found.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [before]


STUCK = """
import ctypes
from hetero_bfs.cli import terminal
with terminal.interruptible():
    terminal.end_even_if_stuck()
    print("ready", flush=True)
    ctypes.PyDLL(None).sleep(60)  # as a driver that hangs: Python's lock is kept
"""


def test_a_signal_ends_what_is_stuck_with_pythons_lock():
    command = [sys.executable, "-c", STUCK]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    started = [subprocess.Popen(command, **pipes) for _ in ENDING]
    for process, (number, _) in zip(started, ENDING, strict=True):
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
    for process, (number, _) in zip(started, ENDING, strict=True):
        _, said = process.communicate(timeout=50)
        assert (process.returncode, said) == (128 + number, "\nhetero-bfs: interrupted\n")


PROGRAM = """
import sys
from hetero_bfs.__main__ import main
print("ready", flush=True)
sys.exit(main(sys.argv[1:]))
"""


def test_signals_at_many_moments(tmp_path):
    """Each ends with its status and one line; HETERO_BFS_SIGNALS tries, from start to end."""
    tries = int(os.environ.get("HETERO_BFS_SIGNALS", "6"))
    command = [sys.executable, "-c", PROGRAM, *SMALL.split(), "--json", "j"]
    started = time.monotonic()
    subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
    duration = time.monotonic() - started
    (tmp_path / "j").unlink()
    for index in range(tries):
        number, status = ENDING[index % 3]
        with subprocess.Popen(
            command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as program:
            assert program.stdout.readline() == "ready\n"
            time.sleep(duration * index / tries)
            program.send_signal(number)
            _, err = program.communicate(timeout=60)
        assert "Traceback" not in err
        assert program.returncode in (status, -number, 0), (index, err)  # -number: not yet in main
        assert ("interrupted" in err) == (program.returncode == status)
        assert {path.name for path in tmp_path.iterdir()} <= {"j"}
