"""Busy neighbours: a small algorithm that has all an algorithm needs, for test_algorithm_table.py.

The others of this package are in hetero_bfs/algorithms; docs/development/add-an-algorithm.md names
the files and what is in each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hetero_bfs.algorithms.base import Request
    from toy_algorithm.result import BusyNeighbours


def busy_neighbours(num_vertices: int, least: int = 2) -> Request[BusyNeighbours]:
    """Count the neighbours of each vertex that have many edges.

    In a directed graph those are the starts of the edges that lead to a vertex.

    Parameters
    ----------
    least : int
        Edges that start at such a neighbour, at least.

    Raises
    ------
    ArgumentError
        A wrong `least`.
    """
    from toy_algorithm.algorithm import requested

    return requested(least)
