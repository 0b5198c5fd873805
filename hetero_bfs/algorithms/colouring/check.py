"""The check of a colouring: a scan of all edges, in code that shares nothing with it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.check_outcome import CheckOutcome
from hetero_bfs.graph.edge_source import (
    EdgeSource,
    check_edge_source,
    check_ends,
    typed_chunks,
)
from hetero_bfs.support.checks import numbers_of_vertices


def check_colouring(edges: EdgeSource, colour: npt.NDArray[np.integer[Any]]) -> CheckOutcome:
    """Check that every vertex has a colour of at least 0, and that no edge joins equal ones.

    A self-loop joins no two vertices.

    Parameters
    ----------
    edges : EdgeSource
    colour : integer array, shape (num_vertices,)

    Raises
    ------
    ArgumentError
        An array of another shape, or of no integers.
    GraphError
        Colours are masked.
    """
    check_edge_source(edges)
    colour = numbers_of_vertices("colour", colour, edges.num_vertices)
    if colour.size and colour.min() < 0:
        v = int(colour.argmin())
        return CheckOutcome(False, f"check 1 (all are coloured): vertex {v} has {colour[v]}")
    for src, dst in typed_chunks(edges):
        check_ends(src, dst, edges.num_vertices)
        wrong = (colour[src] == colour[dst]) & (src != dst)
        if wrong.any():
            i = int(wrong.argmax())
            return CheckOutcome(
                False,
                f"check 2 (ends of edges differ): edge ({src[i]}, {dst[i]}) joins two vertices of "
                f"colour {colour[src[i]]}",
            )
    return CheckOutcome(True, f"valid; {np.unique(colour).size} colours")
