"""A vertex program on all ranks: push and pull on own vertices, and messages to other ranks.

An iteration makes these calls between ranks. A push exchanges counts, vertex numbers, and messages,
which are combined beforehand if that does not change results. A pull sends each vertex's message to
all ranks in one call. Both make a reduction that decides the direction and detects the end, and one
of the program's sums if it has any. All ranks decide by the same numbers.

A rank runs a program with one thread.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.programs.kernels.loop import ITERATION, NUM_ACTIVE
from hetero_bfs.programs.options import Limits
from hetero_bfs.programs.plan import Plan
from hetero_bfs.programs.program import Along
from hetero_bfs.programs.ranks_host import RankProgramHost
from hetero_bfs.programs.renumbered import join_lists
from hetero_bfs.ranks.communicator import Communicator, Operation
from hetero_bfs.ranks.exchange import mail
from hetero_bfs.ranks.partition import RankGraph, gathered
from hetero_bfs.ranks.rank_run import RankRun
from hetero_bfs.scheduling.trace import IterationTrace

_PULL_SHARE = 8
"""An iteration pulls if the active vertices have more than 1 / 8 of all edges. A pull reads all
neighbour lists, but writes in order and sends each vertex's message once."""

_LAST_NUMBER = 2**31 - 1

_REDUCTIONS: dict[str, Operation] = {"plus": "sum", "minimum": "min", "maximum": "max"}
"""Operations between ranks, by the operations of totals."""


def graph_along(graph: RankGraph, way: Along) -> RankGraph:
    """Return a rank's part of the graph for messages in this direction.

    "both" copies the CSR arrays of both directions. In undirected graphs all directions are the
    same.
    """
    if way == "out" or not graph.graph.directed:
        return graph
    if way == "in":
        return graph.reversed()
    both = join_lists(graph.graph, graph.graph.transpose)
    degree = both.input_degree
    lists = CSRGraph.trusted(
        both.indptr, both.indices, False, both.num_input_edges, degree, both.weights
    )
    return replace(graph, graph=lists, degree=degree)


@dataclass(eq=False)
class RankProgramResult:
    """The final states of a rank's vertices; `gathered` returns the states of all vertices.

    Parameters
    ----------
    communicator : Communicator
    state : mapping of name to array, shape (own old ids,)
        Rank r of P has the vertices r, r + P, r + 2 P and so on, in this order.
    num_vertices : int
        Number of vertices of the whole graph.
    seconds : float
        From the initial states to the last iteration, on the slowest rank.
    iterations : int
    converged : bool
        False if `max_iterations` ended the run.
    totals : mapping of name to float
        The program's sums after the last iteration.
    traces : list of IterationTrace
        Vertices and edges are of all ranks; the seconds are this rank's.
    """

    communicator: Communicator = field(repr=False)
    state: Mapping[str, npt.NDArray[Any]] = field(repr=False)
    num_vertices: int
    seconds: float
    iterations: int
    converged: bool
    totals: Mapping[str, float]
    traces: list[IterationTrace] = field(repr=False)

    def gathered(self, name: str) -> npt.NDArray[Any]:
        """Return a field of all vertices, by the caller's ids; all ranks must call this."""
        return gathered(self.communicator, self.state[name], self.num_vertices)


class RankProgram(RankRun[RankProgramHost]):
    """A program on the parts of a graph that the ranks hold. All ranks make the same calls.

    `plan` must not count equal messages.
    """

    def __init__(self, communicator: Communicator, graph: RankGraph, plan: Plan) -> None:
        super().__init__(communicator, graph, lambda: RankProgramHost(plan, graph))
        self.plan = plan
        self._phases: Any = self.host._kernels
        self._number = 0
        self._stored = self._sum_of(graph.graph.num_stored_edges)

    def run(self, plan: Plan, limits: Limits) -> RankProgramResult:
        from hetero_bfs.graph.kernels.old_ids import by_old_ids

        host = self.host
        plan.parameters.write(host.fields, host.names)
        traces: list[IterationTrace] = []
        converged, seconds = self.timed(self._run, limits, traces)
        fields, count = host.fields, len(traces)
        places = host.names // self.communicator.size  # in the order of the own old ids
        state = {
            name: by_old_ids(fields[f"state_{name}"], places, places.size) for name in plan.fields
        }
        totals = dict(zip(plan.totals, fields["totals"].tolist(), strict=False))
        return RankProgramResult(
            self.communicator, state, self.graph.num_vertices, seconds, count,
            converged, totals, traces,
        )  # fmt: skip

    def _run(self, limits: Limits, traces: list[IterationTrace]) -> bool:
        """Run iterations until no vertex is active; return whether the program ended the run."""
        phases, host, all_active = self._phases, self.host, self.plan.all_active
        listed, active = phases.begin(host.struct, host.listed, host.sums)
        self._agree(active)
        if all_active:
            count, edges = self.graph.num_searched, self.graph.graph.num_stored_edges
            host.due[:count] = np.arange(count)
            senders, all_edges = self.graph.num_vertices, self._stored
        end = -np.inf
        while len(traces) < limits.max_iterations:
            began = time.perf_counter()
            host.fields["loop"][ITERATION] = len(traces)
            if not all_active:
                end = self._bucket_end(listed, end, limits.bucket_width)
                count, edges, listed = phases.take_due(
                    host.struct, host.listed, listed, end, host.due
                )
                senders, all_edges = self._sum_of(count, edges)
                if senders == 0:
                    return True
            pulls = self._pulls(limits, len(traces), all_edges)
            if pulls:
                self._exchange_outgoing(count)
                listed, active, _ = phases.pull(host.struct, host.listed, listed, host.sums)
            else:
                listed, active = self._apply(self._push(count, edges), listed)
            self._agree(active)
            scanned = self._stored if pulls else all_edges
            seconds = time.perf_counter() - began
            name = "pull" if pulls else "push"
            traces.append(IterationTrace(len(traces), name, senders, scanned, seconds))
            if self._is_finished():
                return True
        return False

    def _apply(self, touched: int, listed: int) -> tuple[int, int]:
        """Apply the messages of a push; return the numbers of listed and of active vertices."""
        phases, host = self._phases, self.host
        if self.plan.all_active:
            return listed, phases.apply_all(host.struct, self._number, host.sums)
        applied: tuple[int, int] = phases.apply_touched(
            host.struct, host.touched, touched, host.listed, listed, host.sums
        )
        return applied

    def _bucket_end(self, listed: int, end: float, width: float) -> float:
        """Return the priority below which vertices run now, the same on all ranks."""
        if "priority" not in self.plan.methods:
            return np.inf
        lowest = np.array([self._phases.lowest(self.host.struct, self.host.listed, listed)])
        self.communicator.reduce_to_all(lowest, "min")
        if lowest[0] < end:
            return end
        beyond = float(lowest[0] + width)
        return beyond if beyond > lowest[0] else np.inf  # the width is lost in rounding

    def _pulls(self, limits: Limits, iteration: int, edges: int) -> bool:
        if not self.plan.prepares or self.plan.all_active:
            return self.plan.prepares
        if limits.pulls:
            return bool(limits.pulls[min(iteration, len(limits.pulls) - 1)])
        return bool(edges * _PULL_SHARE > self._stored)

    def _exchange_outgoing(self, count: int) -> None:
        """Write the messages of own vertices, and send them to all ranks."""
        host, part = self.host, self.graph.partition
        self._phases.prepare(host.struct, host.due, count)
        outgoing = host.fields["outgoing"]
        mine = outgoing[: int(part.sizes[part.rank])]
        self.communicator.gather_to_all(mine, outgoing, part.sizes, part.first_column)

    def _push(self, count: int, edges: int) -> int:
        """Push from the vertices in `due`; return the number of own vertices with messages."""
        phases, host, part = self._phases, self.host, self.graph.partition
        combines, fields = not self.plan.receives_messages, host.fields
        host.make_room(min(edges, part.num_columns) if combines else edges)
        if self._number == _LAST_NUMBER:
            fields["mark"][:] = self._number = 0
        self._number += 1
        arrays, number, touched = host.struct, self._number, host.touched
        found, outbox = phases.push(arrays, host.due, count, number, combines, touched)
        if part.ranks == 1:
            return int(found)
        columns, noted = fields["outbox"][:outbox], fields["outbox_messages"][:outbox]
        numbers, messages, _ = mail(self.communicator, part, columns, noted)
        return int(phases.take_in(arrays, numbers, messages, number, touched, found))

    def _agree(self, active: int) -> None:
        """Sum the program's totals and active vertices over all ranks, if they are needed."""
        plan, fields = self.plan, self.host.fields
        if not (plan.totals or "finished" in plan.methods):
            return
        all_sums = np.append(self.host.sums[: len(plan.totals)], float(active))
        kinds = np.array([*plan.totals.values(), "plus"])
        for kind, operation in _REDUCTIONS.items():
            if (kinds == kind).any():
                shares = all_sums[kinds == kind]
                self.communicator.reduce_to_all(shares, operation)
                all_sums[kinds == kind] = shares
        fields["totals"][: len(plan.totals)] = all_sums[:-1]
        fields["loop"][NUM_ACTIVE] = int(all_sums[-1])

    def _is_finished(self) -> bool:
        if "finished" not in self.plan.methods:
            return False
        ends = np.array([int(self._phases.ends(self.host.struct))])
        self.communicator.reduce_to_all(ends, "max")
        return bool(ends[0])

    def _sum_of(self, *numbers: int) -> Any:
        all_numbers = np.array(numbers, np.int64)
        self.communicator.reduce_to_all(all_numbers, "sum")
        found = [int(number) for number in all_numbers]
        return found if len(found) > 1 else found[0]
