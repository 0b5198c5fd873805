"""Searches side by side on the host's cores: the arrays, and the thread pool."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.msbfs.many_result import Rows, Sums
from hetero_bfs.devices.cpu.rows import LANES
from hetero_bfs.devices.cpu.workers import make_control, no_workers, start_workers
from hetero_bfs.graph.edge_source import NO_VERTEX
from hetero_bfs.graph.search_graph import SearchGraph
from hetero_bfs.support.memory import aligned_empty

_POOL_EDGES = 1 << 15
"""In graphs with fewer stored edges no level is worth waking a second thread."""

_RANGES_PER_THREAD = 4  # each range searches every list of the queue for its part
NO_LIMIT = 2**62
"""More levels than any search has."""


class HostPlanes:
    """Runs 64 searches at a time on the host's cores.

    Parameters
    ----------
    graph : SearchGraph
    threads : int
        The caller's own among them.
    """

    def __init__(self, graph: SearchGraph, threads: int) -> None:
        self.graph = graph
        self.threads = 1 if graph.graph.num_stored_edges < _POOL_EDGES else threads
        self._stop_workers: Callable[[], object] = no_workers

    @cached_property
    def _arguments(self) -> tuple[Any, Any]:
        """What the loop takes; the workers have started, and the phases are compiled."""
        from hetero_bfs.algorithms.msbfs.kernels.planes import NUM_TASKS, PLANES, link_phases
        from hetero_bfs.devices.cpu.sharing import run_worker
        from hetero_bfs.support.by_address import Struct

        graph, n = self.graph.graph, self.graph.num_searched
        backward = graph.transpose if graph.directed else graph
        new_of_old = self.graph.relabelling.new_of_old
        self._fields: dict[str, Any] = {
            "threads": self.threads,
            "indptr": graph.indptr,
            "indices": graph.indices,
            "backward_indptr": backward.indptr,
            "backward_indices": backward.indices,
            "old_of_new": self.graph.relabelling.old_of_new,
            "alone": np.flatnonzero(new_of_old == NO_VERTEX).astype(np.uint32),
            "ranges": self._ranges(backward.indptr),
            "seen": aligned_empty(n, np.uint64),
            "planes": aligned_empty(PLANES * n, np.uint64).reshape(PLANES, n),
            "mask": np.zeros(n, np.bool_),
            "has_mask": np.zeros(1, np.int64),
            "queue": np.empty(n, np.uint32),
            "active": np.zeros((self.threads + 1, 8), np.uint64),
            "job": np.zeros(8, np.int64),
            "counts": np.zeros((self.threads, PLANES, LANES), np.int64),
            "bytes_": np.zeros((self.threads, LANES), np.uint8),
            "work": np.zeros(NUM_TASKS, np.int64),
        }
        shared, control = Struct("Planes", self._fields), make_control(self.threads)
        link_phases(shared, self._fields["work"])
        self._stop_workers = start_workers(self, run_worker, control, shared, self.threads)
        return control, shared

    def _ranges(self, indptr: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return where ranges of vertices begin that equally many edges lead to."""
        count = 1 if self.threads == 1 else _RANGES_PER_THREAD * self.threads
        cuts = np.linspace(0, indptr[-1], count + 1).astype(np.int64)
        ranges = np.searchsorted(indptr, cuts).astype(np.int64)
        ranges[0], ranges[-1] = 0, indptr.size - 1
        return ranges

    def prepare(self) -> None:
        """Start the workers and compile what a run needs."""
        _ = self._arguments

    def mask(self, mask: npt.NDArray[np.bool_] | None) -> None:
        """Pass over these vertices, by new ids, until the next call; None for none."""
        self.prepare()
        self._fields["has_mask"][0] = mask is not None
        if mask is not None:
            self._fields["mask"][:] = mask

    def run(
        self,
        batch: int,
        sources: npt.NDArray[np.uint32],
        depth_limit: int | None,
        rows: Rows | None,
        sums: Sums,
    ) -> npt.NDArray[np.float64]:
        """Run a batch of at most 64 searches, and add what they find to `rows` and `sums`.

        `sources` are new ids, `NO_VERTEX` for one that left the searched range. Returns a record
        for each level (many_loop.py).
        """
        from hetero_bfs.algorithms.msbfs.kernels import many_loop
        from hetero_bfs.algorithms.msbfs.kernels.planes import PLANES

        control, shared = self._arguments
        limit = NO_LIMIT if depth_limit is None else depth_limit
        state = np.zeros(4, np.int64)
        many_loop.begin(control, shared, sources, state)
        first, over, records = 0, False, []
        while not over:
            block = np.zeros((PLANES, 4))
            used, ran, over = many_loop.run_planes(control, shared, state, limit, block)
            records.append(block[:ran])
            self.deliver(batch, first, used, rows, sums)
            first += used
        return np.concatenate(records)

    @property
    def planes(self) -> npt.NDArray[np.uint64]:
        """The planes, uint64 (planes, num_searched), once `prepare` was called."""
        return np.asarray(self._fields["planes"])

    def deliver(self, batch: int, first: int, used: int, rows: Rows | None, sums: Sums) -> None:
        """Add what is in `used` planes, the first of which is level `first`, to rows and sums."""
        from hetero_bfs.algorithms.msbfs.kernels import many_loop

        control, shared = self._arguments
        if used:
            counts = self._fields["counts"]
            many_loop.count_planes(control, shared, used)
            sums.add(batch * LANES, first, counts[:, :used].sum(axis=0))
            counts[:] = 0
        if rows is not None and (used or first == 0):
            rows.fit(first + used - 1)
            many_loop.write_rows(control, shared, *rows.place(batch), first, used)

    def close(self) -> None:
        """End the workers."""
        self._stop_workers()
