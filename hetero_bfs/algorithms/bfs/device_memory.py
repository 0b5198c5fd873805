"""A graph, the arrays of a search, and its results, in the memory of an OpenCL device.

Edge splitting (Zhang et al. 2018, section 4.3): parts are within a device's allocation limit. The
number of edges of a part is a power of two, so that a kernel finds an edge's part by a shift. A
hub's list may span several parts.

Results on their way to the caller are restored on the device that finished a search, or saved. The
device sends 32 bits for each vertex, in parts. While a part is copied, the host converts the part
before it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.bfs.host import CPUExecutor
from hetero_bfs.algorithms.bfs.result import Frontier
from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.devices.opencl.built_programs import MIXED_DEGREES
from hetero_bfs.devices.opencl.device_run import DeviceRun, both_ways, offset_dtype
from hetero_bfs.devices.opencl.opencl_device import (
    BoundKernel,
    MappedMemory,
    OpenCLDevice,
    release_with,
)
from hetero_bfs.devices.opencl.verdicts import check_verdict
from hetero_bfs.errors import BudgetError, DeviceError, SplitError
from hetero_bfs.graph.search_graph import SearchGraph
from hetero_bfs.support.memory import aligned_copy, aligned_empty, format_bytes
from hetero_bfs.support.messages import setting

MAX_PARTS = 32
"""Maximum number of parts that the kernels can be compiled for (common.cl)."""

EDGE_BYTES = 4

_PART_VERTICES = 1 << 20
"""Vertices in a part. On the host it is 4 MiB, so that the copy may stay in the cache."""

_PARTS = 4
"""Parts in pinned memory at the same time."""

Receive = Callable[[int, npt.NDArray[np.uint32]], None]
"""Takes the first vertex of a part, and the part; its memory is used again afterwards."""


class EdgeParts(NamedTuple):
    """Consecutive pieces of one edge array; all but the last hold 2**shift edges."""

    parts: list[slice]
    shift: int


def cut_edges(num_edges: int, max_alloc_bytes: int) -> EdgeParts:
    """Cut an edge array of uint32 into parts of at most `max_alloc_bytes` each."""
    if max_alloc_bytes < EDGE_BYTES:
        raise SplitError(f"a limit of {max_alloc_bytes} bytes is below one edge ({EDGE_BYTES})")
    shift = (max_alloc_bytes // EDGE_BYTES).bit_length() - 1
    num_parts = max(-(-num_edges // (1 << shift)), 1)
    if num_parts > MAX_PARTS:
        smallest = EDGE_BYTES << (-(-num_edges // MAX_PARTS) - 1).bit_length()
        raise SplitError(
            f"edge array needs {num_edges * EDGE_BYTES} bytes; a limit of {max_alloc_bytes} bytes "
            f"per buffer would cut it into {num_parts} parts, more than the {MAX_PARTS} that the "
            f"kernels take; allow at least {smallest} bytes ({setting('max_alloc_bytes')})"
        )
    begins = range(0, max(num_edges, 1), 1 << shift)
    return EdgeParts([slice(i, min(i + (1 << shift), num_edges)) for i in begins], shift)


class DeviceGraph:
    """The arrays of a graph that a search on the device reads (Graph in top_down.cl).

    `arguments` are the kernels' first arguments. Other algorithms share the neighbour lists
    (device_run.py), unless they are in several parts.

    Raises `DeviceError` if the device has too little memory. Raises `SplitError` if
    `max_alloc_bytes` would cut the edges into too many parts.
    """

    def __init__(self, run: DeviceRun, graph: SearchGraph, max_alloc_bytes: int | None) -> None:
        info = run.device.info
        self._device, self._lists = run.device, run.read_only
        self.ways, self._offset_type, self._graph = run.ways, run.offset_type, graph
        self.arguments = self._upload(max_alloc_bytes or info.max_alloc_bytes)
        if len(self.partition.parts) > 1:
            check_verdict(info, "searches in parts")

    def _upload(self, limit_bytes: int) -> list[Any]:
        graph = self._graph
        parts = self._upload_edges([way.arrays[0] for way in self.ways], limit_bytes)
        self.degree = self._shared(graph.degree)
        return [
            np.uint32(graph.num_searched),
            np.uint32(-(-graph.num_searched // 32)),
            self._shared(self.ways[0].indptr, self._offset_type),
            self._shared(self.ways[-1].indptr, self._offset_type),
            self.degree,
            self._device.upload(aligned_copy(common_degrees(graph.degree))),
            self._shared(graph.first),
            *parts,
        ]

    def _shared(self, array: npt.NDArray[Any], dtype: np.dtype[Any] | None = None) -> Any:
        in_place = self._device.info.unified_memory
        return self._lists.array(aligned_copy(array) if in_place else array, dtype)

    def _upload_edges(self, edges: Sequence[npt.NDArray[np.uint32]], limit_bytes: int) -> list[Any]:
        """Upload in parts of at most this size; halve the size while the driver refuses it."""
        num_edges = max(array.size for array in edges)
        refused: DeviceError | None = None
        while True:
            try:
                self.partition: EdgeParts = cut_edges(num_edges, limit_bytes)
            except SplitError as error:
                raise refused or error from error
            try:
                return [part for array in edges for part in self._upload_parts(array)]
            except DeviceError as error:
                refused = refused or error
                limit_bytes //= 2

    def _upload_parts(self, indices: npt.NDArray[np.uint32]) -> list[Any]:
        if len(self.partition.parts) == 1:
            return [self._shared(indices)]
        whole = aligned_copy(indices)
        return [self._device.upload(whole[part]) for part in self.partition.parts]

    def macros(self) -> str:
        """Return PARAMS(name) and ARGS(name), the parts as kernel parameters and as arguments."""
        names = [f"name##{number}" for number in range(len(self.partition.parts))]
        params = ", ".join(f"__global const uint *restrict {name}" for name in names)
        return f"#define PARAMS(name) {params}\n#define ARGS(name) {', '.join(names)}\n"

    def options(self) -> dict[str, int | bool]:
        split = len(self.partition.parts) > 1
        return {
            "NUM_PARTS": len(self.partition.parts),
            # A single part needs no shift. Without it, graphs share a compiled program.
            "PART_SHIFT": self.partition.shift if split else 0,
            "DIRECTED": self._graph.graph.directed,
        }


def offset_type_of(info: DeviceInfo, graph: SearchGraph) -> np.dtype[Any]:
    return offset_dtype(info, graph.graph.num_stored_edges)


def bytes_in_memory(info: DeviceInfo, graph: SearchGraph) -> int:
    graphs = 2 if graph.graph.directed else 1
    offset_bytes = offset_type_of(info, graph).itemsize
    n = graph.num_searched
    structure = graphs * (EDGE_BYTES * graph.graph.num_stored_edges + offset_bytes * n)
    state = 2 * 4 * n if info.unified_memory else 3 * 4 * n + 2 * offset_bytes * n + n // 4
    return int(structure + state + 2 * 4 * n)


def common_degrees(degree: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """Return for every 32 vertices their common degree, or `MIXED_DEGREES`; uint32."""
    begins = np.arange(0, degree.size, 32)
    if degree.size == 0:
        return np.empty(0, np.uint32)
    least, most = np.minimum.reduceat(degree, begins), np.maximum.reduceat(degree, begins)
    return np.where(least == most, least, np.uint32(MIXED_DEGREES))


class SearchMemory:
    """Parents, two bitmaps of visited vertices, and two queues with offsets, of one search.

    On unified memory the arrays are `host`'s, mapped and unmapped when the search migrates.
    Other devices have their own arrays, and `receive` and `send` copy the frontier.
    """

    def __init__(self, device: OpenCLDevice, host: CPUExecutor, offset_type: Any) -> None:
        self._device = device
        self._host = host
        self._offset_type = offset_type
        self.unified = device.info.unified_memory
        self._mappings: list[MappedMemory] = []
        release_with(self, self._mappings).atexit = False
        if self.unified:
            self.parent = device.share(host.parent)
            self.visited = [device.share(array) for array in host.visited]
            self.queue = [device.share(array) for array in host.queue]
            self.offsets = [device.share(array) for array in host.offsets]
        else:
            n = host.parent.size
            self.parent = device.buffer(n, np.uint32)
            self.visited = [device.buffer(bits.size, np.uint32) for bits in host.visited]
            self.queue = [device.buffer(max(n, 2), np.uint32) for _ in range(2)]
            self.offsets = [device.buffer(n, offset_type) for _ in range(2)]
        self.arguments = [self.parent, *self.visited, *self.queue, *self.offsets]
        """The buffers, in the order in which kernels take them."""

    def acquire(self) -> None:
        while self._mappings:
            self._device.unmap(self._mappings.pop())

    def release(self) -> None:
        host = self._host
        if self._mappings or not self.unified or host.parent.size == 0:
            return
        arrays = [host.parent, *host.visited, *host.queue, *host.offsets]
        pairs = zip(self.arguments, arrays, strict=True)
        self._mappings += [self._device.map(buffer, array) for buffer, array in pairs]
        self._device.finish()

    def receive(self, frontier: Frontier, with_queue: bool) -> None:
        if self.unified:
            self.acquire()
            return
        index, count, visited = frontier.queue_index, frontier.vertices, frontier.visited_index
        device, host = self._device, self._host
        arrays = [(self.visited[visited], host.visited[visited])]
        if with_queue:
            offsets = host.offsets[index][:count].astype(self._offset_type)
            arrays += [
                (self.queue[index], host.queue[index][:count]),
                (self.offsets[index], offsets),
            ]
        device.write_all(arrays)

    def send(self, frontier: Frontier, with_queue: bool) -> None:
        index, visited, host = frontier.queue_index, frontier.visited_index, self._host
        if self.unified:
            self.release()
        else:
            copies = [(host.visited[visited], self.visited[visited])]
            if with_queue:
                copies.append((host.queue[index][: frontier.vertices], self.queue[index]))
            self._device.read_all(copies)
        if with_queue:
            host.note_foreign_queue(frontier, has_offsets=self.unified)


class DeviceResults(DeviceRun):
    """Restores results of searches that are complete on a device with its own memory.

    The queues' memory is scratch. Raises `BudgetError` if the arrays take more than `spare_bytes`,
    and `DeviceError` if the driver fails.
    """

    files = ("algorithms/bfs/kernels/results.cl",)
    GROUP, GROUPS_PER_UNIT = 256, 32

    def __init__(
        self, device: OpenCLDevice, graph: SearchGraph, memory: SearchMemory, spare_bytes: int
    ) -> None:
        super().__init__(device, both_ways(graph))
        self._size, self._searched = graph.num_vertices, graph.num_searched
        relabelling = graph.relabelling
        needed = 4 * (2 * self._size + self._searched)
        if needed > spare_bytes:
            raise BudgetError(
                f"the arrays need {format_bytes(needed)} on {device.info.name}, and "
                f"{format_bytes(max(spare_bytes, 0))} are free there"
            )
        self._new_of_old = self.read_only.array(relabelling.new_of_old)
        self._old_of_new = self.read_only.array(relabelling.old_of_new)
        self._result = device.buffer(self._size, np.uint32)
        room = min(self._size, _PARTS * _PART_VERTICES)
        self._parts: npt.NDArray[np.uint32] = device.host_array(room, np.uint32)
        self._program = self.build()
        bind, n = self._bind, self._searched
        self._restore_parents = bind(
            "restore_parents", self._size, n, self._new_of_old, self._old_of_new, memory.parent,
            self._result,
        )  # fmt: skip
        # Depths are in either of the two queues.
        pairs = list(zip(memory.queue, memory.offsets, strict=True))
        self._begin_depths = bind("begin_depths", n, memory.parent, *pairs[0])
        self._double_depths = [bind("double_depths", n, *pairs[i], *pairs[1 - i]) for i in range(2)]
        self._restore_levels = [
            bind("restore_levels", self._size, n, self._new_of_old, *pair, self._result)
            for pair in pairs
        ]

    def _bind(self, name: str, items: int, *arguments: Any) -> BoundKernel:
        """Bind a kernel, whose first argument is the number of items."""
        given = [np.uint32(a) if isinstance(a, int) else a for a in (items, *arguments)]
        return self.device.bind(self._program, name, *given)

    def send_parents(self, receive: Receive) -> None:
        self.launch(self._restore_parents, self._size)
        self._send(receive)

    def send_levels(self, deepest: int, receive: Receive) -> None:
        """Restore the levels, which are at most `deepest`, and send them in parts."""
        self.launch(self._begin_depths, self._searched)
        doublings = max((deepest - 1).bit_length() - 1, 0)
        for number in range(doublings):
            self.launch(self._double_depths[number % 2], self._searched)
        self.launch(self._restore_levels[doublings % 2], self._size)
        self._send(receive)

    def _send(self, receive: Receive) -> None:
        """Copy the result to the host in parts; call `receive` for each while later ones follow."""
        device, waiting = self.device, deque[tuple[Any, int, npt.NDArray[np.uint32]]]()
        for number, begin in enumerate(range(0, self._size, _PART_VERTICES)):
            if len(waiting) == _PARTS:
                self._receive_first(waiting, receive)
            slot = number % _PARTS * _PART_VERTICES
            part = self._parts[slot : slot + min(_PART_VERTICES, self._size - begin)]
            waiting.append((device.start_read(part, self._result, 4 * begin), begin, part))
            device.flush()
        while waiting:
            self._receive_first(waiting, receive)

    def _receive_first(self, waiting: deque[Any], receive: Receive) -> None:
        event, begin, part = waiting.popleft()
        self.device.wait(event)
        receive(begin, part)


class SavedParents:
    """Memory for parents whose ids are restored later; reused between groups."""

    def __init__(self) -> None:
        self._memory: npt.NDArray[np.uint32] = np.empty(0, np.uint32)

    def room(self, count: int, n: int, device: OpenCLDevice | None) -> npt.NDArray[np.uint32]:
        """Return memory for the parents of `count` searches, uint32 (count, n).

        If a device is given, the memory is pinned for fast copies from it, unless that fails.
        """
        if self._memory.size < count * n:
            self.release()  # first, so that both never exist at the same time
            if device is not None:
                with suppress(DeviceError):
                    self._memory = device.host_array(count * n, np.uint32)
            if self._memory.size == 0:
                self._memory = aligned_empty(count * n, np.uint32)
        return self._memory[: count * n].reshape(count, n)

    def release(self) -> None:
        self._memory = np.empty(0, np.uint32)
