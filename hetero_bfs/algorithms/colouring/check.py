"""Check of a colouring by a scan of all edges. Its code shares nothing with the algorithm."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.errors import CheckOutcome
from hetero_bfs.graph.edge_source import EdgeSource, check_edge_source, check_ends, typed_chunks
from hetero_bfs.support.checks import numbers_of_vertices


def check_colouring(edges: EdgeSource, colour: npt.NDArray[np.integer[Any]]) -> CheckOutcome:
    """Check that every vertex has a colour of at least 0, and that the ends of each edge differ.

    Self-loops are ignored.

    Parameters
    ----------
    edges : EdgeSource
    colour : integer array, shape (num_vertices,)

    Raises
    ------
    ArgumentError
        `edges` is not a source of edges, or the array has a wrong shape or does not hold integers.
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
