"""A graph partitioned among all MPI ranks, to search and to run programs on.

Start a script with `mpirun -n P python script.py`. All ranks make the same calls, and each rank
gets all results.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

from hetero_bfs.algorithms.base import Request
from hetero_bfs.algorithms.table import Algorithms, Row
from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.errors import AgreedError, ArgumentError
from hetero_bfs.graph.edge_source import EdgeSource, check_edge_source
from hetero_bfs.graph.lists import input_degree_of
from hetero_bfs.graph.vertex_names import with_names
from hetero_bfs.options import EngineOptions
from hetero_bfs.programs.codegen.host_code import code_key
from hetero_bfs.programs.options import Limits, RunOptions
from hetero_bfs.programs.parameters import Parameters
from hetero_bfs.programs.plan import Plan
from hetero_bfs.programs.program import Along, Program
from hetero_bfs.programs.ranks import RankProgram, RankProgramResult, graph_along
from hetero_bfs.programs.renumbered import usual_step, weight_sums
from hetero_bfs.ranks.communicator import Communicator, agreed
from hetero_bfs.ranks.construction import construct
from hetero_bfs.ranks.mpi import world
from hetero_bfs.ranks.partition import FileShare, RankGraph, read_share, share_out
from hetero_bfs.ranks.rank_run import usual_threads
from hetero_bfs.ranks.refusals import ENGINE, ON_CPU, PROGRAMS, of_one_process, refuse
from hetero_bfs.support.checks import check_type
from hetero_bfs.support.parallel import at_most
from hetero_bfs.support.processes import OfOneProcess

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

_DEFAULTS = RunOptions()


class RankEngine(Algorithms, OfOneProcess):
    """A rank's part of a graph, ready for searches and vertex programs.

    Parameters
    ----------
    edges : EdgeSource, optional
        All edges, on rank 0; None on the other ranks.
    communicator : Communicator, optional
        By default all ranks that the MPI launcher started.
    selector, device, ... : optional
        All other parameters are settings; `EngineOptions` describes them. By default the ranks of a
        host share its cores, and breadth-first search uses its OpenCL devices that are not CPUs:
        rank k of a host takes device k.

    Raises
    ------
    AgreedError
        On all ranks: another rank than 0 has edges, mpi4py cannot be used, or a setting is wrong or
        needs a single process.
    """

    device_info: DeviceInfo | None = None
    """The OpenCL device of this rank's searches, once it has searched; None without one."""

    def __init__(
        self,
        edges: EdgeSource | None = None,
        communicator: Communicator | None = None,
        **settings: Any,
    ) -> None:
        communicator = communicator or world()
        self.options = agreed(communicator, lambda: _checked_options(settings))
        agreed(communicator, lambda: _check_edges(edges, communicator))
        self._open(communicator, share_out(communicator, edges))

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        weighted: bool = False,
        communicator: Communicator | None = None,
        directed: bool = False,
        renumber: bool = False,
        columns: Sequence[str] | None = None,
        format: str | None = None,
        **settings: Any,
    ) -> RankEngine:
        """Return the engine of a graph file, which rank 0 reads; see `hetero_bfs.load`.

        Vertices' names are on rank 0: in `edges`, and in results.

        Raises
        ------
        AgreedError
            On all ranks: the file cannot be read, or a setting is refused.
        """
        communicator = communicator or world()
        engine = cls.__new__(cls)
        engine.options = agreed(communicator, lambda: _checked_options(settings))
        wanted = directed, weighted, renumber, columns, format
        engine._open(communicator, read_share(communicator, path, *wanted))
        return engine

    def _open(self, communicator: Communicator, share: FileShare) -> None:
        self.communicator = communicator
        self.edges = share.edges if communicator.rank == 0 else None
        """All edges, on rank 0."""
        self.notes: list[str] = []
        """Lines for the user, the same on all ranks."""
        with at_most(self.options.threads or usual_threads(communicator)):
            self.graph = construct(
                communicator, share.edges, share.num_input_edges, share.input_degree
            )
        self._kept: dict[object, Any] = {}

    def keep(self, key: object, make: Callable[[], T]) -> T:
        """Return the result of `make` at the first call with this key, which is hashable."""
        if key not in self._kept:  # no lock: all ranks may run in one process, and make together
            self._kept[key] = make()
        kept: T = self._kept[key]
        return kept

    def note_search(self, device: DeviceInfo | None, notes: list[str]) -> None:
        """Note the device of this rank's searches, and lines for the user."""
        self.device_info = device
        self.notes += [note for note in notes if note not in self.notes]

    @property
    def num_vertices(self) -> int:
        """Vertices of the whole graph."""
        return self.graph.num_vertices

    def run(
        self, program: Program, options: RunOptions = _DEFAULTS, **parameters: Any
    ) -> RankProgramResult:
        """Run a program; see `Engine.run`.

        Only the options `max_iterations`, `direction` and `bucket_width` have an effect.

        Raises
        ------
        AgreedError
            On all ranks: the program or a parameter cannot be used.
        """
        plan, limits = agreed(
            self.communicator, lambda: self._checked(program, options, parameters)
        )
        way: Along = plan.along if self.graph.graph.directed else "out"
        if options.bucket_width is None and "priority" in plan.methods:
            width = self.keep((usual_step, way), lambda: self._usual_width(way))
            limits = limits._replace(bucket_width=width)
        return self._run(plan, limits, self.along(way))

    def _usual_width(self, way: Along) -> float:
        graph = self.along(way)
        sums = weight_sums(graph.graph.weights, graph.num_searched)
        self.communicator.reduce_to_all(sums, "sum")
        return usual_step(sums)

    def run_part(
        self, graph: RankGraph, program: Program, options: RunOptions, **parameters: Any
    ) -> RankProgramResult:
        """Run a program on this rank's part with other weights; the caller keeps `graph`."""
        plan, limits = agreed(
            self.communicator, lambda: self._checked(program, options, parameters)
        )
        return self._run(plan, limits, graph)

    def _run(self, plan: Plan, limits: Limits, graph: RankGraph) -> RankProgramResult:
        key = id(graph), plan.once(code_key)
        program = self.keep(key, lambda: RankProgram(self.communicator, graph, plan))
        return program.run(plan, limits)

    def _checked(
        self, program: Program, options: RunOptions, parameters: dict[str, Any]
    ) -> tuple[Plan, Limits]:
        """Return the plan of the program for this graph, and the options as numbers."""
        check_type("program", program, Program, "an object of a class derived from hb.Program")
        weights = self.graph.graph.weights
        kind = None if weights is None else weights.dtype.name
        given = Parameters.of(parameters, self.num_vertices, program.edges)
        plan = Plan.of(program, given, kind)
        reason = f"has {plan.collects}" if plan.collects else "combines by most_frequent"
        if plan.collects or plan.counts:
            raise AgreedError(of_one_process(f"{plan.name}, which {reason}"))
        refuse(PROGRAMS, vars(options))
        refuse(ON_CPU, vars(self.options))
        plan.check_end(options.max_iterations, "RunOptions(max_iterations=...)")
        return plan, options.limits(1.0)

    def along(self, way: Along) -> RankGraph:
        """Return the graph whose messages follow this direction."""
        return self.keep((graph_along, way), lambda: graph_along(self.graph, way))

    def _answer(self, row: Row[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run an algorithm on all ranks; all raise `AgreedError` if its arguments are refused."""

        def asked() -> Request[R]:
            request = row.ask(self.num_vertices, *args, **kwargs)
            request.kind.check_ranks(self.options)
            return request

        request = agreed(self.communicator, asked)
        return with_names(request.kind.by_ranks(self, *request.query), self.edges)


def _checked_options(settings: dict[str, Any]) -> EngineOptions:
    options = EngineOptions(**settings)
    refuse(ENGINE, vars(options))
    return options


def _check_edges(edges: EdgeSource | None, communicator: Communicator) -> None:
    """Raise `ArgumentError` unless exactly rank 0 has edges."""
    if (edges is None) == (communicator.rank == 0):
        said = "no edges" if edges is None else "edges, and only rank 0 may have them"
        raise ArgumentError(f"{said}; give RankEngine(edges) on rank 0, None on all others")
    if edges is not None:
        check_edge_source(edges)
        input_degree_of(edges, np.empty(0, np.uint32))  # raises
