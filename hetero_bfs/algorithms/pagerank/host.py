"""PageRank on the host's cores: the arrays of a run, and the thread pool."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.pagerank.lists import RankLists, Ranks, RankSettings
from hetero_bfs.devices.cpu.workers import make_control, no_workers, start_workers
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.support.memory import Recycler, aligned_empty

_POOL_EDGES = 1 << 14
"""In graphs with fewer stored edges no sweep is worth waking another thread."""

_CHUNK_EDGES = 1 << 13  # of a chunk, at least
_CHUNKS_PER_THREAD = 16
_VERTEX_EDGES = 4  # work of a vertex besides its edges, in edges

_MOST_RECYCLED_BYTES = 1 << 28
"""Most bytes of discarded ranks that are kept for later runs."""

_STRATEGIES = ("in place", "over-relaxed", "in place, double", "over-relaxed, double")


class HostRanks:
    """Runs on the host's cores.

    Parameters
    ----------
    lists : RankLists
    threads : int
        The caller's own among them.
    """

    def __init__(self, lists: RankLists, threads: int) -> None:
        self.lists = lists
        self.threads = 1 if lists.num_stored_edges < _POOL_EDGES else threads
        self._control = make_control(self.threads)
        self._numbers = np.zeros(8)
        self._restart = aligned_empty(lists.num_vertices, np.float64)
        self._place = np.zeros(1, np.int64)
        self._results = Recycler(_MOST_RECYCLED_BYTES)
        self._stop_workers: Callable[[], object] = no_workers

    @cached_property
    def _shared(self) -> Any:
        """The arrays in the form that kernels take, with the compiled functions they call."""
        from hetero_bfs.algorithms.pagerank.kernels.sweeps import NUM_TASKS, link_work
        from hetero_bfs.support.by_address import Struct

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
        shared = Struct("PageRank", fields)
        link_work(shared, fields["work"], self.lists.weighted)
        return shared

    def prepare(self) -> None:
        """Start the workers and compile the kernels of a run."""
        if "_shared" not in self.__dict__:
            from hetero_bfs.devices.cpu.sharing import run_worker

            self._stop_workers = start_workers(
                self, run_worker, self._control, self._shared, self.threads
            )

    def run(self, settings: RankSettings) -> Ranks:
        """Compute the ranks of a graph with edges."""
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
            self._control,
            self._shared,
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

    def close(self) -> None:
        """End the workers."""
        self._stop_workers()


def _cut(graph: CSRGraph, threads: int) -> npt.NDArray[np.int64]:
    """Return the bounds of chunks of vertices with about equal work."""
    n = graph.num_vertices
    cost = graph.indptr + _VERTEX_EDGES * np.arange(n + 1)
    chunks = min(_CHUNKS_PER_THREAD * threads, -(-int(cost[-1]) // _CHUNK_EDGES))
    bounds = np.searchsorted(cost, np.linspace(0, cost[-1], chunks + 1).astype(np.int64))
    return bounds.astype(np.int64)
