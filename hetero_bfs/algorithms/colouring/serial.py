"""Colouring in Python: answers while the kernels are compiled."""

from __future__ import annotations

import time

import numpy as np

from hetero_bfs.algorithms.bfs.serial import as_matrix
from hetero_bfs.algorithms.colouring.result import Colouring
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.lists import Lists
from hetero_bfs.scheduling.trace import SERIAL, numbered


def colour_in_python(graph: CSRGraph) -> Colouring:
    """Give each vertex, by falling degree, the first colour that no coloured neighbour has."""
    began = time.perf_counter()
    matrix = as_matrix(Lists(graph.indptr, graph.indices))
    if graph.directed:
        matrix = (matrix + matrix.T).tocsr()
    degree = np.diff(matrix.indptr)
    ends, neighbours = matrix.indptr.tolist(), matrix.indices.tolist()
    colour = [-1] * graph.num_vertices
    for v in np.argsort(-degree.astype(np.int64), kind="stable").tolist():
        taken = {colour[u] for u in neighbours[ends[v] : ends[v + 1]]}
        first = 0
        while first in taken:
            first += 1
        colour[v] = first
    seconds = time.perf_counter() - began
    traces = numbered([(SERIAL, graph.num_vertices, len(neighbours), seconds)])
    return Colouring(np.array(colour, np.int32), seconds, traces)
