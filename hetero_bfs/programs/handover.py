"""The data that is transferred when a vertex program's run migrates between two iterations.

Both places use the same vertex numbers and compute the initial states themselves. From then on a
run marks the vertices whose states it writes. So the places differ only in marked vertices, and
only their states are transferred, each with the vertex's number; or all states if that is smaller.
The active vertices, and those that wait for their priority, are sent as a list or as a bitmap,
whichever is smaller. Counters of the iterations are about 100 bytes, which are not counted.

GraphMat's hybrid also sends sparse vectors as pairs of index and value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

_ID_BYTES = 4


def state_bytes(changed: int, num_vertices: int, item_bytes: int) -> int:
    """Return the bytes of transferred states: of marked vertices with their numbers, or all."""
    return min(changed * (_ID_BYTES + item_bytes), num_vertices * item_bytes)


def crosses_whole(changed: int, num_vertices: int, item_bytes: int) -> bool:
    """Tell whether all states are smaller than those of marked vertices with their numbers."""
    return state_bytes(changed, num_vertices, item_bytes) < changed * (_ID_BYTES + item_bytes)


def bitmap_words(num_vertices: int) -> int:
    """Return the words of 32 bits of a bitmap."""
    return -(-num_vertices // 32)


def is_listed(count: int, num_vertices: int) -> bool:
    """Tell whether a list of so many vertices is no larger than a bitmap."""
    return count <= bitmap_words(num_vertices)


class VertexSet(NamedTuple):
    """A set of vertices in transfer: uint32, their numbers or the words of a bitmap."""

    words: npt.NDArray[np.uint32]
    num_vertices: int
    is_list: bool

    def listed(self) -> npt.NDArray[np.uint32]:
        """Return the vertices' numbers."""
        if self.is_list:
            return self.words
        bits = np.unpackbits(self.words.view(np.uint8), bitorder="little")
        return np.flatnonzero(bits).astype(np.uint32)

    @classmethod
    def of_list(cls, items: npt.NDArray[np.uint32], num_vertices: int) -> VertexSet:
        """Return a list in the smaller representation."""
        if is_listed(items.size, num_vertices):
            return cls(items, items.size, True)
        bits = np.zeros(32 * bitmap_words(num_vertices), np.bool_)
        bits[items] = True
        return cls(np.packbits(bits, bitorder="little").view(np.uint32), items.size, False)

    @classmethod
    def of_bitmap(cls, words: npt.NDArray[np.uint32], count: int, num_vertices: int) -> VertexSet:
        """Return a bitmap with `count` bits set in the smaller representation."""
        bitmap = cls(words, count, False)
        return cls(bitmap.listed(), count, True) if is_listed(count, num_vertices) else bitmap


@dataclass
class Handover:
    """See the head of this file; the arrays are the sender's, which it may use again.

    Parameters
    ----------
    iteration, num_active, edges, receivers : int
        The next iteration, its active vertices and their edges; vertices that are expected to
        receive.
    changes_per_edge : float
        See place_costs.py.
    bucket_end, lowest : float
        Where the bucket of priorities ends, and the lowest priority that waits.
    totals : float64 array
    active, waiting : VertexSet
    changed : uint32 array or None
        The vertices to which `values` belong; None: all.
    values : mapping of a field's name to array
    """

    iteration: int
    num_active: int
    edges: int
    receivers: int
    changes_per_edge: float
    bucket_end: float
    lowest: float
    totals: npt.NDArray[np.float64]
    active: VertexSet
    waiting: VertexSet
    changed: npt.NDArray[np.uint32] | None
    values: dict[str, npt.NDArray[Any]]

    @property
    def num_bytes(self) -> int:
        """The transferred bytes."""
        arrays = [self.active.words, self.waiting.words, *self.values.values()]
        return sum(array.nbytes for array in arrays) + (
            0 if self.changed is None else self.changed.nbytes
        )
