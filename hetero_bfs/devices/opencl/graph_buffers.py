"""A graph in the memory of an OpenCL device: its edges in parts, and its arrays per vertex."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.devices.opencl.device_info import DeviceInfo
from hetero_bfs.devices.opencl.device_lists import DeviceLists, offset_dtype
from hetero_bfs.devices.opencl.driver import OpenCLDevice
from hetero_bfs.devices.opencl.header import MIXED_DEGREES
from hetero_bfs.devices.opencl.parts import EDGE_BYTES, Partition, partition_edges
from hetero_bfs.devices.opencl.verdicts import check_verdict
from hetero_bfs.errors import DeviceError, SplitError
from hetero_bfs.graph.search_graph import SearchGraph
from hetero_bfs.support.memory import aligned_copy


class DeviceGraph:
    """The arrays that a search on the device reads (Graph in top_down.cl).

    `arguments` are the kernels' first ones. `offset_type` is the type of offsets into the edges.
    Other algorithms share the lists (device_lists.py), unless they are in several parts.

    Raises
    ------
    DeviceError
        The device has too little memory.
    SplitError
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
        """Upload all of the graph; return the arguments."""
        graph, upload = self._graph, self._device.upload
        forward, backward = graph.graph, graph.graph.transpose
        lists = [forward] if backward is forward else [forward, backward]
        parts = self._upload_edges([one.indices for one in lists], limit_bytes)
        self.degree = self._lists.array(graph.degree)
        return [
            *self._sizes(),
            self._lists.offsets(forward.indptr),
            self._lists.offsets(backward.indptr),
            self.degree,
            upload(aligned_copy(common_degrees(graph.degree))),
            self._lists.array(graph.first),
            *parts,
        ]

    def _sizes(self) -> list[Any]:
        """Return the number of vertices, and of words in a bitmap of them."""
        return [np.uint32(self._graph.num_searched), np.uint32(-(-self._graph.num_searched // 32))]

    def _upload_edges(self, edges: Sequence[npt.NDArray[np.uint32]], limit_bytes: int) -> list[Any]:
        """Upload in parts of at most this size; in smaller ones if the driver refuses that size."""
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
            return [self._lists.array(indices)]
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
        """Return the build options for this graph."""
        split = len(self.partition.parts) > 1
        options = [
            f"-DOFFSET={'ulong' if self.offset_type == np.uint64 else 'uint'}",
            f"-DNUM_PARTS={self.num_buffers}",
            # A single part needs no shift. Without it, graphs share a compiled program.
            f"-DPART_SHIFT={self.partition.shift if split else 0}",
        ]
        return [*options, "-DDIRECTED"] if self._graph.graph.directed else options


def offset_type_of(info: DeviceInfo, graph: SearchGraph) -> npt.DTypeLike:
    """Return the type of an offset into the edges of a graph."""
    return offset_dtype(info, graph.graph.num_stored_edges)


def bytes_in_memory(info: DeviceInfo, graph: SearchGraph) -> int:
    """Return the bytes that a graph and the state of a search take on a device."""
    graphs = 2 if graph.graph.directed else 1
    offset_bytes = np.dtype(offset_type_of(info, graph)).itemsize
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
