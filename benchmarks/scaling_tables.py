"""The page and the picture of scaling.py."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
from scaling_model import Network, extrapolate
from tables import markdown, provenance

from hetero_bfs.study.style import draw_spread
from hetero_bfs.support.files import replacing

_RANKS, _SCALE, _THREADS = 8192, 40, 64
_PUBLISHED = """
Published for comparison (not measured here): NVIDIA, November 2025 list, 410 TTEPS on 8,192 H100 at
scale 41. Fugaku, 198 TTEPS on 152,064 nodes."""


def write(folder: Path, command: str) -> None:
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
        text += ["", f"## On paper: scale {_SCALE} on {_RANKS:,} ranks", "", *_paper(simulated)]
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


def _paper(table: pd.DataFrame) -> list[str]:
    base = table[table["series"] == "weak"] if (table["series"] == "weak").any() else table
    last = base.iloc[-1].to_dict()
    network = Network()
    grid = math.isqrt(_RANKS)
    rows = []
    for name, size, id_bytes in (("as it is", 1, 8), ("2D partition", grid, 8)):
        row = extrapolate(_SCALE, _RANKS, size, id_bytes, last, _THREADS, network)
        rows.append(
            {
                "way": name,
                "GB in a dense exchange": f"{row['dense_bytes'] / 1e9:.3g}",
                "stored edges of a rank": f"{row['stored_edges']:.3g}",
                "GB of lists": f"{row['list_bytes'] / 1e9:.3g}",
                "GB not shared out": f"{row['replicated_bytes'] / 1e9:.4g}",
                "work s": f"{row['work_seconds']:.3f}",
                "exchange s": f"{row['exchange_seconds']:.3f}",
                "exchange s by a ring": f"{row['ring_seconds']:.3f}",
                "TTEPS": f"{row['teps'] / 1e12:.3g}",
            }
        )
    return [
        f"An arithmetic exercise from the last row of the weak series ({last['ranks']} ranks, "
        f"scale {last['scale']}), {_THREADS} threads a rank with ideal speed-up, ids of 8 bytes. "
        "Both rows are above what could be reached: they leave out cache misses in bitmaps that "
        "exceed all caches, bytes of top-down levels, congestion, and in 2D the exchange of found "
        "vertices along the other side of the grid.",
        "",
        markdown(pd.DataFrame(rows)),
        _PUBLISHED,
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
