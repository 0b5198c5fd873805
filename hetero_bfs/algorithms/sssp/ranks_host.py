"""A rank's arrays for shortest paths; kernels/ranks_relax.py explains them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.devices.cpu.host_run import HostRun
from hetero_bfs.graph.weighted_lists import WeightedLists
from hetero_bfs.ranks.exchange import mail_loops
from hetero_bfs.ranks.partition import Partition
from hetero_bfs.support.memory import aligned_empty


class RankPathHost(HostRun):
    """The arrays of searches whose distances have one type, and their loops for one thread."""

    _name = "RankPaths"
    _module = "hetero_bfs.algorithms.sssp.kernels.ranks_relax"

    def __init__(self, lists: WeightedLists, partition: Partition, dtype: np.dtype[Any]) -> None:
        super().__init__(1)
        self.dtype = dtype
        self.infinity = np.inf if dtype.kind == "f" else np.iinfo(dtype).max
        self._lists, self._partition = lists, partition

    def _make_fields(self) -> dict[str, Any]:
        lists, dtype = self._lists, self.dtype
        own, columns = max(lists.num_vertices, 1), max(self._partition.num_columns, 1)
        window = np.zeros(2, dtype)
        window[self._kernels.INFINITY] = self.infinity
        indptr, neighbours, weights = lists.forward
        return {
            "is_directed": int(lists.graph.graph.directed),
            "searched": lists.num_vertices,
            "indptr": indptr,
            "neighbours": neighbours,
            "weights": weights,
            **{f"backward_{name}": array for name, array in lists.backward._asdict().items()},
            "backward_order": lists.backward_order,
            "distance": aligned_empty(columns, dtype),
            "relaxed": aligned_empty(own, dtype),
            "position": aligned_empty(own, np.uint32),
            "queue": aligned_empty(own, np.uint32),
            "queued": aligned_empty(own, np.uint8),
            "active": aligned_empty(own, np.uint32),
            "listed": aligned_empty(own, np.uint8),
            "outbox": aligned_empty(columns, np.uint32),
            "noted": aligned_empty(columns, np.uint8),
            "window": window,
            "lowest": np.zeros(1, dtype),
            "counts": np.zeros(8, np.int64),
        }

    def _phases(self) -> dict[int, Any]:
        return {}

    def _loops(self) -> list[tuple[Any, tuple[Any, ...]]]:
        loops, arrays, fields = self._kernels, self.struct, self.fields
        distances, columns, part = fields["lowest"], fields["outbox"], self._partition
        return [
            (loops.begin, (arrays, -1)),
            (loops.relax_active, (arrays, distances[0], False)),
            (loops.relax_queue, (arrays, False)),
            (loops.take_outbox, (arrays, distances)),
            (loops.take_in, (arrays, columns, distances)),
            (loops.pull, (arrays,)),
            (loops.adopt, (arrays, columns, columns, 0)),
            (
                loops.take_parents,
                (arrays, columns, columns, columns, part.sizes, part.first_column),
            ),
            *mail_loops(part, columns, distances),
            *mail_loops(part, columns, columns),
        ]

    def own_distances(self) -> npt.NDArray[np.float64]:
        mine = self.fields["distance"][: self._lists.num_vertices]
        found: npt.NDArray[np.float64] = mine.astype(np.float64)
        found[mine == self.infinity] = np.inf
        return found
