"""Compare two checkouts of this project, measured in turn in one run: is the new one as fast?

    python benchmarks/compare.py OLD NEW [--graph FILE ...] [--only kronecker18/search,build]

Prints a row for each case: a graph and what is timed.

    search   searches by the CPU alone, `engine.bfs_back_to_back(keys)` with selector "auto"
    device   the same by an OpenCL device alone, `fixed:TG,BG`
    auto     the same by both with selector "auto"; only where the device is a GPU
    build    construction: from edges to an engine's graph
    sssp, pagerank, components, colour, many, levels, walks
             one run of an open engine, on the place that it chooses; many: 64 searches at once;
             levels, walks: the vertex programs of compare_programs.py

Each side is a separate process for the whole run. A round is one turn of each side; the old one is
first in every other round. A round's ratio is the median over keys of new over old seconds. The
table has the median of the rounds' ratios. Its interval lies between two of the ratios and contains
the true median with a probability of at least 95 %, for any distribution. The results of both sides
are compared before anything is timed. Turns are short and rounds many, so that other load on the
machine affects both sides alike. Long searches have a key or two in each round. A case stops after
a minute, but not before 10 rounds.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tables import markdown, provenance, run_script

from hetero_bfs.cli.argument_groups import positive
from hetero_bfs.devices.opencl.driver import choose_device, list_devices
from hetero_bfs.errors import HeteroBFSError
from hetero_bfs.support.files import check_writable, replacing

_GENERATED = ("kronecker18", "kronecker20", "kronecker22", "grid2048")
_BUILT = ("kronecker18", "kronecker20")
_ALGORITHMS = ("sssp", "pagerank", "components", "colour", "many", "levels", "walks")
_FOR_ALGORITHMS = ("kronecker18", "grid512")
_FOR_ALGORITHMS_ON_GPU = ("kronecker20", "kronecker22", "grid2048")
_ON_DEVICE = ("kronecker18",)
_ON_GPU = ("kronecker18", "kronecker20", "kronecker22", "kronecker24", "grid2048")
_DATA = Path(__file__).parents[1] / "tests" / "data"
_FILES = ("moscow-roads", "email-Enron")
_PAUSE_SECONDS = 0.02  # the other side's threads fall asleep in this time
_LONG_SECONDS = 0.1  # if all keys together take longer, they are distributed over the rounds
_CASE_SECONDS = 60.0
_FEWEST_ROUNDS = 10  # of a case that takes over a minute
_LEAST_FOR_INTERVAL = 6  # with fewer rounds no interval has 95 %


class Side:
    """A checkout, and the worker process that imports it (compare_worker.py)."""

    def __init__(self, checkout: Path) -> None:
        if not (checkout / "hetero_bfs" / "__init__.py").is_file():
            raise HeteroBFSError(f"{checkout} is no checkout: it has no hetero_bfs/__init__.py")
        self.checkout = checkout.resolve()
        own = self.checkout / ".venv" / "bin" / "python"
        script = Path(__file__).with_name("compare_worker.py")
        self._process = subprocess.Popen(
            [own if own.is_file() else sys.executable, script, self.checkout],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # an interrupt is for the parent, which ends the workers
            # "active" threads of the waiting side would take the other side's cores.
            env={k: v for k, v in os.environ.items() if k != "OMP_WAIT_POLICY"},
        )

    def __enter__(self) -> Side:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()  # it holds nothing that must be saved
        self._process.communicate()

    def ask(self, do: str, **request: Any) -> Any:
        """Let the worker do something, and wait for its answer.

        Raises
        ------
        HeteroBFSError
            The worker cannot do it, or has ended.
        """
        pipe_in, pipe_out = self._process.stdin, self._process.stdout
        assert pipe_in is not None
        assert pipe_out is not None
        with suppress(BrokenPipeError):  # reading the answer then fails, too
            print(json.dumps({"do": do} | request), file=pipe_in, flush=True)
        line = pipe_out.readline()
        if not line:
            status = self._process.wait()
            raise HeteroBFSError(f"{self.checkout}: its worker ended with status {status} at {do}")
        answer = json.loads(line)
        if "error" in answer:
            raise HeteroBFSError(f"{self.checkout}: {answer['error']}")
        return answer["value"]

    def versions(self) -> str:
        """Name commit, Python and Numba.

        Raises
        ------
        HeteroBFSError
            The worker imported another package than the checkout's.
        """
        versions = self.ask("versions")
        if versions["package"] != str(self.checkout):
            raise HeteroBFSError(
                f"{self.checkout}: its worker imported {versions['package']} instead"
            )
        command = ["git", "-C", self.checkout, "describe", "--always", "--dirty", "--abbrev=12"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        commit = done.stdout.strip() or "not under git"
        return f"{commit}, Python {versions['python']}, Numba {versions['numba']}"


@dataclass(frozen=True)
class Case:
    """A graph, by a generator's name or a file's path, and the work that is timed on it."""

    graph: str
    what: str

    @property
    def name(self) -> str:
        """Name of the case for --only and the table."""
        return f"{Path(self.graph).name.partition('.')[0]}/{self.what}"


@dataclass(frozen=True)
class Row:
    """The result of one case; `low` and `high` enclose `ratio`, None with too few rounds."""

    case: str
    old_seconds: float
    new_seconds: float
    ratio: float
    low: float | None
    high: float | None
    ratios: list[float]


def main() -> None:
    options = parse()
    cases = choose_cases(options)
    load = os.getloadavg()[0]
    if options.json:
        check_writable(options.json)
    with ExitStack() as stack:
        sides = [stack.enter_context(Side(path)) for path in (options.old, options.new)]
        versions = [side.versions() for side in sides]
        rows = [compare(case, sides, options.keys, options.rounds) for case in cases]
    print(describe(rows, versions, options, load))
    if options.json:
        with replacing(options.json) as stream:
            result = dict(zip(("old", "new"), versions, strict=True))
            json.dump(result | {"cases": [asdict(row) for row in rows]}, stream, indent=1)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", type=Path, metavar="OLD", help="folder of a checkout")
    parser.add_argument("new", type=Path, metavar="NEW", help="folder of another one")
    parser.add_argument(
        "--graph",
        dest="files",
        nargs="+",
        metavar="FILE",
        help=f"graphs beside the generated ones; by default {', '.join(_FILES)} in tests/data",
    )
    parser.add_argument("--only", metavar="WORDS", help="cases that have one of these words")
    parser.add_argument(
        "--device", choices=("auto", "cpu"), default="auto", help="or the CPU alone"
    )
    parser.add_argument("--keys", type=positive, default=8, help="search keys of each graph")
    parser.add_argument("--rounds", type=positive, default=60, help="at most; default: %(default)s")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows as JSON")
    return parser.parse_args()


def choose_cases(options: argparse.Namespace) -> list[Case]:
    files = options.files
    if files is None:
        files = [str(path) for name in _FILES for path in sorted(_DATA.glob(f"{name}.*"))[:1]]
    for file in files:
        if not Path(file).is_file():
            raise HeteroBFSError(f"--graph {file}: there is no such file")
    files = [str(Path(file).resolve()) for file in files]
    cases = [Case(graph, "search") for graph in (*_GENERATED, *files)]
    types = {device.type for device in list_devices() if device.problem is None}
    on_gpu = options.device == "auto" and "GPU" in types
    if options.device == "auto" and types:
        cases += [Case(graph, "device") for graph in (_ON_GPU if on_gpu else _ON_DEVICE)]
        cases += [Case(graph, "auto") for graph in _ON_GPU if on_gpu]
    cases += [Case(graph, "build") for graph in (*_BUILT, *files)]
    graphs = _FOR_ALGORITHMS_ON_GPU if on_gpu else _FOR_ALGORITHMS
    cases += [Case(graph, what) for what in _ALGORITHMS for graph in (*graphs, *files)]
    words = (options.only or "/").split(",")
    chosen = [case for case in cases if any(word and word in case.name for word in words)]
    if not chosen:
        known = ", ".join(case.name for case in cases)
        raise HeteroBFSError(f"--only {options.only}: no case has such a name; there are {known}")
    return chosen


def compare(case: Case, sides: Sequence[Side], num_keys: int, rounds: int) -> Row:
    """Prepare a case on both sides, compare their results, and time them in turn."""
    say(f"{case.name}: making it ready")
    for side in sides:
        for note in side.ask("prepare", graph=case.graph, what=case.what):
            say(f"{side.checkout}: {note}")
    keys = sides[0].ask("keys", count=num_keys)
    if not keys:
        raise HeteroBFSError(f"{case.name}: no vertex has an edge, so there is no key")
    if sides[0].ask("checksums", keys=keys) != sides[1].ask("checksums", keys=keys):
        raise HeteroBFSError(f"{case.name}: the two sides have different results")
    row = summarise(case.name, *take_turns(sides, keys, rounds))
    for side in sides:
        side.ask("finish")
    say(f"{case.name}: {row.ratio:.3f}")
    return row


def take_turns(sides: Sequence[Side], keys: Sequence[int], rounds: int) -> tuple[Any, Any]:
    """Return the seconds of old and new, float64 arrays of shape (rounds, times of a turn)."""
    seconds: list[list[list[float]]] = [[], []]
    end = time.perf_counter() + _CASE_SECONDS
    warming = [side.ask("turn", keys=keys) for side in sides]
    share = min(max(int(_LONG_SECONDS / np.median(warming)), 1), len(keys))
    for number in range(rounds):
        if number >= _FEWEST_ROUNDS and time.perf_counter() > end:
            break
        some = [keys[(number * share + i) % len(keys)] for i in range(share)]
        for which in (1, 0) if number % 2 else (0, 1):
            time.sleep(_PAUSE_SECONDS)
            seconds[which].append(sides[which].ask("turn", keys=some))
    return np.array(seconds[0]), np.array(seconds[1])


def summarise(name: str, old: Any, new: Any) -> Row:
    ratios = np.median(new / old, axis=1)
    low, high = median_interval(ratios.tolist()) or (None, None)
    medians = float(np.median(old)), float(np.median(new)), float(np.median(ratios))
    return Row(name, *medians, low, high, ratios.tolist())


def median_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """Return the two closest order statistics that enclose the median at 95 % or more, if any.

    The number of values below the true median is distributed like heads in throws of a coin.
    """
    n = len(values)
    if n < _LEAST_FOR_INTERVAL:
        return None
    outside, rank = 2 / 2**n, 0  # probability that the median is outside these ranks
    while outside + 2 * math.comb(n, rank + 1) / 2**n <= 0.05:
        rank += 1
        outside += 2 * math.comb(n, rank) / 2**n
    ordered = sorted(values)
    return ordered[rank], ordered[n - 1 - rank]


def describe(
    rows: Sequence[Row], versions: Sequence[str], options: argparse.Namespace, load: float
) -> str:
    device = any(row.case.endswith(("/device", "/auto")) for row in rows)
    info = choose_device() if device else None
    command = f"python benchmarks/compare.py OLD NEW --keys {options.keys}"
    command += f" --rounds {options.rounds} --device {options.device}"
    if options.files:
        command += f" --graph {' '.join(Path(file).name for file in options.files)}"
    if options.only:
        command += f" --only {options.only}"
    table = pd.DataFrame(
        {
            "case": row.case,
            "old ms": f"{1e3 * row.old_seconds:.3f}",
            "new ms": f"{1e3 * row.new_seconds:.3f}",
            "new / old": f"{row.ratio:.3f}",
            "95 %": "-" if row.low is None else f"{row.low:.3f} to {row.high:.3f}",
            "rounds": str(len(row.ratios)),
        }
        for row in rows
    )
    return "\n".join(
        [
            *provenance(info, command),
            f"- load average before the run {load:.2f}",
            *(f"- {side}: {text}" for side, text in zip(("old", "new"), versions, strict=True)),
            "",
            markdown(table),
        ]
    )


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    run_script(main)
