"""The executor on the host's cores: the arrays of one search and the thread pool."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.bfs.query import Seeds
from hetero_bfs.algorithms.bfs.result import Found, Frontier
from hetero_bfs.devices.cpu.host_run import HostRun
from hetero_bfs.errors import GraphError
from hetero_bfs.graph.edge_source import NO_VERTEX
from hetero_bfs.graph.search_graph import SearchGraph
from hetero_bfs.scheduling import schema
from hetero_bfs.scheduling.policy import Policy, fixed_policy
from hetero_bfs.scheduling.strategies import STRATEGIES, Strategy
from hetero_bfs.support import processes
from hetero_bfs.support.memory import Recycler, aligned_empty

_POOL_EDGES = 1 << 15
"""In graphs with fewer stored edges no level is worth waking a second thread."""

_FOUND_LIST_SHARE = 16
"""The found list has room for 1 / 16 of the vertices."""

_MOST_UNVISITED_LISTED = 4096
"""Maximum size of the unvisited list, which a single thread scans bottom-up."""

_MOST_OWNERS = 16
"""Maximum number of owners of partitions; more were not measured."""

_MOST_DEFERRED = 1 << 16
"""Largest frontier, in edges, that the owners of partitions expand."""

_LEAST_RECYCLED_BYTES = 1 << 16
"""Smaller results are new: keeping them would take longer than allocating them."""


Allocator = Callable[[int, npt.DTypeLike], npt.NDArray[Any]]
"""Returns an array of a number of items, in memory that an OpenCL device may share."""


class CPUExecutor(HostRun):
    """Runs levels on the host's cores: the caller's thread is the master, others are workers.

    level.py and phases.py describe the arrays. `allocate` lets an OpenCL device provide them, so
    that it can use them in place or copy them fast.
    """

    _name = "HostArrays"

    def __init__(
        self, graph: SearchGraph, threads: int | None = None, allocate: Allocator = aligned_empty
    ) -> None:
        import numba

        n = graph.num_searched
        words = -(-n // 32)
        processes.use_loops()
        is_small = graph.graph.num_stored_edges < _POOL_EDGES
        super().__init__(1 if is_small else threads or numba.get_num_threads())
        self.graph = graph
        self.edge_bits = counter_edge_bits(graph)
        self.parent = allocate(n, np.uint32)
        self.visited = [allocate(self._bitmap_words(), np.uint32) for _ in range(2)]
        self.queue = [allocate(n, np.uint32) for _ in range(2)]
        self.offsets = [allocate(n, np.int64) for _ in range(2)]
        self.found_list = allocate(2 * (n // _FOUND_LIST_SHARE + 1), np.uint32).reshape(-1, 2)
        self._written = np.zeros(words, np.uint32)
        self._mask, self._reached = (np.zeros(self._bitmap_words(), np.uint32) for _ in range(2))
        self.parent[:] = NO_VERTEX
        self._results = {size: Recycler() for size in (4, 8)}

    @cached_property
    def _loop(self) -> Any:
        from hetero_bfs.algorithms.bfs.kernels import level_loop

        return level_loop

    def begin(self, source: int, frontier: Frontier) -> None:
        self._loop.start(self.control, self.shared, source, frontier.state)

    def begin_at(self, seeds: Seeds, frontier: Frontier) -> None:
        from hetero_bfs.algorithms.bfs.kernels.job import MASKED

        if seeds.mask is not None:
            self._mask[:] = seeds.mask
        self.control[MASKED] = seeds.mask is not None
        self._loop.start_at(self.control, self.shared, seeds.sources, frontier.state)

    def end_mask(self) -> None:
        from hetero_bfs.algorithms.bfs.kernels.job import MASKED

        self.control[MASKED] = 0

    def run_levels(
        self,
        policy: Policy,
        interval: int,
        source: int,
        cpu_only: bool,
        frontier: Frontier,
        records: npt.NDArray[np.float64],
        limit: int,
    ) -> bool:
        """Run levels while the policy keeps the search here; see level_loop.py.

        Return true if the search has ended, false if another device must continue.
        """
        outcome = self._loop.run_levels(
            self.control,
            self.shared,
            policy,
            interval,
            source,
            cpu_only,
            frontier.state,
            records[:limit],
        )
        return bool(outcome == self._loop.ENDED)

    def run(self, strategy: Strategy, frontier: Frontier) -> tuple[Found, float]:
        """Run one level and advance `frontier`; return the vertices found and the seconds.

        For measurements: the frontier must be on the host, and the search must not be over.
        """
        assert frontier.place == schema.HOST, "the frontier is elsewhere"
        assert not frontier.is_over, "the search is over"
        self.note_foreign_parents()  # the end of a search will not invalidate them
        record = np.zeros((1, schema.record_width(1)))
        state = frontier.state
        level, merged = float(state[schema.LEVEL]), float(state[schema.MERGED])
        state[schema.LEVEL], state[schema.CHOSEN] = 0, 0
        state[schema.MERGED] = -1  # no further level, even if it is tiny
        policy = fixed_policy([0], [strategy])
        self.run_levels(policy, 1, 0, False, frontier, record, 1)
        state[schema.LEVEL] += level
        state[schema.MERGED] = merged
        edges_scanned = int(record[0, schema.EDGES_SCANNED])
        found = Found(
            frontier.vertices, frontier.edges, None if edges_scanned < 0 else edges_scanned
        )
        return found, float(record[0, schema.SECONDS])

    def to_queue(self, frontier: Frontier) -> float:
        return float(self._loop.convert(self.control, self.shared, frontier.state))

    def note_foreign_queue(self, frontier: Frontier, has_offsets: bool) -> None:
        """Record that another device wrote the queue, as one segment; fill in missing offsets."""
        from hetero_bfs.algorithms.bfs.kernels.expand import finish_frontier, set_one_segment

        if has_offsets:
            set_one_segment(self.fields["segments"][frontier.queue_index], frontier.vertices)
        else:
            finish_frontier(self.shared, frontier.state)

    def invalidate_stale_parents(self, frontier: Frontier) -> None:
        self._loop.invalidate(self.control, self.shared, frontier.state)

    def new_result(self, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        size, dtype = self.graph.num_vertices, np.dtype(dtype)
        if size * dtype.itemsize < _LEAST_RECYCLED_BYTES:
            return np.empty(size, dtype)
        return self._results[dtype.itemsize].empty(size, dtype)

    def restore_parents(self, dtype: npt.DTypeLike = np.int64) -> npt.NDArray[Any]:
        """Return the parents in old ids, int64 or int32, -1 for none."""
        result = self.new_result(dtype)
        data, narrow = result.ctypes.data, result.itemsize == 4
        self._loop.restore_parents(self.control, self.shared, data, result.size, narrow)
        return result

    def restore_levels(self) -> npt.NDArray[np.int32]:
        """Return the levels by old ids, int32, -1 for none; the parents stay, queues do not."""
        result = self.new_result(np.int32)
        data = result.ctypes.data
        self._loop.restore_levels(self.control, self.shared, data, result.size)
        return result

    def tiny_levels(self, count: int) -> npt.NDArray[np.uint8]:
        """Return vertices and edges of the tiny frontiers among the first levels, (levels, 2)."""
        sizes: npt.NDArray[np.uint8] = self.fields["tiny"][:count].copy()
        return sizes

    def receive_result(self, part: npt.NDArray[Any], sent: npt.NDArray[np.uint32]) -> None:
        """Copy a device's values to a part of a result, int64 or int32; NO_VERTEX becomes -1."""
        data, narrow = part.ctypes.data, part.itemsize == 4
        self._loop.receive(self.control, self.shared, sent.ctypes.data, data, part.size, narrow)

    def note_foreign_parents(self) -> None:
        """Record that any entry of `parent` may have been written outside this search."""
        n = self.graph.num_searched
        self._written[:] = 0xFFFFFFFF
        self._written[n // 32 :] = (1 << n % 32) - 1  # no vertices beyond the last

    def note_finds(self, frontier: Frontier) -> None:
        """Record that a search that a device completed wrote the parents of the host's finds here.

        If they are not listed, any parent may have been written.
        """
        from hetero_bfs.algorithms.bfs.kernels.level import set_bits

        if frontier.found_list >= 0:
            set_bits(self._written, self.found_list[: frontier.found_list])
        else:
            self.note_foreign_parents()

    def _make_fields(self) -> dict[str, Any]:
        from hetero_bfs.algorithms.bfs.kernels.job import NUM_TASKS, split_among_owners
        from hetero_bfs.algorithms.bfs.kernels.level import CHUNK_EDGES

        forward, backward = self.graph.graph, self.graph.graph.transpose
        indptr = narrow_offsets(forward.indptr)
        # One cache line more than a chunk, so that threads do not share lines.
        scratch = (self.threads, CHUNK_EDGES + 64)
        owners = self._count_owners()
        room = 1 + min(_MOST_DEFERRED, forward.num_stored_edges) if owners > 1 else 0
        return {
            "threads": self.threads,
            "indptr": indptr,
            "indices": forward.indices,
            "degree": self.graph.degree,
            "backward_indptr": indptr if backward is forward else narrow_offsets(backward.indptr),
            "backward_indices": backward.indices,
            "first": self.graph.first,
            "parent": self.parent,
            "visited": tuple(self.visited),
            "written": self._written,
            "found_list": self.found_list,
            "unvisited_list": np.empty(self._most_unvisited_listed(), np.uint32),
            "mask": self._mask,
            "reached": self._reached,
            "queue": tuple(self.queue),
            "offsets": tuple(self.offsets),
            "segments": tuple(np.zeros((3, self.threads + 1), np.int64) for _ in range(2)),
            "counter": np.zeros(1, np.uint64),
            "found": np.zeros(scratch, np.uint32),
            "source": np.zeros(scratch, np.uint32),
            "outbox": aligned_empty(4 * owners * room, np.uint32).reshape(2, owners, room, 2),
            "owned_ranges": split_among_owners(self.graph.num_searched, owners),
            "longest": int(self.graph.degree.max(initial=0)),
            "old_of_new": self.graph.relabelling.old_of_new,
            "is_local": self.graph.is_local,
            "edge_bits": self.edge_bits,
            "work": np.zeros(NUM_TASKS, np.int64),
            "levels": np.zeros(len(STRATEGIES), np.int64),
            "tiny": np.empty((self.graph.num_searched + 1, 2), np.uint8),
        }

    def _phases(self) -> dict[int, Any]:
        """Return only the kernels that searches of the graph can call.

        A single thread needs none of the kernels that threads share.
        """
        from hetero_bfs.algorithms.bfs.kernels import expand, job, level, restore
        from hetero_bfs.devices.cpu.vectors import can_pack

        is_packed = self.graph.is_local and not self.graph.is_regular and can_pack()
        kernels = {
            job.BOTTOM_UP: level.bottom_up_words,
            job.CONVERT: level.queue_words,
            job.BLANK: level.blank_words,
            job.INVALIDATE: level.invalidate_words,
            job.BLANK_DEPTHS: restore.blank_depths,
            job.RESTORE_LEVELS: restore.restore_levels_chunk,
            job.ALONE: expand.expand_by_master_packed if is_packed else expand.expand_by_master,
        }
        kernels |= dict.fromkeys((job.CLEAR, job.RECEIVE, job.RESTORE), restore.fill_result)
        if self.threads > 1:
            kernels[job.TOP_DOWN] = level.top_down_chunk
            kernels[job.PUSH_DENSE] = level.push_dense_chunk
            kernels[job.RESOLVE_PUSH] = level.resolve_pushed_words
        if self._count_owners() > 1:
            kernels[job.EXPAND] = expand.expand_owned_packed if is_packed else expand.expand_owned
            kernels[job.COLLECT] = expand.collect_owned
        return kernels

    def _link(self, struct: Any) -> None:
        from hetero_bfs.support.parallel import level_address

        visible = self._visible(struct)
        super()._link(struct)
        for row, strategy in enumerate(STRATEGIES.values()):
            if strategy.device_kind == "cpu":
                module, _, name = strategy.kernel.partition(":")
                function = getattr(import_module(module), name)
                self.fields["levels"][row] = level_address(function, visible.numba_type)

    def _bitmap_words(self) -> int:
        return -(-self.graph.num_searched // 32)

    @property
    def arrays_type(self) -> Any:
        """The kernels' type of the arrays, the same for all graphs."""
        return self._visible(self.struct).numba_type

    def compile_work(self) -> None:
        _ = self.shared

    def _most_unvisited_listed(self) -> int:
        """Return the capacity of the unvisited list; if it is full, bottom-up scans the bitmap.

        One thread should scan a full list about as fast as all threads scan the bitmap, at 8 words
        per vertex. The 512 account for the barrier. In a small graph the list has at most 1 / 16 of
        the vertices.
        """
        n = self.graph.num_searched
        return min(n // 16, _MOST_UNVISITED_LISTED, 512 + n // 32 // (8 * self.threads))

    def _count_owners(self) -> int:
        if not self.graph.is_local or self.graph.graph.directed:
            return 1
        return 1 << (min(self.threads, _MOST_OWNERS).bit_length() - 1)

    def _worker(self) -> Any:
        from hetero_bfs.algorithms.bfs.kernels.phases import run_worker

        return run_worker


def narrow_offsets(indptr: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """Return 32-bit offsets if they suffice: searches read them at random."""
    return indptr.astype(np.uint32) if indptr[-1] < 2**32 else indptr


def counter_edge_bits(graph: SearchGraph) -> int:
    """Return the number of bits of the packed counter that hold edges.

    The other bits hold vertices, except the highest, which a barrier uses (grid.cl), and the next
    one if possible, which is a flag (common.cl). The number is 40 unless the graph is too large for
    that, so that most graphs share one compiled kernel.
    """
    spare_bits = 62 - graph.num_searched.bit_length()
    edge_bits = min(40, spare_bits + (graph.graph.num_stored_edges >> spare_bits > 0))
    if graph.graph.num_stored_edges >> edge_bits:
        raise GraphError(
            f"the graph has {graph.graph.num_stored_edges} stored edges; with "
            f"{graph.num_searched} vertices that have edges a search can count "
            f"{(1 << edge_bits) - 1} at most; take out vertices or edges"
        )
    return edge_bits


def unpack_counter(packed: int, edge_bits: int) -> Found:
    return Found(packed >> edge_bits, packed & ((1 << edge_bits) - 1))
