"""Cut a ball of vertices out of an edge list: those nearest to a vertex, renumbered from 0 on.

    python tests/data/cut.py moscow-roads.txt.gz tests/data/moscow-centre.txt.gz

Edges stay in the order and with the loops and duplicates of the file; comments stay too, but for
the header that counts. Prints what tests/support/real_graphs.py wants to know, computed by SciPy.
"""

from __future__ import annotations

import argparse
import gzip
from pathlib import Path

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import breadth_first_order, dijkstra


def main() -> None:
    """Read, cut, write, and print the facts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--vertex", type=int, default=1522, help="the middle")
    parser.add_argument("--size", type=int, default=30_000, help="vertices to keep")
    arguments = parser.parse_args()
    text = gzip.decompress(arguments.source.read_bytes()).decode()
    comments = [line for line in text.splitlines() if line.startswith("#")]
    edges = np.loadtxt(text.splitlines(), np.int64, comments="#", ndmin=2)
    size = int(edges.max()) + 1
    ball = breadth_first_order(_adjacency(edges, size), arguments.vertex, directed=False)[0]
    number = np.full(size, -1)
    kept = np.sort(ball[: arguments.size])
    number[kept] = np.arange(kept.size)
    edges = number[edges]
    edges = edges[(edges >= 0).all(axis=1)]
    head = [line for line in comments if "Nodes:" not in line]
    head.insert(1, f"# The {kept.size} vertices nearest to vertex {arguments.vertex}, renumbered")
    head.insert(2, f"# Nodes: {kept.size} Edges: {len(edges)}")
    lines = [*head, *(f"{u}\t{v}" for u, v in edges)]
    arguments.target.write_bytes(gzip.compress("\n".join([*lines, ""]).encode(), 9, mtime=0))
    print_facts(edges, int(number[arguments.vertex]), kept.size)


def _adjacency(edges: np.ndarray, size: int) -> coo_array:
    return coo_array((np.ones(len(edges)), edges.T), (size, size)).tocsr()


def print_facts(edges: np.ndarray, source: int, size: int) -> None:
    """Print the facts of an edge list of `size` vertices, as an undirected graph."""
    simple = np.unique(np.sort(edges[edges[:, 0] != edges[:, 1]], axis=1), axis=0)
    distance = dijkstra(_adjacency(edges, size), directed=False, indices=source, unweighted=True)
    reached = np.isfinite(distance)
    print(f"vertices {size}, edge lines {len(edges)}, edges {len(simple)}")
    print(f"greatest degree {np.bincount(simple.ravel()).max()}, source {source}")
    print(f"reached {reached.sum()}, levels {int(distance[reached].max())}")


if __name__ == "__main__":
    main()
