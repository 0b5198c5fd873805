"""Commands that are ended, or starved, at a random moment.

Each ends with an allowed status and without a traceback. No file is half written, none that was
there before is lost, and the same command then works in the same folder.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np

import hetero_bfs as hb
from hetero_bfs.support import private_cache
from hetero_bfs.support.files import _HOST
from tests.fuzz import failing_driver
from tests.fuzz.campaign import campaign_of_faults
from tests.fuzz.control_group import memory_group
from tests.fuzz.half_written import half_written

_COMMANDS = {
    "graph500": "graph500 --scale 8 --sources 4 --json report.json --trace levels.csv",
    "convert": "convert input.wel graph.hbg",
    "bfs": "bfs input.wel --source 0 --out parents.npy --json result.json",
    "sssp": "sssp input.wel --source 0 --out distances.npy --json result.json",
    "components": "components input.wel --out components.npy --json result.json",
    "pagerank": "pagerank input.wel --out ranks.npy --json result.json",
    "train": "train --budget 5 --out model",
    "study": "study page --scale 8 --keys 1 --rounds 1",
    "devices": "devices --json devices.json",
}
_SIGNALS = {
    "interrupt": signal.SIGINT, "terminate": signal.SIGTERM,
    "hangup": signal.SIGHUP, "kill": signal.SIGKILL,
}  # fmt: skip
KINDS = (*_SIGNALS, "disk", "memory", "group", "pipe", "cache", "driver", "twin")
_ALLOWED = {
    "disk": {0, 1}, "memory": {0, 1}, "group": {0, 1, -signal.SIGKILL}, "pipe": {0, 1},
    "cache": {0}, "twin": {0},
}  # fmt: skip
_OF_DRIVERS = {
    "error": {0, 1},
    "hang": {0, 1, 130, -signal.SIGINT},
    "abort": {0, 1, -signal.SIGABRT},
}
_TEMPORARY = ".hetero-bfs-*.tmp"
_PATIENCE_SECONDS = 200


@dataclass(frozen=True)
class Fault:
    """A command, the size of its trouble, and whether its results are there already.

    `size` is from 0 to 1: a moment in the command's time, a share of the bytes that it writes, or
    of the memory that it may take.
    """

    command: str
    size: float
    again: bool
    seed: int


class _Undisturbed(NamedTuple):
    """What a command does where nothing disturbs it: its seconds, and what a first run writes."""

    seconds: float
    folder: Path
    files: frozenset[Path]


class _Ended(NamedTuple):
    status: int
    error: str


@cache
def _place() -> tempfile.TemporaryDirectory[str]:
    """Return a folder for undisturbed runs, which goes with this process."""
    return tempfile.TemporaryDirectory(prefix="hostile-")


def _write_input(folder: Path) -> None:
    graph = hb.CSRGraph.from_edge_source(hb.KroneckerEdges(8, weighted=True))
    src = np.repeat(np.arange(graph.num_vertices), graph.degree())
    lines = zip(src.tolist(), graph.indices.tolist(), graph.weights.tolist(), strict=True)
    (folder / "input.wel").write_text("".join(f"{u} {v} {w}\n" for u, v, w in lines))


@cache
def _undisturbed(command: str) -> _Undisturbed:
    """Run a command twice: the first run compiles, the second one is timed."""
    folder = Path(_place().name) / command
    folder.mkdir()
    _write_input(folder)
    seconds, files = [], []
    for _ in range(2):
        start = time.monotonic()
        with _started(command, folder) as process:
            ended = _end_of(process)
        if ended.status != 0:
            raise RuntimeError(f"{command} does not work here: {ended.error}")
        seconds.append(time.monotonic() - start)
        files.append(frozenset(_results(folder)))
    return _Undisturbed(seconds[1], folder, files[0])


def _results(folder: Path) -> Iterator[Path]:
    """Yield the files that a command wrote, relative to the folder."""
    for path in folder.rglob("*"):
        if path.is_file() and path.name != "input.wel":
            yield path.relative_to(folder)


@contextmanager
def _started(
    command: str, folder: Path, memory: int | None = None, largest: int | None = None,
    caches: Path | None = None, driver: failing_driver.DriverFault | None = None,
    join: Callable[[], None] | None = None,
) -> Iterator[subprocess.Popen[str]]:  # fmt: skip
    """Start a command in a folder; at the end its process is gone.

    `memory` limits its address space, `largest` each of its files, in bytes. The process calls
    `join` at its beginning.
    """

    def limit() -> None:
        if join is not None:
            join()
        if memory is not None:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        if largest is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))

    top = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([top, *filter(None, sys.path)])}
    if caches is not None:
        environment["NUMBA_CACHE_DIR"] = str(caches)
    program = [sys.executable, "-m", "hetero_bfs"]
    if driver is not None:
        program = failing_driver.command(driver)
    process = subprocess.Popen(
        [*program, *_COMMANDS[command].split()],
        cwd=folder, env=environment, text=True, preexec_fn=limit,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _end_of(process: subprocess.Popen[str]) -> _Ended:
    _, error = process.communicate(timeout=_PATIENCE_SECONDS)
    return _Ended(process.returncode, error)


# What may happen


def _signalled(number: signal.Signals, fault: Fault, folder: Path) -> _Ended:
    seconds = _undisturbed(fault.command).seconds
    with _started(fault.command, folder) as process:
        while process.poll() is None and not _handles_signals(process.pid):
            time.sleep(0.001)
        time.sleep(fault.size * seconds)
        process.send_signal(number)
        return _end_of(process)


def _handles_signals(pid: int) -> bool:
    """Tell whether a process handles SIGTERM: Python itself does not, while it starts."""
    status = Path(f"/proc/{pid}/status").read_text()
    caught = int(status.split("SigCgt:")[1].split()[0], 16)
    return bool(caught >> (signal.SIGTERM - 1) & 1)


def _without_disk(fault: Fault, folder: Path) -> _Ended:
    """Leave room for a share of what the command writes; by a small file system, if we may."""
    known = _undisturbed(fault.command)
    written = sum((known.folder / path).stat().st_size for path in known.files)
    room = int(fault.size * 1.2 * written)
    if not os.path.ismount(folder):
        with _started(fault.command, folder, largest=room) as process:
            return _end_of(process)
    free = os.statvfs(folder)
    filler = folder / "filler"
    filler.write_bytes(bytes(max(free.f_bavail * free.f_frsize - room, 0)))
    try:
        with _started(fault.command, folder) as process:
            return _end_of(process)
    finally:
        filler.unlink()


def _without_memory(fault: Fault, folder: Path) -> _Ended:
    memory = int(2**28 * 2 ** (5 * fault.size))  # 0.25 to 8 GiB
    with _started(fault.command, folder, memory=memory) as process:
        return _end_of(process)


def _in_a_small_group(fault: Fault, folder: Path) -> _Ended:
    """Limit memory by a control group, whose processes the system ends; else as above."""
    memory = int(2**25 * 2 ** (5 * fault.size))  # 32 MiB to 1 GiB
    with memory_group(memory) as join:
        if join is None:
            return _without_memory(fault, folder)
        with _started(fault.command, folder, join=join) as process:
            return _end_of(process)


def _with_closed_pipe(fault: Fault, folder: Path) -> _Ended:
    with _started(fault.command, folder) as process:
        assert process.stdout is not None
        process.stdout.read(int(400 * fault.size))
        process.stdout.close()
        process.stdout = None
        return _end_of(process)


@contextmanager
def _copied_caches() -> Iterator[tuple[Path, list[Path]]]:
    """Copy the cache of compiled code; yield its folder, and its files, which are links."""
    kept = private_cache.folder()
    with tempfile.TemporaryDirectory() as copied:
        caches = Path(copied) / f"hetero_bfs-{os.geteuid()}"
        if kept is not None:
            shutil.copytree(kept, caches, copy_function=os.link)
        yield Path(copied), sorted(path for path in caches.rglob("*") if path.is_file())


def _with_damaged_caches(fault: Fault, folder: Path) -> _Ended:
    """Damage files of compiled code; leave a temporary file, as a process that was killed does."""
    chance = Random(fault.seed)
    if any(path.parent == Path() for path in _undisturbed(fault.command).files):
        (folder / f".hetero-bfs-{_HOST}-{chance.getrandbits(64):016x}.tmp").write_text("half")
    with _copied_caches() as (caches, compiled):
        for path in chance.sample(compiled, int(0.1 * fault.size * len(compiled))):
            content = bytearray(path.read_bytes())
            path.unlink()  # it is a link to the whole one
            damage = chance.choice(("cut", "flip", "other sources"))
            if damage == "cut":
                del content[chance.randrange(len(content) + 1) :]
            elif damage == "flip":
                content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
            else:  # or another version: the digest of a sound file is another
                content[:32] = chance.randbytes(32)
            path.write_bytes(content)
        with _started(fault.command, folder, caches=caches) as process:
            return _end_of(process)


def _beside_another(fault: Fault, folder: Path) -> _Ended:
    """Run a command twice at once; a part of the compiled code is missing, and both compile it."""
    chance = Random(fault.seed)
    with _copied_caches() as (caches, compiled):
        for path in chance.sample(compiled, int(0.1 * fault.size * len(compiled))):
            path.unlink()
        with (
            _started(fault.command, folder, caches=caches) as one,
            _started(fault.command, folder, caches=caches) as other,
        ):
            ended = [_end_of(one), _end_of(other)]
    return _Ended(max((end.status for end in ended), key=abs), "".join(end.error for end in ended))


def _driver_fault(fault: Fault) -> failing_driver.DriverFault:
    """Return how the driver fails under a command; the first calls of a process are most."""
    chance = Random(fault.seed)
    return failing_driver.draw_fault(chance, chance.choice(failing_driver.KINDS))


def _with_failing_driver(fault: Fault, folder: Path) -> _Ended:
    """Let the driver fail; a command that hangs is interrupted, as a user would."""
    fails = _driver_fault(fault)
    patience = 2 * _undisturbed(fault.command).seconds + 1
    with _started(fault.command, folder, driver=fails) as process:
        if fails.kind == "hang":
            with suppress(subprocess.TimeoutExpired):
                process.wait(patience)
            process.send_signal(signal.SIGINT)
        return _end_of(process)


def _disturbed(kind: str, fault: Fault, folder: Path) -> _Ended:
    if kind in _SIGNALS:
        return _signalled(_SIGNALS[kind], fault, folder)
    return {
        "disk": _without_disk, "memory": _without_memory, "group": _in_a_small_group,
        "pipe": _with_closed_pipe, "cache": _with_damaged_caches, "driver": _with_failing_driver,
        "twin": _beside_another,
    }[kind](fault, folder)  # fmt: skip


# What must be so


def _allowed(kind: str, fault: Fault) -> set[int]:
    if kind == "driver":
        return _OF_DRIVERS[_driver_fault(fault).kind]
    number = _SIGNALS.get(kind)
    # At its very end the program handles signals no more; a shell tells 128 + n for both.
    return _ALLOWED[kind] if number is None else {0, 128 + number, -number}


def _wrong_ending(kind: str, fault: Fault, ended: _Ended) -> str | None:
    allowed = _allowed(kind, fault)
    if ended.status not in allowed:
        return f"status {ended.status}: {ended.error[-2000:]}"
    for word in ("Traceback", "Exception ignored", "Fatal Python", "internal error"):
        if word in ended.error:
            return ended.error[-3000:]
    said = [line for line in ended.error.splitlines() if line.startswith("hetero-bfs: ")]
    if ended.status == 1 and not said and kind != "pipe":
        return f"status 1 without a reason: {ended.error[-2000:]}"
    return None


def _wrong_files(fault: Fault, folder: Path) -> str | None:
    found = set(_results(folder))
    for path in sorted(found):
        problem = None if path.match(_TEMPORARY) else half_written(folder / path)
        if problem is not None:
            return f"{path}: {problem}"
    lost = _undisturbed(fault.command).files - found
    return f"lost: {sorted(map(str, lost))}" if fault.again and lost else None


def _trouble_in(kind: str, fault: Fault, folder: Path) -> str | None:
    known = _undisturbed(fault.command)
    if fault.again:
        shutil.copytree(known.folder, folder, dirs_exist_ok=True)
    else:
        shutil.copy(known.folder / "input.wel", folder)
    ended = _disturbed(kind, fault, folder)
    wrong = _wrong_ending(kind, fault, ended) or _wrong_files(fault, folder)
    killed = ended.status in (-signal.SIGKILL, -signal.SIGABRT)
    if wrong is None and not killed and any(folder.rglob(_TEMPORARY)):
        wrong = "a temporary file is left"
    if wrong is not None:
        return wrong
    with _started(fault.command, folder) as process:
        after = _end_of(process)
    if after.status != 0:
        return f"the next run ends with {after.status}: {after.error[-2000:]}"
    if missing := known.files - set(_results(folder)):
        return f"the next run lacks {sorted(map(str, missing))}"
    left = any(folder.rglob(_TEMPORARY))
    return "the next run leaves a temporary file" if left else _wrong_files(fault, folder)


@contextmanager
def _small_file_system(wanted: bool) -> Iterator[Path]:
    """Make an empty folder; if wanted, a file system of its own, where this user may mount one."""
    with tempfile.TemporaryDirectory(prefix="hostile-") as name:
        mount = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", name]
        mounted = wanted and subprocess.run(mount, stderr=subprocess.DEVNULL).returncode == 0
        try:
            yield Path(name)
        finally:
            if mounted:
                subprocess.run(["umount", name], check=True)


def trouble(kind: str, fault: Fault) -> str | None:
    """Disturb a command, then run it again; return what went wrong, None if nothing did."""
    with _small_file_system(kind == "disk") as folder:
        try:
            return _trouble_in(kind, fault, folder)
        except subprocess.TimeoutExpired:
            return f"it runs for more than {_PATIENCE_SECONDS} s"


def _draw(chance: Random) -> Fault:
    command = chance.choice(list(_COMMANDS))
    return Fault(command, chance.random(), chance.random() < 0.5, chance.randrange(2**32))


CAMPAIGN = campaign_of_faults("commands", KINDS, Fault, _draw, trouble)
