"""A graph partitioned among all MPI ranks, to search and to run programs on.

Start a script with `mpirun -n P python script.py`. All ranks make the same calls, and each rank
gets all results.
"""

from __future__ import annotations

import os
from typing import Any, ParamSpec, TypeVar

import numpy as np

from hetero_bfs.algorithms.bfs.ranks_host import usual_threads
from hetero_bfs.algorithms.table import Algorithms, Row
from hetero_bfs.errors import ArgumentError
from hetero_bfs.graph.edge_source import EdgeSource, check_edge_source
from hetero_bfs.graph.lists import input_degree_of
from hetero_bfs.programs.codegen.host_code import code_key
from hetero_bfs.programs.options import Limits, RunOptions
from hetero_bfs.programs.parameters import Parameters
from hetero_bfs.programs.plan import Plan
from hetero_bfs.programs.program import Along, Program
from hetero_bfs.programs.ranks import RankProgram, RankProgramResult, graph_along
from hetero_bfs.programs.renumbered import usual_step, weight_sums
from hetero_bfs.ranks.communicator import Communicator, agreed
from hetero_bfs.ranks.construction import construct
from hetero_bfs.ranks.partition import FileShare, RankGraph, read_share, share_out
from hetero_bfs.support.checks import check_type
from hetero_bfs.support.parallel import at_most
from hetero_bfs.support.processes import OfOneProcess

P = ParamSpec("P")
R = TypeVar("R")

_DEFAULTS = RunOptions()


class RankEngine(Algorithms, OfOneProcess):
    """A rank's part of a graph, ready for searches and vertex programs.

    Parameters
    ----------
    edges : EdgeSource, optional
        All edges, on rank 0; None on the other ranks.
    communicator : Communicator, optional
        By default all ranks that the MPI launcher started.

    Raises
    ------
    AgreedError
        On all ranks: another rank than 0 has edges, or mpi4py cannot be used.
    """

    def __init__(
        self, edges: EdgeSource | None = None, communicator: Communicator | None = None
    ) -> None:
        communicator = communicator or _world()
        agreed(communicator, lambda: _check_edges(edges, communicator))
        self._open(communicator, share_out(communicator, edges))

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        weighted: bool = False,
        communicator: Communicator | None = None,
        directed: bool = False,
    ) -> RankEngine:
        """Return the engine of a graph file, which rank 0 reads; see `hetero_bfs.load`.

        Raises
        ------
        AgreedError
            On all ranks: the file cannot be read.
        """
        communicator = communicator or _world()
        engine = cls.__new__(cls)
        engine._open(communicator, read_share(communicator, path, weighted, directed))
        return engine

    def _open(self, communicator: Communicator, share: FileShare) -> None:
        self.communicator = communicator
        self.edges = share.edges if communicator.rank == 0 else None
        """All edges, on rank 0."""
        with at_most(usual_threads(communicator)):
            self.graph = construct(
                communicator, share.edges, share.num_input_edges, share.input_degree
            )
        self._programs: dict[Any, RankProgram] = {}
        # Not cached properties: their lock is shared by all ranks that run in one process.
        self._graphs: dict[Along, RankGraph] = {}
        self._steps: dict[Along, float] = {}
        self.kept: dict[Any, Any] = {}
        """Data that algorithms keep between their runs."""

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
            if way not in self._steps:
                graph = self.along(way)
                sums = weight_sums(graph.graph.weights, graph.num_searched)
                self.communicator.reduce_to_all(sums, "sum")
                self._steps[way] = usual_step(sums)
            limits = limits._replace(bucket_width=self._steps[way])
        return self._run(plan, limits, self.along(way))

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
        if key not in self._programs:
            self._programs[key] = RankProgram(self.communicator, graph, plan)
        return self._programs[key].run(plan, limits)

    def _checked(
        self, program: Program, options: RunOptions, parameters: dict[str, Any]
    ) -> tuple[Plan, Limits]:
        """Return the plan of the program for this graph, and the options as numbers."""
        check_type("program", program, Program, "an object of a class derived from hb.Program")
        weights = self.graph.graph.weights
        kind = None if weights is None else weights.dtype.name
        given = Parameters.of(parameters, self.num_vertices, program.edges)
        plan = Plan.of(program, given, kind)
        if plan.collects:
            raise ArgumentError(f"{plan.name} has {plan.collects}, which needs one process")
        if plan.counts:
            raise ArgumentError(f"{plan.name} combines by most_frequent, which needs one process")
        if options.mode != "synchronous" or options.where not in ("auto", "cpu"):
            raise ArgumentError(
                f"mode is {options.mode!r} and place {options.where!r}; several ranks run programs "
                'in mode "synchronous" on the CPU only: leave out mode, place and schedule'
            )
        plan.check_end(options.max_iterations, "RunOptions(max_iterations=...)")
        return plan, options.limits(1.0)

    def along(self, way: Along) -> RankGraph:
        """Return the graph whose messages follow this direction."""
        if way not in self._graphs:
            self._graphs[way] = graph_along(self.graph, way)
        return self._graphs[way]

    def _answer(self, row: Row[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run an algorithm on all ranks; all raise `AgreedError` if its arguments are refused."""
        request = agreed(self.communicator, lambda: row.ask(self.num_vertices, *args, **kwargs))
        return request.kind.by_ranks(self, *request.query)


def _check_edges(edges: EdgeSource | None, communicator: Communicator) -> None:
    """Raise `ArgumentError` unless exactly rank 0 has edges."""
    if (edges is None) == (communicator.rank == 0):
        said = "no edges" if edges is None else "edges, too"
        raise ArgumentError(f"{said}; give RankEngine(edges) on rank 0, None on all others")
    if edges is not None:
        check_edge_source(edges)
        input_degree_of(edges, np.empty(0, np.uint32))  # raises


def _world() -> Communicator:
    from hetero_bfs.ranks.mpi import world

    return world()
