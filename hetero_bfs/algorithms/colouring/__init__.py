"""Graph colouring."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hetero_bfs.algorithms.base import Request
    from hetero_bfs.algorithms.colouring.result import Colouring


def colour(num_vertices: int, start: Any = None) -> Request[Colouring]:
    """Colour a graph so that no edge joins two vertices of the same colour.

    Vertices are coloured by falling degree, and by rising id among vertices of equal degree. Each
    gets the first colour that none of its neighbours has (Welsh and Powell, 1967). The colours are
    the same as by NetworkX's `greedy_color(strategy="largest_first")` on nodes in the order of
    their ids, on any device and with any number of threads. A directed graph is coloured as if it
    were undirected. Self-loops do not count.

    Parameters
    ----------
    start : integer array, shape (at most num_vertices,), optional
        A colouring of an earlier version of the graph, -1 where there is no colour. Vertices keep
        their colours. If an edge joins two vertices of one colour, the later one in the order above
        gets the first colour that none of its neighbours has. So do vertices without a colour. This
        runs on the CPU.

    Raises
    ------
    ArgumentError
        A wrong `start`.
    GraphError
        There is not enough free memory.
    """
    from hetero_bfs.algorithms.colouring.algorithm import requested

    return requested(num_vertices, start)
