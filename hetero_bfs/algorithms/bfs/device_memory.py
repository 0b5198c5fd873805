"""A graph and the arrays of a search in the memory of an OpenCL device.

Edge splitting (Zhang et al. 2018, section 4.3): parts are within a device's allocation limit. The
number of edges of a part is a power of two, so that a kernel finds an edge's part by a shift. A
hub's list may span several parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.bfs.host import CPUExecutor
from hetero_bfs.algorithms.bfs.result import Frontier
from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.devices.opencl.device_run import DeviceLists, offset_dtype
from hetero_bfs.devices.opencl.header import MIXED_DEGREES
from hetero_bfs.devices.opencl.opencl_device import MappedMemory, OpenCLDevice, release_with
from hetero_bfs.devices.opencl.verdicts import check_verdict
from hetero_bfs.errors import DeviceError, SplitError
from hetero_bfs.graph.search_graph import SearchGraph
from hetero_bfs.support.memory import aligned_copy
from hetero_bfs.support.messages import setting

MAX_PARTS = 32
"""Maximum number of parts that the kernels can be compiled for (common.cl)."""

EDGE_BYTES = 4


@dataclass(frozen=True)
class EdgePart:
    """A contiguous piece of the edge array: edges [start, start + count)."""

    part_id: int
    start: int
    count: int


@dataclass(frozen=True)
class Partition:
    """The pieces of one edge array; all but the last hold 2**shift edges."""

    parts: tuple[EdgePart, ...]
    shift: int


def partition_edges(num_edges: int, max_alloc_bytes: int) -> Partition:
    """Cut an edge array of uint32 into parts of at most `max_alloc_bytes` each.

    Raises `SplitError` if the limit is below one edge or would need more than `MAX_PARTS` parts.
    """
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
    part_edges = 1 << shift
    parts = tuple(
        EdgePart(i, i * part_edges, max(min(part_edges, num_edges - i * part_edges), 0))
        for i in range(num_parts)
    )
    return Partition(parts, shift)


class DeviceGraph:
    """The arrays of a graph that a search on the device reads (Graph in top_down.cl).

    `arguments` are the kernels' first arguments. `offset_type` is the type of offsets into the
    edges. Other algorithms share the neighbour lists (device_run.py), unless they are in several
    parts.

    Raises `DeviceError` if the device has too little memory. Raises `SplitError` if
    `max_alloc_bytes` would cut the edges into too many parts.
    """

    def __init__(
        self, device: OpenCLDevice, graph: SearchGraph, max_alloc_bytes: int | None
    ) -> None:
        self._device = device
        self._graph = graph
        self._lists = DeviceLists(device)
        self.offset_type = offset_type_of(device.info, graph)
        self.arguments = self._upload(max_alloc_bytes or device.info.max_alloc_bytes)
        if len(self.partition.parts) > 1:
            check_verdict(device.info, "searches in parts")

    def _upload(self, limit_bytes: int) -> list[Any]:
        graph, upload = self._graph, self._device.upload
        forward, backward = graph.graph, graph.graph.transpose
        lists = [forward] if backward is forward else [forward, backward]
        parts = self._upload_edges([one.indices for one in lists], limit_bytes)
        self.degree = self._shared(graph.degree)
        return [
            *self._sizes(),
            self._shared(forward.indptr, self.offset_type),
            self._shared(backward.indptr, self.offset_type),
            self.degree,
            upload(aligned_copy(common_degrees(graph.degree))),
            self._shared(graph.first),
            *parts,
        ]

    def _shared(self, array: npt.NDArray[Any], dtype: np.dtype[Any] | None = None) -> Any:
        in_place = self._device.info.unified_memory
        return self._lists.array(aligned_copy(array) if in_place else array, dtype)

    def _sizes(self) -> list[Any]:
        return [np.uint32(self._graph.num_searched), np.uint32(-(-self._graph.num_searched // 32))]

    def _upload_edges(self, edges: Sequence[npt.NDArray[np.uint32]], limit_bytes: int) -> list[Any]:
        """Upload in parts of at most this size; halve the size while the driver refuses it."""
        num_edges = max(array.size for array in edges)
        refused: DeviceError | None = None
        while True:
            try:
                self.partition: Partition = partition_edges(num_edges, limit_bytes)
            except SplitError as error:
                raise refused or error from error
            try:
                return [part for array in edges for part in self._upload_parts(array)]
            except DeviceError as error:
                refused = refused or error
                limit_bytes //= 2

    def _upload_parts(self, indices: npt.NDArray[np.uint32]) -> list[Any]:
        """Upload the parts; the list is padded to `num_buffers`."""
        if len(self.partition.parts) == 1:
            return [self._shared(indices)]
        whole = aligned_copy(indices)
        parts = [
            self._device.upload(whole[part.start : part.start + part.count])
            for part in self.partition.parts
        ]
        return parts + parts[:1] * (self.num_buffers - len(parts))

    @property
    def num_buffers(self) -> int:
        """Number of parts that the kernel takes: a power of two, for fewer programs."""
        return 1 << (len(self.partition.parts) - 1).bit_length()

    def options(self) -> list[str]:
        split = len(self.partition.parts) > 1
        options = [
            f"-DOFFSET={'ulong' if self.offset_type == np.uint64 else 'uint'}",
            f"-DNUM_PARTS={self.num_buffers}",
            # A single part needs no shift. Without it, graphs share a compiled program.
            f"-DPART_SHIFT={self.partition.shift if split else 0}",
        ]
        return [*options, "-DDIRECTED"] if self._graph.graph.directed else options


def offset_type_of(info: DeviceInfo, graph: SearchGraph) -> np.dtype[Any]:
    return offset_dtype(info, graph.graph.num_stored_edges)


def bytes_in_memory(info: DeviceInfo, graph: SearchGraph) -> int:
    """Return the bytes that a graph and the state of a search take on a device."""
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

    On unified memory the arrays are those of `host`, mapped and unmapped when the search migrates.
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

    @property
    def arguments(self) -> list[Any]:
        """The buffers, in the order in which kernels take them."""
        return [self.parent, *self.visited, *self.queue, *self.offsets]

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
