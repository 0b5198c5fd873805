"""Connected components by one thread, without an engine."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from hetero_bfs.algorithms.bfs.serial import as_matrix, fits_scipy
from hetero_bfs.algorithms.components.result import Components
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_source import VertexArray
from hetero_bfs.graph.lists import Lists
from hetero_bfs.scheduling.trace import SERIAL, numbered
from hetero_bfs.support.cold import is_cold, scipy_seconds


class Numbered(NamedTuple):
    """Each vertex's component, uint32 (num_vertices,), numbered by first vertices; their number."""

    label: VertexArray
    total: int


def number_components(lists: Lists) -> Numbered:
    """Number the components, in directed lists the weakly connected ones. Lists must be valid."""
    seconds = scipy_seconds(lists[1].size)
    if fits_scipy(lists) and is_cold("components", seconds):
        from scipy.sparse.csgraph import connected_components

        count, found = connected_components(as_matrix(lists))
        return Numbered(found.view(np.uint32), int(count))
    from hetero_bfs.algorithms.components.kernels import label_in_order

    label = np.empty(lists.indptr.size - 1, np.uint32)
    return Numbered(label, int(label_in_order(*lists, label)))


def answer_serially(graph: CSRGraph) -> Components:
    """Find the components; the trace has one record, of the strategy "serial"."""
    began = time.perf_counter()
    label, count = number_components(Lists(graph.indptr, graph.indices))
    seconds = time.perf_counter() - began
    is_first = np.diff(np.maximum.accumulate(label).astype(np.int64), prepend=-1) > 0
    component = np.flatnonzero(is_first)[label]
    traces = numbered([(SERIAL, graph.num_vertices, graph.num_stored_edges, seconds)])
    return Components(component, count, seconds, time.perf_counter() - began - seconds, traces)
