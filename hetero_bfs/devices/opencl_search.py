"""One search's state on an OpenCL device, and its levels (kernels/bfs.cl)."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.bfs import Found, Frontier
from hetero_bfs.build import SearchGraph
from hetero_bfs.devices.cpu import CPUSearcher, unpack_counter
from hetero_bfs.devices.opencl import VARIES, BoundKernel, OpenCLDevice
from hetero_bfs.errors import DeviceError, SplitError
from hetero_bfs.graph import NO_VERTEX, CSRGraph
from hetero_bfs.memory import GIB, aligned_copy
from hetero_bfs.partition import partition_edges
from hetero_bfs.strategy import DeviceKind, Strategy

GROUP = 256
EDGES_PER_ITEM = 4  # ITEMS in bfs.cl
VERTICES_PER_ITEM = 8  # bottom_up's tile over GROUP
GROUPS_PER_COMPUTE_UNIT = 8
CACHED_WORDS = 4096  # 16 KiB of local memory: the 131,072 vertices of highest degree
NUM_COUNTERS = 1024


class OpenCLSearcher:
    """Runs levels on an OpenCL device.

    On unified memory the state is the host's own arrays, mapped and unmapped as the search goes
    back and forth; else the device has its own, and `receive` and `send` move the frontier.
    """

    kind: DeviceKind = "device"

    def __init__(
        self,
        device: OpenCLDevice,
        graph: SearchGraph,
        host: CPUSearcher,
        max_alloc_bytes: int | None = None,
    ) -> None:
        self.device = device
        self.graph = graph
        self.host = host
        self.unified = device.info.unified_memory
        self.edge_bits = host.edge_bits
        wide = self.unified or graph.graph.num_stored_edges >= 2**32
        self._offset_type: npt.DTypeLike = np.uint64 if wide else np.uint32
        self._check_memory()
        self._upload_graph(max_alloc_bytes or device.info.max_alloc_bytes)
        self._make_state()
        self._next_counter = 0
        self._mappings: list[Any] = []

    # Setting up.

    def _check_memory(self) -> None:
        info, graph = self.device.info, self.graph
        needed = self._bytes_needed()
        if needed > info.memory_bytes:
            raise DeviceError(
                f"the graph needs {needed / GIB:.2f} GiB on {info.name}, which has "
                f"{info.memory_bytes / GIB:.2f} GiB; a graph of about "
                f"{int(graph.graph.num_stored_edges // 2 * info.memory_bytes / needed):,} "
                "edges of this kind would fit"
            )

    def _bytes_needed(self) -> int:
        graphs = 2 if self.graph.graph.directed else 1
        offset_bytes = np.dtype(self._offset_type).itemsize
        n = self.graph.num_searched
        structure = graphs * (4 * self.graph.graph.num_stored_edges + offset_bytes * n)
        state = 2 * 4 * n if self.unified else 3 * 4 * n + 2 * offset_bytes * n + n // 4
        return int(structure + state + 2 * 4 * n)

    def _upload_graph(self, max_alloc_bytes: int) -> None:
        forward, backward = self.graph.graph, self.graph.graph.transpose
        self._upload_edges(forward, backward, max_alloc_bytes)
        arrays = [
            aligned_copy(array.astype(self._offset_type, copy=False))
            for array in (forward.indptr.view(np.uint64), backward.indptr.view(np.uint64))
        ]
        arrays += [aligned_copy(self.graph.degree), aligned_copy(self.graph.first)]
        self._indptr, self._backward_indptr, self._degree, self._first = (
            self.device.upload(array) for array in arrays
        )

    def _upload_edges(self, forward: CSRGraph, backward: CSRGraph, limit_bytes: int) -> None:
        """Upload in parts of at most this size; smaller ones where the driver gives less."""
        num_edges = max(forward.num_stored_edges, backward.num_stored_edges)
        refused: DeviceError | None = None
        while True:
            try:
                self.partition = partition_edges(num_edges, limit_bytes)
            except SplitError as error:
                raise refused or error from error
            try:
                self._forward_parts = self._upload_parts(forward.indices)
                self._backward_parts = self._forward_parts
                if backward is not forward:
                    self._backward_parts = self._upload_parts(backward.indices)
                return
            except DeviceError as error:
                self._forward_parts = self._backward_parts = []
                refused = refused or error
                limit_bytes //= 2

    def _upload_parts(self, indices: npt.NDArray[np.uint32]) -> list[Any]:
        """Upload the parts; the list is filled up to a power of two, for fewer programs."""
        whole = aligned_copy(indices)
        parts = [
            self.device.upload(whole[part.start : part.start + part.count])
            for part in self.partition.parts
        ]
        return parts + parts[:1] * ((1 << (len(parts) - 1).bit_length()) - len(parts))

    def _make_state(self) -> None:
        n = self.graph.num_searched
        words = -(-n // 32)
        if self.unified:
            share = self.device.share
            self._parent = share(self.host.parent)
            self._visited = [share(array) for array in self.host.visited]
            self._queue = [share(array) for array in self.host.queue]
            self._offsets = [share(array) for array in self.host.offsets]
        else:
            make = self.device.buffer
            self._parent = make(n, np.uint32)
            self._visited = [make(words, np.uint32) for _ in range(2)]
            self._queue = [make(n, np.uint32) for _ in range(2)]
            self._offsets = [make(n, self._offset_type) for _ in range(2)]
        self._counters = self.device.buffer(NUM_COUNTERS, np.uint64)
        self.device.write(self._counters, np.zeros(NUM_COUNTERS, np.uint64))
        self._counter = np.zeros(1, np.uint64)
        self._words = words

    def build_kernels(self) -> None:
        """Compile the kernels for this graph's offsets and parts; drivers keep them on disk."""
        options = [
            f"-DGROUP={GROUP}",
            f"-DOFFSET={'ulong' if self._offset_type == np.uint64 else 'uint'}",
            f"-DEDGE_BITS={self.edge_bits}",
            f"-DNUM_PARTS={len(self._forward_parts)}",
            # One part needs no shift: leave it out, and graphs share a compiled program.
            f"-DPART_SHIFT={self.partition.shift if len(self.partition.parts) > 1 else 0}",
        ]
        if self.graph.graph.directed:
            options.append("-DDIRECTED")
        self._bind_kernels(
            self.device.build([*options, "-DCACHED_WORDS=0"]),
            self.device.build([*options, f"-DCACHED_WORDS={CACHED_WORDS}"]),
        )

    def _bind_kernels(self, plain: Any, cached: Any) -> None:
        """Set the arguments once for every pair of visited bitmap and queue in use."""
        bind = self.device.bind
        n, words = np.uint32(self.graph.num_searched), np.uint32(self._words)
        counters = (self._counters, VARIES)
        self._start: dict[tuple[int, int], BoundKernel] = {}
        self._convert: dict[tuple[int, int], BoundKernel] = {}
        self._push: dict[tuple[int, int], BoundKernel] = {}
        self._pull: dict[tuple[str, int], BoundKernel] = {}
        for v in range(2):
            visited, other = self._visited[v], self._visited[1 - v]
            for q in range(2):
                queue = (self._queue[q], self._offsets[q])
                following = (self._queue[1 - q], self._offsets[1 - q])
                self._start[v, q] = bind(
                    plain, "start", n, words, VARIES, self._parent, visited, *queue,
                    self._counters, np.uint32(NUM_COUNTERS),
                )  # fmt: skip
                self._convert[v, q] = bind(
                    plain, "bitmap_to_queue", words, visited, other, self._degree, *counters,
                    *queue,
                )  # fmt: skip
                self._push[v, q] = bind(
                    plain, "top_down", VARIES, VARIES, *queue, self._indptr, self._degree,
                    visited, self._parent, *counters, *following, *self._forward_parts,
                )  # fmt: skip
            for variant, program in (("plain", plain), ("cached", cached)):
                self._pull[variant, v] = bind(
                    program, "bottom_up", n, words, self._first, self._backward_indptr,
                    self._degree, visited, other, self._parent, *counters,
                    *self._backward_parts,
                )  # fmt: skip
        self._scatter = bind(
            plain, "scatter_parents", VARIES, self._queue[0], self._queue[1], self._parent
        )

    # One search.

    def begin(self, root: int, frontier: Frontier) -> None:
        """Forget the last search and make `root` (a new id) the frontier."""
        self.acquire()
        self._next_counter = 0
        groups = min(-(-self.graph.num_searched // GROUP), 4 * self._resident_groups())
        kernel = self._start[frontier.visited_index, frontier.queue_index]
        kernel.launch(groups * GROUP, GROUP, np.uint32(root))

    def clear(self, frontier: Frontier) -> None:
        """Forget the last search."""
        self.begin(NO_VERTEX, frontier)

    def to_queue(self, frontier: Frontier) -> float:
        """Turn a frontier that bottom-up left as a bitmap into a queue; returns seconds."""
        started = time.perf_counter()
        slot = self._counter_slot()
        kernel = self._convert[frontier.visited_index, frontier.queue_index]
        kernel.launch(-(-self._words // GROUP) * GROUP, GROUP, slot)
        found = self._read_counter(slot)
        frontier.became_queue(found)
        return time.perf_counter() - started

    def run(self, strategy: Strategy, frontier: Frontier) -> tuple[Found, float]:
        """Run one level and move `frontier` on to the next; returns its seconds too."""
        started = time.perf_counter()
        if strategy.direction == "top-down":
            found = self._top_down(frontier)
        else:
            found = self._bottom_up(strategy.variant, frontier)
        frontier.advance(strategy.direction, found)
        return found, time.perf_counter() - started

    def _top_down(self, frontier: Frontier) -> Found:
        slot = self._counter_slot()
        groups = -(-frontier.edges // (GROUP * EDGES_PER_ITEM))
        edges = np.dtype(self._offset_type).type(frontier.edges)
        kernel = self._push[frontier.visited_index, frontier.queue_index]
        kernel.launch(groups * GROUP, GROUP, np.uint32(frontier.vertices), edges, slot)
        return self._read_counter(slot)

    def _bottom_up(self, variant: str, frontier: Frontier) -> Found:
        slot = self._counter_slot()
        tiles = -(-self.graph.num_searched // (GROUP * VERTICES_PER_ITEM))
        kernel = self._pull[variant, frontier.visited_index]
        kernel.launch(min(tiles, self._resident_groups()) * GROUP, GROUP, slot)
        return self._read_counter(slot)

    def _resident_groups(self) -> int:
        return GROUPS_PER_COMPUTE_UNIT * self.device.info.compute_units

    def _counter_slot(self) -> np.uint32:
        if self._next_counter == NUM_COUNTERS:
            self.device.write(self._counters, np.zeros(NUM_COUNTERS, np.uint64))
            self._next_counter = 0
        self._next_counter += 1
        return np.uint32(self._next_counter - 1)

    def _read_counter(self, slot: np.uint32) -> Found:
        self.device.read(self._counter, self._counters, 8 * int(slot))
        return unpack_counter(int(self._counter[0]), self.edge_bits)

    # Crossing to and from the host.

    def acquire(self) -> None:
        """Give shared memory back to the device after the host used it."""
        for mapping in self._mappings:
            mapping.base.release(self.device.queue)
        self._mappings = []

    def release(self) -> None:
        """Let the host use the shared memory."""
        if self._mappings or not self.unified or self.graph.num_searched == 0:
            return
        host = self.host
        buffers = [self._parent, *self._visited, *self._queue, *self._offsets]
        arrays = [host.parent, *host.visited, *host.queue, *host.offsets]
        self._mappings = [self.device.map(b, a) for b, a in zip(buffers, arrays, strict=True)]
        self.device.finish()

    def receive(self, frontier: Frontier, with_queue: bool) -> None:
        """Take the frontier over from the host."""
        if self.unified:
            self.acquire()
            return
        index, count = frontier.queue_index, frontier.vertices
        self.device.write(
            self._visited[frontier.visited_index], self.host.visited[frontier.visited_index]
        )
        if with_queue:
            offsets = self.host.offsets[index][:count].astype(self._offset_type)
            self.device.write(self._queue[index], self.host.queue[index][:count])
            self.device.write(self._offsets[index], offsets)

    def send(self, frontier: Frontier, with_queue: bool) -> None:
        """Hand the frontier over to the host."""
        if self.unified:
            self.release()
            return
        index, count = frontier.queue_index, frontier.vertices
        self.device.read(
            self.host.visited[frontier.visited_index], self._visited[frontier.visited_index]
        )
        if with_queue:
            offsets = np.empty(count, self._offset_type)
            self.device.read(self.host.queue[index][:count], self._queue[index])
            self.device.read(offsets, self._offsets[index])
            self.host.offsets[index][:count] = offsets

    def add_parents(
        self, vertices: npt.NDArray[np.uint32], parents: npt.NDArray[np.uint32]
    ) -> None:
        """Take over parents that the host found, by way of the queues' memory."""
        if vertices.size == 0:
            return
        self.device.write(self._queue[0], vertices)
        self.device.write(self._queue[1], parents)
        groups = min(-(-vertices.size // GROUP), self._resident_groups())
        self._scatter.launch(groups * GROUP, GROUP, np.uint32(vertices.size))
        self.device.finish()

    def read_visited(self, visited: npt.NDArray[np.uint32], index: int) -> None:
        """Copy one of the two bitmaps of visited vertices to the host."""
        self.device.read(visited, self._visited[index])

    def read_parents(self, parent: npt.NDArray[np.uint32]) -> None:
        """Copy the parents that this device found to the host."""
        self.device.read(parent, self._parent)
