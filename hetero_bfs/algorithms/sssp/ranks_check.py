"""The five checks of shortest paths on all ranks, which algorithms/sssp/check.py explains.

No code is shared with the search. Each host has the distances and parents of one search in memory
that its ranks share, 12 or 16 bytes a vertex. Each rank checks its share of the edges.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.sssp.check import PathOutcome, no_tree_edge, shorter_way
from hetero_bfs.graph.edge_source import NO_VERTEX, VertexArray, check_ends
from hetero_bfs.graph.weights import weight_dtype_of, weighted_chunks
from hetero_bfs.ranks.communicator import Communicator
from hetero_bfs.ranks.host_tree import HostTree, find_levels

_Distances = npt.NDArray[np.float64]
_Failure = tuple[int, int, str]
"""The number of the failed check, a vertex, and the message."""


class RankPathValidator(HostTree):
    """Validates searches of a weighted graph. All ranks make the same calls."""

    _bytes_of_a_vertex = 16

    def __init__(
        self, communicator: Communicator, share: Any, input_degree: VertexArray | None
    ) -> None:
        super().__init__(communicator, share, input_degree)
        self._narrow = np.dtype(np.float32 if weight_dtype_of(share) == np.float32 else np.float64)
        self._memory = communicator.shared_array(self._size, np.float64)

    def close(self) -> None:
        self._memory = np.empty(0)
        super().close()

    def validate(
        self, source: int, distance: _Distances, parent: npt.NDArray[np.uint32]
    ) -> PathOutcome:
        """Check a search.

        `distance` (float64) and `parent` (uint32) have shape (own old ids,). They are infinity and
        2**32 - 1 where not reached.
        """
        failure = self._first(self._check_own(source, distance, parent))
        ends = 0
        if failure is None:
            far = self._share_paths(source, distance, parent)
            failure = self._first(self._check_tree())
        if failure is None:
            ends, found = self._check_edges(source, far)
            failure = self._first(found)
        if failure is not None:
            return PathOutcome(False, f"source {source}: {failure}")
        reached = np.isfinite(distance)
        if self._input_degree is not None:
            ends = int(self._input_degree.sum(where=reached, dtype=np.int64))
        totals = np.array([np.count_nonzero(reached), ends], np.int64)
        self._communicator.reduce_to_all(totals, "sum")
        count, ends = totals.tolist()
        said = f"source {source}: valid; {count} vertices reached"
        return PathOutcome(True, said, ends // (1 if self._share.directed else 2), count)

    def _first(self, failure: _Failure | None) -> str | None:
        """Return the first failure of all ranks, the same on each."""
        failures = [one for one in self._communicator.collect(failure) if one is not None]
        return min(failures)[2] if failures else None

    def _check_own(
        self, source: int, distance: _Distances, parent: npt.NDArray[np.uint32]
    ) -> _Failure | None:
        """Make checks 1 and 2 of this rank's vertices."""
        rank, ranks = self._communicator.rank, self._communicator.size
        place = source // ranks
        if source % ranks == rank and not (distance[place] == 0 and parent[place] == source):
            text = f"distance {distance[place]} and parent {parent[place]} instead of 0 and itself"
            return 1, source, f"check 1 (the source): {text}"
        with_parent = parent != NO_VERTEX
        wrong = ~(distance >= 0) | (np.isfinite(distance) != with_parent)
        wrong |= with_parent & (parent >= self._size)
        if not wrong.any():
            return None
        place = int(wrong.argmax())
        vertex = place * ranks + rank
        up = int(parent[place]) if with_parent[place] else -1
        text = f"vertex {vertex} has distance {distance[place]} and parent {up}"
        return 2, vertex, f"check 2 (who is reached): {text}"

    def _share_paths(
        self, source: int, distance: _Distances, parent: npt.NDArray[np.uint32]
    ) -> npt.NDArray[Any]:
        """Copy all ranks' paths to this host's memory; return the distances there."""
        with np.errstate(over="ignore"):
            lossy = np.array([int((distance.astype(self._narrow) != distance).any())])
        self._communicator.reduce_to_all(lossy, "max")
        dtype = np.dtype(np.float64) if lossy[0] else self._narrow
        far = self._memory.view(dtype)[: self._size]
        self._share_tree(source, parent, (far, distance))
        return far

    def _check_tree(self) -> _Failure | None:
        """Make check 5 of this rank's part of the vertices."""
        _, _, wrong = find_levels(self._parents, self._levels, self._begin, self._end)
        if wrong < 0:
            return None
        text = f"that of vertex {wrong} does not"
        return 5, int(wrong), f"check 5 (paths lead to the source): {text}"

    def _check_edges(self, source: int, far: npt.NDArray[Any]) -> tuple[int, _Failure | None]:
        """Make checks 3 and 4; return the number of reached edge ends, and a failure."""
        from hetero_bfs.algorithms.sssp.check_kernels import MET, scan

        communicator, share, parents = self._communicator, self._share, self._parents
        parents[self._begin : self._end] -= np.uint32(1)  # back to ids; no parent becomes `MET`
        if self._begin <= source < self._end:
            parents[source] = MET
        communicator.barrier()
        met, failure, one_way = 0, None, share.directed or share.both_directions
        columns = far.reshape(-1, 1), parents.reshape(-1, 1)
        for src, dst, weights in weighted_chunks(share):
            check_ends(src, dst, self._size)
            for ends in (src,) if one_way else (src, dst):
                met += int(np.count_nonzero((src != dst) & np.isfinite(far[ends])))
            (place,) = scan((src, dst, weights), one_way, *columns)
            if place < src.size and failure is None:
                edge = [array[place] for array in (src, dst, weights)]
                failure = 3, int(edge[0]), shorter_way(edge, one_way, far)
        communicator.combine_hosts(parents, "max")
        unmet = np.flatnonzero(parents[self._begin : self._end] != MET)
        if failure is None and unmet.size:
            child = self._begin + int(unmet[0])
            failure = 4, child, no_tree_edge(child, far, parents)
        return met, failure
