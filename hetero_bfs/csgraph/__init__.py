"""Functions of `scipy.sparse.csgraph`, computed by this package's searches.

Arguments and results are SciPy's: replace the import by `from hetero_bfs import csgraph`.
"""

from hetero_bfs.csgraph.matrix_searches import (
    breadth_first_order,
    connected_components,
    dijkstra,
    shortest_path,
)

__all__ = ["breadth_first_order", "connected_components", "dijkstra", "shortest_path"]
