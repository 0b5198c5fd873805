"""What Lai et al. measured of GPregel, on this machine: `hetero-bfs study --paper gpregel`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pandas as pd

from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.study import paper_programs as common
from hetero_bfs.study.page import Paper, Section, claim
from hetero_bfs.study.searches import Row, StudyOptions

if TYPE_CHECKING:
    from hetero_bfs.study.run import Study

_LINES = {"SSSP": (61, 14), "BFS": (58, 10)}
"""Table II: lines of Basic and of GPregel."""


def measure(study: Study, options: StudyOptions, info: DeviceInfo | None) -> None:
    for name, (basic, gpregel) in _LINES.items():
        lines = common.lines_of(name)
        study.add("lines", [{"program": name, "basic": basic, "gpregel": gpregel, "ours": lines}])
    for subject in common.subjects(options, info):
        study.add("speed", common.speed_rows(subject, options))


def claim_rows(tables: Mapping[str, pd.DataFrame]) -> list[Row]:
    lines = tables["lines"].itertuples()
    rows = [claim(f"lines of {r.program}", r.gpregel, r.ours, "lines") for r in lines]
    most = tables["speed"].groupby("program")["device_over_cpu"].max()
    for name, paper in (("SSSP", "almost 6x (WikiTalk)"), ("BFS", "6x (Random)")):
        rows.append(claim(f"most speed over the CPU, {name}", paper, most[name]))
    return rows


def _lines_finding(table: pd.DataFrame) -> str:
    parts = [f"{r.program} takes {r.ours} lines (GPregel {r.gpregel})" for r in table.itertuples()]
    return f"As a program {', '.join(parts)}, all of them in Python."


PAPER = Paper(
    "gpregel",
    "GPregel (Lai et al.): a Pregel for GPUs, its tables on this machine",
    (18,),
    measure,
    (
        Section(
            "lines",
            "Lines of programs (Table II)",
            "",
            ("program", "basic", "gpregel", "ours"),
            _lines_finding,
        ),
        common.speed_section("Figure 11"),
        common.CLAIMS,
    ),
    claim_rows,
)
