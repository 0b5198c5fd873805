"""`hetero-bfs info` and `layers`: the contents of a graph file, and its graph layer by layer."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.components.serial import number_components
from hetero_bfs.cli.argument_groups import engine_options
from hetero_bfs.cli.commands import write_graph
from hetero_bfs.cli.output import (
    as_json,
    numbered,
    print_notes,
    read_graph,
    text_stream,
    write_record,
)
from hetero_bfs.errors import GraphFileError
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.io.graph_files import GraphFile
from hetero_bfs.graph.io.registry import check_output, read
from hetero_bfs.graph.lists import Lists
from hetero_bfs.graph.search_graph import as_given, layered
from hetero_bfs.graph.vertex_names import name_of
from hetero_bfs.support.memory import format_bytes


def run(options: Namespace) -> int:
    summary = describe_file(options)
    print(*_lines(summary), sep="\n", file=text_stream(options))
    write_record(options.json, summary)
    return 0


def describe_file(options: Namespace) -> dict[str, Any]:
    """Return the summary of a graph file, with its weights if it has some."""
    file = options.graph
    if not isinstance(file, GraphFile):  # it could not be opened; this says why
        file = GraphFile(file, options.format)
    wanted = options.renumber, options.columns
    try:
        found = read(file, options.directed, True, *wanted)
    except GraphFileError:  # it has no weights, or the next line says what is wrong
        found = read(file, options.directed, False, *wanted)
    form = f"{file.suffix}{file.compression}"
    summary = {"graph": str(file), "format": form, "file_bytes": file.num_bytes()}
    return summary | describe_graph(found)


def describe_graph(found: EdgeList | CSRGraph) -> dict[str, Any]:
    """Return sizes, degrees, weights and components of a graph.

    Degrees and edges do not count self-loops and duplicates; components are weakly connected ones.
    """
    graph = CSRGraph.from_edge_source(found) if isinstance(found, EdgeList) else found
    out_degree = np.diff(graph.indptr)
    in_degree = out_degree
    if graph.directed:
        in_degree = np.bincount(graph.indices, minlength=graph.num_vertices)
    label, count = number_components(Lists(graph.indptr, graph.indices))
    num_edges = graph.num_stored_edges // (1 if graph.directed else 2)
    return {
        "directed": graph.directed,
        "num_vertices": graph.num_vertices,
        "num_isolated": int(np.count_nonzero((out_degree == 0) & (in_degree == 0))),
        "num_input_edges": graph.num_input_edges,
        "num_edges": num_edges,
        "num_self_loops": graph.num_self_loops,
        "num_duplicates": graph.num_input_edges - graph.num_self_loops - num_edges,
        "out_degree": _figures(out_degree),
        "in_degree": _figures(in_degree),
        "weights": None if graph.weights is None else range_of(graph.weights),
        "num_components": count,
        "num_layers": None if graph.layers is None else graph.layers.size,
        "largest_component": int(np.bincount(label).max()) if label.size else 0,
        "memory_bytes": graph.num_bytes,
    }


def _figures(degree: npt.NDArray[np.int64]) -> dict[str, float] | None:
    if degree.size == 0:
        return None
    return {
        "min": int(degree.min()),
        "median": float(np.median(degree)),
        "mean": float(degree.mean()),
        "max": int(degree.max()),
    }


def range_of(values: npt.NDArray[Any]) -> dict[str, Any]:
    if values.size == 0:
        return {"dtype": str(values.dtype), "min": None, "max": None}
    least, most = as_json(values.min().item()), as_json(values.max().item())
    return {"dtype": str(values.dtype), "min": least, "max": most}


def _lines(summary: dict[str, Any]) -> list[str]:
    lines = [
        f"{summary['graph']}: {summary['format']}, {format_bytes(summary['file_bytes'])}",
        f"vertices    {summary['num_vertices']}, {summary['num_isolated']} of them isolated",
        f"edges       {summary['num_edges']} {'directed' * summary['directed'] or 'undirected'}; "
        f"also {summary['num_self_loops']} self-loops, {summary['num_duplicates']} duplicates",
    ]
    names = ("out_degree", "in_degree") if summary["directed"] else ("out_degree",)
    for name in names:
        label = name.replace("_", "-") if summary["directed"] else "degree"
        figures = summary[name] or {}
        shown = ", ".join(f"{key} {value:.6g}" for key, value in figures.items())
        lines.append(f"{label:<12}{shown or 'no vertices'}")
    weights = summary["weights"]
    shown = (
        "none" if weights is None else f"{weights['dtype']}, {weights['min']} to {weights['max']}"
    )
    if summary["num_layers"] is not None:
        lines.append(f"layers      {summary['num_layers']}, for mode layered of `run`")
    return [
        *lines,
        f"weights     {shown}",
        f"components  {summary['num_components']}, the largest has "
        f"{summary['largest_component']} vertices",
        f"memory      {format_bytes(summary['memory_bytes'])}",
    ]


def layers(options: Namespace) -> int:
    from hetero_bfs.programs.device_sweeps import heavy_edges, launches_of_sweep
    from hetero_bfs.programs.renumbered import PlacedGraph, by_level

    if options.out is not None:
        check_output(options.out, options.weighted, options.directed, layers=True)
    found, notes = engine_options(options).find_devices(1)
    print_notes(notes)
    edges = read_graph(options, options.graph, options.weighted)
    (root,) = numbered(edges, [options.root])
    graph = edges if isinstance(edges, CSRGraph) else CSRGraph.from_edge_source(edges)
    made = layered(graph, root)
    sizes = np.diff(np.asarray(made.layers), prepend=0)
    info = found[0] if found else None
    heavy = 0 if info is None else heavy_edges(info)
    arranged = by_level(PlacedGraph(as_given(made)), 0, heavy)
    summary = {
        "graph": str(options.graph),
        "root": name_of(edges, root),
        "num_vertices": made.num_vertices,
        "depth": sizes.size - 1,
        "layer_sizes": sizes.tolist(),
        "unreached": made.num_vertices - int(sizes.sum()),
        "combined_lists": len(arranged.parts),
        "launches": None if info is None else launches_of_sweep(arranged, info),
        "device": None if info is None else info.name,
    }
    text = text_stream(options)
    print(
        f"depth {sizes.size - 1}: layers of {sizes.min()} to {sizes.max()} vertices, median "
        f"{np.median(sizes):g}; not reached: {summary['unreached']}\n"
        f"parts of a sweep on the host: {summary['combined_lists']}",
        f"\nlaunches of a sweep on {info.name}: {summary['launches']}" if info else "",
        sep="",
        file=text,
    )
    if options.out is not None:
        write_graph(made, options.out, text)
    write_record(options.json, summary, info)
    return 0
