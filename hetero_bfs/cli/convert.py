"""`hetero-bfs convert`: from one graph format to another."""

from __future__ import annotations

from argparse import Namespace

from hetero_bfs.graph.io.registry import check_output, read, write


def run(options: Namespace) -> int:
    check_output(options.output, options.weighted)
    graph = read(options.input, options.directed, options.weighted)
    write(graph, options.output)
    print(
        f"{options.output}: {graph.num_vertices} vertices, {graph.num_input_edges} input edges, "
        f"{options.output.stat().st_size} bytes"
    )
    return 0
