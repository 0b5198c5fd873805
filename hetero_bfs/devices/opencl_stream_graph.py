"""A graph whose edges stay on the host, and how a device's memory is shared among its parts.

Resident is all that is kept per vertex, and the heads of the lists that bottom-up reads: their
first neighbours, column by column, which settle most vertices without any part. The rest of the
budget is slots, each of which holds one part of the edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs import memory
from hetero_bfs.build import SearchGraph
from hetero_bfs.devices.opencl import DeviceInfo, OpenCLDevice
from hetero_bfs.devices.opencl_graph import DeviceGraph, bytes_in_memory, offset_type_of
from hetero_bfs.errors import BudgetError, DeviceError, SplitError
from hetero_bfs.graph import CSRGraph
from hetero_bfs.partition import EDGE_BYTES

SEGMENT_EDGES = 32  # SEGMENT in stream.cl
_MOST_PART_BYTES = 32 * 2**20
_LEAST_PART_BYTES = 256
_MOST_PARTS = 4096
_FEWEST_PARTS = 8  # of a small graph
_MOST_BLOCK_SHIFT = 12
_BLOCKS_PER_PART = 16  # of a small part
_WANTED_SLOTS = 4
_MOST_COLUMNS = 7
_COLUMNS_SHARE = 4  # heads take at most 1 / 4 of what the resident arrays leave


@dataclass(frozen=True)
class StreamPlan:
    """How a budget is spent.

    Parameters
    ----------
    budget_bytes, resident_bytes : int
        What may be used of the device's memory; what is resident, heads included.
    edge_bytes : int
        All edges, both directions of a directed graph.
    num_parts : int
        Parts of one direction.
    part_shift, block_shift : int
        A part has 2**part_shift edges, a block, the least that is sent, 2**block_shift.
    num_slots : int
        Parts that the device has room for.
    columns : int
        Neighbours after the first that are resident of each list.
    """

    budget_bytes: int
    resident_bytes: int
    edge_bytes: int
    num_parts: int
    part_shift: int
    block_shift: int
    num_slots: int
    columns: int

    @property
    def part_bytes(self) -> int:
        """Bytes of a part."""
        return EDGE_BYTES << self.part_shift


def plan_stream(
    info: DeviceInfo, graph: SearchGraph, budget_bytes: int, max_part_bytes: int
) -> StreamPlan:
    """Choose the size of parts, and share the budget among heads and slots.

    Raises
    ------
    BudgetError
        Not even the resident arrays and two small parts fit in `budget_bytes`.
    SplitError
        Parts of `max_part_bytes` would be too many.
    """
    directions = 2 if graph.graph.directed else 1
    edge_bytes = EDGE_BYTES * graph.graph.num_stored_edges
    least = max(_LEAST_PART_BYTES, _power_above(-(-edge_bytes // _MOST_PARTS)))
    if max_part_bytes < least:
        raise SplitError(
            f"edges of {edge_bytes} bytes would stream in parts of at most {max_part_bytes} "
            f"bytes; allow at least {least} bytes (--max-alloc)"
        )
    part = max(_power_below(min(_MOST_PART_BYTES, max_part_bytes, edge_bytes // _FEWEST_PARTS)),
               least)  # fmt: skip
    while part > least and _resident(info, graph, part) + _WANTED_SLOTS * part > budget_bytes:
        part //= 2
    resident = _resident(info, graph, part)
    if resident + 2 * part > budget_bytes:
        needed = min(resident + 2 * part, bytes_in_memory(info, graph))
        raise BudgetError(
            f"{budget_bytes} bytes of {info.name}'s memory are too few to search the graph there: "
            f"what is kept per vertex and two parts of the edges need {needed} bytes; allow at "
            f"least that (--device-memory), or search on the CPU (--devices cpu)"
        )
    column_bytes = EDGE_BYTES * graph.num_searched
    spare = max(budget_bytes - resident - _WANTED_SLOTS * part, 0)
    share = min(spare // _COLUMNS_SHARE, info.max_alloc_bytes)
    columns = min(share // column_bytes, _MOST_COLUMNS)
    resident += columns * column_bytes
    num_parts = -(-edge_bytes // part)
    slots = min((budget_bytes - resident) // part, directions * num_parts)
    shift = (part // EDGE_BYTES).bit_length() - 1
    return StreamPlan(
        budget_bytes, resident, directions * edge_bytes, num_parts, shift, _block_shift(part),
        slots, columns,
    )  # fmt: skip


def _resident(info: DeviceInfo, graph: SearchGraph, part_bytes: int) -> int:
    """Return the bytes of the arrays that every level needs, without heads."""
    n, words = graph.num_searched, -(-graph.num_searched // 32)
    directions = 2 if graph.graph.directed else 1
    offset_bytes = np.dtype(offset_type_of(info, graph)).itemsize
    blocks = num_blocks(graph.graph, _block_shift(part_bytes))
    per_vertex = 4 * 3 * n + 4 * 2 * n + 2 * offset_bytes * n  # degree, first, parent, queues
    per_word = 4 * 4 * words  # common degrees, two bitmaps of visited vertices, the frontier
    per_block = directions * 4 * (blocks + 1) + 4 * -(-blocks // 32)
    return per_vertex + per_word + per_block + directions * offset_bytes * (n + 1) + 8


def _block_shift(part_bytes: int) -> int:
    edges = part_bytes // EDGE_BYTES
    return min(max(edges // _BLOCKS_PER_PART, SEGMENT_EDGES).bit_length() - 1, _MOST_BLOCK_SHIFT)


def num_blocks(graph: CSRGraph, block_shift: int) -> int:
    """Return how many blocks the edges make."""
    return max(-(-graph.num_stored_edges >> block_shift), 1)


def _power_below(value: int) -> int:
    return 1 << max(value, 1).bit_length() - 1


def _power_above(value: int) -> int:
    return 1 << max(value - 1, 0).bit_length()


class StreamedGraph(DeviceGraph):
    """What is resident of a graph; `edges` has the parts of the edge arrays, on the host.

    `indptr`, `owner` and `edges` have an item for each direction: forward and backward, or one.
    `pinned` says whether the host has room for a copy of the edges from which the device fetches
    them faster.

    Parameters
    ----------
    plan : StreamPlan
        Of this device and graph.
    """

    def __init__(self, device: OpenCLDevice, graph: SearchGraph, plan: StreamPlan) -> None:
        self.plan = plan
        super().__init__(device, graph, plan.part_bytes)
        _, _, *resident = self.arguments
        forward, backward, self.degree, self.word_degree, self.first = resident
        graphs = _directions(graph)
        self.indptr = [forward, backward][: len(graphs)]
        self.owner = [device.upload(_owners(g, plan.block_shift)) for g in graphs]
        self.heads = self._upload_heads(graphs[-1])

    def _upload_edges(self, forward: CSRGraph, backward: CSRGraph, limit_bytes: int) -> list[Any]:
        """Put the edges where the device fetches them fast, if the host has the memory."""
        graphs = _directions(self._graph)
        self.pinned = self.plan.edge_bytes <= memory.free_bytes()
        self.edges = [self._cut(graph.indices) for graph in graphs]
        return []

    def _cut(self, indices: npt.NDArray[np.uint32]) -> list[npt.NDArray[np.uint32]]:
        """Return the parts, each pinned by itself: drivers limit what they pin at once."""
        size = 1 << self.plan.part_shift
        return [self._pin(indices[begin : begin + size]) for begin in range(0, indices.size, size)]

    def _pin(self, part: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
        if not self.pinned:
            return part
        try:
            array = self._device.host_array(part.size, np.uint32)
        except DeviceError:
            self.pinned = False
            return part
        array[:] = part
        return array

    def _upload_heads(self, graph: CSRGraph) -> Any:
        """Upload neighbours 1, 2, ... of all lists; the vertex itself stands for none."""
        n = self._graph.num_searched
        heads = self._device.buffer(self.plan.columns * n, np.uint32)
        begin, end = graph.indptr[:-1], graph.indptr[1:]
        for column in range(self.plan.columns):
            neighbours = np.arange(n, dtype=np.uint32)
            has = end - begin > column + 1
            neighbours[has] = graph.indices[begin[has] + column + 1]
            self._device.write(heads, neighbours, EDGE_BYTES * column * n)
        return heads

    def options(self) -> list[str]:
        """Return the build options that this graph asks for."""
        wide = self.offset_type == np.uint64
        options = [f"-DOFFSET={'ulong' if wide else 'uint'}"]
        return [*options, "-DDIRECTED"] if self._graph.graph.directed else options


def _directions(graph: SearchGraph) -> Sequence[CSRGraph]:
    forward, backward = graph.graph, graph.graph.transpose
    return [forward] if backward is forward else [forward, backward]


def _owners(graph: CSRGraph, block_shift: int) -> npt.NDArray[np.uint32]:
    """Return for each block the vertex that has its first edge, and the last vertex; uint32."""
    begins = np.arange(num_blocks(graph, block_shift), dtype=np.int64) << block_shift
    owners = np.searchsorted(graph.indptr, begins, side="right") - 1
    return np.append(owners, graph.indptr.size - 2).astype(np.uint32)
