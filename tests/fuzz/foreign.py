"""Matrices, arrays and tables of other packages, damaged, given to every entry that takes them.

Another process tries the cases, so that one that ends it (by a segmentation fault) is found.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from random import Random

from tests.fuzz.campaign import Attempt, Campaign
from tests.fuzz.foreign_calls import try_program, try_ranks
from tests.fuzz.foreign_doors import Unlike, try_matrix
from tests.fuzz.foreign_networkx import try_networkx
from tests.fuzz.foreign_tables import try_arrays, try_engine

_PATIENCE_SECONDS = 600  # for one case: the first ones compile

KINDS: dict[str, tuple[Callable[[Random], None], int]] = {
    "matrices": (try_matrix, 120),
    "arrays": (try_arrays, 70),
    "engines": (try_engine, 10),
    "programs": (try_program, 10),
    "ranks": (try_ranks, 10),
    "networkx": (try_networkx, 60),
}
"""What a kind tries, and cases of one input: engines are slower."""


def trouble(kind: str, name: str) -> str | None:
    """Try one case; return what went wrong, None if nothing did."""
    try:
        KINDS[kind][0](Random(name))
    except Unlike as error:
        return str(error)
    except Exception:
        return " ".join(traceback.format_exc().splitlines()[-3:])
    return None


class Worker:
    """A process that tries cases."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.fuzz.foreign"]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            cwd=Path(__file__).parents[2],
        )  # fmt: skip

    def ask(self, kind: str, name: str) -> str | None:
        """Return what `trouble` does, or how the process ended."""
        answer = ""
        with contextlib.suppress(BrokenPipeError):
            assert self.process.stdin is not None
            assert self.process.stdout is not None
            self.process.stdin.write(json.dumps([kind, name]) + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        if answer:
            wrong: str | None = json.loads(answer)
            return wrong
        return f"the process ended with status {self.process.wait()}"

    def close(self) -> None:
        """End the process."""
        with contextlib.suppress(BrokenPipeError):
            self.process.communicate()


_workers: list[Worker] = []


def _wrong(kind: str, names: list[str]) -> list[tuple[str, str]]:
    """Return the cases that went wrong."""
    found = []
    for name in names:
        if not _workers or _workers[0].process.poll() is not None:
            _workers[:] = [Worker()]
        wrong = _workers[0].ask(kind, name)
        if wrong is not None:
            found.append((name, wrong))
    return found


def attempt(kind: str, number: int, seed: int, folder: Path) -> Attempt:
    """Try some cases; those that fail are kept by their names."""
    names = [f"{seed} {kind} {number} {i}" for i in range(KINDS[kind][1])]
    path = folder / f"{kind}-{seed}-{number}.json"
    path.write_text(json.dumps(names))
    faulthandler.cancel_dump_traceback_later()  # the other process has its own limit for a case
    found = _wrong(kind, names)
    if not found:
        return Attempt(path, None, len(names))
    path.write_text(json.dumps([name for name, _ in found]))
    return Attempt(path, "; ".join(f"case {name!r}: {wrong}" for name, wrong in found), len(names))


def replay(kind: str, path: Path) -> list[str] | None:
    """Try kept cases."""
    try:
        names = json.loads(path.read_text())
    except ValueError:
        return None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return None
    return [wrong for _, wrong in _wrong(kind, names)]


def _serve() -> None:
    faulthandler.enable()
    for line in sys.stdin:
        kind, name = json.loads(line)
        faulthandler.dump_traceback_later(_PATIENCE_SECONDS, exit=True)
        answer = trouble(kind, name)
        faulthandler.cancel_dump_traceback_later()
        print(json.dumps(answer), flush=True)


CAMPAIGN = Campaign("foreign", KINDS, attempt, replay)

if __name__ == "__main__":
    _serve()
