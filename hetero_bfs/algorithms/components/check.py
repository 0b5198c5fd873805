"""Check of connected components. Its code shares nothing with the algorithm.

1. A label is a vertex that is its own label, and no label exceeds its vertex's id.
2. Both ends of each edge have the same label.
3. The number of labels is that of components, which are counted independently.

By check 2, each component has one label. By check 3, no label has several components. By check 1,
the label is the smallest vertex.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.errors import CheckOutcome
from hetero_bfs.graph.edge_source import check_edge_source, check_ends, typed_chunks
from hetero_bfs.support.checks import numbers_of_vertices

_Ids = npt.NDArray[np.int64]


def check_components(edges: Any, component: npt.NDArray[np.integer[Any]]) -> CheckOutcome:
    """Check the labels of connected components against all edges, whatever their direction.

    Parameters
    ----------
    edges : EdgeSource
    component : integer array, shape (num_vertices,)
        The smallest vertex of each vertex's component.

    Raises
    ------
    ArgumentError
        `edges` is not a source of edges, or the array has a wrong shape or does not hold integers.
    GraphError
        Labels are masked.
    """
    check_edge_source(edges)
    n = edges.num_vertices
    label = numbers_of_vertices("component", component, n).astype(np.int64)
    failure = _check_labels(label) or _check_edges(edges, label)
    labels = np.unique(label).size
    if failure is None and labels != (components := _count_components(edges)):
        failure = f"check 3 (number): {labels} labels for {components} components"
    return CheckOutcome(failure is None, failure or f"valid; {labels} components")


def _check_labels(label: _Ids) -> str | None:
    wrong = (label < 0) | (label > np.arange(label.size))
    if not wrong.any():
        wrong = label[label] != label
    if wrong.any():
        v = int(wrong.argmax())
        return f"check 1 (labels): vertex {v} has label {label[v]}, which is not its least vertex"
    return None


def _check_edges(edges: Any, label: _Ids) -> str | None:
    for src, dst in typed_chunks(edges):
        check_ends(src, dst, label.size)
        wrong = label[src] != label[dst]
        if wrong.any():
            i = int(wrong.argmax())
            u, v = src[i], dst[i]
            return f"check 2 (edges): edge ({u}, {v}) joins the labels {label[u]} and {label[v]}"
    return None


def _count_components(edges: Any) -> int:
    """Count the trees that remain after each edge has joined the trees of its ends."""
    above = np.arange(edges.num_vertices)
    for src, dst in typed_chunks(edges):
        u, v = above[src], above[dst]
        while (differing := u != v).any():
            u, v = u[differing], v[differing]
            np.minimum.at(above, np.maximum(u, v), np.minimum(u, v))
            while ((further := above[above]) != above).any():
                above = further
            u, v = above[u], above[v]
    return int((above == np.arange(above.size)).sum())
