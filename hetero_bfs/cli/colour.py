"""`hetero-bfs colour`: a colour for each vertex of a graph file."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import numpy as np

from hetero_bfs.algorithms.colouring.algorithm import Colourings
from hetero_bfs.algorithms.colouring.check import check_colouring
from hetero_bfs.algorithms.colouring.result import Colouring
from hetero_bfs.cli.analyses import device_line, run_analysis, save_result
from hetero_bfs.cli.output import text_stream, write_json
from hetero_bfs.graph.io.registry import read
from hetero_bfs.scheduling.iterations import format_iterations
from hetero_bfs.support.wording import number_of

_LARGEST_CLASSES = 5  # that are printed


def run(options: Namespace) -> int:
    """Carry out the command; returns the exit status."""
    edges = read(options.graph, options.directed)
    result, device = run_analysis(Colourings, edges, options, Colourings.colour)
    if options.validate:
        check_colouring(edges, result.colour).raise_if_invalid()
    save_result(options, result.colour, result.traces)
    summary = _summary(options, edges, result, device)
    _print_summary(options, result, summary)
    write_json(options.json, summary)
    return 0


def _summary(
    options: Namespace, edges: Any, result: Colouring, device: str | None
) -> dict[str, Any]:
    """Return what `--json` writes."""
    largest = np.argsort(-result.class_sizes, kind="stable")[:_LARGEST_CLASSES]
    return {
        "graph": str(options.graph),
        "num_vertices": edges.num_vertices,
        "num_input_edges": edges.num_input_edges,
        "num_colours": result.num_colours,
        "largest_classes": {str(colour): int(result.class_sizes[colour]) for colour in largest},
        "seconds": result.seconds,
        "iterations": result.iterations,
        "edges_scanned": result.edges_scanned,
        "device": device,
        "streamed_bytes": result.streamed_bytes,
        "valid": True if options.validate else None,
    }


def _print_summary(options: Namespace, result: Colouring, summary: dict[str, Any]) -> None:
    text = text_stream(options)
    classes = ", ".join(f"{colour}: {size}" for colour, size in summary["largest_classes"].items())
    print(
        f"{number_of(result.num_colours, 'colour')} for {summary['num_vertices']} vertices; "
        f"largest classes {classes or 'none'}\n"
        f"{number_of(result.iterations, 'iteration')}, {result.edges_scanned} edges scanned in "
        f"{1e3 * result.seconds:.3f} ms{', valid' if options.validate else ''}\n"
        f"{device_line(summary['device'], result)}",
        file=text,
    )
    if options.verbose:
        print(format_iterations(result.traces), file=text)
