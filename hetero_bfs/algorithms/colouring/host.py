"""Colouring on the host's cores: the arrays of a run, and the thread pool."""

from __future__ import annotations

import time
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.colouring.lists import Coloured, Step, UndirectedLists
from hetero_bfs.devices.cpu.host_run import HostRun
from hetero_bfs.support.memory import aligned_empty

_POOL_EDGES = 1 << 20
"""In graphs with fewer stored edges, no block is worth waking another thread."""

_MOST_RECORDS = 1 << 12
_STRATEGIES = ("greedy", "shared")  # by the numbers in greedy.py


class HostColouring(HostRun):
    """Colours on the host's cores. `threads` includes the caller's thread."""

    _name = "Colouring"

    def __init__(self, lists: UndirectedLists, threads: int) -> None:
        super().__init__(threads if lists.num_stored_edges >= _POOL_EDGES else 1)
        self.lists = lists
        self.colour = aligned_empty(lists.num_vertices, np.int32)

    def _make_fields(self) -> dict[str, Any]:
        from hetero_bfs.algorithms.colouring.kernels.greedy import (
            MOST_NOTES,
            NUM_TASKS,
            most_chunks,
        )

        lists, n = self.lists, self.lists.num_vertices
        is_pool = self.threads > 1
        return {
            "threads": self.threads,
            "indptr": lists.indptr,
            "indices": lists.indices,
            "order": lists.order,
            "rank": lists.rank,
            "colour": self.colour,
            "by_rank": aligned_empty(n if is_pool else 0, np.int32),
            "notes": aligned_empty(MOST_NOTES if is_pool else 0, np.uint32),
            "noted": np.zeros(most_chunks(self.threads), np.int64),
            "work": np.zeros(NUM_TASKS, np.int64),
        }

    def _phases(self) -> Any:
        from hetero_bfs.algorithms.colouring.kernels.greedy import PHASES

        return PHASES

    def _loops(self) -> list[tuple[Any, tuple[Any, ...]]]:
        from hetero_bfs.algorithms.colouring.kernels.greedy import colour_all

        return [(colour_all, (self.control, self.shared, self._records))]

    @cached_property
    def _records(self) -> Any:
        from hetero_bfs.algorithms.colouring.kernels.greedy import RECORD_WIDTH

        return np.zeros((_MOST_RECORDS, RECORD_WIDTH))

    def run(self) -> Coloured:
        from hetero_bfs.algorithms.colouring.kernels.greedy import colour_all

        steps = [sort_step(self.lists)]
        rows = colour_all(self.control, self.shared, self._records)
        steps += [
            Step(_STRATEGIES[int(strategy)], int(vertices), int(edges), seconds)
            for strategy, vertices, edges, seconds in self._records[:rows].tolist()
        ]
        return Coloured(self.colour, steps)

    def extend(self, start: npt.NDArray[np.int32]) -> Coloured:
        """Colour the vertices that have no colour in `start`, and those in conflict."""
        from hetero_bfs.algorithms.colouring.kernels.greedy import remove_conflicts

        lists, self.colour[:] = self.lists, start
        steps = [sort_step(lists)]
        began = time.perf_counter()
        removed = remove_conflicts(
            lists.indptr, lists.indices, lists.order, lists.rank, self.colour
        )  # fmt: skip
        seconds = time.perf_counter() - began
        steps.append(Step("conflicts", int(removed), lists.num_stored_edges, seconds))
        steps.append(finish_serially(lists, self.colour, lists.num_vertices))
        return Coloured(self.colour, steps)


def sort_step(lists: UndirectedLists) -> Step:
    began = time.perf_counter()
    lists.sort_vertices()
    return Step("sort", lists.num_vertices, 0, time.perf_counter() - began)


def finish_serially(
    lists: UndirectedLists, colour: Any, limit: int = 0, end: int | None = None
) -> Step:
    """Colour the vertices without a colour, or the first `end` ranks, none of which has one.

    `limit` is as in `colour_serially`.
    """
    from hetero_bfs.algorithms.colouring.kernels.greedy import colour_serially

    began, indptr, indices = time.perf_counter(), lists.indptr, lists.indices
    left = int(np.count_nonzero(colour < 0)) if end is None else end
    end = lists.num_vertices if end is None else end
    edges, _ = colour_serially(indptr, indices, lists.order, colour, 0, end, limit)
    return Step("greedy", left, int(edges), time.perf_counter() - began)
