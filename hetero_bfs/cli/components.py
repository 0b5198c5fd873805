"""`hetero-bfs components`: the connected components of a graph file."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from hetero_bfs.algorithms.components.check_components import check_components
from hetero_bfs.algorithms.components.component_result import Components
from hetero_bfs.algorithms.iterations import format_iterations
from hetero_bfs.cli.engine_settings import engine_options
from hetero_bfs.cli.output import print_notes, save_array, text_stream, write_json
from hetero_bfs.graph.io.registry import read
from hetero_bfs.runtime.analysis import open_analysis
from hetero_bfs.runtime.component_runs import ComponentRuns
from hetero_bfs.runtime.places import Place
from hetero_bfs.selection.trace import write_csv


def run(options: Namespace) -> int:
    """Carry out the command; returns the exit status."""
    edges = read(options.graph, options.directed)
    with open_analysis(ComponentRuns, edges, engine_options(options)) as runs:
        print_notes(runs.notes)
        place: Place | None = "device" if options.device is not None else None
        result = runs.find(place)
        device = runs.device_name if result.used_device else None
    if options.validate:
        check_components(edges, result.component).raise_if_invalid()
    if options.out is not None:
        save_array(options.out, result.component)
    if options.trace is not None:
        write_csv(options.trace, (trace.row() for trace in result.traces))
    summary = _summary(options, edges, result, device)
    _print_summary(options, result, summary)
    write_json(options.json, summary)
    return 0


def _summary(
    options: Namespace, edges: Any, result: Components, device: str | None
) -> dict[str, Any]:
    """Return what `--json` writes."""
    return {
        "graph": str(options.graph),
        "num_vertices": edges.num_vertices,
        "num_input_edges": edges.num_input_edges,
        "num_components": result.num_components,
        "largest": int(result.sizes.max(initial=0)),
        "alone": int((result.sizes == 1).sum()),
        "seconds": result.seconds,
        "restore_seconds": result.restore_seconds,
        "iterations": result.iterations,
        "edges_scanned": result.edges_scanned,
        "device": device,
        "valid": True if options.validate else None,
    }


def _print_summary(options: Namespace, result: Components, summary: dict[str, Any]) -> None:
    text = text_stream(options)
    print(
        f"{summary['num_components']} components, the largest of {summary['largest']} vertices; "
        f"{summary['alone']} vertices alone\n"
        f"{result.edges_scanned} edges scanned in {1e3 * result.seconds:.3f} ms"
        f"{', valid' if options.validate else ''}\n"
        f"device {summary['device'] or 'none'}",
        file=text,
    )
    if options.verbose:
        print(format_iterations(result.traces), file=text)
