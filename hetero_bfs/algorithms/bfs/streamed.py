"""Runs levels on an OpenCL device that cannot hold the edges: pages of edges are sent to it.

The host runs the loop over levels. It queues all kernels of a level at once (stream.cl). One
read-back returns the counts of the vertices found, or the missing pages; the host sends these
pages. So a level whose pages are resident does not wait for the host to choose them. BGC runs like
BG, since the bus limits both.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.bfs import heads
from hetero_bfs.algorithms.bfs.device import DeviceExecutor
from hetero_bfs.algorithms.bfs.device_memory import EDGE_BYTES, common_degrees
from hetero_bfs.algorithms.bfs.host import CPUExecutor, unpack_counter
from hetero_bfs.algorithms.bfs.result import Found, Frontier
from hetero_bfs.devices.machine import Tuning
from hetero_bfs.devices.opencl.opencl_device import VARIES, BoundKernel, OpenCLDevice
from hetero_bfs.devices.opencl.streamed_lists import BlockMemory, Blocks, Numbers, Part, Slot
from hetero_bfs.graph.search_graph import SearchGraph
from hetero_bfs.scheduling import schema
from hetero_bfs.scheduling.policy import Policy, choose_level
from hetero_bfs.support.memory import format_bytes

_FIRST_MISSING = 8192
"""Numbers of missing pages that are read back with the status; the rest is read if needed."""

_KINDS = ("push", "pull")
"""Kinds of levels: top-down reads the first direction's lists, bottom-up the last direction's."""

_NO, _YES, _ALL = np.uint32(0), np.uint32(1), np.uint32(0xFFFFFFFF)


@dataclass(frozen=True)
class Streaming:
    """How the edges of a graph stream. Pages of both directions of a directed graph count."""

    edge_bytes: int
    pages: int
    page_bytes: int
    resident_pages: int
    resident_neighbours: int
    budget_bytes: int

    def __str__(self) -> str:
        return (
            f"streamed, {format_bytes(self.edge_bytes)} in {self.pages:,} pages of "
            f"{format_bytes(self.page_bytes)}; resident are {self.resident_pages:,} pages and of "
            f"every list the first {self.resident_neighbours}, budget "
            f"{format_bytes(self.budget_bytes)}"
        )

    def to_dict(self) -> dict[str, int]:
        return asdict(self)


class StreamedExecutor(DeviceExecutor):
    """Runs levels on an OpenCL device with its own memory, with the edges streaming through it."""

    files = ("algorithms/bfs/kernels/common.cl", "algorithms/bfs/kernels/stream.cl")
    """A separate program, since the others take long to compile."""

    constants: ClassVar = (heads.OPENCL,)

    results: None = None
    """The host restores results."""

    def __init__(
        self,
        device: OpenCLDevice,
        graph: SearchGraph,
        host: CPUExecutor,
        plan: heads.StreamPlan,
        tuning: Tuning | None = None,
    ) -> None:
        super().__init__(device, graph, tuning)
        self.host, self.plan = host, plan
        self.edge_bits = host.edge_bits
        self.num_parts = heads.num_pages(graph) * len(self.ways)
        """Pages of the edges, of both directions if the graph is directed."""
        self._upload()
        n, words = graph.num_searched, -(-graph.num_searched // 32)
        self.parent = device.buffer(n, np.uint32)
        self.visited = [device.buffer(words, np.uint32) for _ in range(2)]  # equal after a level
        self._frontier = device.buffer(words, np.uint32)
        edges = graph.graph.num_stored_edges
        begins = np.arange(heads.num_pages(graph) + 1, dtype=np.int64) << heads.page_shift(graph)
        pages = [Blocks(way.arrays, np.minimum(begins, edges)) for way in self.ways]
        self.memory = BlockMemory(device, "pages need", pages, [0], [], plan.room)
        self.memory.take()

    def _upload(self) -> None:
        """Upload the resident arrays of the graph.

        An item of `_heads` is (heads, starts of the columns, their sizes) of a direction. An item
        of `_lists` is (number of edges, offsets, owners).
        """
        degree = self.graph.degree
        self._degrees = self.read_only.array(degree), self.device.upload(common_degrees(degree))
        self._heads = [
            heads.upload_heads(self.device, way, sizes)
            for way, sizes in zip(self.ways, self.plan.columns, strict=True)
        ]
        self._lists = [
            (
                np.uint64(way.arrays[0].size),
                self.offsets(number),
                self.device.upload(heads.owners_of(way)),
            )
            for number, way in enumerate(self.ways)
        ]

    @property
    def streaming(self) -> Streaming:
        return Streaming(
            edge_bytes=sum(way.arrays[0].nbytes for way in self.ways),
            pages=self.num_parts,
            page_bytes=EDGE_BYTES << heads.page_shift(self.graph),
            resident_pages=self.memory.layout.resident * len(self.ways),
            resident_neighbours=len(self.plan.columns[0]),
            budget_bytes=self.plan.budget_bytes,
        )

    def build_kernels(self) -> None:
        device, pages = self.device, heads.num_pages(self.graph)
        resident = self.memory.layout.resident
        words = heads.STATUS_WORDS + pages - resident
        self._status_buffer = device.buffer(words, np.uint32)
        self._here = device.buffer(resident, np.uint32)
        self._needed = device.buffer(-(-pages // 32), np.uint32)
        device.fill(self._needed, 0)
        first = min(_FIRST_MISSING, pages - resident)
        self._status = device.host_array(heads.STATUS_WORDS + first, np.uint32)
        self._program = self.build(
            EDGE_BITS=self.edge_bits,
            PAGE_SHIFT=heads.page_shift(self.graph),
            OWNER_SHIFT=heads.OWNER_SHIFT,
            NUM_PARTS=1,
            PART_SHIFT=0,
            DIRECTED=self.graph.graph.directed,
        )
        self._plain = self._bound = _StreamKernels(self, self.visited[0])
        self._masked: tuple[_StreamKernels, BoundKernel, Any] | None = None
        scratch = (self._here, resident), (self._status_buffer, words)
        larger = scratch[0] if resident > words else scratch[1]  # unused between searches
        self.bind_parents(partial(device.bind, self._program), *larger)

    def receive_mask(self, mask: npt.NDArray[np.uint32]) -> None:
        if self._masked is None:
            buffer, reached = (self.device.buffer(mask.size, np.uint32) for _ in range(2))
            unmask = self.device.bind(
                self._program, "stream_unmask", np.uint32(mask.size), self.visited[0], buffer,
                reached,
            )  # fmt: skip
            self._masked = _StreamKernels(self, reached), unmask, buffer
        masked, _, buffer = self._masked
        self.device.write(buffer, mask)
        self._bound = masked

    def end_mask(self) -> None:
        self._bound = self._plain

    # One search.

    def receive_policy(self, policy: Policy, interval: int) -> None:
        """Do nothing: the host evaluates the policy."""

    def start_early(self, *_: object) -> None:
        """Do nothing: the host runs the loop over levels."""

    def begin(self, source: int, frontier: Frontier) -> None:
        self.launch_all(self._bound.start, np.uint32(source))

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
        n, m = self.graph.num_searched, self.graph.graph.num_stored_edges
        limit = min(limit, frontier.level + records.shape[0] - frontier.row)
        if source is not None:
            self.begin(source, frontier)
            spent = time.perf_counter() - started
            records[frontier.row, schema.TRANSFER_SECONDS] += spent
        while True:
            self._run_level(bool(policy.top_down[frontier.chosen]), frontier, records)
            if frontier.is_over or frontier.level >= limit:
                return frontier.is_over
            started = time.perf_counter()
            choose_level(policy, interval, n, m, frontier.state, records)
            records[frontier.row, schema.SELECT_SECONDS] = time.perf_counter() - started
            if policy.places[frontier.chosen] != self.place:
                frontier.state[schema.CHOSEN] = -1  # the search chooses that place again
                return False

    def _run_level(
        self, top_down: bool, frontier: Frontier, records: npt.NDArray[np.float64]
    ) -> None:
        started = time.perf_counter()
        record = records[frontier.row]
        kernels, kind, size = self._bound, "push" if top_down else "pull", self.group
        if not top_down and self._masked is not None and kernels is self._masked[0]:
            self.launch_all(self._masked[1])
        kernels.heads[kind].launch(-(-self.graph.num_searched // size) * size, size)
        self.launch_all(kernels.list)
        for resident in kernels.resident[kind]:
            self.launch_all(resident, _NO)
        self.launch_all(kernels.finish, _NO)
        missing = self._read_status()
        if missing:
            self._send_missing(kind, missing)
        found = self._found(queueable=top_down)
        record[schema.STRATEGY] = frontier.chosen
        record[schema.FOUND_VERTICES] = found.vertices
        record[schema.EDGES_SCANNED] = -1
        frontier.place = self.place
        left = schema.QUEUE if top_down else schema.BITMAP
        schema.advance(frontier.state, left, found.vertices, found.edges)
        record[schema.SECONDS] = time.perf_counter() - started

    def _send_missing(self, kind: str, missing: int) -> None:
        size, sent = self.group, self._bound.sent[kind]
        lanes = (1 << heads.page_shift(self.graph)) // heads.SEGMENT_EDGES

        def launch(slot: Part | Slot, pages: Numbers, copied: Sequence[Any]) -> Any:
            assert isinstance(slot, Slot)
            items = -(-pages.size * lanes // size) * size
            kernel = sent[slot.number]
            return kernel.launch(items, size, np.uint32(pages.size), after=copied)

        way = 0 if kind == "push" else len(self.ways) - 1
        self.memory.send(way, self._missing_pages(missing), launch)
        self.launch_all(self._bound.finish, _YES)
        self._read_status()

    def _missing_pages(self, missing: int) -> Numbers:
        known = self._status[heads.STATUS_WORDS :]
        if missing <= known.size:
            return known[:missing].astype(np.int64)
        pages = np.empty(missing, np.uint32)
        self.device.read(pages, self._status_buffer, 4 * heads.STATUS_WORDS)
        return pages.astype(np.int64)

    def _read_status(self) -> int:
        self.device.read(self._status, self._status_buffer)
        return int(self._status[heads.MISSING])

    def _found(self, queueable: bool) -> Found:
        packed = self._status[: heads.DEAD_ENDS].view(np.uint64)[0]
        found = unpack_counter(int(packed), self.edge_bits)
        if not queueable:
            return found
        return Found(found.vertices - int(self._status[heads.DEAD_ENDS]), found.edges)

    # Migration to and from the host.

    def receive(self, frontier: Frontier, with_queue: bool) -> None:
        """Receive the visited vertices from the host and, for top-down, the frontier."""
        from hetero_bfs.algorithms.bfs.kernels.level import set_bits

        visited, following = self.visited
        self.device.write(visited, self.host.visited[frontier.visited_index])
        self.device.copy(following, visited)
        if with_queue:
            bitmap = self.host.visited[1 - frontier.visited_index]
            queue = self.host.queue[frontier.queue_index]
            bitmap[:] = 0
            set_bits(bitmap, queue[: frontier.vertices].reshape(-1, 1))
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


class _StreamKernels:
    """Kernels with all constant arguments set.

    `start` takes the source. `finish` takes whether all missing pages were sent. `resident` has a
    kernel for each kind and part, and `sent` for each kind and slot; these take the number of pages
    in the slot. A level runs `heads`, `list`, `resident` and `finish`.
    """

    def __init__(self, on: StreamedExecutor, reached: Any) -> None:
        """`reached` is the bitmap in which bottom-up looks for parents: without masked vertices."""

        def bind(name: str, *arguments: Any) -> BoundKernel:
            return on.device.bind(on._program, f"stream_{name}", *arguments)

        n, words = np.uint32(on.graph.num_searched), np.uint32(on.visited[0].size // 4)
        memory, (visited, following) = on.memory, on.visited
        frontier, needed, status, here = on._frontier, on._needed, on._status_buffer, on._here
        self.start = bind("start", n, words, VARIES, visited, following, frontier, on.parent)
        self.list = bind(
            "list", np.uint32(needed.size // 4), np.uint32(memory.layout.resident), needed, status,
            here,
        )  # fmt: skip
        self.finish = bind(
            "finish", words, VARIES, visited, following, frontier, *on._degrees, status, status
        )
        self.heads: dict[str, BoundKernel] = {}
        self.resident: dict[str, list[BoundKernel]] = {}
        self.sent: dict[str, list[BoundKernel]] = {}
        for kind in _KINDS:
            is_push, way = kind == "push", 0 if kind == "push" else -1
            written = (frontier if is_push else reached, following, on.parent)
            seen, before = ((n,), ()) if is_push else ((n, words), (visited,))
            lists, firsts = on._lists[way], on._heads[way]
            columns = np.uint32(firsts[1].size // 8)
            read = (*seen, lists[1], *firsts, columns, *before)
            self.heads[kind] = bind(f"heads_{kind}", *read, *written, needed, status)
            self.resident[kind] = [
                bind(
                    kind, VARIES, np.uint32(part.begin), np.uint32(part.end), here,
                    part.buffers[1], *lists, status, *written,
                )
                for part in memory.parts[way]
            ]  # fmt: skip
            self.sent[kind] = [
                bind(kind, VARIES, _NO, _ALL, *slot.buffers, *lists, status, *written)
                for slot in memory.slots
            ]
