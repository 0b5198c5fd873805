"""A tree of all vertices in each host's memory, to be checked by the host's ranks.

The compiled loops share nothing with the search. `parents` and `levels`, uint32, are in memory that
the ranks of a host share, one item per vertex (old ids). A parent is stored plus 1, and 0 means
none. A level is stored plus 1, and 0 means unknown. The highest bit of a level is set if the tree
edge to the vertex was met among the input edges. Several ranks may write an item at the same time:
they write the same value.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.graph.edge_source import VertexArray
from hetero_bfs.ranks.communicator import Communicator, agreed
from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.memory import check_shared_memory

MET = np.uint32(1 << 31)
_ONE = np.uint32(1)
_REMEDY = "give --no-validate, or the container more (--shm-size)"


class HostTree:
    """Memory for the trees of successive searches; all ranks make the same calls.

    share : the edges that this rank checks, in old ids
    input_degree : uint32, of this rank's old ids; given if the edges have lost their duplicates

    Raises `AgreedError` on all ranks if a host has too little shared memory.
    """

    _bytes_of_a_vertex = 8  # a subclass may share more

    def __init__(
        self, communicator: Communicator, share: Any, input_degree: VertexArray | None
    ) -> None:
        self._communicator, self._share, self._input_degree = communicator, share, input_degree
        self._size = size = share.num_vertices
        needed = self._bytes_of_a_vertex * size
        agreed(communicator, lambda: check_shared_memory(needed, "validation", _REMEDY))
        self._parents = communicator.shared_array(size, np.uint32)
        self._levels = communicator.shared_array(size, np.uint32)
        me, ranks = communicator.host_rank, communicator.host_size
        self._begin, self._end = size * me // ranks, size * (me + 1) // ranks

    def close(self) -> None:
        self._parents = self._levels = np.empty(0, np.uint32)
        self._communicator.free_shared()

    def _share_tree(
        self,
        source: int,
        parent: npt.NDArray[np.uint32],
        *others: tuple[npt.NDArray[Any], npt.NDArray[Any]],
    ) -> None:
        """Copy the parents of all ranks, plus 1, into this host's memory: 0 means none.

        `others` are further arrays of the host's memory, each with this rank's part. The source's
        level becomes 1, all other levels 0.
        """
        communicator, mine = self._communicator, slice(self._begin, self._end)
        columns = [*others, (self._parents, parent + np.uint32(1))]
        communicator.barrier()  # the last search may still be read
        for shared, _ in columns:
            shared[mine] = 0
        self._levels[mine] = 0
        communicator.barrier()
        for shared, own in columns:
            shared[communicator.rank :: communicator.size] = own
        if self._begin <= source < self._end:
            self._levels[source] = 1
        for shared, _ in columns:
            communicator.combine_hosts(shared, "max")


@kernel(counted=False)
def find_levels(parents, levels, begin, end):
    """Find the levels of vertices [begin, end); the source's is known.

    Returns the number of vertices reached, the deepest level, and a vertex whose parents do not
    lead to the source, or -1.
    """
    size = parents.size
    reached, deepest = np.int64(0), np.int64(0)
    for v in range(begin, end):
        if parents[v] == 0:
            continue
        reached += 1
        top, steps = v, np.int64(0)
        while levels[top] == 0:
            up = np.int64(parents[top]) - 1
            if up < 0 or up >= size or parents[up] == 0 or steps > size:
                return reached, deepest, np.int64(v)
            top = up
            steps += 1
        level = np.int64(levels[top]) + steps
        deepest = max(deepest, level - 1)
        here = v
        while here != top:
            levels[here] = level
            level -= 1
            here = np.int64(parents[here]) - 1
    return reached, deepest, np.int64(-1)


@kernel(counted=False)
def check_edges(src, dst, directed, parents, levels):
    """Compare edges with the tree, and mark the tree edges among them.

    Returns the number of edges between reached vertices, the position of an edge with one reached
    end (directed: only its start), and the position of an edge that spans more than one level
    (directed: downwards). A position is -1 if there is none.
    """
    edges, half, long = np.int64(0), np.int64(-1), np.int64(-1)
    low = MET - _ONE
    for i in range(src.size):
        u, v = src[i], dst[i]
        if u == v:
            continue
        at_u, at_v = levels[u] & low, levels[v] & low
        if at_u == 0 or at_v == 0:
            if at_u != at_v and not (directed and at_u == 0):
                half = i
            continue
        edges += 1
        if at_v > at_u + _ONE or (not directed and at_u > at_v + _ONE):
            long = i
        if parents[v] == u + _ONE:
            levels[v] |= MET
        if not directed and parents[u] == v + _ONE:
            levels[u] |= MET
    return edges, half, long
