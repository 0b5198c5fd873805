"""PageRank on the host's cores: the arrays of a run, and the thread pool."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.pagerank.lists import RankLists, Ranks, RankSettings
from hetero_bfs.devices.cpu.host_run import HostRun
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.support.memory import Recycler, aligned_empty

_POOL_EDGES = 1 << 14
"""In graphs with fewer stored edges, no sweep is worth waking another thread."""

_CHUNK_EDGES = 1 << 13  # least work of a chunk, in edges
_CHUNKS_PER_THREAD = 16
_VERTEX_EDGES = 4  # work of a vertex in addition to its edges, in edges

_MOST_RECYCLED_BYTES = 1 << 28
"""Most bytes of discarded results that are kept for later runs."""

_STRATEGIES = ("in place", "over-relaxed", "in place, double", "over-relaxed, double")


class HostRanks(HostRun):
    """Runs on the host's cores. `threads` includes the caller's thread."""

    _name = "PageRank"

    def __init__(self, lists: RankLists, threads: int) -> None:
        super().__init__(threads if lists.num_stored_edges >= _POOL_EDGES else 1)
        self.lists = lists
        self._numbers = np.zeros(8)
        self._restart = aligned_empty(lists.num_vertices, np.float64)
        self._place = np.zeros(1, np.int64)
        self._results = Recycler(_MOST_RECYCLED_BYTES)

    def _make_fields(self) -> dict[str, Any]:
        from hetero_bfs.algorithms.pagerank.kernels.sweeps import NUM_TASKS

        backward, n = self.lists.backward, self.lists.num_vertices
        bounds = _cut(backward, self.threads)
        fields: dict[str, Any] = {
            "threads": self.threads,
            "indptr": backward.indptr,
            "neighbours": backward.indices,
            "given": self.lists.given,
            "single": aligned_empty(n, np.float32),
            "double": aligned_empty(n, np.float64),
            "restart": self._restart,
            "numbers": self._numbers,
            "bounds": bounds,
            "sums": np.zeros((bounds.size - 1, 8)),
            "new_of_old": self.lists.graph.relabelling.new_of_old,
            "place": self._place,
            "work": np.zeros(NUM_TASKS, np.int64),
        }
        if self.lists.weighted:
            fields["weights"] = backward.weights
        return fields

    def _phases(self) -> Any:
        from hetero_bfs.algorithms.pagerank.kernels.sweeps import PHASES, WEIGHTED_PHASES

        return WEIGHTED_PHASES if self.lists.weighted else PHASES

    def run(self, settings: RankSettings) -> Ranks:
        """Compute the scores of a graph with edges."""
        from hetero_bfs.algorithms.pagerank.kernels.sweeps import (
            ALPHA,
            BASE,
            RECORD_WIDTH,
            RESTART_STEP,
            SCALE,
            SECONDS,
            STRATEGY,
            iterate,
        )

        personalization, relabelling = settings.personalization, self.lists.graph.relabelling
        self._numbers[[ALPHA, RESTART_STEP]] = settings.alpha, personalization is not None
        if personalization is None:
            self._restart[0] = 1.0 / relabelling.new_of_old.size
        else:
            np.take(personalization, relabelling.old_of_new, out=self._restart)
        rank = self._results.empty(relabelling.new_of_old.size, np.float64)
        self._place[0] = rank.ctypes.data
        records = np.empty((settings.max_iter, RECORD_WIDTH))
        sweeps, change = iterate(
            self.control,
            self.shared,
            settings.change,
            *self.lists.shares(personalization),
            self.lists.is_symmetric,
            records,
        )
        if personalization is not None:
            outside = self.lists.outside
            scale = self._numbers[BASE] * self._numbers[SCALE]
            rank[outside] = scale * personalization[outside]
        sweeps_made = [
            (_STRATEGIES[int(row[STRATEGY])], float(row[SECONDS])) for row in records[:sweeps]
        ]
        return Ranks(rank, change, sweeps_made)


def _cut(graph: CSRGraph, threads: int) -> npt.NDArray[np.int64]:
    """Return the bounds of chunks of vertices with about equal work."""
    n = graph.num_vertices
    cost = graph.indptr + _VERTEX_EDGES * np.arange(n + 1)
    chunks = min(_CHUNKS_PER_THREAD * threads, -(-int(cost[-1]) // _CHUNK_EDGES))
    bounds = np.searchsorted(cost, np.linspace(0, cost[-1], chunks + 1).astype(np.int64))
    return bounds.astype(np.int64)
