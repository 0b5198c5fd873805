"""How searches scale with ranks: by mpirun on this machine, by simulated ranks, and on paper.

    python benchmarks/scaling.py --scales 16 18 20 --ranks 1 2 --rounds 3 --out FOLDER
    python benchmarks/scaling.py --simulate 20 --per-rank 14 --out FOLDER

The first runs `hetero-bfs graph500` with 64 keys as one process with 1 and 2 threads and as ranks
of one thread, in turn, in an order that rotates from round to round. With `--reference PROGRAM` the
BFS of the Graph500 reference code, built elsewhere with the same MPI, takes turns with them. Weak
scaling compares P ranks with one thread that searches a P-th of the vertices.

The second searches by 1 to 64 simulated ranks, at a fixed scale and at a fixed number of vertices
per rank (2^14), and predicts the exchanges (scaling_model.py).

Both write their rows to `scaling-runs.csv` or `scaling-simulated.csv`, replacing rows of the same
scales, and then scaling.md and scaling.svg of all rows. scaling-commands.csv keeps the commands.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from scaling_model import Network, simulate
from scaling_tables import write
from tables import run_script

from hetero_bfs.cli.argument_groups import positive
from hetero_bfs.errors import HeteroBFSError
from hetero_bfs.support.environment import bound_cores

Row = dict[str, Any]

_RUN_SECONDS = 120  # an mpirun that hangs is ended
_SIMULATED_RANKS = (1, 2, 4, 8, 16, 32, 64)


@dataclass(frozen=True)
class Contestant:
    """A way to run Graph500's searches: "ours" or "reference"."""

    code: str
    ranks: int
    threads: int
    scale: int


def main() -> None:
    options = parse()
    options.out.mkdir(parents=True, exist_ok=True)
    for scale in options.scales:
        measure(scale, options)
    for series, scales in simulated_series(options).items():
        rows = []
        for ranks, scale in scales:
            rows.append(
                {"series": series} | simulate(scale, ranks, options.keys, options.rounds, Network())
            )
            print(series, scale, ranks, f"{rows[-1]['teps']:.4g} TEPS", file=sys.stderr)
        keep(options.out / "scaling-simulated.csv", rows, ["series"])
    command = "python " + " ".join(
        Path(part).name if part == options.reference else part for part in sys.argv
    )
    write(options.out, command)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scales", type=int, nargs="*", default=[], help="to run by mpirun")
    parser.add_argument("--ranks", type=positive, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=positive, default=3, help="default 3")
    parser.add_argument("--reference", metavar="PROGRAM", help="graph500_reference_bfs")
    parser.add_argument("--simulate", type=int, metavar="SCALE", help="by 1 to 64 simulated ranks")
    parser.add_argument("--per-rank", type=int, metavar="N", help="simulate 2^N vertices per rank")
    parser.add_argument("--keys", type=positive, default=8, help="of simulated searches, default 8")
    parser.add_argument("--out", type=Path, metavar="FOLDER", required=True)
    return parser.parse_args()


def simulated_series(options: argparse.Namespace) -> dict[str, list[tuple[int, int]]]:
    series = {}
    if options.simulate is not None:
        series["strong"] = [(ranks, options.simulate) for ranks in _SIMULATED_RANKS]
    if options.per_rank is not None:
        series["weak"] = [(r, options.per_rank + int(math.log2(r))) for r in _SIMULATED_RANKS]
    return series


def measure(scale: int, options: argparse.Namespace) -> None:
    """Run all contestants of a scale in turn; keep the rows after every round."""
    several = [ranks for ranks in options.ranks if ranks > 1]
    contestants = [Contestant("ours", 1, n, scale) for n in options.ranks if n <= bound_cores()]
    contestants += [Contestant("ours", ranks, 1, scale) for ranks in several]
    contestants += [Contestant("ours", 1, 1, scale - int(math.log2(r))) for r in several]
    if options.reference:
        contestants += [Contestant("reference", ranks, 1, scale) for ranks in options.ranks]
    rows: list[Row] = []
    for number in range(options.rounds):
        turn = number % len(contestants)
        for one in contestants[turn:] + contestants[:turn]:
            teps, seconds = run(one, options.reference)
            rows.append(
                {
                    "of_scale": scale,
                    "code": one.code,
                    "scale": one.scale,
                    "ranks": one.ranks,
                    "threads": one.threads,
                    "round": number,
                    "teps": teps,
                    "median_seconds": seconds,
                }
            )
            print(one, f"{teps:.4g} TEPS", file=sys.stderr)
        keep(options.out / "scaling-runs.csv", rows, ["of_scale"])


def run(one: Contestant, reference: str | None) -> tuple[float, float]:
    """Return the harmonic mean TEPS and the median seconds of one run with 64 keys."""
    launcher = ["mpirun", "-n", str(one.ranks)] if one.ranks > 1 or one.code != "ours" else []
    if one.code == "reference":
        assert reference is not None
        program = shutil.which(reference) or reference
        text = output([*launcher, program, str(one.scale)])
        return figure(text, "harmonic_mean_TEPS"), figure(text, "median_time")
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        arguments = f"--scale {one.scale} --device cpu --threads {one.threads} --json {report}"
        output([*launcher, "hetero-bfs", "graph500", *arguments.split()])
        bfs = json.loads(report.read_text())["bfs"]
    return bfs["harmonic_mean_teps"], bfs["median_time_seconds"]


def output(command: list[str]) -> str:
    """Run a command; end it with all its processes if it takes too long."""
    child = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | {"SKIP_VALIDATION": "1"},  # of the reference; ours validates
        start_new_session=True,
    )
    try:
        text, _ = child.communicate(timeout=_RUN_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        raise HeteroBFSError(f"{command}: no end after {_RUN_SECONDS} s") from None
    if child.returncode:
        raise HeteroBFSError(f"{command}: status {child.returncode}")
    return text


def figure(text: str, name: str) -> float:
    found = re.search(rf"{name}:\W*([\d.e+-]+)", text)
    if found is None:
        raise HeteroBFSError(f"the reference printed no {name}")
    return float(found[1])


def keep(path: Path, rows: list[Row], columns: list[str]) -> None:
    """Write rows to a CSV file; they replace those that have the same values in some columns."""
    table = pd.DataFrame(rows)
    if path.exists():
        before = pd.read_csv(path)
        same = before[columns].apply(tuple, axis=1).isin(table[columns].apply(tuple, axis=1))
        table = pd.concat([before[~same], table])
    table.to_csv(path, index=False, float_format="%.6g")


if __name__ == "__main__":
    run_script(main)
