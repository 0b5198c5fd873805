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

Each side is a separate process. A process keeps its speed: on a machine of 16 cores two processes
of one commit have differed by 1.7 times, in all rounds alike. So each case has several pairs of
processes, and the table has the ratio of each pair. A difference is one that all pairs show.

A round is one turn of each side; the old one is first in every other round. A round's ratio is the
median over keys of new over old seconds, a pair's ratio the median of its rounds, and the case's
the median of its pairs. The results of both sides are compared before anything is timed. Turns are
short and rounds many, so that other load on the machine affects both sides alike. Long searches
have a key or two in each round. A pair stops after 20 s, but not before 4 rounds.
"""

from __future__ import annotations

import argparse
import json
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

_GENERATED = ("kronecker18", "kronecker20", "kronecker22", "uniform18", "grid2048")
_BUILT = ("kronecker18", "kronecker20")
_ALGORITHMS = ("sssp", "pagerank", "components", "colour", "many", "levels", "walks")
_FOR_ALGORITHMS = ("kronecker18", "grid512")
_FOR_ALGORITHMS_ON_GPU = ("kronecker20", "kronecker22", "grid2048")
_ON_DEVICE = ("kronecker18",)
_ON_GPU = ("kronecker18", "kronecker20", "kronecker22", "kronecker24", "uniform18", "grid2048")
_DATA = Path(__file__).parents[1] / "tests" / "data"
_FILES = ("moscow-roads", "email-Enron")
_PAUSE_SECONDS = 0.02  # the other side's threads fall asleep in this time
_LONG_SECONDS = 0.1  # if all keys together take longer, they are distributed over the rounds
_PAIR_SECONDS = 20.0
_FEWEST_ROUNDS = 4  # of a pair that takes longer


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
    """The result of one case; `ratios` has the rounds of each pair of processes."""

    case: str
    old_seconds: float
    new_seconds: float
    ratio: float
    pair_ratios: list[float]
    ratios: list[list[float]]


def main() -> None:
    options = parse()
    cases = choose_cases(options)
    load = os.getloadavg()[0]
    if options.json:
        check_writable(options.json)
    versions = []
    for path in (options.old, options.new):
        with Side(path) as side:
            versions.append(side.versions())
    rows = [compare(case, options) for case in cases]
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
    parser.add_argument("--pairs", type=positive, default=3, help="of processes; default: 3")
    parser.add_argument(
        "--rounds", type=positive, default=20, help="of a pair, at most; default: %(default)s"
    )
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


def compare(case: Case, options: argparse.Namespace) -> Row:
    seconds = []
    for number in range(options.pairs):
        say(f"{case.name}: pair {number + 1} of {options.pairs}")
        with ExitStack() as stack:
            sides = [stack.enter_context(Side(path)) for path in (options.old, options.new)]
            keys = prepare(case, sides, options.keys)
            seconds.append(take_turns(sides, keys, options.rounds))
    row = summarise(case.name, seconds)
    say(f"{case.name}: {row.ratio:.3f}")
    return row


def prepare(case: Case, sides: Sequence[Side], num_keys: int) -> list[int]:
    """Prepare a case on both sides, and compare their results; return the keys."""
    for side in sides:
        for note in side.ask("prepare", graph=case.graph, what=case.what):
            say(f"{side.checkout}: {note}")
    keys: list[int] = sides[0].ask("keys", count=num_keys)
    if not keys:
        raise HeteroBFSError(f"{case.name}: no vertex has an edge, so there is no key")
    if sides[0].ask("checksums", keys=keys) != sides[1].ask("checksums", keys=keys):
        raise HeteroBFSError(f"{case.name}: the two sides have different results")
    return keys


def take_turns(sides: Sequence[Side], keys: Sequence[int], rounds: int) -> tuple[Any, Any]:
    """Return the seconds of old and new, float64 arrays of shape (rounds, times of a turn)."""
    seconds: list[list[list[float]]] = [[], []]
    end = time.perf_counter() + _PAIR_SECONDS
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


def summarise(name: str, seconds: Sequence[tuple[Any, Any]]) -> Row:
    """Return the row of a case from the old and new seconds of its pairs; see `take_turns`."""
    ratios = [np.median(new / old, axis=1) for old, new in seconds]
    of_pairs = [float(np.median(pair)) for pair in ratios]
    old, new = (
        float(np.median(np.concatenate([each.ravel() for each in side])))
        for side in zip(*seconds, strict=True)
    )
    middle = float(np.median(of_pairs))
    return Row(name, old, new, middle, of_pairs, [pair.tolist() for pair in ratios])


def describe(
    rows: Sequence[Row], versions: Sequence[str], options: argparse.Namespace, load: float
) -> str:
    device = any(row.case.endswith(("/device", "/auto")) for row in rows)
    info = choose_device() if device else None
    command = f"python benchmarks/compare.py OLD NEW --keys {options.keys}"
    command += f" --pairs {options.pairs} --rounds {options.rounds} --device {options.device}"
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
            "of each pair": ", ".join(f"{ratio:.3f}" for ratio in sorted(row.pair_ratios)),
            "rounds": ", ".join(str(len(pair)) for pair in row.ratios),
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
