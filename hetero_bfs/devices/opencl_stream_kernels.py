"""The kernels of stream.cl, bound to the arrays that they read and write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hetero_bfs.devices.opencl import VARIES, BoundKernel, OpenCLDevice
from hetero_bfs.devices.opencl_slots import Slot
from hetero_bfs.devices.opencl_stream_graph import StreamedGraph


@dataclass(frozen=True)
class LevelArrays:
    """Buffers that the levels of a search write (kernels/bfs.py, kernels/stream.cl).

    Bitmaps `visited`, `queue` and `offsets` are pairs; a level's index says which is which.
    """

    parent: Any
    visited: list[Any]
    queue: list[Any]
    offsets: list[Any]
    frontier: Any
    needed: Any
    counter: Any


class StreamKernels:
    """Kernels by name, without `stream_`: each is bound when it is first asked for.

    Parameters
    ----------
    device : OpenCLDevice
    program : pyopencl.Program
    graph : StreamedGraph
    arrays : LevelArrays
    """

    def __init__(
        self, device: OpenCLDevice, program: Any, graph: StreamedGraph, arrays: LevelArrays
    ) -> None:
        self._device = device
        self._program = program
        self._graph = graph
        self._arrays = arrays
        self._bound: dict[tuple[str, int, int, int], BoundKernel] = {}

    def level(self, name: str, v: int = 0, q: int = 0) -> BoundKernel:
        """Return a kernel that reads no part; `v` and `q` are indices of bitmap and queue."""
        key = (name, v, q, -1)
        if key not in self._bound:
            arguments = self._level_arguments(v, q)[name]
            self._bound[key] = self._device.bind(self._program, f"stream_{name}", *arguments)
        return self._bound[key]

    def part(self, name: str, slot: Slot, direction: int, v: int) -> BoundKernel:
        """Return "push" or "pull" for what a slot holds; where it begins and ends varies."""
        key = (name, v, direction, slot.number)
        if key not in self._bound:
            graph, arrays = self._graph, self._arrays
            bitmaps = {
                "push": (arrays.frontier, arrays.visited[v]),
                "pull": (arrays.visited[v], arrays.visited[1 - v]),
            }[name]
            self._bound[key] = self._device.bind(
                self._program, f"stream_{name}", slot.buffer, VARIES, VARIES, VARIES,
                graph.indptr[direction], graph.owner[direction], self._shift, arrays.needed,
                *bitmaps, arrays.parent,
            )  # fmt: skip
        return self._bound[key]

    @property
    def _shift(self) -> np.uint32:
        return np.uint32(self._graph.plan.block_shift)

    def _level_arguments(self, v: int, q: int) -> dict[str, tuple[Any, ...]]:
        graph, arrays = self._graph, self._arrays
        n, words = graph.arguments[:2]
        parent, frontier = arrays.parent, arrays.frontier
        visited, other = arrays.visited[v], arrays.visited[1 - v]
        queue = (arrays.queue[q], arrays.offsets[q])
        found = (words, visited, other, graph.degree, graph.word_degree, arrays.counter)
        marked = (self._shift, arrays.needed)
        columns = np.uint32(graph.plan.columns)
        return {
            "start": (words, VARIES, visited, parent, *queue),
            "forget": (n, words, visited, parent),
            "queue": (*found, *queue),
            "count": found,
            "frontier_of_queue": (arrays.queue[q], frontier, VARIES),
            "frontier_of_bitmap": (words, visited, other, frontier),
            "mark": (words, graph.indptr[0], frontier, *marked),
            "first": (
                *(n, words, graph.indptr[-1], graph.first, graph.heads, columns),
                *(visited, other, parent, *marked),
            ),
        }
