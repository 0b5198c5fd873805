"""The measurements of Lai et al. (GPregel), Yang et al. (GraphMat) and Zhu et al. (WolfPath).

On this machine it is `hetero-bfs study --paper` gpregel, graphmat or wolfpath.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.graph.io.registry import read, write
from hetero_bfs.graph.search_graph import layered
from hetero_bfs.programs.result import ProgramResult
from hetero_bfs.study import paper_programs as common
from hetero_bfs.study import style
from hetero_bfs.study.page import Paper, Section, claim, names
from hetero_bfs.study.paper_programs import FAR, WeightedSubject
from hetero_bfs.study.searches import Row, StudyOptions

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from hetero_bfs.study.run import Study

_LINES = {"SSSP": (61, 14), "BFS": (58, 10)}
"""Table II: lines of Basic and of GPregel."""


def _measure_gpregel(study: Study, options: StudyOptions, info: DeviceInfo | None) -> None:
    for name, (basic, gpregel) in _LINES.items():
        lines = common.lines_of(name)
        study.add("lines", [{"program": name, "basic": basic, "gpregel": gpregel, "ours": lines}])
    for subject in common.subjects(options, info):
        study.add("speed", common.speed_rows(subject, options))


def _claims_of_gpregel(tables: Mapping[str, pd.DataFrame]) -> list[Row]:
    lines = tables["lines"].itertuples()
    rows = [claim(f"lines of {r.program}", r.gpregel, r.ours, "lines") for r in lines]
    most = tables["speed"].groupby("program")["device_over_cpu"].max()
    for name, paper in (("SSSP", "almost 6x (WikiTalk)"), ("BFS", "6x (Random)")):
        rows.append(claim(f"most speed over the CPU, {name}", paper, most[name]))
    return rows


GPREGEL_PAPER = Paper(
    "gpregel",
    "GPregel (Lai et al.): a Pregel for GPUs, its tables on this machine",
    (18,),
    _measure_gpregel,
    (
        Section(
            "lines", "Lines of programs (Table II)", "", ("program", "basic", "gpregel", "ours")
        ),
        common.speed_section("Figure 11"),
        common.CLAIMS,
    ),
    _claims_of_gpregel,
)


_OVER_GRAPHMAT = {"PageRank": (6.4, 7.8), "BFS": (4.8, 7.1), "SSSP": (4.5, 6.4)}
"""Mean speed over GraphMat on 12 cores: on a Tesla K40m, and on a GeForce GTX 1080."""


def _measure_graphmat(study: Study, options: StudyOptions, info: DeviceInfo | None) -> None:
    for subject in common.subjects(options, info):
        result = subject.run("BFS", place="cpu")
        study.add("nonzeros", nonzero_rows(subject, result))
        if subject.runs.device:
            study.add("compression", [_compression_row(subject, result.iterations)])
        study.add("speed", common.speed_rows(subject, options))


def _claims_of_graphmat(tables: Mapping[str, pd.DataFrame]) -> list[Row]:
    means = tables["speed"].groupby("program")["device_over_cpu"].mean()
    rows = [
        claim(f"mean speed over the CPU, {name}", f"{k40m}x (K40m), {gtx}x (GTX 1080)", means[name])
        for name, (k40m, gtx) in _OVER_GRAPHMAT.items()
    ]
    by_graph = tables["nonzeros"].groupby("graph")["x"]
    ends = by_graph.agg(["first", "last"]).lt(by_graph.max(), axis=0)
    rise = float(ends.all(axis=1).mean())
    return [*rows, claim("graphs whose non-zeros rise, then fall", "all", rise, "share")]


def nonzero_rows(subject: WeightedSubject, result: ProgramResult) -> list[Row]:
    """Return the non-zeros of x and y in each iteration of a search.

    x has the vertices of a level, which send. y has the vertices that get a message.
    """
    level, indices = result.level, subject.graph.indices
    senders = np.repeat(level, np.diff(subject.graph.indptr))  # the level of each entry's owner
    order = np.argsort(senders, kind="stable")
    last = int(level[level < FAR].max())
    bounds = np.searchsorted(senders[order], np.arange(last + 2))
    return [
        {"graph": subject.name, "vertices": level.size, "iteration": i,
         "x": int(np.count_nonzero(level == i)),
         "y": int(np.unique(indices[order[bounds[i] : bounds[i + 1]]]).size)}
        for i in range(last + 1)
    ]  # fmt: skip


def _compression_row(subject: WeightedSubject, iterations: int) -> Row:
    """Return the bytes of a run whose iterations alternate between the CPU and the device."""
    result = subject.run("BFS", schedule=["push", "device push"] * (iterations // 2 + 1))
    moves = sum(trace.migrated_bytes > 0 for trace in result.traces)
    whole = moves * (4 * subject.graph.num_vertices + subject.graph.num_vertices // 8)
    sent = result.migrated_bytes
    return {"graph": subject.name, "migrations": moves, "bytes": sent, "whole_vectors_bytes": whole,
            "share": sent / max(whole, 1)}  # fmt: skip


_MOST_MARKED = 100  # iterations whose points have markers


def _draw_nonzeros(table: pd.DataFrame) -> Figure:
    count = table["graph"].nunique()
    figure, panels = style.new_figure(2.6 * count + 0.4, count)
    for axes, (name, one) in zip(panels, table.groupby("graph", sort=False), strict=True):
        size = 3 if len(one) < _MOST_MARKED else 0
        axes.plot(one["iteration"], one["x"], "o-", ms=size, color="#0072B2", label="x: senders")
        axes.plot(one["iteration"], one["y"], "s--", ms=size, color="#D55E00", label="y: receivers")
        axes.set_yscale("log")
        axes.locator_params(axis="x", integer=True)
        style.tidy(axes, str(name), "iteration", "non-zeros")
    style.legend_above(figure, panels)
    return figure


GRAPHMAT_PAPER = Paper(
    "graphmat",
    "GraphMat on CPU and GPU (Yang et al.): its figures on this machine",
    (18,),
    _measure_graphmat,
    (
        Section(
            "nonzeros",
            "Non-zeros of x and y in each iteration of a search (Figure 1)",
            "x has the vertices that send, y those that get a message.",
            ("graph", "vertices", "iteration", "x", "y"),
            draw=_draw_nonzeros,
        ),
        Section(
            "compression",
            "Bytes between CPU and device (section 3.3)",
            "Migrations send marked states as a list or a bitmap, whichever is smaller; whole "
            "vectors have a bit vector.",
            ("graph", "migrations", "bytes", "whole_vectors_bytes", "share"),
        ),
        common.speed_section("Figure 3"),
        common.CLAIMS,
    ),
    _claims_of_graphmat,
)


def _measure_wolfpath(study: Study, options: StudyOptions, info: DeviceInfo | None) -> None:
    for subject in common.subjects(options, info):
        for name in ("BFS", "SSSP"):
            study.add("iterations", [_iterations_row(subject, name, options)])
        study.add("preprocessing", [_preprocessing_row(subject)])


def _claims_of_wolfpath(tables: Mapping[str, pd.DataFrame]) -> list[Row]:
    flags = tables["iterations"]["flags_over"].astype(float).mean()
    made = tables["preprocessing"]
    seconds = (made["numbering_seconds"] + made["writing_seconds"]).max()
    rows = [
        claim("memory over CSR (Figure 8)", "1.37x", made["over_csr"].mean()),
        claim("longest preprocessing (Table 7)", "120 s (arabic2005)", seconds, "s"),
        claim("time with a flag in each iteration (Table 2)", "92x to 934x", flags),
    ]
    for name, paper in (("BFS", "3.3x to 25x, CuSha"), ("SSSP", "6.2x to 32x, CuSha")):
        one = tables["iterations"][tables["iterations"]["program"] == name]
        sweeps = (one["sweeps"] / one["iterations"]).mean()
        rows.append(claim(f"sweeps over iterations, {name} (Table 5)", "1x to 1.6x", sweeps))
        what = f"speed over a synchronous mode, {name} (Table 5)"
        rows.append(claim(what, paper, one["speedup"].mean()))
    return rows


def _iterations_row(subject: WeightedSubject, name: str, options: StudyOptions) -> Row:
    """Return iterations and seconds of both modes, on the device if there is one.

    There the synchronous mode also runs with a wait after each iteration, as for a flag.
    """
    place = subject.places[-1]
    run = partial(subject.run, name, place=place)
    layers = partial(run, mode="layered", root=subject.source)

    def wait() -> ProgramResult:
        subject.runs.clocked = True
        result = run()
        subject.runs.clocked = False
        return result

    waits = [wait] if place == "device" else []
    of_layers, of_runs, *found = common.seconds_of(options.rounds, [layers, run, *waits])
    seconds = np.median(of_runs)
    with_flags = np.median(found[0]) if found else None
    return {
        "graph": subject.name, "program": name, "place": place,
        "sweeps": layers().iterations, "iterations": run().iterations,
        "layered_seconds": np.median(of_layers), "synchronous_seconds": seconds,
        **common.ratio_row("speedup", of_runs, of_layers), "with_flags_seconds": with_flags,
        "flags_over": with_flags / seconds if with_flags else None,
    }  # fmt: skip


def _preprocessing_row(subject: WeightedSubject) -> Row:
    """Return seconds to number a graph layer by layer, to write and to read it, and its memory."""
    for _ in range(2):  # the first time compiles
        times = [time.perf_counter()]
        made = layered(subject.graph, subject.source)
        times.append(time.perf_counter())
        with tempfile.TemporaryDirectory() as folder:
            write(made, path := Path(folder) / "layers.hbg")
            times.append(time.perf_counter())
            read(path, weighted=True)
            times.append(time.perf_counter())
    numbering, writing, reading = (after - before for before, after in pairwise(times))
    csr = subject.graph.num_bytes
    return {
        "graph": subject.name, "vertices": made.num_vertices,
        "layers": 0 if made.layers is None else made.layers.size,
        "numbering_seconds": numbering, "writing_seconds": writing, "reading_seconds": reading,
        "csr_bytes": csr, "layers_bytes": made.num_bytes, "over_csr": made.num_bytes / csr,
    }  # fmt: skip


WOLFPATH_PAPER = Paper(
    "wolfpath",
    "WolfPath (Zhu et al.): layered lists, its tables on this machine",
    (18,),
    _measure_wolfpath,
    (
        Section(
            "iterations",
            "Sweeps of the layered mode, iterations, and flags (Tables 2, 3 and 5)",
            "A sweep goes through all layers. Above 1 the layered mode is faster. With flags the "
            "host waits for the device after each iteration of the synchronous mode.",
            names(
                "graph program place sweeps iterations layered_seconds synchronous_seconds "
                "speedup first_quartile_speedup third_quartile_speedup with_flags_seconds "
                "flags_over"
            ),
            draw=partial(
                common.draw_ratios, column="speedup", label="synchronous over layered seconds"
            ),
        ),
        Section(
            "preprocessing",
            "Preprocessing and memory (Table 7, Figure 8)",
            "",
            names(
                "graph vertices layers numbering_seconds writing_seconds reading_seconds "
                "csr_bytes layers_bytes over_csr"
            ),
        ),
        common.CLAIMS,
    ),
    _claims_of_wolfpath,
)
