"""Connected components on the host's cores: the arrays, and the thread pool."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hetero_bfs.devices.cpu.host_run import HostRun
from hetero_bfs.graph.search_graph import SearchGraph
from hetero_bfs.support.memory import aligned_empty

_POOL_VERTICES = 1 << 14
"""In graphs with fewer vertices, no phase is worth waking another thread."""


class Labels(NamedTuple):
    """The result of a run, in new ids.

    `label`, shape (num_searched,), has a vertex of each vertex's component, which is its own label.
    The next run may overwrite this array. `num_components` counts the components of the searched
    range. `records` has shape (phases, 4); see loop.py. `streamed_bytes` are the bytes of the
    adjacency sent to a device that does not hold it.
    """

    label: npt.NDArray[np.uint32]
    num_components: int
    records: npt.NDArray[np.float64]
    streamed_bytes: int = 0


class HostComponents(HostRun):
    """Finds components on the host's cores. `threads` includes the caller's thread."""

    _name = "Components"
    _module = "hetero_bfs.algorithms.components.kernels"

    def __init__(self, graph: SearchGraph, threads: int) -> None:
        super().__init__(threads if graph.num_searched >= _POOL_VERTICES else 1)
        self.graph = graph

    def _make_fields(self) -> dict[str, Any]:
        graph, kernels = self.graph.graph, self._kernels
        backward = graph.transpose if graph.directed else graph
        return {
            "threads": self.threads,
            "is_directed": int(graph.directed),
            "first": self.graph.first,
            "indptr": graph.indptr,
            "neighbours": graph.indices,
            "backward_indptr": backward.indptr,
            "backward_neighbours": backward.indices,
            "label": aligned_empty(self.graph.num_searched, np.uint32),
            "common": np.zeros(-(-self.graph.num_searched // kernels.BLOCK), np.uint32),
            "work": np.zeros(kernels.NUM_TASKS, np.int64),
        }

    def _loops(self) -> list[tuple[Any, tuple[Any, ...]]]:
        return [(self._kernels.label_components, (self.control, self.shared, self._records))]

    @cached_property
    def _records(self) -> npt.NDArray[np.float64]:
        return np.zeros((self._kernels.MOST_RECORDS, self._kernels.RECORD_WIDTH))

    def run(self) -> Labels:
        """Find the components of a non-empty graph. The next run overwrites them."""
        loop, arguments = self._loops()[0]
        rows, components = loop(*arguments)
        return Labels(self.fields["label"], components, self._records[:rows].copy())
