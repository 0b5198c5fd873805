"""Commands of the algorithm table: `hetero-bfs bfs`, `sssp`, `components` and so on."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hetero_bfs.algorithms.base import Request, open_analysis
from hetero_bfs.algorithms.run_report import Report
from hetero_bfs.algorithms.table import Row, commands
from hetero_bfs.cli.argument_groups import engine_options
from hetero_bfs.cli.output import (
    may_have_names,
    numbered,
    print_gaps,
    print_notes,
    read_graph,
    refuse_names,
    run_together,
    save_values,
    text_stream,
    write_record,
    write_trace,
)
from hetero_bfs.graph.io.graph_files import read_vertices, system_errors
from hetero_bfs.graph.io.registry import vertices_by_header
from hetero_bfs.graph.io.vertex_values import read_values
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.options import EngineOptions
from hetero_bfs.support.environment import launched_ranks

if TYPE_CHECKING:
    from hetero_bfs.ranks.communicator import Communicator

_SOME_VERTICES = 2**31
"""Stands for the number of vertices before it is known: the most that parents of dtype int32 can
number."""

_VERTICES = ("source", "target")
"""Arguments that are vertices."""


def run(options: Namespace) -> int:
    row = commands()[options.command]
    arguments = {name: getattr(options, name) for name in row.options}
    if launched_ranks() > 1:
        report = _run_on_ranks(row, options, arguments)
    else:
        report = _run_here(row, options, arguments)
    if report is None:
        return 0
    print_notes(report.notes())
    outcome = report.check() if options.validate else None
    if outcome is not None:
        outcome.raise_if_invalid()
    _save(row, options, report)
    print_report(options, report, ", valid" if outcome is not None else "")
    write_report(options, report, valid=None if outcome is None else True)
    return 0


def _run_here(row: Row[Any, Any], options: Namespace, arguments: dict[str, Any]) -> Report[Any]:
    early = _ask_early(row, options, arguments)
    edges = read_graph(options, options.graph, early.kind.needs_weights)
    arguments, values = _resolved(edges, arguments)
    request = row.ask(edges.num_vertices, **(arguments | values))
    with _opened(request, edges, engine_options(options)) as (runs, answer):
        report = request.kind.report(edges, answer(), arguments, values)
        report.note_runs(runs)
        print_notes(runs.notes)
    return report


def _vertices(arguments: dict[str, Any]) -> list[str]:
    return [name for name in _VERTICES if arguments.get(name) is not None]


def _resolved(edges: Any, arguments: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arguments with vertices as numbers, and the values of those that are files."""
    vertices = {name: _numbers(edges, arguments[name]) for name in _vertices(arguments)}
    paths = {name: path for name, path in arguments.items() if isinstance(path, Path)}
    return arguments | vertices, {name: _FILES[name](path, edges) for name, path in paths.items()}


def _ask_early(row: Row[Any, Any], options: Namespace, arguments: dict[str, Any]) -> Request[Any]:
    """Check arguments before a file is read; vertices only if the graph's header tells how many."""
    count = None
    if _vertices(arguments) and not may_have_names(options):
        for given in (arguments[name] for name in _vertices(arguments)):
            refuse_names(given if isinstance(given, list) else [given])
        count = vertices_by_header(options.graph)
    known = {name: value for name, value in arguments.items() if not isinstance(value, Path)}
    if count is None:
        known |= dict.fromkeys(_vertices(known), 0)
    request = row.ask(_SOME_VERTICES if count is None else count, **known)
    for path in arguments.values():
        if isinstance(path, Path):  # a wrong name ends the command before the graph is read
            with system_errors(path):
                path.stat()
    return request


@contextmanager
def _opened(
    request: Request[Any], edges: Any, options: EngineOptions
) -> Iterator[tuple[Any, Callable[[], Any]]]:
    """Open the engine or the analysis for a request; yield it, and a function that answers."""
    if not request.kind.needs_engine:
        with open_analysis(request.analysis, edges, options) as analysis:
            yield analysis, lambda: analysis.run(*request.query)
        return
    from hetero_bfs.engine.engine import Engine  # which others need not load

    graph = build_search_graph(edges, options.order).reversed() if request.reverse else edges
    with Engine(graph, **options.settings()) as engine:
        yield engine, lambda: engine.answer(request._replace(reverse=False))


def _numbers(edges: Any, given: Any) -> Any:
    """Return the numbers of the vertex or the vertices that an option names."""
    return numbered(edges, given) if isinstance(given, list) else numbered(edges, [given])[0]


def _earlier_colours(path: Path, edges: Any) -> Any:
    return read_values(path, "colour", edges.num_vertices, edges.names, missing=-1)


def _mask(path: Path, edges: Any) -> Any:
    mask = read_vertices(path, edges.names is not None)
    if edges.names is None or mask.dtype == bool:
        return mask
    return np.array(numbered(edges, mask.tolist()), np.int64)


_FILES = {"start": _earlier_colours, "mask": _mask}
"""Readers of the arguments that are files."""


def _run_on_ranks(
    row: Row[Any, Any], options: Namespace, arguments: dict[str, Any]
) -> Report[Any] | None:
    """Run on all ranks; return the report on rank 0, which reads all files, None elsewhere.

    All ranks raise `AgreedError` if an option, the file or the graph cannot be used.
    """

    def work(communicator: Communicator) -> Report[Any] | None:
        from hetero_bfs.engine.rank_engine import RankEngine
        from hetero_bfs.ranks.communicator import done_by_first

        where = engine_options(options)
        early = done_by_first(communicator, lambda: _ask_early(row, options, arguments))
        early.kind.check_ranks(where)
        needs_weights = early.kind.needs_weights
        given = options.format if isinstance(options.graph, Path) else None  # a `GraphFile` has it
        wanted = options.directed, options.renumber, options.columns, given
        settings = where.settings()
        engine = RankEngine.read(options.graph, needs_weights, communicator, *wanted, **settings)
        if engine.edges is not None:
            print_gaps(options.graph, engine.edges)
        asked, values = done_by_first(communicator, lambda: _resolved(engine.edges, arguments))
        result = getattr(engine, row.name)(**(asked | values))
        if engine.edges is None:
            return None
        print_notes(engine.notes)
        report: Report[Any] = early.kind.report(engine.edges, result, asked, values)
        report.note_ranks(engine)
        return report

    return run_together(work)


def _save(row: Row[Any, Any], options: Namespace, report: Report[Any]) -> None:
    names = getattr(report.edges, "names", None)
    for option, output in row.outputs.items():
        path = getattr(options, option)
        if path is not None:
            values = getattr(report.result, output.attribute)
            save_values(path, {output.attribute: values}, names)
    if options.trace is not None:
        write_trace(options.trace, (trace.row() for trace in report.result.traces))


def write_report(options: Namespace, report: Report[Any], **more: Any) -> None:
    """Write the JSON, with `more` fields at the end."""
    summary = {"graph": str(options.graph), **report.summary(), **more}
    write_record(options.json, summary, report.device)


def print_report(options: Namespace, report: Report[Any], valid: str = "") -> None:
    text = text_stream(options)
    print(*report.text(valid), sep="\n", file=text)
    if options.verbose:
        if report.place_reason is not None:
            print(f"place {report.place_reason}", file=text)
        print(report.table(), file=text)
