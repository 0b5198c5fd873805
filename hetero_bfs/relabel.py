"""Relabelling (Zhang et al. 2018, section 4.2): which vertices are searched, and in what order.

Vertices without neighbours (38 to 50 % of a Kronecker graph) leave the searched range; the others
are numbered by falling degree. Neighbour lists sorted by number are then sorted by falling degree,
so that bottom-up meets a visited neighbour early, and the busiest bitmap words are contiguous.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from hetero_bfs.graph import VertexArray

Order = Literal["degree", "given"]
ORDERS: tuple[Order, ...] = ("degree", "given")


@dataclass(frozen=True, eq=False)
class Relabelling:
    """A renumbering of vertices and its inverse.

    Parameters
    ----------
    new_of_old : uint32 array, shape (num_vertices,)
        `graph.NO_VERTEX` for a vertex that left the searched range.
    old_of_new : uint32 array, shape (num_searched,)
    """

    new_of_old: VertexArray
    old_of_new: VertexArray

    @property
    def num_searched(self) -> int:
        """Vertices that stay in the searched range."""
        return int(self.old_of_new.size)

    def restore_parents(self, parent: VertexArray) -> npt.NDArray[np.int64]:
        """Turn parents in new ids (uint32, NO_VERTEX unreached) into old ids (int64, -1)."""
        from hetero_bfs.kernels.restore import restore_parents

        restored = np.empty(self.new_of_old.size, np.int64)
        restore_parents(parent, self.new_of_old, self.old_of_new, restored)
        return restored


def relabel(degree: VertexArray, order: Order) -> Relabelling:
    """Return the numbering for vertices of these degrees (uint32, duplicates may be counted).

    "degree" drops isolated vertices and sorts by falling degree, ties by id; "given" keeps
    every vertex where it is.
    """
    if order == "given":
        identity = np.arange(degree.size, dtype=np.uint32)
        return Relabelling(identity, identity)
    from hetero_bfs.kernels.build import order_by_falling_degree

    new_of_old = np.empty(degree.size, np.uint32)
    old_of_new = np.empty(int(np.count_nonzero(degree)), np.uint32)
    order_by_falling_degree(degree, new_of_old, old_of_new)
    return Relabelling(new_of_old, old_of_new)
