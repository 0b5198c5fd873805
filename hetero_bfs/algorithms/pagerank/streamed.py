"""PageRank on a device that cannot hold the adjacency: a program streams it."""

from __future__ import annotations

from typing import Any

from hetero_bfs.algorithms.pagerank.lists import RankLists, Ranks, RankSettings
from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.programs.built_in import PowerRanks, WeightedPowerRanks
from hetero_bfs.programs.streamed import StreamedBuiltIn


class StreamedRanks(StreamedBuiltIn):
    """PageRank by the power method; see `DeviceRanks`.

    Raises `BudgetError` if the device cannot hold the vertices' arrays and a few blocks of the
    adjacency, and `DeviceError` if it lacks float64 or its driver fails.
    """

    def __init__(self, lists: RankLists, info: DeviceInfo) -> None:
        from hetero_bfs.graph.kernels.old_ids import by_old_ids

        super().__init__(lists.graph, info)
        self._program = WeightedPowerRanks() if lists.weighted else PowerRanks()
        self._more: dict[str, Any] = {}
        if lists.weighted:
            numbers, n = lists.graph.relabelling, lists.graph.num_vertices
            self._more["given"] = by_old_ids(lists.given, numbers.old_of_new, n)
        self.run(RankSettings(0.5, 1.0, 1))  # compiles the program

    def run(self, settings: RankSettings) -> Ranks:
        from hetero_bfs.graph.kernels.old_ids import by_old_ids

        start = 1.0 / self.graph.num_vertices
        restart = start if settings.personalization is None else settings.personalization
        parameters = self._more | {
            "start": start, "restart": restart, "alpha": settings.alpha, "goal": settings.change,
        }  # fmt: skip
        run = self.run_program(self._program, parameters, settings.max_iter)
        rank = by_old_ids(run.state["rank"], self.placed.names, self.graph.num_vertices)
        records = [("device power", seconds) for _, _, _, seconds, *_ in run.records]
        return Ranks(rank, run.totals["change"], records, run.streamed_bytes)
