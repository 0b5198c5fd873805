"""Relabelling (Zhang et al. 2018, section 4.2): the searched vertices and their order.

Vertices without neighbours (a third of Kronecker 18) leave the searched range. If degrees are
skewed, the others are numbered by falling degree. Then neighbour lists sorted by number are also
sorted by falling degree, so bottom-up finds a visited neighbour early, and the most used words of
the bitmap are contiguous. Without skewed degrees this order would scatter neighbouring vertices.
Then high-diameter graphs, such as grids and road networks, are numbered by locality (locality.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from hetero_bfs.graph.edge_source import NO_VERTEX, VertexArray

Order = Literal["degree", "locality", "compact", "given"]
"""Numberings: by falling degree, by locality, or in the caller's order ("compact" and "given"). All
but "given" drop isolated vertices.
"""

ORDERS = ("auto", "degree", "locality", "compact", "given")
"""The user's choices; "auto" decides by the graph."""

SKEWED = 2.0
"""Mean square of the degrees over their squared mean; at this or more, "auto" orders by degree. It
is 1 for equal degrees, 1 + 1 / mean for Erdos-Renyi graphs, 1.1 to 1.3 for road networks, 5 to 1000
for social networks and Kronecker graphs.
"""

HIGH_DIAMETER_LEVELS = 40
"""A graph whose searches have this many levels or more has a high diameter. If its degrees are not
skewed, "auto" then orders it by locality. `Engine.bfs_many` searches it from one source at a time.
"""


@dataclass(frozen=True, eq=False)
class Relabelling:
    """A renumbering of vertices and its inverse.

    new_of_old : uint32, shape (num_vertices,); `NO_VERTEX` outside the searched range
    old_of_new : uint32, shape (num_searched,)
    """

    new_of_old: VertexArray
    old_of_new: VertexArray
    order: Order

    @property
    def num_searched(self) -> int:
        return int(self.old_of_new.size)


def relabel(degree: VertexArray, order: str) -> Relabelling:
    """Return the numbering for vertices of these degrees (uint32, may include duplicates).

    "auto" and "locality" give "degree" if the degrees are skewed, else "compact": locality needs
    the neighbour lists (`by_locality`). Vertices of equal degree are ordered by id.
    """
    if order == "given":
        identity = np.arange(degree.size, dtype=np.uint32)
        return Relabelling(identity, identity, "given")
    from hetero_bfs.graph.kernels.buckets import order_by_falling_degree

    if order == "degree" or (order == "auto" and is_skewed(degree)):
        new_of_old = np.empty(degree.size, np.uint32)
        old_of_new = np.empty(int(np.count_nonzero(degree)), np.uint32)
        order_by_falling_degree(degree, new_of_old, old_of_new)
        return Relabelling(new_of_old, old_of_new, "degree")
    if degree.all():
        identity = np.arange(degree.size, dtype=np.uint32)
        return Relabelling(identity, identity, "compact")
    old_of_new = np.flatnonzero(degree).astype(np.uint32)
    return Relabelling(inverse(old_of_new, degree.size), old_of_new, "compact")


def is_skewed(degree: VertexArray) -> bool:
    """Return whether some degrees are far above the others; see `SKEWED`."""
    count = np.count_nonzero(degree)
    if count == 0:
        return True
    degrees = degree.astype(np.float64)
    total = float(degrees.sum())
    squares = float(np.square(degrees, out=degrees).sum())  # `dot` would wake the BLAS's threads
    return bool(squares * count >= SKEWED * total * total)


def inverse(old_of_new: VertexArray, size: int) -> VertexArray:
    """Return the new id of each of `size` old ids, uint32; `NO_VERTEX` for dropped vertices."""
    new_of_old = np.full(size, NO_VERTEX, np.uint32)
    new_of_old[old_of_new] = np.arange(old_of_new.size, dtype=np.uint32)
    return new_of_old
