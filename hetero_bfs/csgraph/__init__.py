"""All names of `scipy.sparse.csgraph`; this package computes the ones in `OURS`.

Arguments and results are SciPy's: `import hetero_bfs.csgraph as csgraph` replaces SciPy's import.
"""

import scipy.sparse.csgraph as _scipy
from scipy.sparse.csgraph import *  # noqa: F403

from hetero_bfs.csgraph.matrix_searches import breadth_first_order as breadth_first_order
from hetero_bfs.csgraph.matrix_searches import connected_components as connected_components
from hetero_bfs.csgraph.matrix_searches import dijkstra as dijkstra
from hetero_bfs.csgraph.matrix_searches import shortest_path as shortest_path

OURS = ("breadth_first_order", "connected_components", "dijkstra", "shortest_path")
"""The functions that are this package's own; all other names are the installed SciPy's."""

__all__ = list(_scipy.__all__)
