"""How searches scale with ranks: by mpirun on this machine, and by simulated ranks.

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
from tables import markdown, provenance, run_script

from hetero_bfs.cli.argument_groups import positive
from hetero_bfs.errors import HeteroBFSError
from hetero_bfs.study.style import draw_spread
from hetero_bfs.support.environment import bound_cores
from hetero_bfs.support.files import replacing

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
    write_page(options.out, command)


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


def write_page(folder: Path, command: str) -> None:
    """Write scaling.md and scaling.svg of the rows in a folder."""
    runs = _read(folder / "scaling-runs.csv")
    simulated = _read(folder / "scaling-simulated.csv")
    commands = folder / "scaling-commands.csv"
    before = commands.read_text().splitlines() if commands.exists() else []
    lines = [line for line in provenance(None, command) if not line.startswith("- speed model")]
    about = " | ".join(line.removeprefix("- ") for line in lines[1:])
    kept = [*(line for line in before if not line.endswith(lines[-1].removeprefix("- "))), about]
    commands.write_text("\n".join(kept) + "\n")
    text = ["# Scaling with ranks", "", lines[0], *(f"- {line}" for line in kept)]
    if not runs.empty:
        text += ["", "## By mpirun on this machine", "", *_runs(runs)]
    if not simulated.empty:
        text += ["", "## Simulated ranks", "", *_simulated(simulated)]
    with replacing(folder / "scaling.md") as stream:
        stream.write("\n".join(text) + "\n")
    draw(runs, simulated, folder / "scaling.svg")


def _read(path: Path) -> pd.DataFrame:
    return pd.read_csv(path) if path.exists() else pd.DataFrame()


def _medians(runs: pd.DataFrame) -> pd.DataFrame:
    names = ["of_scale", "code", "scale", "ranks", "threads"]
    return runs.groupby(names, as_index=False, sort=False)[["teps", "median_seconds"]].median()


def _runs(runs: pd.DataFrame) -> list[str]:
    medians = _medians(runs)
    spread = runs.groupby(["of_scale", "code", "scale", "ranks", "threads"])["teps"]
    rows = []
    for scale, group in medians.groupby("of_scale"):
        here = group[group["scale"] == scale]
        at = here.set_index(["code", "ranks", "threads"])
        one = at.loc[("ours", 1, 1), "teps"]
        for key, row in at.iterrows():
            code, ranks, threads = key
            teps = spread.get_group((scale, code, scale, ranks, threads))
            beside = ("reference", max(ranks, threads), 1)
            rows.append(
                {
                    "scale": scale,
                    "code": code,
                    "ranks x threads": f"{ranks} x {threads}",
                    "harmonic mean GTEPS": f"{row['teps'] / 1e9:.3f}",
                    "least to most": f"{teps.min() / 1e9:.3f} to {teps.max() / 1e9:.3f}",
                    "median ms": f"{1e3 * row['median_seconds']:.3f}",
                    "to 1 x 1 of ours": f"{row['teps'] / one:.2f}",
                    "times the reference": f"{row['teps'] / at.loc[beside, 'teps']:.0f}"
                    if code == "ours" and beside in at.index
                    else "",
                }
            )
    return [
        "Harmonic mean TEPS and median seconds of 64 keys, medians over rounds in turn. Ours was "
        "validated, the reference not (SKIP_VALIDATION). The reference with as many cores is the "
        "base of the last column. It is graph500/graph500 at f89d643, its BFS as its Makefile "
        "builds it (-O3) with -fcommon, which newer GCCs need.",
        "",
        markdown(pd.DataFrame(rows)),
        "",
        "Weak scaling, one thread a rank. Efficiency is the first median time over the second one.",
        "",
        markdown(_weak(medians)),
    ]


def _weak(medians: pd.DataFrame) -> pd.DataFrame:
    rows = []
    ours = medians[medians["code"] == "ours"].set_index(["of_scale", "scale", "ranks", "threads"])
    for scale, own, ranks, threads in ours.index:
        base = scale, scale - int(math.log2(ranks)), 1, 1
        if ranks > 1 and own == scale and base in ours.index:
            before, after = (
                1e3 * ours.loc[k, "median_seconds"]
                for k in (base, (*base[:1], own, ranks, threads))
            )
            rows.append(
                {
                    "one rank": f"scale {base[1]}, {before:.3f} ms",
                    "several": f"{ranks} ranks, scale {scale}, {after:.3f} ms",
                    "efficiency": f"{before / after:.2f}",
                }
            )
    return pd.DataFrame(rows)


def _simulated(table: pd.DataFrame) -> list[str]:
    network = Network()
    rows = [
        {
            "series": row["series"],
            "scale": row["scale"],
            "ranks": row["ranks"],
            "slowest work ms": f"{1e3 * row['work_seconds']:.3f}",
            "mean work ms": f"{1e3 * row['mean_work_seconds']:.3f}",
            "exchange ms": f"{1e3 * row['exchange_seconds']:.3f}",
            "of it latency": f"{1e3 * row['latency_seconds']:.3f}",
            "predicted ms": f"{1e3 * row['median_seconds']:.3f}",
            "predicted GTEPS": f"{row['teps'] / 1e9:.2f}",
            "MiB of a rank": f"{row['rank_bytes'] / 2**20:.1f}",
            "of old ids": f"{row['replicated_bytes'] / 2**20:.1f}",
        }
        for _, row in table.iterrows()
    ]
    return [
        "Predicted, not run on a network. One rank is one thread on a host of its own. Own work is "
        "measured on one core while the other ranks wait; exchanges are counted, and predicted by "
        f"{network.bandwidth / 1e9:g} GB/s a host, {1e6 * network.latency:g} us a message, and "
        f"{1e6 * network.gap:g} us between messages of one sender (an assumption). A dense "
        "exchange is recursive doubling. The ranks share one core's caches in turn, so levels "
        "begin with colder caches than on hosts of their own. Python's part of the calls is not "
        "included.",
        "",
        markdown(pd.DataFrame(rows)),
    ]


def draw(runs: pd.DataFrame, simulated: pd.DataFrame, path: Path) -> None:
    from matplotlib.figure import Figure

    picture = Figure(figsize=(5.6, 10), layout="constrained")
    left, middle, right = picture.subplots(3, 1)
    if not runs.empty:
        medians = _medians(runs)
        medians = medians[medians["of_scale"] == medians["scale"]]
        styles = ("#000000", "o", "-"), ("#0072B2", "s", "--"), ("#D55E00", "^", "-")
        styles += ("#999999", "v", "--"), ("#999999", "D", "-")
        groups = medians.groupby(["code", "ranks", "threads"])
        for (key, group), (color, marker, line) in zip(groups, styles, strict=False):
            code, ranks, threads = key
            label = f"{code}, {ranks} x {threads}"
            left.plot(group["scale"], group["teps"], line, color=color, marker=marker, label=label)
            names = ["code", "ranks", "threads"]
            rounds = runs[(runs[names] == key).all(axis=1) & (runs["of_scale"] == runs["scale"])]
            ends = rounds.groupby("scale")["teps"].quantile([0.25, 0.75]).unstack()
            draw_spread(left, ends.index, ends[0.25], ends[0.75])
        left.set(
            yscale="log",
            xlabel="scale",
            ylabel="harmonic mean TEPS",
            title="by mpirun: medians, quartiles of the rounds",
        )
        left.set_xticks(sorted(medians["scale"].unique()))
        left.legend(fontsize=7, title="ranks x threads", title_fontsize=7)
    for series, color, marker in (("strong", "#000000", "o"), ("weak", "#D55E00", "^")):
        table = simulated[simulated["series"] == series] if not simulated.empty else simulated
        if table.empty:
            continue
        fixed = f"scale {table['scale'].iloc[0]}"
        if series == "weak":
            fixed = f"2^{table['scale'].iloc[0]} vertices a rank"
        right.plot(table["ranks"], table["teps"], color=color, marker=marker, label=fixed)
        for column, line, name in (
            ("work_seconds", "-", "work"),
            ("exchange_seconds", ":", "exchange"),
        ):
            milli = 1e3 * table[column].where(table[column] > 0)  # one rank exchanges nothing
            middle.plot(
                table["ranks"], milli, line, color=color, marker=marker, label=f"{fixed}: {name}"
            )
    middle.set(
        xscale="log", yscale="log", xlabel="simulated ranks", ylabel="ms", title="predicted time"
    )
    right.set(
        xscale="log", yscale="log", xlabel="simulated ranks", ylabel="TEPS", title="predicted TEPS"
    )
    for axes in (middle, right):
        axes.set_xscale("log", base=2)
        if not simulated.empty:
            axes.legend(fontsize=7)
    picture.savefig(path)


if __name__ == "__main__":
    run_script(main)
