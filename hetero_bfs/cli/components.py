"""`hetero-bfs components`: the connected components of a graph file."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from hetero_bfs.algorithms.components.algorithm import ComponentRuns
from hetero_bfs.algorithms.components.check import check_components
from hetero_bfs.algorithms.components.result import Components
from hetero_bfs.cli.analyses import device_line, run_analysis, save_result
from hetero_bfs.cli.output import text_stream, write_json
from hetero_bfs.cli.rank_analyses import find_by_ranks
from hetero_bfs.graph.io.registry import read
from hetero_bfs.scheduling.iterations import format_iterations
from hetero_bfs.support.launcher import launched_ranks
from hetero_bfs.support.wording import number_of


def run(options: Namespace) -> int:
    """Carry out the command; returns the exit status."""
    device = None
    if launched_ranks() > 1:
        edges, result = find_by_ranks(options, lambda engine: engine.connected_components())
        if edges is None:
            return 0
    else:
        edges = read(options.graph, options.directed)
        result, device = run_analysis(ComponentRuns, edges, options, ComponentRuns.find)
    if options.validate:
        check_components(edges, result.component).raise_if_invalid()
    save_result(options, result.component, result.traces)
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
        "streamed_bytes": result.streamed_bytes,
        "valid": True if options.validate else None,
    }


def _print_summary(options: Namespace, result: Components, summary: dict[str, Any]) -> None:
    text = text_stream(options)
    print(
        f"{number_of(summary['num_components'], 'component')}, the largest of "
        f"{number_of(summary['largest'], 'vertex')}; {number_of(summary['alone'], 'vertex')} "
        "alone\n"
        f"{result.edges_scanned} edges scanned in {1e3 * result.seconds:.3f} ms"
        f"{', valid' if options.validate else ''}\n"
        f"{device_line(summary['device'], result)}",
        file=text,
    )
    if options.verbose:
        print(format_iterations(result.traces), file=text)
