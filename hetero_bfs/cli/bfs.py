"""`hetero-bfs bfs`: search a graph file from one vertex or several."""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.base import Request
from hetero_bfs.algorithms.bfs.algorithm import Searches
from hetero_bfs.algorithms.bfs.check import raise_if_invalid, validate
from hetero_bfs.algorithms.bfs.query import Query, check_query
from hetero_bfs.algorithms.bfs.result import BFSResult
from hetero_bfs.cli.argument_groups import engine_options
from hetero_bfs.cli.output import (
    may_have_names,
    name_of,
    numbered,
    print_notes,
    read_graph,
    save_values,
    text_stream,
    write_record,
    write_trace,
)
from hetero_bfs.engine.engine import Engine
from hetero_bfs.graph.edge_source import EdgeSource
from hetero_bfs.graph.io.graph_files import read_vertices
from hetero_bfs.graph.io.registry import vertices_by_header
from hetero_bfs.graph.search_graph import SearchGraph, build_search_graph
from hetero_bfs.scheduling.trace import format_levels


def run(options: Namespace) -> int:
    named = may_have_names(options)
    counted = None if named else vertices_by_header(options.graph)
    mask = None if options.mask is None else read_vertices(options.mask, named)
    if counted is not None:  # check the vertices before reading the edges
        _query(options, counted, mask)
    edges = read_graph(options, options.graph, weighted=False)
    options.source = numbered(edges, options.source)
    if options.target is not None:
        (options.target,) = numbered(edges, [options.target])
    if mask is not None and named and mask.dtype != bool:
        mask = np.array(numbered(edges, mask.tolist()), np.int64)
    query = _query(options, edges.num_vertices, mask)
    searched: EdgeSource | SearchGraph = edges
    if query.reverse:
        searched = build_search_graph(edges, engine_options(options).order).reversed()
    with Engine(searched, **engine_options(options).settings()) as engine:
        result = engine.answer(Request(Searches, (query,)))
    print_notes(engine.notes)
    if result.reached == 1 and query.is_whole:
        print(
            f"note: vertex {name_of(edges, result.source)} has no edge to another vertex",
            file=sys.stderr,
        )
    if options.validate:
        _validate(edges, query, result)
    for path, column in ((options.out, "parent"), (options.levels, "level")):
        if path is not None:
            save_values(path, {column: getattr(result, column)}, edges.names)
    if options.trace is not None:
        write_trace(options.trace, (trace.row() for trace in result.traces))
    summary = _summary(options, edges, engine, result)
    _print_summary(options, edges, engine, result, summary)
    write_record(options.json, summary, engine.device_info)
    return 0


def _query(options: Namespace, num_vertices: int, mask: npt.NDArray[Any] | None) -> Query:
    return check_query(
        num_vertices,
        options.source,
        options.depth_limit,
        options.target,
        mask,
        options.reverse,
        dtype=options.dtype,
    )


def _validate(edges: EdgeSource, query: Query, result: BFSResult) -> None:
    outcome = validate(
        edges,
        query.sources if len(query.sources) > 1 else query.sources[0],
        result.parent,
        result.level,
        depth_limit=query.depth_limit,
        target=query.target,
        mask=query.mask,
        reverse=query.reverse,
    )
    raise_if_invalid(outcome)


def _path(options: Namespace, edges: EdgeSource, result: BFSResult) -> list[int | str] | None:
    if options.target is None or result.parent[options.target] < 0:
        return None
    return [name_of(edges, vertex) for vertex in result.path(options.target).tolist()]


def _summary(
    options: Namespace, edges: EdgeSource, engine: Engine, result: BFSResult
) -> dict[str, Any]:
    model = engine.selector.model
    return {
        "graph": str(options.graph),
        "source": name_of(edges, result.source),
        "sources": [name_of(edges, source) for source in result.sources],
        "path": _path(options, edges, result),
        "num_vertices": edges.num_vertices,
        "num_input_edges": edges.num_input_edges,
        "reached": result.reached,
        "depth": int(result.level.max()),
        "nedge": result.nedge,
        "time_seconds": result.seconds,
        "gather_seconds": result.gather_seconds,
        "teps": result.teps,
        "selector": engine.selector.name,
        "rule": result.rule or None,
        "model": None if model is None else model.origin,
        "corrections": engine.corrections,
        "device": None if engine.device_info is None else engine.device_info.name,
        "strategies": [trace.strategy for trace in result.traces],
        "valid": True if options.validate else None,
    }


def _print_summary(
    options: Namespace,
    edges: EdgeSource,
    engine: Engine,
    result: BFSResult,
    summary: dict[str, Any],
) -> None:
    text = text_stream(options)
    print(
        f"reached {result.reached} of {summary['num_vertices']} vertices in {summary['depth']} "
        f"levels\n{result.nedge} edges in {1e3 * result.seconds:.3f} ms, "
        f"{result.teps / 1e6:.1f} MTEPS{', valid' if options.validate else ''}",
        file=text,
    )
    if options.target is not None:
        path = summary["path"]
        found = "is not reached" if path is None else f"path {' '.join(map(str, path))}"
        print(f"target {name_of(edges, options.target)}: {found}", file=text)
    rule = result.rule and f" ({result.rule})"
    print(f"selector {engine.selector.name}{rule}, device {summary['device'] or 'none'}", file=text)
    if options.verbose:
        print(format_levels(result.traces), file=text)
