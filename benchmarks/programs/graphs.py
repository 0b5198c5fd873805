"""Graphs by name."""

from __future__ import annotations

import re

import numpy as np

from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.generators.kronecker import KroneckerEdges
from hetero_bfs.graph.io.registry import read

_LARGEST_WEIGHT = 255


def make_graph(
    name: str, weighted: bool, draws: bool, weight_type: str = "int32"
) -> EdgeList | CSRGraph:
    """Return kroneckerN, gridN or a file's graph.

    If `weighted`, generated graphs get random weights of the type, and with `draws` files do, too.
    """
    generated = re.fullmatch(r"(kronecker|grid)(\d+)", name)
    if generated is None and not (weighted and draws):
        return read(name, weighted=weighted)
    if generated is None:
        edges = read(name)
    elif generated[1] == "kronecker":
        edges = KroneckerEdges(int(generated[2])).materialise()
    else:
        edges = _grid(int(generated[2]))
    if not weighted:
        return edges
    drawn = np.random.default_rng(27491095).integers(1, _LARGEST_WEIGHT + 1, edges.src.size)
    return EdgeList(edges.src, edges.dst, edges.num_vertices, weights=drawn.astype(weight_type))


def _grid(size: int) -> EdgeList:
    ids = np.arange(size * size, dtype=np.uint32).reshape(size, size)
    src = np.concatenate([ids[:, :-1].ravel(), ids[:-1].ravel()])
    dst = np.concatenate([ids[:, 1:].ravel(), ids[1:].ravel()])
    return EdgeList(src, dst, size * size)
