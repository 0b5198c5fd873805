"""`hetero-bfs convert`: from one graph format to another."""

from __future__ import annotations

from argparse import Namespace

from hetero_bfs.graph.io.registry import read, write


def run(options: Namespace) -> int:
    """Run the command; return the exit status."""
    graph = read(options.input, options.directed)
    write(graph, options.output)
    print(
        f"{options.output}: {graph.num_vertices} vertices, {graph.num_input_edges} input edges, "
        f"{options.output.stat().st_size} bytes"
    )
    return 0
