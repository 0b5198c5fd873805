"""Shortest paths on a device without room for the lists: as a program, whose lists stream."""

from __future__ import annotations

import numpy as np

from hetero_bfs.algorithms.sssp.device import ON_DEVICE
from hetero_bfs.devices.opencl.device_info import DeviceInfo
from hetero_bfs.graph.weighted_lists import FULL, PULL_ONCE, Plan, WeightedLists, Windows
from hetero_bfs.programs.built_in import PATHS, beyond_all
from hetero_bfs.programs.streamed import StreamedBuiltIn


class StreamedPaths(StreamedBuiltIn):
    """Searches for shortest paths; see `DeviceSearch`.

    Parameters
    ----------
    lists : WeightedLists
    info : DeviceInfo

    Raises
    ------
    BudgetError
        The device cannot hold the vertices' arrays and room for a few blocks of the lists.
    DeviceError
        It lacks the type of the weights; failures of its driver.
    """

    upload_seconds = 0.0

    def __init__(self, lists: WeightedLists, info: DeviceInfo) -> None:
        super().__init__(lists.graph, info)
        self._program = PATHS[lists.weight_dtype.name]()
        self._type = np.dtype(self._program.state["distance"])
        self._infinity = beyond_all(self._program)
        self._may_overflow = lists.weight_dtype == np.float32 and lists.may_overflow
        self.run(0, lists.plan)  # it compiles

    def run(self, source: int, plan: Plan) -> Windows | None:
        """Search from a vertex, the new id; the run chooses its own buckets.

        None if a distance may be beyond the weights' type.
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
