"""Busy neighbours on the host, with one thread."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hetero_bfs.graph.search_graph import SearchGraph


class Counted(NamedTuple):
    """The result of a run, in new ids."""

    count: npt.NDArray[np.int32]
    strategy: str
    streamed_bytes: int = 0


class HostCount:
    """Counts on the host."""

    def __init__(self, graph: SearchGraph, threads: int) -> None:
        backward = graph.graph.transpose if graph.graph.directed else graph.graph
        self._lists = backward.indptr, backward.indices, np.diff(graph.graph.indptr)

    def prepare(self) -> None:
        """Compile."""
        self.run(0)

    def run(self, least: int) -> Counted:
        from toy_algorithm.kernels.count import count_busy

        count = np.empty(self._lists[0].size - 1, np.int32)
        count_busy(*self._lists, least, count)
        return Counted(count, "count")

    def close(self) -> None:
        """Do nothing: there are no threads."""
