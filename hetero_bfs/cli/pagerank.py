"""`hetero-bfs pagerank`: the ranks of a graph file's vertices."""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import Any

from hetero_bfs.algorithms.pagerank.algorithm import ranks_kind
from hetero_bfs.algorithms.pagerank.check import check_pagerank
from hetero_bfs.algorithms.pagerank.lists import check_settings
from hetero_bfs.algorithms.pagerank.result import PageRank
from hetero_bfs.cli.analyses import device_line, run_analysis, save_result
from hetero_bfs.cli.output import text_stream, write_json
from hetero_bfs.cli.rank_analyses import find_by_ranks
from hetero_bfs.graph.io.registry import read
from hetero_bfs.scheduling.iterations import format_iterations
from hetero_bfs.support.launcher import launched_ranks
from hetero_bfs.support.wording import number_of

_HIGHEST = 5  # vertices that are printed


def run(options: Namespace) -> int:
    """Carry out the command; returns the exit status."""
    given, device = (options.alpha, options.tol, options.max_iter), None
    if launched_ranks() > 1:
        weighted = options.weighted
        edges, result = find_by_ranks(
            options, lambda engine: engine.pagerank(*given, weighted), weighted
        )
        if edges is None:
            return 0
    else:
        check_settings(1, *given)  # before anything is read
        edges = read(options.graph, options.directed, weighted=options.weighted)
        settings = check_settings(edges.num_vertices, *given)
        result, device = run_analysis(
            ranks_kind(options.weighted),
            edges,
            options,
            lambda ranks, place: ranks.rank(settings, place),
        )
    num_loops = edges.num_self_loops
    if num_loops:
        verb = "does" if num_loops == 1 else "do"
        print(f"note: {number_of(num_loops, 'self-loop')} {verb} not count", file=sys.stderr)
    if not result.converged:
        print(
            f"note: not converged after {number_of(result.iterations, 'iteration')}, change "
            f"{result.change:.3g} instead of {options.tol * edges.num_vertices:.3g}; give a larger "
            "--max-iter or --tol",
            file=sys.stderr,
        )
    valid = options.validate and result.converged  # nothing is promised otherwise
    if valid:
        check = check_pagerank(edges, result.rank, options.alpha, options.tol, options.weighted)
        check.raise_if_invalid()
    save_result(options, result.rank, result.traces)
    summary = _summary(options, edges, result, device, valid or None)
    _print_summary(options, result, summary)
    write_json(options.json, summary)
    return 0


def _summary(
    options: Namespace, edges: Any, result: PageRank, device: str | None, valid: bool | None
) -> dict[str, Any]:
    """Return what `--json` writes."""
    return {
        "graph": str(options.graph),
        "num_vertices": edges.num_vertices,
        "num_input_edges": edges.num_input_edges,
        "num_self_loops": edges.num_self_loops,
        "alpha": options.alpha,
        "tol": options.tol,
        "highest": [{"vertex": v, "rank": rank} for v, rank in result.highest(_HIGHEST)],
        "seconds": result.seconds,
        "iterations": result.iterations,
        "change": result.change,
        "converged": result.converged,
        "device": device,
        "streamed_bytes": result.streamed_bytes,
        "valid": valid,
    }


def _print_summary(options: Namespace, result: PageRank, summary: dict[str, Any]) -> None:
    text = text_stream(options)
    print(f"{'vertex':>12} {'rank':>12}", file=text)
    for vertex, rank in result.highest(_HIGHEST):
        print(f"{vertex:>12} {rank:>12.6g}", file=text)
    print(
        f"{number_of(result.iterations, 'iteration')}, change {result.change:.3g}, in "
        f"{1e3 * result.seconds:.3f} ms{', valid' if summary['valid'] else ''}\n"
        f"{device_line(summary['device'], result)}",
        file=text,
    )
    if options.verbose:
        print(format_iterations(result.traces), file=text)
