"""Connected components on the host's cores: the arrays, and the thread pool."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hetero_bfs.devices.cpu.workers import make_control, no_workers, start_workers
from hetero_bfs.graph.search_graph import SearchGraph
from hetero_bfs.support.memory import aligned_empty

_POOL_VERTICES = 1 << 14
"""In graphs with fewer vertices no phase is worth waking another thread."""


class Labels(NamedTuple):
    """The result of a run, in new ids.

    Parameters
    ----------
    label : uint32 array, shape (num_searched,)
        A vertex of each vertex's component, which is its own label. It may be the executor's own
        array, which the next run overwrites.
    num_components : int
        Within the searched range.
    records : float64 array, shape (phases, 4)
        See loop.py.
    streamed_bytes : int
        Bytes of lists that were sent to the device, if it does not hold them.
    """

    label: npt.NDArray[np.uint32]
    num_components: int
    records: npt.NDArray[np.float64]
    streamed_bytes: int = 0


class HostComponents:
    """Finds components on the host's cores.

    Parameters
    ----------
    graph : SearchGraph
    threads : int
        The caller's own among them.
    """

    def __init__(self, graph: SearchGraph, threads: int) -> None:
        self.graph = graph
        self.threads = 1 if graph.num_searched < _POOL_VERTICES else threads
        self._stop_workers: Callable[[], object] = no_workers

    @cached_property
    def _arguments(self) -> tuple[Any, ...]:
        """Arguments of the loop; the workers have started, and the loop is compiled."""
        import numba

        from hetero_bfs.algorithms.components.kernels.hook import BLOCK, NUM_TASKS, link_phases
        from hetero_bfs.algorithms.components.kernels.loop import (
            MOST_RECORDS,
            RECORD_WIDTH,
            label_components,
        )
        from hetero_bfs.devices.cpu.sharing import run_worker
        from hetero_bfs.support.by_address import Struct

        graph = self.graph.graph
        backward = graph.transpose if graph.directed else graph
        fields: dict[str, Any] = {
            "threads": self.threads,
            "is_directed": int(graph.directed),
            "first": self.graph.first,
            "indptr": graph.indptr,
            "neighbours": graph.indices,
            "backward_indptr": backward.indptr,
            "backward_neighbours": backward.indices,
            "label": aligned_empty(self.graph.num_searched, np.uint32),
            "common": np.zeros(-(-self.graph.num_searched // BLOCK), np.uint32),
            "work": np.zeros(NUM_TASKS, np.int64),
        }
        self._label = fields["label"]
        shared, control = Struct("Components", fields), make_control(self.threads)
        link_phases(shared, fields["work"])
        self._stop_workers = start_workers(self, run_worker, control, shared, self.threads)
        arguments = control, shared, np.zeros((MOST_RECORDS, RECORD_WIDTH))
        label_components.compile(tuple(numba.typeof(a) for a in arguments))
        return arguments

    def prepare(self) -> None:
        """Start the workers and compile the kernels of a run."""
        _ = self._arguments

    def run(self) -> Labels:
        """Find the components of a non-empty searched range."""
        from hetero_bfs.algorithms.components.kernels.loop import label_components

        arguments = self._arguments
        rows, components = label_components(*arguments)
        return Labels(self._label, components, arguments[-1][:rows].copy())

    def close(self) -> None:
        """End the workers."""
        self._stop_workers()
