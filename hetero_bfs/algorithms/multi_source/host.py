"""Multi-source searches on the host's cores: the arrays, and the thread pool."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.multi_source.result import LevelRows, Sums
from hetero_bfs.devices.cpu.host_run import HostRun
from hetero_bfs.devices.cpu.vectors import LANES
from hetero_bfs.graph.edge_source import NO_VERTEX
from hetero_bfs.graph.search_graph import SearchGraph
from hetero_bfs.support.memory import aligned_empty

_POOL_EDGES = 1 << 15
"""In graphs with fewer stored edges, no level is worth waking another thread."""

NO_LIMIT = 2**62
"""A depth limit above that of every search."""


class HostPlanes(HostRun):
    """Runs 64 searches at a time on the host's cores. `threads` includes the caller's thread."""

    _name = "Planes"
    _module = "hetero_bfs.algorithms.multi_source.kernels.loop"

    def __init__(self, graph: SearchGraph, threads: int) -> None:
        super().__init__(threads if graph.graph.num_stored_edges >= _POOL_EDGES else 1)
        self.graph = graph

    def _make_fields(self) -> dict[str, Any]:
        planes = self._kernels.phases
        graph, n, threads = self.graph.graph, self.graph.num_searched, self.threads
        backward = graph.transpose if graph.directed else graph
        new_of_old = self.graph.relabelling.new_of_old
        kept = planes.PLANES + planes.SEGMENTS
        # A range for each thread, with about equally many incoming edges. Each range searches every
        # neighbour list of the frontier for its part, so more ranges would cost more.
        cuts = np.linspace(0, backward.indptr[-1], threads + 1).astype(np.int64)
        ranges = np.searchsorted(backward.indptr, cuts).astype(np.int64)
        ranges[0], ranges[-1] = 0, n
        return {
            "threads": threads,
            "indptr": graph.indptr,
            "indices": graph.indices,
            "backward_indptr": backward.indptr,
            "backward_indices": backward.indices,
            "degree": self.graph.degree,
            "backward_degree": backward.input_degree if graph.directed else self.graph.degree,
            "first": self.graph.first,
            "old_of_new": self.graph.relabelling.old_of_new,
            "isolated": np.flatnonzero(new_of_old == NO_VERTEX).astype(np.uint32),
            "ranges": ranges,
            "seen": aligned_empty(n, np.uint64),
            "planes": aligned_empty(planes.PLANES * n, np.uint64).reshape(planes.PLANES, n),
            "plane_level": np.full(planes.PLANES, -1, np.int64),
            "listed": np.empty(2 * n, np.uint32),
            "words": np.empty(2 * n, np.uint64),
            "segments": np.zeros((planes.SEGMENTS, 3), np.int64),
            "frontier_list": np.zeros(2, np.int64),
            "fresh": np.zeros(n, np.uint64),
            "pending": np.zeros((threads, planes.BLOCK), np.int64),
            "mask": np.zeros(n, np.bool_),
            "has_mask": np.zeros(1, np.int64),
            "active": np.zeros((threads + 1, 8), np.uint64),
            "job": np.zeros(8, np.int64),
            "counts": np.zeros((threads, kept, LANES), np.int64),
            "lane_edges": np.zeros((threads + 1, LANES)),
            "bytes_": np.zeros((threads, LANES), np.uint8),
            "work": np.zeros(planes.NUM_TASKS, np.int64),
        }

    def mask(self, mask: npt.NDArray[np.bool_] | None) -> None:
        self.prepare()
        self.fields["has_mask"][0] = mask is not None
        if mask is not None:
            self.fields["mask"][:] = mask

    def run(
        self,
        batch: int,
        sources: npt.NDArray[np.uint32],
        depth_limit: int | None,
        rows: LevelRows | None,
        sums: Sums,
    ) -> npt.NDArray[np.float64]:
        """Run a batch of at most 64 searches, and add their results to `rows` and `sums`.

        `sources` are new ids, or `NO_VERTEX` for one outside the searched range. Returns a record
        for each level (loop.py).
        """
        self.prepare()
        control, shared, many_loop = self.control, self.shared, self._kernels
        limit = NO_LIMIT if depth_limit is None else depth_limit
        state = np.zeros(many_loop.STATE_SIZE, np.int64)
        many_loop.begin(control, shared, sources, state)
        keep, records = False, []  # whether rows hold earlier levels
        while not state[many_loop.OVER]:
            block = np.zeros((many_loop.MOST_LEVELS, 4))
            ran = many_loop.run_planes(control, shared, state, limit, block)
            records.append(block[:ran])
            segments = int(state[many_loop.NUM_SEGMENTS])
            of_lists = self.fields["segments"][:segments, 0]
            levels = np.concatenate([self.fields["plane_level"], of_lists])
            sums.add(batch * LANES, levels, self.fields["counts"][:, : levels.size].sum(axis=0))
            if rows is not None:
                rows.fit(int(levels.max()))
                many_loop.write_rows(control, shared, *rows.place(batch), keep, segments)
            many_loop.forget_levels(shared, state)
            keep = True
        return np.concatenate(records)
