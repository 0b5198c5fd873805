"""Shortest paths in graphs of chains, such as road networks, by a search of the contracted graph.

The search runs in the core (host.py). Then a vertex of a chain gets the smaller of its two
distances, one by each end of the chain.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.sssp.host import Core, HostSearch, contracted
from hetero_bfs.graph.weighted_lists import WeightedLists, Windows
from hetero_bfs.support.memory import aligned_empty
from hetero_bfs.support.parallel import in_parallel

_SHARED_FROM = 1 << 16  # from this number of vertices, threads share the last pass


def search_on_host(lists: WeightedLists, threads: int) -> HostSearch | ChainSearch:
    """Return the host's executor. It contracts chains if they have most of the vertices."""
    core = contracted(lists)
    return HostSearch(lists, threads) if core is None else ChainSearch(lists, core, threads)


class ChainSearch:
    """Searches on the host's cores. A `HostSearch` searches the core."""

    def __init__(self, lists: WeightedLists, core: Core, threads: int) -> None:
        self.lists, self.core, self.threads = lists, core, threads
        self._search = HostSearch(core, threads)
        self._distances: dict[np.dtype[Any], npt.NDArray[Any]] = {}

    def run(self, source: int) -> Windows:
        """Search from `source` (a new id); the recorded windows are those of the core.

        If a distance exceeds the weights' type, the search runs again with 64 bits.
        """
        *narrow, wide = self.lists.distance_dtypes
        for dtype in narrow:
            found = self._run_as(dtype, source)
            if found is not None:
                return found
        found = self._run_as(wide, source)
        assert found is not None
        return found

    def _run_as(self, dtype: np.dtype[Any], source: int) -> Windows | None:
        """Search with distances of one type; None if one exceeds it. In int64 none does."""
        distance = self._distance(dtype)
        starts = self._walk(source, distance)
        found = self._search.run_as(dtype, self.core.start_from(starts))
        if found is None or not self._fill_in(found, distance):
            return None
        self._walk(source, distance)
        return found._replace(distance=distance)

    def prepare(self) -> None:
        """Start the workers and compile the kernels of a search."""
        self._search.prepare()
        dtype = self.lists.distance_dtypes[0]
        distance = self._distance(dtype)
        self._walk(0, distance)
        nothing = np.zeros(self.core.num_vertices, dtype)
        self._fill_in(Windows(nothing, np.iinfo(dtype).max, np.empty((0, 0))), distance)

    def close(self) -> None:
        self._search.close()

    def _distance(self, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        if dtype not in self._distances:
            self._distances[dtype] = aligned_empty(self.lists.num_vertices, dtype)
        return self._distances[dtype]

    def _walk(self, source: int, distance: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        from hetero_bfs.algorithms.sssp.kernels.chains import walk_from

        starts = np.zeros((2, 2), np.int64)
        walk_from(tuple(self.lists.forward), self.core.numbers, source, distance, starts)
        return starts

    def _fill_in(self, found: Windows, distance: npt.NDArray[Any]) -> bool:
        """Set all distances from those of the core; return whether their type holds them."""
        from hetero_bfs.algorithms.sssp.kernels.chains import fill_in

        parts = self.threads if distance.size >= _SHARED_FROM else 1
        too_far = np.zeros(parts, np.int64)
        in_parallel(
            fill_in,
            parts,
            ends=self.core.ends,
            along=self.core.along,
            found=found.distance,
            infinity=np.array([found.infinity], distance.dtype),
            distance=distance,
            too_far=too_far,
        )
        return not too_far.any()
