"""The plan of a device that cannot hold the edges: heads of lists, and pages.

All arrays with an entry per vertex are resident. So are the heads (first neighbours) of all
neighbour lists, in columns. Column k has neighbour number k of all vertices up to the last vertex
of degree above k. If vertices are numbered by falling degree, later columns are short. Heads
resolve most of a bottom-up level, and hold short lists completely. The rest of the budget holds the
first pages of the edges, and slots (streamed_lists.py). With vertices by falling degree the first
pages are the hubs' lists, which nearly every search reads.

A page is a block that may divide lists: top-down needs only the lists of the frontier, and
bottom-up the lists of vertices that their heads leave open, which are few of a work-group's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.bfs.device_memory import EDGE_BYTES, bytes_in_memory, offset_type_of
from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.devices.opencl.device_run import Entries, both_ways
from hetero_bfs.devices.opencl.opencl_device import OpenCLDevice
from hetero_bfs.devices.opencl.streamed_lists import bytes_of_slots
from hetero_bfs.errors import BudgetError, SplitError
from hetero_bfs.graph.edge_source import OffsetArray
from hetero_bfs.graph.search_graph import SearchGraph
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
"""Numbers that stream.cl shares (built_programs.py)."""

OWNER_SHIFT = 12
_MOST_PAGE_SHIFT = 8
_PAGES_SHIFT = 8  # a small graph has about 2**8 pages
_MOST_COLUMNS = 48
_HEADS_SHARE = 7 / 16  # heads take at most this share of the memory left
_COLUMN_BYTES = 8 + 4  # its start, its size


@dataclass(frozen=True)
class StreamPlan:
    """The use of a memory budget: `columns` of heads, by direction, have these sizes.

    `room` is the device with the memory that is left for pages and slots.
    """

    budget_bytes: int
    columns: tuple[tuple[int, ...], ...]
    room: DeviceInfo


def plan_stream(
    info: DeviceInfo, graph: SearchGraph, budget_bytes: int, max_part_bytes: int
) -> StreamPlan:
    """Divide the budget among the heads and the pages."""
    page_bytes = EDGE_BYTES << page_shift(graph)
    if max_part_bytes < page_bytes:
        raise SplitError(
            f"edges would stream in pages of {page_bytes} bytes, more than a buffer of "
            f"{max_part_bytes} bytes holds; allow at least {page_bytes} bytes "
            f"({setting('max_alloc_bytes')})"
        )
    sizes = [_column_sizes(way.indptr, _MOST_COLUMNS) for way in both_ways(graph)]
    slots = bytes_of_slots(page_bytes // EDGE_BYTES, EDGE_BYTES)
    used = _fixed_bytes(info, graph)
    least = used + slots + _heads_bytes(sizes, 1)
    if least > budget_bytes:
        needed = min(least, bytes_in_memory(info, graph))
        raise BudgetError(
            f"{budget_bytes} bytes of {info.name}'s memory are too few to search the graph there: "
            f"arrays of the vertices and room for a few pages of edges need {needed} bytes; allow "
            f"at least that ({setting('device_memory_bytes')}), or search on the CPU "
            f"({setting('device', 'cpu')})"
        )
    share = _heads_bytes(sizes, 1) + int(_HEADS_SHARE * (budget_bytes - least))
    columns = _num_columns(sizes, share, info.max_alloc_bytes)
    left = budget_bytes - used - _heads_bytes(sizes, columns)
    room = replace(info, memory_bytes=left, max_alloc_bytes=max_part_bytes)
    return StreamPlan(budget_bytes, tuple(tuple(one[:columns]) for one in sizes), room)


def _fixed_bytes(info: DeviceInfo, graph: SearchGraph) -> int:
    n, words, pages = graph.num_searched, -(-graph.num_searched // 32), num_pages(graph)
    offset_bytes = offset_type_of(info, graph).itemsize
    stretches = (graph.graph.num_stored_edges >> OWNER_SHIFT) + 2
    per_direction = offset_bytes * (n + 1) + 4 * stretches
    per_vertex = 4 * 2 * n + 4 * 4 * words  # degree, parent; common degrees and three bitmaps
    per_page = 4 * (pages + 1) + 4 * -(-pages // 32)  # two lists, neither empty; marks
    return len(both_ways(graph)) * per_direction + per_vertex + per_page + 4 * STATUS_WORDS


def _column_sizes(indptr: OffsetArray, most: int) -> list[int]:
    """Return for k = 0, 1, ... the number of vertices up to the last one of degree above k."""
    degrees = np.diff(indptr)
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


def page_shift(graph: SearchGraph) -> int:
    """Return log2 of the edges per page; small graphs have smaller pages."""
    edges = graph.graph.num_stored_edges
    least = SEGMENT_EDGES.bit_length() - 1
    return min(max(edges.bit_length() - _PAGES_SHIFT, least), _MOST_PAGE_SHIFT)


def num_pages(graph: SearchGraph) -> int:
    return max(-(-graph.graph.num_stored_edges >> page_shift(graph)), 1)


def upload_heads(device: OpenCLDevice, way: Entries, sizes: Sequence[int]) -> tuple[Any, Any, Any]:
    """Upload the first neighbours of all lists; the vertex itself stands for a missing one.

    Returns the heads, the starts of the columns (uint64), and their sizes (uint32).
    """
    at = np.cumsum([0, *sizes])[:-1].astype(np.uint64)
    heads = device.buffer(sum(sizes), np.uint32)
    for k, size in enumerate(sizes):
        begin, end = way.indptr[:size], way.indptr[1 : size + 1]
        neighbours = np.arange(size, dtype=np.uint32)
        has = end - begin > k
        neighbours[has] = way.arrays[0][begin[has] + k]
        if size:
            device.write(heads, neighbours, EDGE_BYTES * int(at[k]))
    return heads, device.upload(at), device.upload(np.array(sizes, np.uint32))


def owners_of(way: Entries) -> npt.NDArray[np.uint32]:
    """Return the vertex of each stretch's first edge, then the last vertex; uint32.

    A stretch has 2**OWNER_SHIFT edges.
    """
    stretches = (way.arrays[0].size >> OWNER_SHIFT) + 1
    begins = np.arange(stretches, dtype=np.int64) << OWNER_SHIFT
    owners = np.searchsorted(way.indptr, begins, side="right") - 1
    last = way.indptr.size - 2
    return np.append(np.minimum(owners, last), last).astype(np.uint32)
