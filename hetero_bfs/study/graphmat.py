"""What Yang et al. measured of a hybrid GraphMat: `hetero-bfs study --paper graphmat`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.programs.result import ProgramResult
from hetero_bfs.study import paper_programs as common
from hetero_bfs.study import style
from hetero_bfs.study.page import Paper, Section, claim
from hetero_bfs.study.paper_programs import FAR, Subject
from hetero_bfs.study.searches import Row, StudyOptions

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from hetero_bfs.study.run import Study

_OVER_GRAPHMAT = {"PageRank": (6.4, 7.8), "BFS": (4.8, 7.1), "SSSP": (4.5, 6.4)}
"""Mean speed over GraphMat on 12 cores: on a Tesla K40m, and on a GeForce GTX 1080."""


def measure(study: Study, options: StudyOptions, info: DeviceInfo | None) -> None:
    for subject in common.subjects(options, info):
        result = subject.run("BFS", place="cpu")
        study.add("nonzeros", nonzero_rows(subject, result))
        if subject.runs.device:
            study.add("compression", [_compression_row(subject, result.iterations)])
        study.add("speed", common.speed_rows(subject, options))


def claim_rows(tables: Mapping[str, pd.DataFrame]) -> list[Row]:
    means = tables["speed"].groupby("program")["device_over_cpu"].mean()
    rows = [
        claim(f"mean speed over the CPU, {name}", f"{k40m}x (K40m), {gtx}x (GTX 1080)", means[name])
        for name, (k40m, gtx) in _OVER_GRAPHMAT.items()
    ]
    by_graph = tables["nonzeros"].groupby("graph")["x"]
    ends = by_graph.agg(["first", "last"]).lt(by_graph.max(), axis=0)
    rise = float(ends.all(axis=1).mean())
    return [*rows, claim("graphs whose non-zeros rise, then fall", "all", rise, "share")]


def nonzero_rows(subject: Subject, result: ProgramResult) -> list[Row]:
    """Return the non-zeros of x and y in each iteration of a search.

    x has the vertices that send, those of a level. y has the vertices that get a message.
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


def _compression_row(subject: Subject, iterations: int) -> Row:
    """Return the bytes of a run whose iterations alternate between the CPU and the device."""
    result = subject.run("BFS", schedule=["push", "device push"] * (iterations // 2 + 1))
    moves = sum(trace.migrated_bytes > 0 for trace in result.traces)
    whole = moves * (4 * subject.graph.num_vertices + subject.graph.num_vertices // 8)
    sent = result.migrated_bytes
    return {"graph": subject.name, "migrations": moves, "bytes": sent, "whole_vectors_bytes": whole,
            "share": sent / max(whole, 1)}  # fmt: skip


_MOST_MARKED = 100  # iterations whose points have markers


def _draw_nonzeros(table: pd.DataFrame) -> Figure:
    figure, panels = style.panels(table["graph"].nunique(), 2.6)
    for axes, (name, one) in zip(panels, table.groupby("graph", sort=False), strict=True):
        size = 3 if len(one) < _MOST_MARKED else 0
        axes.plot(one["iteration"], one["x"], "o-", ms=size, color="#0072B2", label="x: senders")
        axes.plot(one["iteration"], one["y"], "s--", ms=size, color="#D55E00", label="y: receivers")
        axes.set_yscale("log")
        axes.locator_params(axis="x", integer=True)
        style.tidy(axes, str(name), "iteration", "non-zeros")
    style.legend_above(figure, panels)
    return figure


def _nonzeros_finding(table: pd.DataFrame) -> str:
    share = 100 * (table["x"] / table["vertices"]).groupby(table["graph"]).median()
    return (
        f"In the median iteration {share.min():.2g} to {share.max():.2g} % of the entries of x, by "
        "graph, are not zero."
    )


def _compression_finding(table: pd.DataFrame) -> str:
    share = table["bytes"].sum() / max(table["whole_vectors_bytes"].sum(), 1)
    return (
        f"Migrations sent {100 * share:.3g} % of the bytes of whole vectors with bit vectors. They "
        "send marked states as a list or a bitmap, whichever is smaller."
    )


PAPER = Paper(
    "graphmat",
    "GraphMat on CPU and GPU (Yang et al.): its figures on this machine",
    (18,),
    measure,
    (
        Section(
            "nonzeros",
            "Non-zeros of x and y in each iteration of a search (Figure 1)",
            "x has the vertices that send, y those that get a message.",
            ("graph", "vertices", "iteration", "x", "y"),
            _nonzeros_finding,
            _draw_nonzeros,
        ),
        Section(
            "compression",
            "Bytes between CPU and device (section 3.3)",
            "",
            ("graph", "migrations", "bytes", "whole_vectors_bytes", "share"),
            _compression_finding,
        ),
        common.speed_section("Figure 3"),
        common.CLAIMS,
    ),
    claim_rows,
)
