"""Draw the documentation's pictures: `python docs/pictures/draw.py` writes the SVG files here.

`search.svg` is a search of a small graph. `levels.svg` and `migration.svg` show measured searches
(benchmarks/results). `ratios.svg` has predictions for the machines of stated speeds that
tests/support/selector_levels.py has. `partition.svg` shows what ranks send. `architecture.svg`
shows the layers of pyproject.toml's import contract, so it always agrees with the check. A layer
without a caption here is an error.
"""

from __future__ import annotations

import csv
import re
import sys
import textwrap
import tomllib
from itertools import groupby
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

import hetero_bfs as hb

HERE = Path(__file__).parent
TOP = HERE.parents[1]
TAILS = TOP / "benchmarks/results/h200-16-cores/tails-levels.csv"
STUDY = TOP / "benchmarks/results/h200-16-cores/study-kronecker20"

WIDTH = 5.6  # inches, so narrow that texts stay readable on a screen of 400 pixels

LOOKS = {  # Okabe and Ito's palette; a marker and a line style each, for readers without colours
    "TC": ("#0072B2", "o", "-", "TC  top-down, CPU"),
    "TG": ("#009E73", "s", "-", "TG  top-down, GPU"),
    "BC": ("#E69F00", "o", "--", "BC  bottom-up, CPU"),
    "BG": ("#D55E00", "s", "--", "BG  bottom-up, GPU"),
    "BGC": ("#CC79A7", "D", ":", "BGC  bottom-up, GPU, local memory"),
}

CAPTIONS = {
    "__main__": "where the program starts",
    "warm_up": "compiles everything beforehand, or while other code answers",
    "built": "version and commit",
    "_version": "written by setuptools-scm",
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
    "scheduling": "strategies, schema, selectors, policy, speed model",
    "devices": "CPU thread pool; OpenCL driver, tuning, streaming",
    "energy": "meters, and joules of searches",
    "graph": "CSR, files, generators, relabelling, building",
    "support": "compiling, code cache, files, memory, checks, progress",
    "errors": "what a user can cause and mend",
    "models": "shipped speed models",
}


TOP_DOWN, BOTTOM_UP = "#0072B2", "#D55E00"


def draw_search() -> Figure:
    """A search, a column for each level, with the edges that its direction looks at."""
    edges = hb.KroneckerEdges(8, edgefactor=3).materialise()
    graph = hb.CSRGraph.from_edge_source(edges)
    source = int((graph.degree() == 1).argmax())
    level = hb.bfs(graph, source).level.tolist()
    members = [
        [v for v, at in enumerate(level) if at == column] for column in range(max(level) + 1)
    ]
    at = {
        v: (column, 0.5 - (place + 0.5) / len(column_of))
        for column, column_of in enumerate(members)
        for place, v in enumerate(column_of)
    }
    figure, axes = plt.subplots(figsize=(WIDTH, 4.0), layout="constrained")
    for column, found in enumerate(members[1:], 1):
        frontier = set(members[column - 1])
        unvisited = [v for v, at_level in enumerate(level) if not 0 <= at_level < column]
        down = [(u, v) for u in frontier for v in _neighbours(graph, u)]
        up = [pair for v in unvisited for pair in _looked_at(graph, v, frontier)]
        name, colour = ("top-down", TOP_DOWN) if len(down) <= len(up) else ("bottom-up", BOTTOM_UP)
        used = {(v, u) for u, v in down} if name == "top-down" else set(up)
        lines = [(at[u], at[v]) for v, u in sorted(used) if v in set(found) and u in frontier]
        axes.add_collection(LineCollection(lines, colors=colour, linewidths=0.5, alpha=0.5))
        counts = f"{len(down)}\n{len(up)}"
        axes.text(column - 0.5, 0.6, name, ha="center", va="bottom", fontsize=9, weight="bold",
                  color=colour)  # fmt: skip
        axes.text(column - 0.5, -0.53, counts, ha="center", va="top", fontsize=9)
    for column, column_of in enumerate(members):
        axes.scatter(
            *zip(*(at[v] for v in column_of), strict=True), s=14, color="#333333", zorder=3
        )
        count = len(column_of)
        axes.text(column, 0.53, f"{count} {'vertices' if count > 1 else 'vertex'}", ha="center",
                  fontsize=8)  # fmt: skip
    axes.text(-0.6, -0.53, "top-down\nbottom-up", ha="center", va="top", fontsize=9)
    axes.text(-0.6, -0.5, "edges\nlooked at:", ha="center", va="bottom", fontsize=9)
    axes.set_xlim(-1.1, len(members) - 0.6)
    axes.set_ylim(-0.7, 0.7)
    axes.axis("off")
    return figure


def _neighbours(graph: hb.CSRGraph, v: int) -> list[int]:
    return list(graph.indices[graph.indptr[v] : graph.indptr[v + 1]].tolist())


def _looked_at(graph: hb.CSRGraph, v: int, frontier: set[int]) -> list[tuple[int, int]]:
    """Return the edges that a vertex looks at bottom-up: until one leads to the frontier."""
    pairs = []
    for u in _neighbours(graph, v):
        pairs.append((v, u))
        if u in frontier:
            break
    return pairs


def draw_migration() -> Figure:
    """A measured search: its core on the device, its tails on the CPU."""
    with TAILS.open(newline="") as handle:
        rows = list(csv.DictReader(handle))
    runs: list[tuple[str, str, float, float]] = []  # strategy, label, start and end
    clock = 0.0
    for strategy, of_run in groupby(rows, key=lambda row: row["strategy"]):
        levels = list(of_run)
        moving = float(levels[0]["migration us"])
        name = "conversion" if runs and strategy[1] == runs[-1][0][1:2] else "migration"
        if moving > 0.0:
            runs.append(("", name if runs else "start", clock, clock + moving))
        clock += moving
        seconds = sum(float(row["us"]) for row in levels)
        label = f"{strategy}, {len(levels)} levels" if len(levels) > 1 else strategy
        runs.append((strategy, label, clock, clock + seconds))
        clock += seconds
    whole = float(rows[0]["whole us"])
    runs.append(("", "launches, waits, completing parents", clock, whole))
    figure, axes = plt.subplots(figsize=(WIDTH, 2.6), layout="constrained")
    middle = {"G": 1.0, "C": 0.0}
    for strategy, label, start, end in runs:
        at = middle[strategy[1]] if strategy else 0.5
        colour = LOOKS[strategy][0] if strategy else "#cccccc"
        axes.fill_between([start, end], at - 0.3, at + 0.3, color=colour, lw=0.5, edgecolor="white")
        if end - start > 0.0075 * len(label) * whole:
            shade = "white" if strategy else "black"
            axes.text(
                (start + end) / 2, at, label, ha="center", va="center", fontsize=8, color=shade
            )
        elif strategy:
            above = strategy.endswith("G")
            text, y = (strategy, at + 0.36) if above else (label, at - 0.46)
            axes.text((start + end) / 2, y, text, ha="center", fontsize=8)
        elif label == "migration":
            axes.text((start + end) / 2, at - 0.46, label, ha="center", fontsize=8)
    axes.set_yticks([0, 1], ["CPU", "GPU"])
    axes.set_ylim(-0.55, 1.7)
    axes.set_xlim(0, whole)
    axes.set_xlabel("microseconds")
    axes.spines[["top", "right", "left"]].set_visible(False)
    return figure


def draw_ratios() -> Figure:
    """Predicted times on machines whose CPU is 0.1 to 10 times as fast as their GPU."""
    sys.path.append(str(TOP / "tests" / "support"))
    import selector_levels as machines

    ratios = np.geomspace(0.1, 10.0, 41)
    figure, both = plt.subplots(1, 2, figsize=(WIDTH, 2.6), sharey=True, layout="constrained")
    shapes = {"a core": machines.CORE, "two cores, two tails": machines.core_and_tail_levels(20)}
    for axes, (name, levels) in zip(both, shapes.items(), strict=True):
        states = machines.states_of(levels, machines.N, machines.M)
        rows = []
        for ratio in ratios:
            made = machines.with_ratio(float(ratio))
            costs = machines.costs_of(made, states)
            alone = machines.alone_seconds(costs)
            chosen = machines.walk(machines.bound(made, states), states)
            rows.append((alone["cpu"], alone["device"], costs.schedule_seconds(chosen)))
        cpu, gpu, auto = 1e3 * np.array(rows).T
        axes.loglog(ratios, cpu, color=LOOKS["TC"][0], ls="--", label="CPU alone")
        axes.loglog(ratios, gpu, color=LOOKS["BG"][0], ls=":", label="GPU alone")
        axes.loglog(ratios, auto, color="black", label="auto")
        wins = auto < 0.98 * np.minimum(cpu, gpu)
        axes.fill_between(ratios, auto, np.minimum(cpu, gpu), where=wins, color="#cccccc")
        axes.set_title(name, fontsize=9)
        axes.set_xticks([0.1, 1, 10], ["0.1", "1", "10"])
        axes.set_yticks([0.1, 1, 10], ["0.1", "1", "10"])
        _clean(axes)
    figure.supxlabel("speed of the CPU over that of the GPU", fontsize=10)
    both[0].set_ylabel("predicted ms")
    both[0].legend(frameon=False, fontsize=8)
    return figure


def draw_partition(num_ranks: int = 3, num_vertices: int = 12) -> Figure:
    """Vertices dealt out to ranks, and the messages of a push between them."""
    figure, axes = plt.subplots(figsize=(WIDTH, 2.6), layout="constrained")
    colours = ["#0072B2", "#E69F00", "#009E73"]
    frontier, neighbours = (4, 6), {4: (1, 3, 8), 6: (3, 5, 10)}
    at = {
        v: (
            4 * (v % num_ranks) + 0.8 * (v // num_ranks),
            0.0 if v in frontier else 0.55 - (v % 2) * 0.3,
        )
        for v in range(num_vertices)
    }
    for rank in range(num_ranks):
        box = FancyBboxPatch(
            (4 * rank - 0.5, -0.35), 3.4, 1.25, boxstyle="round,pad=0,rounding_size=0.15",
            facecolor=colours[rank], alpha=0.13, edgecolor="none",
        )  # fmt: skip
        axes.add_patch(box)
        axes.text(4 * rank + 1.2, 1.0, f"rank {rank}", ha="center", weight="bold")
    for u, all_ in neighbours.items():
        for v in all_:
            sent = u % num_ranks != v % num_ranks
            axes.annotate(
                "", at[v], xytext=at[u],
                arrowprops={
                    "arrowstyle": "-|>", "color": "#D55E00" if sent else "#555555", "shrinkA": 9,
                    "shrinkB": 9, "lw": 1.3, "connectionstyle": "arc3,rad=0.15",
                },
            )  # fmt: skip
    for v, (x, y) in at.items():
        face = "#333333" if v in frontier else "white"
        axes.scatter([x], [y], s=260, color=face, edgecolor="#333333", zorder=3)
        axes.text(x, y, str(v), ha="center", va="center", fontsize=9, zorder=4,
                  color="white" if v in frontier else "black")  # fmt: skip
    axes.text(5.2, -0.55, "orange: messages to another rank; grey: found by the owner itself",
              ha="center", fontsize=9)  # fmt: skip
    axes.set_xlim(-0.7, 11.2)
    axes.set_ylim(-0.7, 1.2)
    axes.axis("off")
    return figure


def draw_levels(graph: str = "kronecker20") -> Figure:
    """Seconds of every strategy at each level of one search, and the fastest schedule."""
    seconds, edges = _read_levels(graph)
    schedule = _read_schedule(graph)
    levels = sorted(edges)
    figure, (top, bottom) = plt.subplots(
        2, 1, figsize=(WIDTH, 4.8), sharex=True, height_ratios=(1, 3.4), layout="constrained"
    )
    top.bar(levels, [edges[level] for level in levels], color="#999999", width=0.5)
    top.set_yscale("log")
    top.set_ylabel("edges of\nthe frontier")
    top.set_title("One search of Kronecker 20 (NVIDIA H200, 16 Xeon cores)", fontsize=10)
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
    figure.legend(fontsize=8, frameon=False, loc="outside lower center", ncols=2)
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
    figure, axes = plt.subplots(figsize=(WIDTH, 0.62 * len(layers) + 0.5), layout="constrained")
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
        caption = textwrap.fill(CAPTIONS[name], int(6.4 * width))
        axes.text(left + 0.2, middle + 0.33, name, va="top", weight="bold", fontsize=9)
        axes.text(left + 0.2, middle - 0.34, caption, va="bottom", fontsize=7.5)
    else:
        axes.text(left + 0.2, middle, name, va="center", weight="bold", fontsize=9.5)
        axes.text(left + 2.0, middle, CAPTIONS[name], va="center", fontsize=8.5)


def main() -> None:
    """Write every picture to the folder of this script."""
    mpl.rcParams["svg.hashsalt"] = "hetero_bfs"  # the same file from the same data
    mpl.rcParams["svg.fonttype"] = "none"  # small files
    drawn = {
        "search": draw_search, "levels": draw_levels, "migration": draw_migration,
        "ratios": draw_ratios, "partition": draw_partition, "architecture": draw_architecture,
    }  # fmt: skip
    for name, draw in drawn.items():
        figure = draw()
        figure.savefig(HERE / f"{name}.svg", metadata={"Date": None})
        plt.close(figure)


if __name__ == "__main__":
    main()
