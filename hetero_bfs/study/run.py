"""Runs `hetero-bfs study`: measures graph by graph, draws, and writes the folder at once.

The folder is written completely or not at all, and never over other files. A study is written to a
temporary folder next to its own, which is renamed when it is complete.
"""

from __future__ import annotations

import datetime
import json
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from hetero_bfs import energy
from hetero_bfs.devices.machine import (
    DeviceInfo,
    command_line,
    describe_machine,
    record_of_run,
    source_commit,
)
from hetero_bfs.errors import HeteroBFSError
from hetero_bfs.graph.generators.families import SEEDS
from hetero_bfs.options import EngineOptions
from hetero_bfs.scheduling.named_selectors import model_of
from hetero_bfs.scheduling.speed_model import SpeedModel
from hetero_bfs.study import findings, paper_named, style
from hetero_bfs.study.measurements import efficiency, level_rows
from hetero_bfs.study.page import SECTIONS, Paper, Section, SectionResult, page
from hetero_bfs.study.searches import (
    Planned,
    Row,
    StudyOptions,
    Subject,
    graphs_of,
    open_subject,
    relabelling,
    throughput,
)
from hetero_bfs.support.files import check_new_entry, temporary_next_to, unbroken
from hetero_bfs.support.messages import announce
from hetero_bfs.training.budget import Budget, announce_limit
from hetero_bfs.training.program_regret import regret_of_programs
from hetero_bfs.training.regret import measure_graph as measure_regret


def check_folder(folder: Path) -> None:
    """Raise `HeteroBFSError` unless a study can be written here: the folder is new or empty."""
    if folder.is_dir():
        folder = folder.resolve()  # follows links
        _check_empty(folder)
    elif folder.exists() or folder.is_symlink():
        what = "a link to nothing" if folder.is_symlink() else "a file"
        raise HeteroBFSError(f"{folder} is {what}, no folder; name a new one")
    check_new_entry(folder)


def _check_empty(folder: Path) -> None:
    try:
        found = sorted(path.name for path in folder.iterdir())
    except OSError as error:
        raise HeteroBFSError(f"{folder} cannot be read: {error.strerror or error}") from error
    if found:
        named = ", ".join(found[:3]) + (", ..." if len(found) > 3 else "")
        raise HeteroBFSError(
            f"{folder} is not empty ({named}); remove an earlier study, or name a new folder"
        )
    if os.path.ismount(folder) or folder == Path.cwd():
        what = "a mount point" if os.path.ismount(folder) else "the current folder"
        raise HeteroBFSError(
            f"{folder} is {what}, and a study renames its folder; name a new one, such as "
            f"{folder / 'study'}"
        )


def write_folder(folder: Path, files: Mapping[str, bytes], summary: Mapping[str, object]) -> None:
    """Write all files and the summary, study.json, or nothing."""
    text = json.dumps({"program": "hetero-bfs study", **summary}, indent=1, allow_nan=False) + "\n"
    target = folder.resolve()
    try:
        with temporary_next_to(target, folder=True) as (temporary, _):
            for name, content in {**files, "study.json": text.encode()}.items():
                (temporary / name).write_bytes(content)
            with unbroken():
                os.rename(temporary, target)  # also in place of an empty folder
    except OSError as error:
        raise HeteroBFSError(f"{folder}: cannot be written: {error.strerror or error}") from error


def regret_rows(subject: Subject, options: StudyOptions) -> list[Row]:
    graph = subject.about.graph
    return list(measure_regret(subject.engine, graph, len(subject.sources), options.rounds))


def program_rows(subject: Subject, options: StudyOptions) -> list[Row]:
    threads = options.threads
    info = subject.engine.device_info
    found = regret_of_programs(subject.edges, info, threads, options.rounds)
    return [{**subject.row(), **row} for row in found]


_TITLE = "hetero_bfs: adaptive breadth-first search on this machine"


@dataclass
class Study:
    rows: dict[str, list[Row]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, name: str, rows: Iterable[Row]) -> None:
        self.rows.setdefault(name, []).extend(rows)

    def table(self, section: Section) -> pd.DataFrame:
        """Return a section's table, with all its columns even if it has no rows."""
        table = pd.DataFrame(self.rows.get(section.name, []), columns=list(section.columns))
        if "scale" in table:
            table["scale"] = table["scale"].astype("Int64")
        return table


def run_study(folder: Path | None, options: StudyOptions) -> dict[str, Any]:
    """Measure this machine and write the study; return its summary (also in study.json).

    Without a folder nothing is written. The summary has the small tables as text, too.
    """
    source_commit()  # cached now, since the checkout may change during the run
    if folder is not None:
        check_folder(folder)
    study = Study()
    info = _device(options.engine, study.notes)
    paper = _MACHINE if options.paper is None else paper_named(options.paper)
    if not (options.scales or options.quick or options.graphs):
        options = replace(options, scales=paper.scales)
    options = options.completed_for(info)
    if options.power_log is not None:
        energy.PowerLog(options.power_log).samples()  # raises for a bad log before the study
    started = time.perf_counter()
    paper.measure(study, options, info)
    study.add("claims", paper.claims({n: pd.DataFrame(rows) for n, rows in study.rows.items()}))
    return _write(folder, paper, study, options, info, time.perf_counter() - started)


def measure_machine(study: Study, options: StudyOptions, info: DeviceInfo | None) -> None:
    graphs = graphs_of(options, info)
    budget = Budget(options.budget_seconds, graphs=1.0)
    left = [graph.name for graph in graphs]
    costs = [one.graph.cost for one in graphs]
    if options.budget_seconds is not None:
        announce_limit(options.budget_seconds, len(graphs))
    for graph in budget.within("graphs", graphs, "measuring graphs", costs=costs):
        left.remove(graph.name)
        announce(f"{graph.name}, graph {graphs.index(graph) + 1} of {len(graphs)}")
        measure_graph(study, graph, options)
    if left:
        study.notes.append(f"the budget had no time for {', '.join(left)}")


def measure_graph(study: Study, graph: Planned, options: StudyOptions) -> None:
    subject = open_subject(graph, options, study.notes)
    with subject.engine:
        study.add("regret", regret_rows(subject, options))
        study.add("programs", program_rows(subject, options))
        if graph.regret_only:
            return
        study.add("throughput", throughput(subject, options.rounds))
        study.add("relabelling", relabelling(subject, options))
        study.add("levels", level_rows(subject, options.rounds, study.notes))
        study.add("energy", efficiency(subject, options, study.notes))


_MACHINE = Paper("machine", _TITLE, (), measure_machine, SECTIONS)
"""The study of a machine, not of a paper."""


def _device(engine: EngineOptions, notes: list[str]) -> DeviceInfo | None:
    found, missing = engine.find_devices(most=1)
    notes += missing
    return found[0] if found else None


def _write(
    folder: Path | None,
    paper: Paper,
    study: Study,
    options: StudyOptions,
    info: DeviceInfo | None,
    seconds: float,
) -> dict[str, Any]:
    machine = describe_machine(info)
    model = model_of(info)
    foot = footer(machine, model, options)
    files: dict[str, bytes] = {}
    parts = []
    for section in paper.sections:
        table = study.table(section)
        part = _part(section, table, foot)
        parts.append(part)
        if part.svg is not None:
            files[f"{section.name}.svg"] = part.svg.encode()
        files[f"{section.name}.csv"] = table.to_csv(index=False, float_format="%.9g").encode()
    text = page(paper.title, describe(machine), parts, study.notes, foot)
    files["index.html"] = text.encode()
    summary = {
        **record_of_run(info, SEEDS),
        "model": None if model is None else model.origin,
        "seconds": seconds,
        "keys": options.keys,
        "rounds": options.rounds,
        "tables": {part.section.name: part.brief.to_dict("records") for part in parts},
        "findings": {part.section.name: part.finding for part in parts if part.finding},
        "files": sorted(files),
        "notes": study.notes,
    }
    if folder is not None:
        write_folder(folder, files, summary)
    return summary


def _part(section: Section, table: pd.DataFrame, foot: str) -> SectionResult:
    if table.empty:
        nothing = "Nothing could be measured; see the notes."
        return SectionResult(section, nothing, *findings.no_brief(table))
    figure = section.draw(table)
    part = SectionResult(section, section.finding(table), *section.brief(table))
    return part if figure is None else replace(part, svg=style.to_svg(figure, foot))


def describe(machine: dict[str, Any]) -> str:
    device = machine["device"]
    named = "no OpenCL device" if device is None else f"{device['name']} ({device['platform']})"
    return f"{machine['cpu']}, {machine['threads']} threads; {named}"


def footer(machine: dict[str, Any], model: SpeedModel | None, options: StudyOptions) -> str:
    driver = "" if machine["device"] is None else f", driver {machine['device']['driver']}"
    origin = "none of this machine" if model is None else model.origin_text
    return (
        f"{command_line()} | {describe(machine)}{driver} | Python {machine['python']}, "
        f"NumPy {machine['numpy']}, Numba {machine['numba']}, commit {machine['commit']}, "
        f"{datetime.date.today().isoformat()} | speed model: {origin} | medians of "
        f"{options.rounds} rounds, {options.keys} keys, all configurations interleaved"
    )
