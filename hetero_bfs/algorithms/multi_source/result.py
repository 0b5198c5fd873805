"""Results of multi-source searches: the levels of each search, or sums of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.devices.cpu.vectors import LANES
from hetero_bfs.errors import ArgumentError
from hetero_bfs.graph.vertex_names import Named
from hetero_bfs.scheduling.trace import IterationTrace
from hetero_bfs.support.memory import Recycler, check_free_memory
from hetero_bfs.timeline.rendering import as_html, with_unit

_DTYPES = (np.int8, np.int16, np.int32)


class LevelRows:
    """The levels of all searches, in the smallest dtype that holds them; a row for each vertex.

    `memory` provides the memory, since page faults of fresh memory take as long as the searches.
    """

    def __init__(self, num_vertices: int, num_searches: int, memory: Recycler) -> None:
        self._searches, self._memory = num_searches, memory
        self._shape = num_vertices, -(-num_searches // LANES) * LANES
        self.items = self._empty(np.dtype(np.int8))

    def _empty(self, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        size = self._shape[0] * self._shape[1] * dtype.itemsize
        remedy = "search fewer at once, or ask for sums"
        raw = self._memory.empty(
            size + LANES,
            np.uint8,
            lambda: check_free_memory(size, f"the levels of {self._searches} searches", remedy),
        )
        begin = -raw.ctypes.data % LANES  # rows begin on cache lines
        return raw[begin : begin + size].view(dtype).reshape(self._shape)

    def fit(self, deepest: int) -> None:
        """Widen the items if they cannot hold this level."""
        for dtype in _DTYPES:
            if deepest <= np.iinfo(dtype).max:
                break
        if np.dtype(dtype).itemsize > self.items.itemsize:
            wider = self._empty(np.dtype(dtype))
            wider[:] = self.items
            self.items = wider

    def place(self, batch: int) -> tuple[int, int, int]:
        """Return a batch's first address, bytes from row to row, and bytes of an item."""
        address = self.items.ctypes.data + batch * LANES * self.items.itemsize
        return address, self._shape[1] * self.items.itemsize, self.items.itemsize

    def levels(self) -> npt.NDArray[Any]:
        """Return the levels, shape (num_searches, num_vertices), a view."""
        return self.items.T[: self._searches]


class Sums:
    """Sums over the levels of each search; see `ManySearches`."""

    def __init__(self, num_searches: int) -> None:
        self.reached = np.zeros(num_searches, np.int64)
        self.distance_sum = np.zeros(num_searches, np.int64)
        self.eccentricity = np.zeros(num_searches, np.int32)

    def add(
        self, first_search: int, levels: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]
    ) -> None:
        """Add the vertices that 64 searches reach at each level; `first_search` is the first one.

        `counts` has shape (levels, 64). Counts of level -1 are 0.
        """
        here = slice(first_search, first_search + LANES)
        size = self.reached[here].size
        levels, counts = levels[:, None], counts[:, :size]
        self.reached[here] += counts.sum(axis=0)
        self.distance_sum[here] += (levels * counts).sum(axis=0)
        deepest = np.where(counts > 0, levels, 0).max(axis=0, initial=0)
        np.maximum(self.eccentricity[here], deepest, out=self.eccentricity[here], casting="unsafe")


@dataclass(eq=False)
class ManySearches(Named):
    """The results of searches from many vertices, in the caller's ids.

    Parameters
    ----------
    sources : int64 array, shape (num_searches,)
    reached : int64 array, shape (num_searches,)
        Vertices that each search reached, the source included.
    eccentricity : int32 array, shape (num_searches,)
        The largest level of each search.
    distance_sum : int64 array, shape (num_searches,)
        The sum of each search's levels. Closeness is (reached - 1) / distance_sum.
    seconds : float
        Time of all searches, until the result is complete.
    traces : list of IterationTrace
        A record for each level of a multi-source search of up to 64 sources; none if sources were
        searched one by one. A pull reads only a part of its `edges_scanned`.
    """

    sources: npt.NDArray[np.int64]
    reached: npt.NDArray[np.int64]
    eccentricity: npt.NDArray[np.int32]
    distance_sum: npt.NDArray[np.int64]
    seconds: float
    traces: list[IterationTrace] = field(repr=False)
    _level: npt.NDArray[Any] | None = field(repr=False, default=None)

    @property
    def level(self) -> npt.NDArray[Any]:
        """Levels, shape (num_searches, num_vertices), -1 where not reached.

        int8, int16 or int32. In multi-source searches the dtype is the smallest that holds all
        levels, and the levels of one vertex are contiguous in memory (`level.T` is contiguous).

        Raises
        ------
        ArgumentError
            Only sums were requested.
        """
        if self._level is None:
            raise ArgumentError("the searches kept no levels; search with want='levels'")
        return self._level

    def _repr_html_(self) -> str:
        facts = {
            "searches": self.sources.size,
            "reached on average": float(self.reached.mean()) if self.sources.size else 0.0,
            "greatest level": int(self.eccentricity.max(initial=0)),
            "time": with_unit(self.seconds),
        }
        return as_html("Multi-source searches", facts, self.traces, self.seconds)
