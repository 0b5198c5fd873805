"""Runs levels on an OpenCL device that cannot hold the edges: pages of edges are sent to it.

The host runs the loop over levels. It queues all kernels of a level at once (stream.cl). One
read-back returns the counts of the vertices found, or the missing pages of edges; the host sends
these pages. BGC runs like BG, since the bus limits both.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.bfs.executor import DeviceExecutor
from hetero_bfs.algorithms.bfs.host import CPUExecutor, unpack_counter
from hetero_bfs.algorithms.bfs.paged_graph import (
    DEAD_ENDS,
    MISSING,
    OPENCL,
    SEGMENT_EDGES,
    STATUS_WORDS,
    PageSlots,
    StreamedGraph,
    Streaming,
    StreamPlan,
)
from hetero_bfs.algorithms.bfs.result import Found, Frontier
from hetero_bfs.devices.opencl.header import SHARED, header
from hetero_bfs.devices.opencl.opencl_device import VARIES, BoundKernel, OpenCLDevice, Slot
from hetero_bfs.devices.opencl.tuning import Tuning
from hetero_bfs.graph.search_graph import SearchGraph
from hetero_bfs.scheduling import schema
from hetero_bfs.scheduling.policy import Policy

_FILES = (
    "algorithms/bfs/kernels/common.cl",
    "algorithms/bfs/kernels/stream.cl",
)
"""A separate program, since the others take long to compile."""

_KINDS = ("push", "pull")
"""Kinds of levels: top-down reads the first direction's lists, bottom-up the last direction's."""

_FIRST_MISSING = 8192
"""Numbers of missing pages that are read back with the status; the rest is read if needed."""

_NO, _YES = np.uint32(0), np.uint32(1)


class StreamedExecutor(DeviceExecutor):
    """Runs levels on an OpenCL device with its own memory, with the edges streaming through it."""

    def __init__(
        self,
        device: OpenCLDevice,
        graph: SearchGraph,
        host: CPUExecutor,
        plan: StreamPlan,
        tuning: Tuning | None = None,
    ) -> None:
        super().__init__(device, graph, tuning)
        self.host, self.plan = host, plan
        self.edge_bits = host.edge_bits
        self.groups = self.tuning.groups_per_unit * device.info.compute_units
        self._lists = StreamedGraph(device, graph, plan)
        self._slots = PageSlots(device, self._lists.edges, plan)
        words = -(-graph.num_searched // 32)
        self.parent = device.buffer(graph.num_searched, np.uint32)
        self.visited = [device.buffer(words, np.uint32) for _ in range(2)]  # equal after a level
        self._frontier = device.buffer(words, np.uint32)

    @property
    def num_parts(self) -> int:
        """Pages of the edges, of both directions if the graph is directed."""
        return self.plan.num_pages * len(self._lists.edges)

    @property
    def streaming(self) -> Streaming:
        plan = self.plan
        return Streaming(
            edge_bytes=plan.edge_bytes,
            pages=self.num_parts,
            page_bytes=plan.page_bytes,
            resident_pages=plan.resident_pages * len(self._lists.edges),
            resident_neighbours=len(plan.columns[0]),
            budget_bytes=plan.budget_bytes,
        )

    @property
    def bytes_streamed(self) -> int:
        return self._slots.bytes_sent

    def build_kernels(self) -> None:
        make, plan = self.device.buffer, self.plan
        visited, following = self.visited
        self._level_arrays = _LevelArrays(
            self.parent,
            visited,
            visited,
            following,
            self._frontier,
            needed=make(-(-plan.num_pages // 32), np.uint32),
            status=make(STATUS_WORDS + plan.num_pages - plan.resident_pages, np.uint32),
            here=make(plan.resident_pages, np.uint32),
        )
        self.device.fill(self._level_arrays.needed, 0)
        self._status_buffer = self._level_arrays.status
        first = min(_FIRST_MISSING, plan.num_pages - plan.resident_pages)
        self._status = self.device.host_array(STATUS_WORDS + first, np.uint32)
        options = [
            f"-DGROUP={self.tuning.group_size}",
            f"-DEDGE_BITS={self.edge_bits}",
            *self._lists.options(),
        ]
        self._program = self.device.build(options, header(SHARED, OPENCL), _FILES)
        self._plain = self._bound = self._bind(self._level_arrays)
        self._masked: tuple[_StreamKernels, BoundKernel, Any] | None = None
        slots = self._slots.slots
        self._scatter = self.device.bind(
            self._program,
            "scatter_parents",
            VARIES,
            *slots[0].buffers,
            self.parent,
        )

    def _bind(self, arrays: _LevelArrays) -> _StreamKernels:
        return _StreamKernels(self.device, self._program, self._lists, arrays, self._slots)

    def receive_mask(self, mask: npt.NDArray[np.uint32]) -> None:
        if self._masked is None:
            buffer, reached = (self.device.buffer(mask.size, np.uint32) for _ in range(2))
            unmask = self.device.bind(
                self._program, "stream_unmask", np.uint32(mask.size), self.visited[0], buffer,
                reached,
            )  # fmt: skip
            kernels = self._bind(replace(self._level_arrays, reached=reached))
            self._masked = kernels, unmask, buffer
        masked, _, buffer = self._masked
        self.device.write(buffer, mask)
        self._bound = masked

    def end_mask(self) -> None:
        self._bound = self._plain

    # One search.

    def begin(self, source: int, frontier: Frontier) -> None:
        self._run_all(self._bound.start, np.uint32(source))

    def launch_nothing(self, frontier: Frontier) -> None:
        self._read_status()

    def to_queue(self, frontier: Frontier) -> float:
        """Count the frontier that bottom-up left, and mark it as a queue; return the seconds.

        No queue is written, since this executor always reads the bitmap.
        """
        started = time.perf_counter()
        frontier.became_queue(self._found(queueable=True))
        return time.perf_counter() - started

    def run_levels(
        self,
        policy: Policy,
        interval: int,
        source: int | None,
        frontier: Frontier,
        records: npt.NDArray[np.float64],
        limit: int,
        invalidate: bool = True,
    ) -> bool:
        """Run levels while the policy keeps the search here; see `DeviceExecutor`.

        There are never stale parents, since a search starts without parents.
        """
        started = time.perf_counter()
        limit = min(limit, records.shape[0])
        if source is not None:
            self.begin(source, frontier)
            spent = time.perf_counter() - started
            records[frontier.level, schema.TRANSFER_SECONDS] += spent
        while True:
            self._run_level(bool(policy.top_down[frontier.chosen]), frontier, records)
            if frontier.is_over or frontier.level >= limit:
                return frontier.is_over
            if not self._choose(policy, interval, frontier, records):
                return False

    def _choose(
        self,
        policy: Policy,
        interval: int,
        frontier: Frontier,
        records: npt.NDArray[np.float64],
    ) -> bool:
        """Choose the next level's strategy; undo a choice of another place and return False."""
        from hetero_bfs.scheduling.policy import choose_level

        started = time.perf_counter()
        n, m = self.graph.num_searched, self.graph.graph.num_stored_edges
        choose_level(policy, interval, n, m, frontier.state, records)
        records[frontier.level, schema.SELECT_SECONDS] = time.perf_counter() - started
        if policy.places[frontier.chosen] == self.place:
            return True
        frontier.state[schema.CHOSEN] = -1
        return False

    def _run_level(
        self, top_down: bool, frontier: Frontier, records: npt.NDArray[np.float64]
    ) -> None:
        started = time.perf_counter()
        record = records[frontier.level]
        kernels, kind, size = self._bound, "push" if top_down else "pull", self.tuning.group_size
        if not top_down and self._masked is not None and kernels is self._masked[0]:
            self._run_all(self._masked[1])
        kernels.heads[kind].launch(-(-self.graph.num_searched // size) * size, size)
        self._run_all(kernels.list)
        self._run_all(kernels.resident[kind])
        self._run_all(kernels.finish, _NO)
        missing = self._read_status()
        if missing:
            self._send_missing(kind, missing)
        found = self._found(queueable=top_down)
        record[schema.STRATEGY] = frontier.chosen
        record[schema.FOUND_VERTICES] = found.vertices
        record[schema.EDGES_SCANNED] = -1
        frontier.place = self.place
        frontier.advance("top-down" if top_down else "bottom-up", found)
        record[schema.SECONDS] = time.perf_counter() - started

    def _send_missing(self, kind: str, missing: int) -> None:
        """Send a level's missing pages, launch kernels that read them, and end the level."""
        size, sent = self.tuning.group_size, self._bound.sent[kind]
        lanes = (1 << self.plan.page_shift) // SEGMENT_EDGES

        def launch(slot: Slot, count: int, copied: Any) -> Any:
            items = -(-count * lanes // size) * size
            return sent[slot.number].launch(items, size, np.uint32(count), after=[copied])

        direction = 0 if kind == "push" else len(self._lists.edges) - 1
        self._slots.send(direction, self._missing_pages(missing), launch)
        self._run_all(self._bound.finish, _YES)
        self._read_status()

    def _missing_pages(self, missing: int) -> npt.NDArray[np.uint32]:
        """Return the numbers of the missing pages; usually all have been read back already."""
        known = self._status[STATUS_WORDS:]
        if missing <= known.size:
            return known[:missing]
        pages = np.empty(missing, np.uint32)
        self.device.read(pages, self._status_buffer, 4 * STATUS_WORDS)
        return pages

    def _run_all(self, kernel: BoundKernel, *arguments: Any) -> None:
        """Launch a kernel on as many work-groups as the device runs at once."""
        size = self.tuning.group_size
        kernel.launch(self.groups * size, size, *arguments)

    def _read_status(self) -> int:
        """Wait for all queued work; return the number of missing pages."""
        self.device.read(self._status, self._status_buffer)
        return int(self._status[MISSING])

    def _found(self, queueable: bool) -> Found:
        """Return the counts of the last level, without dead ends if `queueable`."""
        found = unpack_counter(int(self._status[:DEAD_ENDS].view(np.uint64)[0]), self.edge_bits)
        if not queueable:
            return found
        return Found(found.vertices - int(self._status[DEAD_ENDS]), found.edges)

    # Migration to and from the host.

    def receive(self, frontier: Frontier, with_queue: bool) -> None:
        """Receive the visited vertices from the host and, for top-down, the frontier."""
        from hetero_bfs.algorithms.bfs.kernels.pages import mark_vertices

        visited, following = self.visited
        self.device.write(visited, self.host.visited[frontier.visited_index])
        self.device.copy(following, visited)
        if with_queue:
            bitmap = self.host.visited[1 - frontier.visited_index]
            mark_vertices(self.host.queue[frontier.queue_index][: frontier.vertices], bitmap)
            self.device.write(self._frontier, bitmap)

    def send(self, frontier: Frontier, with_queue: bool) -> None:
        """Send the frontier to the host, which converts it to a queue."""
        index = frontier.visited_index
        visited, before = self.host.visited[index], self.host.visited[1 - index]
        self.device.read(visited, self.visited[0])
        if with_queue:
            self.device.read(before, self._frontier)
            np.bitwise_and(visited, ~before, out=before)
            self.host.to_queue(frontier)

    def add_parents(self, pairs: npt.NDArray[np.uint32]) -> None:
        """Add vertices that the host found and their parents; they are copied through a slot."""
        size, room = self.tuning.group_size, self.plan.slot_edges // 2
        for begin in range(0, len(pairs), room):
            some = pairs[begin : begin + room]
            self.device.write(self._slots.slots[0].buffers[0], some)
            groups = min(-(-len(some) // size), self.groups)
            self._scatter.launch(groups * size, size, np.uint32(len(some)))
        self.device.finish()


@dataclass(frozen=True)
class _LevelArrays:
    """Buffers that the levels of a search write (stream.cl)."""

    parent: Any
    visited: Any
    reached: Any
    """Bitmap in which bottom-up looks for parents: `visited`, or a copy without masked vertices."""
    next: Any
    frontier: Any
    needed: Any
    status: Any
    here: Any


class _StreamKernels:
    """Kernels with all constant arguments set.

    `start` takes the source. `finish` takes whether all missing pages were sent. `sent` has a
    kernel for each kind and slot, which takes the number of pages in the slot. `heads` and
    `resident` have one kernel for each kind. A level runs `heads`, `list`, `resident` and `finish`.
    """

    def __init__(
        self,
        device: OpenCLDevice,
        program: Any,
        graph: StreamedGraph,
        arrays: _LevelArrays,
        slots: PageSlots,
    ) -> None:
        def bind(name: str, *arguments: Any) -> BoundKernel:
            return device.bind(program, f"stream_{name}", *arguments)

        n, words = graph.arguments
        a, plan = arrays, graph.plan
        self.start = bind("start", n, words, VARIES, a.visited, a.next, a.frontier, a.parent)
        self.list = bind(
            "list", np.uint32(-(-plan.num_pages // 32)), np.uint32(plan.resident_pages),
            a.needed, a.status, a.here,
        )  # fmt: skip
        self.finish = bind(
            "finish", words, VARIES, a.visited, a.next, a.frontier, graph.degree,
            graph.word_degree, a.status, a.status,
        )  # fmt: skip
        self.heads: dict[str, BoundKernel] = {}
        self.resident: dict[str, BoundKernel] = {}
        self.sent: dict[str, list[BoundKernel]] = {}
        for kind in _KINDS:
            direction = 0 if kind == "push" else -1
            known = a.frontier if kind == "push" else a.reached
            written = (known, a.next, a.parent)
            sizes = (n,) if kind == "push" else (n, words)
            seen = () if kind == "push" else (a.visited,)
            indptr, owner = graph.indptr[direction], graph.owner[direction]
            columns = np.uint32(len(plan.columns[direction]))
            self.heads[kind] = bind(
                f"heads_{kind}", *sizes, indptr, *graph.heads[direction], columns, *seen, *written,
                a.needed, a.status,
            )  # fmt: skip
            lists = (np.uint64(graph.edges[direction].size), indptr, owner)
            self.resident[kind] = bind(
                kind, *graph.pages[direction], *lists, a.status, a.here, *written
            )
            self.sent[kind] = [
                bind(f"{kind}_sent", VARIES, *slot.buffers, *lists, *written)
                for slot in slots.slots
            ]
