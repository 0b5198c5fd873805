"""A graph whose edges stay on the host, and the plan of its resident data on a device.

All arrays with an entry per vertex are resident. So are the heads (first neighbours) of all
neighbour lists, in columns. Column k has neighbour number k of all vertices up to the last vertex
of degree above k. If vertices are numbered by falling degree, later columns are short. Heads
resolve most of a bottom-up level, and hold short lists completely. The rest of the budget holds the
first pages of the edges, and slots for pages in transit. With vertices by falling degree the first
pages are the hubs' lists, which nearly every search reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.bfs.device_memory import (
    EDGE_BYTES,
    MAX_PARTS,
    DeviceGraph,
    bytes_in_memory,
    common_degrees,
    offset_type_of,
)
from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.devices.opencl.opencl_device import NUM_SLOTS, Launch, OpenCLDevice, Slots
from hetero_bfs.errors import BudgetError, SplitError
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.search_graph import SearchGraph
from hetero_bfs.support.memory import aligned_copy, format_bytes
from hetero_bfs.support.messages import setting

SEGMENT_SHIFT = 4
SEGMENT_EDGES = 1 << SEGMENT_SHIFT
"""Edges per work-item; a page has at least this number."""

FOUND, DEAD_ENDS, MISSING, HERE = 0, 2, 3, 4
STATUS_WORDS = 8
"""Words of `status`, which the host reads back after a level.

The words are: vertices and edges found (a packed counter of two words), the number of found
vertices without out-edges, of missing pages, and of resident pages that the level needs. The
numbers of the missing pages follow.
"""

_SHARED = "SEGMENT_SHIFT SEGMENT_EDGES FOUND DEAD_ENDS MISSING HERE STATUS_WORDS"
OPENCL = {name: int(globals()[name]) for name in _SHARED.split()}
"""Numbers that stream.cl shares (header.py)."""

_OWNER_SHIFT = 12
_MOST_PAGE_SHIFT = 8
_PAGES_SHIFT = 8  # a small graph has about 2**8 pages
_MOST_COLUMNS = 48
_HEADS_SHARE = 2  # heads take at most half of the memory left
_COLUMN_BYTES = 8 + 4  # its start, its size
_MOST_SLOT_BYTES = 2**22
_SLOTS_SHARE = 8  # slots take at most 1 / 8 of the memory left, unless a page needs more
_MARK_PAGES = 32  # pages per word of marks; either all of them are resident or none


@dataclass(frozen=True)
class StreamPlan:
    """The use of a memory budget.

    Parameters
    ----------
    budget_bytes : int
        Limit for the use of the device's memory.
    edge_bytes : int
        All edges, both directions of a directed graph.
    page_shift : int
        A page has 2**page_shift edges; pages are sent as a whole.
    num_pages, resident_pages : int
        Pages of one direction, and how many of them are resident.
    columns : tuple of tuples of int
        Sizes of the columns of heads, for each direction.
    slot_pages : int
        Pages that are sent at once.
    max_part_bytes : int
        Maximum size of a buffer of resident pages.
    """

    budget_bytes: int
    used_bytes: int
    edge_bytes: int
    page_shift: int
    num_pages: int
    resident_pages: int
    columns: tuple[tuple[int, ...], ...]
    slot_pages: int
    max_part_bytes: int

    @property
    def page_bytes(self) -> int:
        return EDGE_BYTES << self.page_shift

    @property
    def slot_edges(self) -> int:
        """Size of a slot, for pages and their numbers, in edges."""
        return self.slot_pages * (1 + (1 << self.page_shift))


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
        """Return the fields for JSON."""
        return asdict(self)


def plan_stream(
    info: DeviceInfo, graph: SearchGraph, budget_bytes: int, max_part_bytes: int
) -> StreamPlan:
    """Divide the budget among heads, resident pages and slots.

    Raises `BudgetError` if the arrays per vertex, the first neighbours and the smallest slots do
    not fit. Raises `SplitError` if a page needs more than `max_part_bytes`.
    """
    lists = directions(graph)
    shift, pages = page_shift(graph), num_pages(graph)
    page_bytes = EDGE_BYTES << shift
    sent_bytes = page_bytes + EDGE_BYTES  # with its number
    if max_part_bytes < sent_bytes:
        raise SplitError(
            f"edges would stream in pages of {page_bytes} bytes, more than a buffer of "
            f"{max_part_bytes} bytes holds; allow at least {sent_bytes} bytes "
            f"({setting('max_alloc_bytes')})"
        )
    sizes = [_column_sizes(one, _MOST_COLUMNS) for one in lists]
    used = _fixed_bytes(info, graph) + _heads_bytes(sizes, 1)
    least = used + NUM_SLOTS * sent_bytes
    if least > budget_bytes:
        needed = min(least, bytes_in_memory(info, graph))
        raise BudgetError(
            f"{budget_bytes} bytes of {info.name}'s memory are too few to search the graph there: "
            f"what is kept per vertex and room for a few pages of edges need {needed} bytes; allow "
            f"at least that ({setting('device_memory_bytes')}), or search on the CPU "
            f"({setting('device', 'cpu')})"
        )
    slot_bytes = min((budget_bytes - used) // (_SLOTS_SHARE * NUM_SLOTS), _MOST_SLOT_BYTES)
    slot_pages = min(max(min(slot_bytes, max_part_bytes) // sent_bytes, 1), pages)
    used += NUM_SLOTS * slot_pages * sent_bytes - _heads_bytes(sizes, 1)
    columns = _num_columns(sizes, (budget_bytes - used) // _HEADS_SHARE, info.max_alloc_bytes)
    used += _heads_bytes(sizes, columns)
    resident = _resident_pages(
        (budget_bytes - used) // (len(lists) * page_bytes), pages, max_part_bytes // page_bytes
    )
    used += resident * len(lists) * page_bytes
    return StreamPlan(
        budget_bytes, used, len(lists) * EDGE_BYTES * graph.graph.num_stored_edges, shift, pages,
        resident, tuple(tuple(one[:columns]) for one in sizes), slot_pages, max_part_bytes,
    )  # fmt: skip


def _fixed_bytes(info: DeviceInfo, graph: SearchGraph) -> int:
    """Return the bytes of all arrays except heads, resident pages and slots."""
    n, words, pages = graph.num_searched, -(-graph.num_searched // 32), num_pages(graph)
    offset_bytes = offset_type_of(info, graph).itemsize
    stretches = (graph.graph.num_stored_edges >> _OWNER_SHIFT) + 2
    # EDGE_BYTES: the buffer of resident pages has one edge at least.
    per_direction = offset_bytes * (n + 1) + 4 * stretches + EDGE_BYTES
    per_vertex = 4 * 2 * n + 4 * 4 * words  # degree, parent; common degrees and three bitmaps
    per_page = 4 * (pages + 1) + 4 * -(-pages // 32)  # two lists, neither empty; marks
    return len(directions(graph)) * per_direction + per_vertex + per_page + 4 * STATUS_WORDS


def _column_sizes(graph: CSRGraph, most: int) -> list[int]:
    """Return for k = 0, 1, ... the number of vertices up to the last one of degree above k."""
    degrees = np.diff(graph.indptr)
    behind = np.maximum.accumulate(degrees[::-1])
    return [int(degrees.size - np.searchsorted(behind, k, side="right")) for k in range(most)]


def _heads_bytes(sizes: Sequence[Sequence[int]], columns: int) -> int:
    items = sum(sum(one[:columns]) for one in sizes)
    return EDGE_BYTES * items + len(sizes) * columns * _COLUMN_BYTES


def _num_columns(sizes: Sequence[Sequence[int]], share_bytes: int, max_alloc_bytes: int) -> int:
    """Return how many columns fit in a share of the budget: at least one, and no empty ones."""
    columns = 1
    while (
        columns < len(sizes[0])
        and max(one[columns] for one in sizes)
        and _heads_bytes(sizes, columns + 1) <= share_bytes
        and EDGE_BYTES * max(sum(one[: columns + 1]) for one in sizes) <= max_alloc_bytes
    ):
        columns += 1
    return columns


def _resident_pages(fitting: int, pages: int, part_pages: int) -> int:
    """Return how many of the fitting pages are resident: all, or whole words of marks."""
    most = MAX_PARTS * (1 << max(part_pages, 1).bit_length() - 1)
    if min(fitting, most) >= pages:
        return pages
    return min(fitting, most) // _MARK_PAGES * _MARK_PAGES


def page_shift(graph: SearchGraph) -> int:
    """Return log2 of the edges per page; small graphs have smaller pages."""
    edges = graph.graph.num_stored_edges
    least = SEGMENT_EDGES.bit_length() - 1
    return min(max(edges.bit_length() - _PAGES_SHIFT, least), _MOST_PAGE_SHIFT)


def num_pages(graph: SearchGraph) -> int:
    """Return the number of pages of one direction."""
    return max(-(-graph.graph.num_stored_edges >> page_shift(graph)), 1)


class StreamedGraph(DeviceGraph):
    """The resident data of a graph.

    `indptr`, `owner`, `heads`, `pages` and `edges` have one item per direction: forward and
    backward, or only one. An item of `heads` is (heads, starts of the columns, their sizes). An
    item of `pages` is a list of the parts that hold the resident pages. `edges` are the host's
    arrays.
    """

    def __init__(self, device: OpenCLDevice, graph: SearchGraph, plan: StreamPlan) -> None:
        self.plan = plan
        super().__init__(device, graph, plan.max_part_bytes)

    def _upload(self, limit_bytes: int) -> list[Any]:
        graph, upload = self._graph, self._device.upload
        lists = directions(graph)
        self.indptr = [self._shared(one.indptr, self.offset_type) for one in lists]
        self.owner = [upload(_owners(one)) for one in lists]
        self.degree = self._shared(graph.degree)
        self.word_degree = upload(aligned_copy(common_degrees(graph.degree)))
        self.heads = [
            self._upload_heads(one, sizes)
            for one, sizes in zip(lists, self.plan.columns, strict=True)
        ]
        self.edges = [one.indices for one in lists]
        resident = self.plan.resident_pages << self.plan.page_shift
        parts = self._upload_edges([array[:resident] for array in self.edges], limit_bytes)
        count = self.num_buffers
        self.pages = [parts[i * count : (i + 1) * count] for i in range(len(lists))]
        return self._sizes()

    def _upload_heads(self, graph: CSRGraph, sizes: Sequence[int]) -> tuple[Any, Any, Any]:
        """Upload the first neighbours of all lists; the vertex itself stands for a missing one."""
        at = np.cumsum([0, *sizes])[:-1].astype(np.uint64)
        heads = self._device.buffer(sum(sizes), np.uint32)
        for k, size in enumerate(sizes):
            begin, end = graph.indptr[:size], graph.indptr[1 : size + 1]
            neighbours = np.arange(size, dtype=np.uint32)
            has = end - begin > k
            neighbours[has] = graph.indices[begin[has] + k]
            if size:
                self._device.write(heads, neighbours, EDGE_BYTES * int(at[k]))
        return heads, self._device.upload(at), self._device.upload(np.array(sizes, np.uint32))

    def options(self) -> list[str]:
        shifts = [f"-DPAGE_SHIFT={self.plan.page_shift}", f"-DOWNER_SHIFT={_OWNER_SHIFT}"]
        return [*super().options(), *shifts]


class PageSlots(Slots):
    """The slots through which pages are sent.

    `edges` are the host's arrays of edges, one per direction.
    """

    def __init__(
        self, device: OpenCLDevice, edges: Sequence[npt.NDArray[np.uint32]], plan: StreamPlan
    ) -> None:
        super().__init__(device, [(plan.slot_edges, np.uint32)])
        self._edges = edges
        self._plan = plan

    def send(self, direction: int, pages: npt.NDArray[np.uint32], launch: Launch) -> None:
        """Send pages of one direction, and launch a kernel on every slot that they fill."""
        for begin in range(0, pages.size, self._plan.slot_pages):
            some = pages[begin : begin + self._plan.slot_pages]
            self.send_slot(partial(self._fill, self._edges[direction], some), launch)

    def _fill(
        self,
        edges: npt.NDArray[np.uint32],
        pages: npt.NDArray[np.uint32],
        staging: list[npt.NDArray[Any]],
    ) -> tuple[int, list[npt.NDArray[Any]]]:
        from hetero_bfs.algorithms.bfs.kernels.pages import gather_pages

        shift = self._plan.page_shift
        gather_pages(pages, shift, edges, staging[0])
        return pages.size, [staging[0][: (pages.size << shift) + pages.size]]


def directions(graph: SearchGraph) -> Sequence[CSRGraph]:
    """Return the graph that top-down reads, and the one that bottom-up reads if it differs."""
    forward, backward = graph.graph, graph.graph.transpose
    return [forward] if backward is forward else [forward, backward]


def _owners(graph: CSRGraph) -> npt.NDArray[np.uint32]:
    """Return the vertex of each stretch's first edge, then the last vertex; uint32.

    A stretch has 2**_OWNER_SHIFT edges.
    """
    stretches = (graph.num_stored_edges >> _OWNER_SHIFT) + 1
    begins = np.arange(stretches, dtype=np.int64) << _OWNER_SHIFT
    owners = np.searchsorted(graph.indptr, begins, side="right") - 1
    last = graph.indptr.size - 2
    return np.append(np.minimum(owners, last), last).astype(np.uint32)
