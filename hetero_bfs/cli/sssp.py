"""`hetero-bfs sssp`: shortest paths from one vertex of a weighted graph file."""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import Any

import numpy as np

from hetero_bfs.algorithms.sssp.algorithm import PathSearches
from hetero_bfs.algorithms.sssp.check import check_paths
from hetero_bfs.algorithms.sssp.result import ShortestPaths, format_windows
from hetero_bfs.cli.analyses import device_line, run_analysis, save_result
from hetero_bfs.cli.output import save_array, text_stream, write_json
from hetero_bfs.cli.rank_analyses import find_by_ranks
from hetero_bfs.graph.edge_source import check_vertex
from hetero_bfs.graph.io.registry import read, vertices_by_header
from hetero_bfs.support.launcher import launched_ranks
from hetero_bfs.support.wording import number_of


def run(options: Namespace) -> int:
    """Carry out the command; returns the exit status."""
    source, device = options.source, None
    if launched_ranks() > 1:
        edges, result = find_by_ranks(options, lambda engine: engine.sssp(source), weighted=True)
        if edges is None:
            return 0
    else:
        named = vertices_by_header(options.graph)
        if named is not None:  # a wrong source is found before anything is read
            check_vertex(source, named)
        edges = read(options.graph, options.directed, weighted=True)
        check_vertex(source, edges.num_vertices)
        result, device = run_analysis(
            PathSearches, edges, options, lambda searches, place: searches.search(source, place)
        )
    if result.reached == 1:
        print(f"note: no edge leads from vertex {options.source} to another", file=sys.stderr)
    if options.validate:
        check_paths(edges, options.source, result.distance, result.parent).raise_if_invalid()
    save_result(options, result.distance, result.traces)
    if options.parents is not None:
        save_array(options.parents, result.parent)
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
        "streamed_bytes": result.streamed_bytes,
        "valid": True if options.validate else None,
    }


def _print_summary(options: Namespace, result: ShortestPaths, summary: dict[str, Any]) -> None:
    text = text_stream(options)
    print(
        f"reached {result.reached} of {summary['num_vertices']} vertices, the furthest at distance "
        f"{summary['largest_distance']:.9g}\n"
        f"{number_of(summary['iterations'], 'window')}, {result.edges_scanned} edges scanned in "
        f"{1e3 * result.seconds:.3f} ms{', valid' if options.validate else ''}\n"
        f"{device_line(summary['device'], result)}",
        file=text,
    )
    if options.verbose:
        print(format_windows(result.traces), file=text)
