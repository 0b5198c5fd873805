"""What Zhu et al. measured of WolfPath, on this machine: `hetero-bfs study --paper wolfpath`."""

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
from hetero_bfs.graph.io.registry import read
from hetero_bfs.graph.io.writing import write
from hetero_bfs.graph.layers import layered
from hetero_bfs.programs.result import ProgramResult
from hetero_bfs.study import paper_programs as common
from hetero_bfs.study.page import Paper, Section, claim, names
from hetero_bfs.study.paper_programs import Subject
from hetero_bfs.study.searches import Row, StudyOptions

if TYPE_CHECKING:
    from hetero_bfs.study.run import Study


def measure(study: Study, options: StudyOptions, info: DeviceInfo | None) -> None:
    for subject in common.subjects(options, info):
        for name in ("BFS", "SSSP"):
            study.add("iterations", [_iterations_row(subject, name, options)])
        study.add("preprocessing", [_preprocessing_row(subject)])


def claim_rows(tables: Mapping[str, pd.DataFrame]) -> list[Row]:
    flags = tables["iterations"]["flags_over"].astype(float).mean()
    memory = tables["preprocessing"]["over_csr"].mean()
    rows = [
        claim("memory over CSR (Figure 8)", "1.37x", memory),
        claim("time with a flag in each iteration (Table 2)", "92x to 934x", flags),
    ]
    for name, paper in (("BFS", "3.3x to 25x, CuSha"), ("SSSP", "6.2x to 32x, CuSha")):
        one = tables["iterations"][tables["iterations"]["program"] == name]
        sweeps = (one["sweeps"] / one["iterations"]).mean()
        rows.append(claim(f"sweeps over iterations, {name} (Table 5)", "1x to 1.6x", sweeps))
        what = f"speed over a synchronous mode, {name} (Table 5)"
        rows.append(claim(what, paper, one["speedup"].mean()))
    return rows


def _iterations_row(subject: Subject, name: str, options: StudyOptions) -> Row:
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


def _preprocessing_row(subject: Subject) -> Row:
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


def _iterations_finding(table: pd.DataFrame) -> str:
    faster = int((table["speedup"] > 1).sum())
    return f"The layered mode is faster than the synchronous one in {faster} of {len(table)} cases."


def _preprocessing_finding(table: pd.DataFrame) -> str:
    return (
        f"Numbering all graphs takes {table['numbering_seconds'].sum():.3g} s. With names and ends "
        f"of layers they take {table['over_csr'].mean():.3g} times the memory of CSR."
    )


PAPER = Paper(
    "wolfpath",
    "WolfPath (Zhu et al.): layered lists, its tables on this machine",
    (18,),
    measure,
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
            _iterations_finding,
            partial(common.draw_ratios, column="speedup", label="synchronous over layered seconds"),
        ),
        Section(
            "preprocessing",
            "Preprocessing and memory (Table 7, Figure 8)",
            "",
            names(
                "graph vertices layers numbering_seconds writing_seconds reading_seconds "
                "csr_bytes layers_bytes over_csr"
            ),
            _preprocessing_finding,
        ),
        common.CLAIMS,
    ),
    claim_rows,
)
