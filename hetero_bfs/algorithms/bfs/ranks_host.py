"""The executor of a rank on its host's cores: `CPUExecutor` with bitmaps of all ranks' columns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.bfs.host import Allocator, CPUExecutor
from hetero_bfs.algorithms.bfs.query import Seeds
from hetero_bfs.algorithms.bfs.result import Frontier
from hetero_bfs.ranks.communicator import Counts
from hetero_bfs.ranks.exchange import Words
from hetero_bfs.ranks.partition import RankGraph
from hetero_bfs.scheduling import schema
from hetero_bfs.scheduling.strategies import STRATEGIES, plain
from hetero_bfs.support.memory import aligned_empty
from hetero_bfs.support.parallel import Head, Struct

_PULL_ROW = list(STRATEGIES).index(plain("bottom-up", "cpu").name)


class RankExecutor(CPUExecutor):
    """Runs the levels of a rank; its caller communicates with other ranks."""

    _name = "RankArrays"
    _module = "hetero_bfs.algorithms.bfs.kernels.ranks"
    graph: RankGraph

    def __init__(
        self, graph: RankGraph, threads: int | None = None, allocate: Allocator = aligned_empty
    ) -> None:
        super().__init__(graph, threads, allocate)
        self._records = np.zeros((1, schema.record_width(1)))
        self.sent: Words = allocate(graph.partition.num_columns, np.uint64)
        """Messages for other ranks, starting at each rank's first column."""
        ranks, stride = graph.partition.ranks, self._kernels.COUNT_STRIDE
        self._sent_counts: Counts = np.zeros(stride * ranks, np.int64)
        self._sent_positions = np.zeros((self.threads, -(-ranks // stride) * stride), np.int64)

    def _bitmap_words(self) -> int:
        return self.graph.partition.bitmap_words

    def _make_fields(self) -> dict[str, Any]:
        """Return the `HostArrays`, then the fields that kernels/ranks.py describes."""
        host = super()._make_fields()
        self._num_host_arrays = len(host)
        return host | {
            "sent": self.sent,
            "sent_counts": self._sent_counts,
            "sent_positions": self._sent_positions,
            "owner_of_line": self.graph.partition.owner_of_line,
            "first_column": self.graph.partition.first_column,
        }

    def _visible(self, struct: Struct) -> Head:
        """Return only the `HostArrays`, which the kernels of one process take."""
        return Head("HostArrays", struct, self._num_host_arrays)

    def _sees_all(self, phase: Any) -> bool:
        return bool(phase.py_func.__module__ == self._module)

    def _phases(self) -> dict[int, Any]:
        from hetero_bfs.algorithms.bfs.kernels.job import BLANK, TOP_DOWN

        kernels = self._kernels
        push = kernels.push_alone if self.threads == 1 else kernels.push_chunk
        return super()._phases() | {TOP_DOWN: push, BLANK: kernels.blank_chunk}

    def start(self, seeds: Seeds, lists_found: bool = False) -> Frontier:
        """Reset the arrays; the frontier is the rank's own sources, perhaps none.

        With `lists_found` top-down levels list the vertices that they find, for a device.
        """
        frontier = Frontier()
        frontier.found_list = 0 if lists_found else -1
        self.begin_at(seeds, frontier)
        return frontier

    def has_visited(self, vertex: int, index: int) -> bool:
        """Tell whether an own vertex is set in bitmap number `index`."""
        return bool(int(self.visited[index][vertex >> 5]) >> (vertex & 31) & 1)

    def push(self, frontier: Frontier, counts: Counts) -> tuple[int, int]:
        """Run a top-down level; return the number of own vertices found, and of their edges.

        Messages for other ranks are in `sent`. Fills `counts` with their numbers.
        """
        found: tuple[int, int] = self._kernels.push(
            self.control, self.shared, frontier.state, self._sent_counts, counts
        )
        return found

    def receive(
        self, frontier: Frontier, sent: list[tuple[int, Words]], found: tuple[int, int]
    ) -> None:
        state = frontier.state
        for rank, words in sent:
            first = int(self.graph.partition.first_column[rank])
            found = self._kernels.receive(self.struct, state, words, first, *found)
        if state[schema.FOUND_LISTED] >= 0:
            self._kernels.list_level(self.struct, state, found[0])
        schema.advance(state, schema.QUEUE, *found)

    def pull(self, frontier: Frontier) -> int:
        state, level = frontier.state, frontier.level
        state[schema.LEVEL] = 0  # there is only one row of records
        frontier.found_list = -1
        scanned = self._kernels.pull(self.control, self.shared, _PULL_ROW, state, self._records)
        state[schema.LEVEL] = level + 1
        return int(scanned)

    def copy_others(self, source: int, target: int) -> None:
        part = self.graph.partition
        own = int(part.words[part.rank])
        self._kernels.copy_words(self.visited[source], self.visited[target], own)

    def give(self, index: int, bits: npt.NDArray[np.uint32]) -> None:
        bits[:] = self.visited[index][: bits.size]

    def take(self, index: int, first: int, bits: npt.NDArray[np.uint32]) -> None:
        self.visited[index][first : first + bits.size] = bits

    def copy_words(self, rank: int, into: Words) -> None:
        first = int(self.graph.partition.first_column[rank])
        into[:] = self.sent[first : first + into.size]

    def fill_sent(self, ranks: Iterable[int], counts: Counts) -> None:
        """Do nothing: `push` has already written `sent`."""

    def restored(self, parent: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
        """Return the parents of the own old ids as old ids; NO_VERTEX for none.

        `parent` is a copy of the executor's parents.
        """
        from hetero_bfs.graph.kernels.old_ids import parents_by_old_ids

        return parents_by_old_ids(parent, self.graph.relabelling, np.uint32)
