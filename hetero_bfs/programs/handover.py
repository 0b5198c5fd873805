"""The data that moves when a vertex program's run migrates between two iterations.

Both places use the same vertex numbers and compute the initial states themselves. During a run
each place marks the vertices whose states it writes, so the places differ only in marked vertices.
The migration transfers their states with their numbers, or all states if that is smaller. It
transfers the active vertices, and those that wait for their priority, as a list or as a bitmap,
whichever is smaller. `num_bytes` does not count about 100 bytes of counters.

GraphMat's hybrid also sends sparse vectors as pairs of index and value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

_ID_BYTES = 4


def state_bytes(changed: int, num_vertices: int, item_bytes: int) -> int:
    """Return the bytes of transferred states: changed ones with vertex numbers, or all."""
    return min(changed * (_ID_BYTES + item_bytes), num_vertices * item_bytes)


def crosses_whole(changed: int, num_vertices: int, item_bytes: int) -> bool:
    """Tell whether all states are smaller than the changed ones with their vertex numbers."""
    return state_bytes(changed, num_vertices, item_bytes) < changed * (_ID_BYTES + item_bytes)


def bitmap_words(num_vertices: int) -> int:
    return -(-num_vertices // 32)


def is_listed(count: int, num_vertices: int) -> bool:
    """Tell whether a list of `count` vertices is at most as large as a bitmap."""
    return count <= bitmap_words(num_vertices)


class VertexSet(NamedTuple):
    """A set of vertices in transfer: uint32, either vertex numbers or words of a bitmap."""

    words: npt.NDArray[np.uint32]
    num_vertices: int
    is_list: bool

    def listed(self) -> npt.NDArray[np.uint32]:
        if self.is_list:
            return self.words
        bits = np.unpackbits(self.words.view(np.uint8), bitorder="little")
        return np.flatnonzero(bits).astype(np.uint32)

    @classmethod
    def of_list(cls, items: npt.NDArray[np.uint32], num_vertices: int) -> VertexSet:
        """Convert a list to the smaller representation."""
        if is_listed(items.size, num_vertices):
            return cls(items, items.size, True)
        bits = np.zeros(32 * bitmap_words(num_vertices), np.bool_)
        bits[items] = True
        return cls(np.packbits(bits, bitorder="little").view(np.uint32), items.size, False)

    @classmethod
    def of_bitmap(cls, words: npt.NDArray[np.uint32], count: int, num_vertices: int) -> VertexSet:
        """Convert a bitmap with `count` bits set to the smaller representation."""
        bitmap = cls(words, count, False)
        return cls(bitmap.listed(), count, True) if is_listed(count, num_vertices) else bitmap


@dataclass
class Handover:
    """State in transfer; its arrays belong to the sender, which may overwrite them later.

    `edges` counts the edges of the `num_active` active vertices; `receivers` is the expected number
    of receivers. program_rule.py explains `changes_per_edge`. `lowest` is the lowest priority that
    waits. `values` has arrays by field, for the vertices in `changed`, or for all vertices if that
    is None.
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
        arrays = [self.active.words, self.waiting.words, *self.values.values()]
        return sum(array.nbytes for array in arrays) + (
            0 if self.changed is None else self.changed.nbytes
        )
