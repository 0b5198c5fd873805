"""Graph colouring."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hetero_bfs.algorithms.base import Request
    from hetero_bfs.algorithms.colouring.result import Colouring


def colour(num_vertices: int) -> Request[Colouring]:
    """Colour a graph so that no edge joins two vertices of the same colour.

    Vertices are coloured by falling degree, and by rising id among vertices of equal degree. Each
    gets the first colour that none of its neighbours has (Welsh and Powell, 1967). The colours are
    those of NetworkX's `greedy_color(strategy="largest_first")` on nodes in the order of their ids,
    on any device and with any number of threads. A directed graph is coloured as if it were
    undirected. Self-loops do not count.

    Raises
    ------
    GraphError
        There is not enough free memory.
    """
    from hetero_bfs.algorithms.colouring.algorithm import REQUEST

    return REQUEST
