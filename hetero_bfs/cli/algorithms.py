"""Commands of the algorithm table: `hetero-bfs sssp`, `components`, `colour`, `pagerank`."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hetero_bfs.algorithms.base import Report, open_analysis
from hetero_bfs.algorithms.table import Row, commands
from hetero_bfs.cli.argument_groups import engine_options
from hetero_bfs.cli.output import (
    may_have_names,
    name_of,
    numbered,
    print_notes,
    read_graph,
    run_together,
    save_values,
    text_stream,
    write_record,
    write_trace,
)
from hetero_bfs.devices.opencl.driver import NO_DEVICE
from hetero_bfs.errors import AgreedError
from hetero_bfs.graph.io.registry import vertices_by_header
from hetero_bfs.graph.io.vertex_values import read_values
from hetero_bfs.support.environment import launched_ranks
from hetero_bfs.support.memory import format_bytes

if TYPE_CHECKING:
    from hetero_bfs.devices.machine import DeviceInfo
    from hetero_bfs.ranks.communicator import Communicator

_MOST_VERTICES = 2**32


def run(options: Namespace) -> int:
    row = commands()[options.command]
    arguments = {name: getattr(options, name) for name in row.options}
    if launched_ranks() > 1:
        report, device = _run_on_ranks(row, options, arguments), None
    else:
        report, device = _run_here(row, options, arguments)
    if report is None:
        return 0
    print_notes(report.notes())
    outcome = report.check() if options.validate else None
    if outcome is not None:
        outcome.raise_if_invalid()
    _save(row, options, report)
    print_summary(options, report, device, ", valid" if outcome is not None else "")
    summary = summary_of(options, report, device)
    summary["valid"] = None if outcome is None else True
    write_record(options.json, summary, device)
    return 0


def _run_here(
    row: Row[Any, Any], options: Namespace, arguments: dict[str, Any]
) -> tuple[Report[Any], DeviceInfo | None]:
    """Run in this process; the second value is the device that ran it."""
    named, likely = None, _without_files(arguments)
    if "source" in arguments:
        if may_have_names(options):
            likely["source"] = 0
        else:
            named = vertices_by_header(options.graph)
    early = row.ask(_MOST_VERTICES if named is None else named, **likely)  # before it reads
    edges = read_graph(options, options.graph, early.kind.needs_weights)
    if "source" in arguments:
        (arguments["source"],) = numbered(edges, [arguments["source"]])
    start = arguments.get("start")
    if start is not None:
        names = getattr(edges, "names", None)
        arguments["start"] = read_values(start, "colour", edges.num_vertices, names, missing=-1)
    request = row.ask(edges.num_vertices, **arguments)
    with open_analysis(request.analysis, edges, engine_options(options)) as analysis:
        result = analysis.run(*request.query)
        print_notes(analysis.notes)
        device = analysis.device_info if result.used_device else None
        choice = analysis.choice
    shown = arguments if start is None else arguments | {"start": str(start)}
    report = request.analysis.report(edges, result, shown)
    report.place_reason = None if choice is None else str(choice)
    return report, device


def _without_files(arguments: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if not isinstance(value, Path)}


def _run_on_ranks(
    row: Row[Any, Any], options: Namespace, arguments: dict[str, Any]
) -> Report[Any] | None:
    """Run on all ranks; return the report on rank 0, None elsewhere.

    All ranks raise `AgreedError` if an option, the file or the graph cannot be used.
    """

    def work(communicator: Communicator) -> Report[Any] | None:
        from hetero_bfs.engine.rank_engine import RankEngine
        from hetero_bfs.ranks.communicator import agreed

        _check_options(options)
        early = agreed(communicator, lambda: row.ask(_MOST_VERTICES, **_without_files(arguments)))
        engine = RankEngine.read(
            options.graph, early.kind.needs_weights, communicator, options.directed
        )
        agreed(communicator, lambda: _refuse_names(engine.edges))
        result = getattr(engine, row.name)(**arguments)
        return (
            None if engine.edges is None else early.analysis.report(engine.edges, result, arguments)
        )

    return run_together(work)


def _refuse_names(edges: Any) -> None:
    if getattr(edges, "names", None) is not None:
        raise AgreedError(
            "vertices with names need a single process; start without mpirun, or convert the file "
            "to .sg"
        )


def _check_options(options: Namespace) -> None:
    refused = {
        "--device": engine_options(options).device not in (None, NO_DEVICE),
        "--device-memory": options.device_memory_bytes is not None,
        "--max-alloc": options.max_alloc_bytes is not None,
        "--order": options.order not in ("auto", "degree"),
        "--threads": options.threads not in (None, 1),
        "--renumber": options.renumber,
        "--columns": options.columns is not None,
    }
    for name, given in refused.items():
        if given:
            raise AgreedError(f"{name} needs a single process; start without mpirun")


def _save(row: Row[Any, Any], options: Namespace, report: Report[Any]) -> None:
    names = getattr(report.edges, "names", None)
    for option, output in row.outputs.items():
        path = getattr(options, option)
        if path is not None:
            values = getattr(report.result, output.attribute)
            save_values(path, {output.attribute: values}, names)
    if options.trace is not None:
        write_trace(options.trace, (trace.row() for trace in report.result.traces))


def summary_of(
    options: Namespace, report: Report[Any], device: DeviceInfo | None
) -> dict[str, Any]:
    edges, result = report.edges, report.result
    arguments = dict(report.arguments)
    if "source" in arguments:
        arguments["source"] = name_of(edges, arguments["source"])
    return {
        "graph": str(options.graph),
        **arguments,
        "num_vertices": edges.num_vertices,
        "num_input_edges": edges.num_input_edges,
        "seconds": result.seconds,
        "iterations": len(result.traces),
        **report.figures(),
        "device": None if device is None else device.name,
        "place_reason": report.place_reason,
        "streamed_bytes": result.streamed_bytes,
    }


def print_summary(
    options: Namespace, report: Report[Any], device: DeviceInfo | None, valid: str = ""
) -> None:
    text, result = text_stream(options), report.result
    named = "none" if device is None else device.name
    *lines, work = report.lines()
    sent = f", {format_bytes(result.streamed_bytes)} of lists sent" * bool(result.streamed_bytes)
    print(
        *lines,
        f"{work} in {1e3 * result.seconds:.3f} ms{valid}",
        f"device {named}{sent}",
        sep="\n",
        file=text,
    )
    if options.verbose:
        if report.place_reason is not None:
            print(f"place {report.place_reason}", file=text)
        print(report.table(), file=text)
