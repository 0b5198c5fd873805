"""Shortest paths on a device that cannot hold the adjacency: a program streams it."""

from __future__ import annotations

import numpy as np

from hetero_bfs.algorithms.sssp.device import ON_DEVICE
from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.graph.weighted_lists import FULL, PULL_ONCE, Plan, WeightedLists, Windows
from hetero_bfs.programs.built_in import PATHS, beyond_all
from hetero_bfs.programs.streamed import StreamedBuiltIn


class StreamedPaths(StreamedBuiltIn):
    """Searches for shortest paths; see `DeviceSearch`.

    Raises `BudgetError` if the device cannot hold the vertices' arrays and a few blocks of the
    adjacency, and `DeviceError` if it lacks the weights' type or its driver fails.
    """

    upload_seconds = 0.0

    def __init__(self, lists: WeightedLists, info: DeviceInfo) -> None:
        super().__init__(lists.graph, info)
        self._program = PATHS[lists.weight_dtype.name]()
        self._type = np.dtype(self._program.state["distance"])
        self._infinity = beyond_all(self._program)
        self._may_overflow = lists.weight_dtype == np.float32 and lists.may_overflow
        self.run(0, lists.plan)  # compiles the program

    def run(self, source: int, plan: Plan) -> Windows | None:
        """Search from a vertex (a new id). The program chooses its own buckets, not the plan's.

        None if a distance may exceed the weights' type.
        """
        parameters = {
            "source": int(self.graph.relabelling.old_of_new[source]),
            "unreached": self._infinity,
        }
        run = self.run_program(self._program, parameters, None)
        records = np.array(
            [
                (np.nan, ON_DEVICE + (PULL_ONCE if "pull" in name else FULL), *counts, 1, seconds)
                for name, *counts, seconds in (record[:4] for record in run.records)
            ]
        ).reshape(-1, 6)
        distance = run.state["distance"][: self.graph.num_searched]
        if self._may_overflow and np.isinf(distance).any():
            return None
        return Windows(distance, self._type.type(self._infinity), records, run.streamed_bytes)
