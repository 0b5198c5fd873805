"""`hetero-bfs layers`: a graph numbered layer by layer, for runs in mode layered."""

from __future__ import annotations

from argparse import Namespace

import numpy as np

from hetero_bfs.cli.argument_groups import engine_options
from hetero_bfs.cli.commands import write_graph
from hetero_bfs.cli.graphs import name_of, numbered, read_graph
from hetero_bfs.cli.output import print_notes, text_stream, write_record
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.io.registry import check_output
from hetero_bfs.graph.search_graph import as_given, layered
from hetero_bfs.programs.device_sweeps import heavy_edges, launches_of_sweep
from hetero_bfs.programs.renumbered import PlacedGraph, by_level


def run(options: Namespace) -> int:
    """Number a graph layer by layer, print what a sweep takes, and write the graph."""
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
