"""Connected components."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hetero_bfs.algorithms.base import Request
    from hetero_bfs.algorithms.components.result import Components


def connected_components(num_vertices: int) -> Request[Components]:
    """Find the connected components; in a directed graph, the weakly connected ones.

    Raises
    ------
    GraphError
        There is not enough free memory.
    """
    from hetero_bfs.algorithms.components.algorithm import REQUEST

    return REQUEST
