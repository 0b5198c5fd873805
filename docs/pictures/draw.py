"""Draw the documentation's pictures: `python docs/pictures/draw.py` writes the SVG files here.

`levels.svg` shows measured levels of one search (benchmarks/results, a study). `architecture.svg`
shows the layers of pyproject.toml's import contract, so it always agrees with the check. A layer
without a caption here is an error.
"""

from __future__ import annotations

import csv
import re
import tomllib
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

HERE = Path(__file__).parent
TOP = HERE.parents[1]
STUDY = TOP / "benchmarks/results/h200-16-cores/study"

LOOKS = {  # Okabe and Ito's palette; a marker and a line style each, for readers without colours
    "TC": ("#0072B2", "o", "-", "TC  top-down, CPU"),
    "TG": ("#009E73", "s", "-", "TG  top-down, GPU"),
    "BC": ("#E69F00", "o", "--", "BC  bottom-up, CPU"),
    "BG": ("#D55E00", "s", "--", "BG  bottom-up, GPU"),
    "BGC": ("#CC79A7", "D", ":", "BGC  bottom-up, GPU, local memory"),
}

CAPTIONS = {
    "__main__": "where the program starts",
    "cli": "arguments, commands, streams and signals",
    "doctor": "what a machine has for searches, and what it lacks",
    "study": "tables, figures and the page of a study",
    "training": "measures a machine, fits its speed model; oracle and regret",
    "graph500": "the benchmark's protocol, statistics and report",
    "ranks": "MPI: communicators, partition, construction, exchange",
    "csgraph": "SciPy's functions on matrices",
    "networkx_backend": "NetworkX's functions on converted graphs",
    "programs": "vertex programs, translated to Numba and OpenCL C",
    "engine": "Engine, RankEngine, functions for a single call",
    "options": "settings of an engine",
    "algorithms": "a folder for each: lists, host, device, kernels, result, check",
    "timeline": "timelines of traces: Trace Event Format, SVG, HTML",
    "scheduling": "strategies, schema, selectors, policy, speed model, objective",
    "devices": "CPU thread pool; OpenCL driver, tuning, streaming",
    "energy": "meters, and joules of searches",
    "graph": "CSR, files, generators, relabelling, building",
    "support": "compiling, code cache, files, memory, checks, progress",
    "errors": "what a user can cause and mend",
    "models": "shipped speed models",
}


def draw_levels(graph: str = "kronecker20") -> Figure:
    """Seconds of every strategy at each level of one search, and the fastest schedule."""
    seconds, edges = _read_levels(graph)
    schedule = _read_schedule(graph)
    levels = sorted(edges)
    figure, (top, bottom) = plt.subplots(
        2, 1, figsize=(8.4, 5.2), sharex=True, height_ratios=(1, 3.4), layout="constrained"
    )
    top.bar(levels, [edges[level] for level in levels], color="#999999", width=0.5)
    top.set_yscale("log")
    top.set_ylabel("edges of\nthe frontier")
    top.set_title("One search of Kronecker 20, level by level (NVIDIA H200, 16 Xeon cores)")
    for name, (colour, marker, line, label) in LOOKS.items():
        times = [seconds[name, level] * 1e6 for level in levels]
        bottom.plot(levels, times, line, marker=marker, color=colour, label=label, ms=5, lw=1.4)
    chosen = [seconds[schedule[level], level] * 1e6 for level in levels]
    bottom.plot(
        levels, chosen, color="black", lw=9, alpha=0.16, solid_capstyle="round",
        label="fastest schedule, migrations counted in",
    )  # fmt: skip
    for level, time in zip(levels, chosen, strict=True):
        clear_below = time <= 1.01 * min(seconds[name, level] * 1e6 for name in LOOKS)
        bottom.annotate(
            schedule[level], (level, time), xytext=(0, -17 if clear_below else 9),
            textcoords="offset points", ha="center", fontsize=9, weight="bold",
        )  # fmt: skip
    bottom.set_yscale("log")
    bottom.set_ylim(bottom=min(chosen) * 0.12)
    bottom.set_ylabel("microseconds")
    bottom.set_xlabel("level")
    bottom.set_xticks(levels)
    bottom.legend(fontsize=8, frameon=False, loc="upper right")
    _clean(top)
    _clean(bottom)
    return figure


def _read_levels(graph: str) -> tuple[dict[tuple[str, int], float], dict[int, float]]:
    seconds, edges = {}, {}
    for row in _rows_of_first_key("levels.csv", graph):
        seconds[row["strategy"], int(row["level"])] = float(row["seconds"])
        edges[int(row["level"])] = float(row["frontier_edges"])
    return seconds, edges


def _read_schedule(graph: str) -> dict[int, str]:
    rows = _rows_of_first_key("schedule.csv", graph)
    return {int(row["level"]): row["oracle_strategy"] for row in rows}


def _rows_of_first_key(name: str, graph: str) -> list[dict[str, str]]:
    with (STUDY / name).open(newline="") as handle:
        rows = [row for row in csv.DictReader(handle) if row["graph"] == graph]
    return [row for row in rows if row["key"] == rows[0]["key"]]


def _clean(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#dddddd", lw=0.6)
    axes.set_axisbelow(True)


def draw_architecture() -> Figure:
    """Packages as layers, from the command line down; imports go down only."""
    layers = _layers()
    figure, axes = plt.subplots(figsize=(8.4, 0.62 * len(layers) + 0.5), layout="constrained")
    for row, names in enumerate(reversed(layers)):
        width = 10.0 / len(names)
        for place, name in enumerate(names):
            _box(axes, place * width, row, width, name)
    axes.annotate(
        "", (10.35, 0), xytext=(10.35, len(layers) - 0.2),
        arrowprops={"arrowstyle": "-|>", "color": "#555555", "lw": 1.6},
    )  # fmt: skip
    axes.text(10.5, len(layers) / 2, "imports", rotation=270, va="center", color="#555555")
    axes.set_xlim(-0.1, 11)
    axes.set_ylim(-0.1, len(layers))
    axes.axis("off")
    return figure


def _layers() -> list[list[str]]:
    with (TOP / "pyproject.toml").open("rb") as handle:
        contracts = tomllib.load(handle)["tool"]["importlinter"]["contracts"]
    lines = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    layers = [[name.strip(" ()") for name in re.split(r"[|:]", line)] for line in lines]
    unknown = sorted({name for names in layers for name in names} - set(CAPTIONS))
    if unknown:
        raise SystemExit(f"draw.py has no caption for the layers {', '.join(unknown)}; add them")
    return layers


def _box(axes: Axes, left: float, bottom: float, width: float, name: str) -> None:
    shape = FancyBboxPatch(
        (left + 0.05, bottom + 0.08), width - 0.1, 0.8,
        boxstyle="round,pad=0,rounding_size=0.08", facecolor="#eaf2f8", edgecolor="#0072B2",
    )  # fmt: skip
    axes.add_patch(shape)
    narrow = width < 10
    middle = bottom + 0.48
    if narrow:
        axes.text(left + 0.2, middle + 0.15, name, va="center", weight="bold", fontsize=9.5)
        axes.text(left + 0.2, middle - 0.18, CAPTIONS[name], va="center", fontsize=7.5)
    else:
        axes.text(left + 0.2, middle, name, va="center", weight="bold", fontsize=9.5)
        axes.text(left + 2.0, middle, CAPTIONS[name], va="center", fontsize=8.5)


def main() -> None:
    """Write every picture beside this script."""
    mpl.rcParams["svg.hashsalt"] = "hetero_bfs"  # the same file from the same data
    for name, figure in (("levels", draw_levels()), ("architecture", draw_architecture())):
        figure.savefig(HERE / f"{name}.svg", metadata={"Date": None})
        plt.close(figure)


if __name__ == "__main__":
    main()
