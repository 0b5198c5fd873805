"""`hetero-bfs sssp`: shortest paths from one vertex of a weighted graph file."""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import Any

import numpy as np

from hetero_bfs.algorithms.sssp.check_paths import check_paths
from hetero_bfs.algorithms.sssp.paths import ShortestPaths, format_windows
from hetero_bfs.cli.engine_settings import engine_options
from hetero_bfs.cli.output import print_notes, save_array, text_stream, write_json
from hetero_bfs.graph.edge_source import check_vertex
from hetero_bfs.graph.io.registry import read, vertices_by_header
from hetero_bfs.runtime.analysis import open_analysis
from hetero_bfs.runtime.path_searches import PathSearches
from hetero_bfs.runtime.places import Place
from hetero_bfs.selection.trace import write_csv


def run(options: Namespace) -> int:
    """Carry out the command; returns the exit status."""
    named = vertices_by_header(options.graph)
    if named is not None:  # a wrong source is found before anything is read
        check_vertex(options.source, named)
    edges = read(options.graph, options.directed, weighted=True)
    check_vertex(options.source, edges.num_vertices)
    with open_analysis(PathSearches, edges, engine_options(options)) as searches:
        print_notes(searches.notes)
        place: Place | None = "device" if options.device is not None else None
        result = searches.search(options.source, place)
        device = searches.device_name if result.used_device else None
    if result.reached == 1:
        print(f"note: no edge leads from vertex {options.source} to another", file=sys.stderr)
    if options.validate:
        check_paths(edges, options.source, result.distance, result.parent).raise_if_invalid()
    if options.out is not None:
        save_array(options.out, result.distance)
    if options.parents is not None:
        save_array(options.parents, result.parent)
    if options.trace is not None:
        write_csv(options.trace, (trace.row() for trace in result.traces))
    summary = _summary(options, edges, result, device)
    _print_summary(options, result, summary)
    write_json(options.json, summary)
    return 0


def _summary(
    options: Namespace, edges: Any, result: ShortestPaths, device: str | None
) -> dict[str, Any]:
    """Return what `--json` writes."""
    reached = np.isfinite(result.distance)
    return {
        "graph": str(options.graph),
        "source": options.source,
        "num_vertices": edges.num_vertices,
        "num_input_edges": edges.num_input_edges,
        "weights": str(edges.weight_dtype),
        "reached": result.reached,
        "largest_distance": float(result.distance[reached].max()),
        "seconds": result.seconds,
        "iterations": len(result.traces),
        "edges_scanned": result.edges_scanned,
        "device": device,
        "valid": True if options.validate else None,
    }


def _print_summary(options: Namespace, result: ShortestPaths, summary: dict[str, Any]) -> None:
    text = text_stream(options)
    print(
        f"reached {result.reached} of {summary['num_vertices']} vertices, the furthest at distance "
        f"{summary['largest_distance']:.9g}\n"
        f"{summary['iterations']} windows, {result.edges_scanned} edges scanned in "
        f"{1e3 * result.seconds:.3f} ms{', valid' if options.validate else ''}\n"
        f"device {summary['device'] or 'none'}",
        file=text,
    )
    if options.verbose:
        print(format_windows(result.traces), file=text)
