"""Results for the caller: parents in the caller's ids, saved parents, and searches to warm up."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.bfs.correction import warm_up_schedules
from hetero_bfs.algorithms.bfs.device_results import Receive
from hetero_bfs.algorithms.bfs.host import CPUExecutor
from hetero_bfs.algorithms.bfs.platform import Platform
from hetero_bfs.algorithms.bfs.query import Query
from hetero_bfs.algorithms.bfs.result import BFSResult
from hetero_bfs.algorithms.bfs.search import Search
from hetero_bfs.devices.opencl.opencl_device import OpenCLDevice
from hetero_bfs.errors import DeviceError
from hetero_bfs.scheduling.selectors import FixedSelector
from hetero_bfs.scheduling.strategies import Strategy
from hetero_bfs.support.memory import aligned_empty


class SavedParents:
    """Memory for parents whose ids are restored later; reused between groups."""

    def __init__(self) -> None:
        self._memory: npt.NDArray[np.uint32] = np.empty(0, np.uint32)

    def room(self, count: int, n: int, device: OpenCLDevice | None) -> npt.NDArray[np.uint32]:
        """Return memory for the parents of `count` searches, uint32 (count, n).

        If a device is given, the memory is pinned for fast copies from it.
        """
        if self._memory.size < count * n:
            self.release()  # first, so that both never exist at the same time
            self._memory = _memory_for_copies(count * n, device)
        return self._memory[: count * n].reshape(count, n)

    def release(self) -> None:
        self._memory = np.empty(0, np.uint32)


def _memory_for_copies(size: int, device: OpenCLDevice | None) -> npt.NDArray[np.uint32]:
    """Return pinned memory for fast copies from the device; plain memory if that fails."""
    if device is not None:
        with suppress(DeviceError):
            return device.host_array(size, np.uint32)
    return aligned_empty(size, np.uint32)


def restored_parents(
    search: Search, sources: tuple[int, ...], dtype: npt.DTypeLike = np.int64
) -> npt.NDArray[Any]:
    """Return the parents of a search, int64 or int32, in the caller's ids.

    `sources` are in the caller's ids, too.
    """
    host, results = search.platform.host, search.device_results
    if search.source is None:
        parent = np.full(search.platform.graph.num_vertices, -1, dtype)
    elif results is not None:
        parent = host.new_result(dtype)
        results.send_parents(_into(parent, host))
    else:
        search.gather()
        parent = host.restore_parents(dtype)
    if search.source is None or len(sources) > 1:
        parent[list(sources)] = sources  # including isolated ones, which are not searched
    return parent


def restored_levels(search: Search, sources: tuple[int, ...]) -> npt.NDArray[np.int32]:
    """Return the levels of a search, int32, in the caller's ids."""
    host, results = search.platform.host, search.device_results
    if search.source is None:
        level = np.full(search.platform.graph.num_vertices, -1, np.int32)
    elif results is not None:
        level = host.new_result(np.int32)
        results.send_levels(search.num_levels, _into(level, host))
    else:
        search.gather()
        level = host.restore_levels()
    if search.source is None or len(sources) > 1:
        level[list(sources)] = 0
    return level


def _into(result: npt.NDArray[Any], host: CPUExecutor) -> Receive:
    """Return a function that copies parts from a device to a result."""

    def receive(begin: int, part: npt.NDArray[np.uint32]) -> None:
        host.receive_result(result[begin : begin + part.size], part)

    return receive


def make_result(
    search: Search,
    query: Query,
    parent: npt.NDArray[Any],
    gather_seconds: float,
    streamed_bytes: int,
) -> BFSResult:
    graph = search.platform.graph
    return BFSResult(
        query.sources[0],
        parent,
        search.seconds,
        gather_seconds,
        graph.input_degree,
        graph.graph.directed,
        search.recording().traces,
        streamed_bytes,
        search.selector.rule,
        query.sources,
        query.reverse,
    )


def warm_up(platform: Platform, candidates: Sequence[Strategy]) -> None:
    """Run every candidate, every conversion and every migration."""
    graph = platform.graph
    if graph.num_searched == 0:
        return
    source = int(graph.degree.argmax())
    for schedule in warm_up_schedules(candidates):
        search = Search(platform, source, FixedSelector(*schedule))
        search.run(max_levels=len(schedule))
        restored_parents(search, (int(graph.relabelling.old_of_new[source]),))
