"""Edge splitting (Zhang et al. 2018, section 4.3): parts within a device's allocation limit.

The number of edges of a part is a power of two, so that a kernel finds an edge's part by a shift. A
hub's list may span several parts.
"""

from __future__ import annotations

from dataclasses import dataclass

from hetero_bfs.errors import SplitError
from hetero_bfs.support.wording import setting

MAX_PARTS = 32
"""Most parts that the kernels can be compiled for (parts.cl)."""

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

    Raises
    ------
    SplitError
        The limit is below one edge or would need more than `MAX_PARTS` parts.
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
