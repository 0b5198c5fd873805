"""A tree of all vertices in each host's memory, to be checked by the host's ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.graph.edge_source import VertexArray
from hetero_bfs.ranks.communicator import Communicator, agreed
from hetero_bfs.support.memory import check_shared_memory

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
