"""What ranks send: calls and bytes of each level, counted by the communicator."""

from __future__ import annotations

import numpy as np
import pytest
from simulated import constructed
from simulated_ranks import SimulatedCommunicator, run_ranks

from hetero_bfs.algorithms.bfs.query import Query
from hetero_bfs.algorithms.bfs.ranks import DistributedSearch
from hetero_bfs.graph.generators.kronecker import KroneckerEdges

EDGES = KroneckerEdges(12).materialise()


class Counting(DistributedSearch):
    """Notes calls and bytes of each level."""

    def __init__(self, communicator: SimulatedCommunicator, *arguments):
        super().__init__(communicator, *arguments)
        self.levels = []

    def _note(self, direction, run, *arguments):
        calls, sent = self.communicator.calls, self.communicator.items_sent
        seconds = run(*arguments)
        self.levels.append(
            (
                direction,
                self.communicator.calls - calls + 1,  # and the reduction
                self.communicator.items_sent - sent,
            )
        )
        return seconds

    def _push(self, *arguments):
        return self._note("top-down", super()._push, *arguments)

    def _pull(self, *arguments):
        return self._note("bottom-up", super()._pull, *arguments)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("ranks", [2, 3, 8, 64])
@pytest.mark.parametrize("one_host", [False, True])
def test_calls_and_bytes_of_levels(ranks, one_host):
    def run(communicator):
        graph = constructed(communicator, EDGES)
        search = Counting(communicator, graph, "fixed:TC,BC,BC,TC", 1)
        result = search.search(Query((3,)))
        return graph.partition, search.levels, result.levels, search._exchange._box_words

    found = run_ranks(ranks, run, ranks if one_host else 1)
    most_words = [
        max(level.bytes_sent // 8 for level in same)
        for same in zip(*(f[2] for f in found), strict=True)
    ]
    for rank, (partition, counted, levels, box_words) in enumerate(found):
        assert [level.direction for level in levels] == [level[0] for level in counted]
        for (direction, calls, items), level, most in zip(counted, levels, most_words, strict=True):
            assert calls <= 3
            if direction == "bottom-up":  # a bit for each own vertex that leads anywhere
                words = -(-int(partition.leading[rank]) // 32)
                assert items == words
                assert level.bytes_sent == 4 * words
                assert words <= np.ceil(partition.sizes[rank] / 32)
            elif one_host:  # words that fit in boxes are no items
                assert calls == 2 or most > box_words
                assert items == ranks or calls == 3
            else:
                assert level.bytes_sent == 8 * (items - ranks)  # counts, and words
