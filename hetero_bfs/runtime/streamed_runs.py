"""PageRank and shortest paths on a device without room for the lists: as programs, which stream.

These take the place of `DeviceRanks` and `DeviceSearch`, whose kernels want all lists there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hetero_bfs.algorithms.pagerank.pagerank_lists import RankLists, Ranks, RankSettings
from hetero_bfs.algorithms.sssp.device_search import ON_DEVICE
from hetero_bfs.algorithms.sssp.weighted_lists import (
    FULL,
    PULL_ONCE,
    WeightedLists,
    Windows,
)
from hetero_bfs.algorithms.sssp.weighted_lists import Plan as SearchPlan
from hetero_bfs.devices.opencl.device_info import DeviceInfo
from hetero_bfs.graph.search_graph import SearchGraph
from hetero_bfs.programs.device_lists import DeviceGraph
from hetero_bfs.programs.device_run import DeviceProgram
from hetero_bfs.programs.placed import PlacedGraph, Run
from hetero_bfs.programs.program import Program
from hetero_bfs.programs.run_options import RunOptions
from hetero_bfs.programs.streamed_run import program_in_phases
from hetero_bfs.programs.typed_program import Parameters, Plan
from hetero_bfs.runtime.built_in_programs import (
    PATHS,
    PowerRanks,
    WeightedPowerRanks,
    beyond_all,
)
from hetero_bfs.selection.program_costs import first_guess


class _Runs:
    """Runs of one program on a device, compiled once for each set of types."""

    def __init__(self, graph: SearchGraph, info: DeviceInfo) -> None:
        self.graph = graph
        self._placed = PlacedGraph(graph)
        self._lists = DeviceGraph(self._placed, info)
        self._programs: dict[Any, DeviceProgram] = {}

    @property
    def device_name(self) -> str:
        """Name of the device."""
        return self._lists.device_name

    def _run(self, program: Program, parameters: dict[str, Any], max_iterations: int | None) -> Run:
        given = Parameters.of(parameters, self.graph.num_vertices)
        plan = Plan(program, given, self._placed.weight_type)
        key = tuple(given.sources.items())
        if key not in self._programs:
            costs = first_guess("device", 1)
            self._programs[key] = program_in_phases(plan, self._lists, self._placed, costs)
        limits = RunOptions(max_iterations).limits(self._placed.usual_step)
        return self._programs[key].run(plan, limits)


class StreamedRanks(_Runs):
    """PageRank by the power method; see `DeviceRanks`.

    Parameters
    ----------
    lists : RankLists
    info : DeviceInfo

    Raises
    ------
    BudgetError
        The device cannot hold the vertices' arrays and room for a few blocks of the lists.
    DeviceError
        It lacks float64; failures of its driver.
    """

    def __init__(self, lists: RankLists, info: DeviceInfo) -> None:
        super().__init__(lists.graph, info)
        self._program = WeightedPowerRanks() if lists.weighted else PowerRanks()
        self._more: dict[str, Any] = {}
        if lists.weighted:
            self._more["given"] = np.zeros(lists.graph.num_vertices)
            self._more["given"][lists.graph.relabelling.old_of_new] = lists.given
        self.run(RankSettings(0.5, 1.0, 1))  # it compiles

    def run(self, settings: RankSettings) -> Ranks:
        """Find the ranks."""
        start = 1.0 / self.graph.num_vertices
        restart = start if settings.personalization is None else settings.personalization
        parameters = self._more | {
            "start": start, "restart": restart, "alpha": settings.alpha, "goal": settings.change,
        }  # fmt: skip
        run = self._run(self._program, parameters, settings.max_iter)
        rank = np.empty(self.graph.num_vertices)
        rank[self._placed.names] = run.state["rank"]
        records = [("device power", seconds) for _, _, _, seconds, *_ in run.records]
        return Ranks(rank, run.totals["change"], records, run.streamed_bytes)


class StreamedPaths(_Runs):
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

    def run(self, source: int, plan: SearchPlan) -> Windows | None:
        """Search from a vertex, the new id; the run chooses its own buckets.

        None if a distance may be beyond the weights' type.
        """
        parameters = {
            "source": int(self.graph.relabelling.old_of_new[source]),
            "unreached": self._infinity,
        }
        run = self._run(self._program, parameters, None)
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
