"""`hetero-bfs bfs`: search a graph file from one vertex."""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import Any

from hetero_bfs.algorithms.bfs.result import BFSResult
from hetero_bfs.algorithms.bfs.validate import raise_if_invalid, validate
from hetero_bfs.cli.engine_settings import engine_options
from hetero_bfs.cli.output import print_notes, save_array, text_stream, write_json
from hetero_bfs.graph.edge_source import EdgeSource, check_vertex
from hetero_bfs.graph.io.registry import read, vertices_by_header
from hetero_bfs.runtime.engine import Engine
from hetero_bfs.selection.trace import format_levels, write_csv


def run(options: Namespace) -> int:
    """Run the command; return the exit status."""
    named = vertices_by_header(options.graph)
    if named is not None:  # check the source before reading the edges
        check_vertex(options.source, named)
    edges = read(options.graph, options.directed)
    check_vertex(options.source, edges.num_vertices)
    with Engine(edges, **engine_options(options).settings()) as engine:
        result = engine.bfs(options.source)
    print_notes(engine.notes)
    if result.reached == 1:
        print(f"note: vertex {options.source} has no edge to another vertex", file=sys.stderr)
    if options.validate:
        raise_if_invalid(validate(edges, options.source, result.parent, result.level))
    for path, array in ((options.out, result.parent), (options.levels, result.level)):
        if path is not None:
            save_array(path, array)
    if options.trace is not None:
        write_csv(options.trace, (trace.row() for trace in result.traces))
    summary = _summary(options, edges, engine, result)
    _print_summary(options, engine, result, summary)
    write_json(options.json, summary)
    return 0


def _summary(
    options: Namespace, edges: EdgeSource, engine: Engine, result: BFSResult
) -> dict[str, Any]:
    """Return the summary that `--json` writes."""
    return {
        "graph": str(options.graph),
        "source": options.source,
        "num_vertices": edges.num_vertices,
        "num_input_edges": edges.num_input_edges,
        "reached": result.reached,
        "depth": int(result.level.max()),
        "nedge": result.nedge,
        "time_seconds": result.seconds,
        "gather_seconds": result.gather_seconds,
        "teps": result.teps,
        "selector": engine.selector.name,
        "optimize": _objective_figures(engine, result),
        "corrections": engine.corrections,
        "device": None if engine.device_info is None else engine.device_info.name,
        "strategies": [trace.strategy for trace in result.traces],
        "valid": True if options.validate else None,
    }


def _objective_figures(engine: Engine, result: BFSResult) -> dict[str, Any]:
    """Return the objective, and the search's joules by the model's watts."""
    objective = engine.objective
    if objective is None:
        return {"aim": "time"}
    return objective.to_dict() | {
        "model_joules": objective.joules(result.traces),
        "model_net_joules": objective.net_joules(result.traces),
    }


def _print_summary(
    options: Namespace, engine: Engine, result: BFSResult, summary: dict[str, Any]
) -> None:
    text = text_stream(options)
    print(
        f"reached {result.reached} of {summary['num_vertices']} vertices in {summary['depth']} "
        f"levels\n{result.nedge} edges in {1e3 * result.seconds:.3f} ms, "
        f"{result.teps / 1e6:.1f} MTEPS{', valid' if options.validate else ''}",
        file=text,
    )
    rule = result.rule and f" ({result.rule})"
    print(f"selector {engine.selector.name}{rule}, device {summary['device'] or 'none'}", file=text)
    if engine.objective is not None:
        figures = summary["optimize"]
        print(
            f"objective: least {engine.objective}\n{1e3 * figures['model_joules']:.4g} mJ by these "
            f"watts, {1e3 * figures['model_net_joules']:.4g} above idle",
            file=text,
        )
    if options.verbose:
        print(format_levels(result.traces), file=text)
