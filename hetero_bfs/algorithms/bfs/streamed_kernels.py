"""The kernels of stream.cl, bound to the arrays that they read and write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hetero_bfs.algorithms.bfs.paged_graph import PageSlots, StreamedGraph
from hetero_bfs.devices.opencl.opencl_device import VARIES, BoundKernel, OpenCLDevice

KINDS = ("push", "pull")
"""Kinds of levels: top-down reads the first direction's lists, bottom-up the last direction's."""


@dataclass(frozen=True)
class LevelArrays:
    """Buffers that the levels of a search write (stream.cl)."""

    parent: Any
    visited: Any
    reached: Any
    """Where bottom-up looks for parents: `visited`, or that without masked vertices."""
    next: Any
    frontier: Any
    needed: Any
    status: Any
    here: Any


class StreamKernels:
    """Kernels with all constant arguments set.

    `start` takes the source. `finish` takes whether all missing pages were sent. A kernel of `sent`
    (by kind, then by slot) takes the number of pages in the slot. `heads` and `resident` have one
    kernel for each kind. A level begins with `heads`, `resident` and `list`.

    Parameters
    ----------
    device : OpenCLDevice
    program : pyopencl.Program
    graph : StreamedGraph
    arrays : LevelArrays
    slots : PageSlots
    """

    def __init__(
        self,
        device: OpenCLDevice,
        program: Any,
        graph: StreamedGraph,
        arrays: LevelArrays,
        slots: PageSlots,
    ) -> None:
        def bind(name: str, *arguments: Any) -> BoundKernel:
            return device.bind(program, f"stream_{name}", *arguments)

        n, words = graph.arguments
        a, plan = arrays, graph.plan
        self.start = bind("start", n, words, VARIES, a.visited, a.next, a.frontier, a.parent)
        self.list = bind(
            "list", np.uint32(-(-plan.num_pages // 32)), np.uint32(plan.resident_pages),
            a.needed, a.status, a.here,
        )  # fmt: skip
        self.finish = bind(
            "finish", words, VARIES, a.visited, a.next, a.frontier, graph.degree,
            graph.word_degree, a.status, a.status,
        )  # fmt: skip
        self.heads: dict[str, BoundKernel] = {}
        self.resident: dict[str, BoundKernel] = {}
        self.sent: dict[str, list[BoundKernel]] = {}
        for kind in KINDS:
            direction = 0 if kind == "push" else -1
            known = a.frontier if kind == "push" else a.reached
            written = (known, a.next, a.parent)
            sizes = (n,) if kind == "push" else (n, words)
            seen = () if kind == "push" else (a.visited,)
            indptr, owner = graph.indptr[direction], graph.owner[direction]
            columns = np.uint32(len(plan.columns[direction]))
            self.heads[kind] = bind(
                f"heads_{kind}", *sizes, indptr, *graph.heads[direction], columns, *seen, *written,
                a.needed, a.status,
            )  # fmt: skip
            lists = (np.uint64(graph.edges[direction].size), indptr, owner)
            self.resident[kind] = bind(
                kind, *graph.pages[direction], *lists, a.status, a.here, *written
            )
            self.sent[kind] = [
                bind(f"{kind}_sent", VARIES, *slot.buffers, *lists, *written)
                for slot in slots.slots
            ]
