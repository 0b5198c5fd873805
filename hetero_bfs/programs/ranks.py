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
from hetero_bfs.graph.edge_source import NO_VERTEX
from hetero_bfs.programs.codegen.host_code import host_module
from hetero_bfs.programs.options import Limits
from hetero_bfs.programs.plan import Plan
from hetero_bfs.programs.program import Along
from hetero_bfs.programs.renumbered import join_lists
from hetero_bfs.ranks.communicator import Communicator, Operation
from hetero_bfs.ranks.exchange import mail
from hetero_bfs.ranks.partition import RankGraph, gathered
from hetero_bfs.scheduling.trace import IterationTrace
from hetero_bfs.support.memory import aligned_empty
from hetero_bfs.support.parallel import Struct

_PULL_SHARE = 8
"""An iteration pulls if the active vertices have more than 1 / 8 of all edges. A pull reads all
neighbour lists, but writes in order and sends each vertex's message once."""

_LAST_NUMBER = 2**31 - 1

_REDUCTIONS: dict[str, Operation] = {"plus": "sum", "minimum": "min", "maximum": "max"}
"""Operations between ranks, by those of totals."""


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


class RankProgram:
    """A program compiled for a rank, with arrays for its part of the graph.

    `plan` must not count equal messages.
    """

    def __init__(self, communicator: Communicator, graph: RankGraph, plan: Plan) -> None:
        self.plan, self._graph, self._communicator = plan, graph, communicator
        self._phases: Any = host_module(plan, "rank_phases")
        self.names = _own_names(graph)
        self._fields = self._make_fields()
        self._arrays = Struct("RankProgram", self._fields)
        searched = max(graph.num_searched, 1)
        self._listed, self._due, self._touched = (np.empty(searched, np.uint32) for _ in range(3))
        self._sums = np.zeros(max(len(plan.totals), 1))
        self._number = 0
        self._stored = self._sum_of(graph.graph.num_stored_edges)
        for first in (True, False):  # one rank of each host compiles, others then load its cache
            if (communicator.host_rank == 0) == first:
                self._compile()
            communicator.barrier()

    def _compile(self) -> None:
        import numba

        from hetero_bfs.ranks import owner_kernels

        phases, arrays, vertices, sums = self._phases, self._arrays, self._listed, self._sums
        outbox, messages = self._fields["outbox"], self._fields["outbox_messages"]
        owners = self._graph.partition.owner_of_line
        counts = np.zeros(self._communicator.size, np.int64)
        plan, number, count = self.plan, 1, 0
        calls: list[tuple[Any, tuple[Any, ...]]] = [
            (phases.begin, (arrays, vertices, sums)),
            (phases.ends, (arrays,)),
            (owner_kernels.count_by_owner, (outbox, owners, counts)),
            (
                owner_kernels.sort_by_owner,
                (outbox, messages, owners, counts, counts, outbox, messages),
            ),
        ]
        if plan.prepares:
            calls.append((phases.prepare, (arrays, vertices, count)))
            calls.append((phases.pull, (arrays, vertices, count, sums)))
        if not (plan.all_active and plan.prepares):
            calls.append((phases.push, (arrays, vertices, count, number, True, vertices)))
            calls.append((phases.take_in, (arrays, outbox, messages, number, vertices, count)))
        if plan.all_active:
            calls.append((phases.apply_all, (arrays, number, sums)))
        else:
            calls.append((phases.lowest, (arrays, vertices, count)))
            calls.append((phases.take_due, (arrays, vertices, count, 0.0, vertices)))
            calls.append((phases.apply_touched, (arrays, vertices, count, vertices, count, sums)))
        for phase, arguments in calls:
            phase.compile(tuple(numba.typeof(argument) for argument in arguments))

    def _make_fields(self) -> dict[str, Any]:
        plan, graph = self.plan, self._graph
        own, searched, columns = self.names.size, graph.num_searched, graph.partition.num_columns
        stored, parameters = np.dtype(plan.stored_type), plan.parameters
        degree = np.zeros(own, np.uint32)
        degree[:searched] = graph.degree
        weights = graph.graph.weights
        used = plan.uses_weights and weights is not None and weights.size
        fields: dict[str, Any] = {
            "own": own,
            "searched": searched,
            "num_vertices": graph.num_vertices,
            "indptr": graph.graph.indptr,
            "neighbours": graph.graph.indices,
            "backward_indptr": graph.graph.transpose.indptr,
            "backward_neighbours": graph.graph.transpose.indices,
            "weights": weights if used else np.zeros(1, plan.weight_type or np.int32),
            "names": self.names,
            "degree": degree,
            "combined": aligned_empty(max(columns, 1), stored),
            "mark": np.zeros(max(columns, 1), np.int32),
            "outgoing": aligned_empty(max(columns, 1) if plan.prepares else 1, stored),
            "waiting": np.zeros(max(searched, 1), np.uint8),
            "outbox": np.empty(0, np.uint32),
            "outbox_messages": np.empty(0, stored),
            "totals": np.zeros(max(len(plan.totals), 1)),
            "loop": np.zeros(16, np.int64),
            "integers": np.zeros(len(parameters.integers) + 1, np.int64),
            "fractions": np.zeros(len(parameters.fractions) + 1),
        }
        fields |= {f"state_{name}": aligned_empty(own, kind) for name, kind in plan.fields.items()}
        for name, array in parameters.arrays.items():
            fields[f"parameter_{name}"] = np.empty((own, *array.shape[1:]), array.dtype)
        return fields

    def run(self, plan: Plan, limits: Limits) -> RankProgramResult:
        from hetero_bfs.graph.kernels.old_ids import by_old_ids

        self._write(plan)
        self._communicator.barrier()
        began = time.perf_counter()
        traces: list[IterationTrace] = []
        run = self._run_all_active if plan.all_active else self._run_active
        converged = run(limits, traces)
        seconds = np.array([time.perf_counter() - began])
        self._communicator.reduce_to_all(seconds, "max")
        fields, count = self._fields, len(traces)
        places = self.names // self._communicator.size  # in the order of the own old ids
        state = {
            name: by_old_ids(fields[f"state_{name}"], places, places.size) for name in plan.fields
        }
        totals = dict(zip(plan.totals, fields["totals"].tolist(), strict=False))
        return RankProgramResult(
            self._communicator, state, self._graph.num_vertices, float(seconds[0]), count,
            converged, totals, traces,
        )  # fmt: skip

    def _write(self, plan: Plan) -> None:
        fields, parameters = self._fields, plan.parameters
        fields["integers"][: len(parameters.integers)] = list(parameters.integers.values())
        fields["fractions"][: len(parameters.fractions)] = list(parameters.fractions.values())
        for name, array in parameters.arrays.items():
            fields[f"parameter_{name}"][:] = array[self.names]

    def _run_all_active(self, limits: Limits, traces: list[IterationTrace]) -> bool:
        """Run iterations in which all vertices send; return whether the program ended the run."""
        phases, arrays, plan = self._phases, self._arrays, self.plan
        _, active = phases.begin(arrays, self._listed, self._sums)
        self._agree(active)
        searched = self._graph.num_searched
        self._due[:searched] = np.arange(searched)
        edges = self._graph.graph.num_stored_edges
        while len(traces) < limits.max_iterations:
            began = time.perf_counter()
            self._set_iteration(len(traces))
            if plan.prepares:
                self._exchange_outgoing(searched)
                _, active, _ = phases.pull(arrays, self._listed, 0, self._sums)
            else:
                self._push(searched, edges)
                active = phases.apply_all(arrays, self._number, self._sums)
            self._agree(active)
            seconds = time.perf_counter() - began
            name = "pull" if plan.prepares else "push"
            traces.append(
                IterationTrace(len(traces), name, self._graph.num_vertices, self._stored, seconds)
            )
            if self._is_finished():
                return True
        return False

    def _run_active(self, limits: Limits, traces: list[IterationTrace]) -> bool:
        """Run iterations until no vertex is active; return whether the run converged."""
        phases, arrays = self._phases, self._arrays
        listed, active = phases.begin(arrays, self._listed, self._sums)
        self._agree(active)
        end = -np.inf
        while len(traces) < limits.max_iterations:
            began = time.perf_counter()
            self._set_iteration(len(traces))
            end = self._bucket_end(listed, end, limits.bucket_width)
            count, edges, listed = phases.take_due(arrays, self._listed, listed, end, self._due)
            senders, all_edges = self._sum_of(count, edges)
            if senders == 0:
                return True
            pulls = self._pulls(limits, len(traces), all_edges)
            if pulls:
                self._exchange_outgoing(count)
                listed, active, _ = phases.pull(arrays, self._listed, listed, self._sums)
            else:
                touched = self._push(count, edges)
                listed, active = phases.apply_touched(
                    arrays, self._touched, touched, self._listed, listed, self._sums
                )
            self._agree(active)
            scanned = self._stored if pulls else all_edges
            seconds = time.perf_counter() - began
            name = "pull" if pulls else "push"
            traces.append(IterationTrace(len(traces), name, senders, scanned, seconds))
            if self._is_finished():
                return True
        return False

    def _set_iteration(self, iteration: int) -> None:
        from hetero_bfs.programs.kernels.loop import ITERATION

        self._fields["loop"][ITERATION] = iteration

    def _bucket_end(self, listed: int, end: float, width: float) -> float:
        """Return the priority below which vertices run now, the same on all ranks."""
        if "priority" not in self.plan.methods:
            return np.inf
        lowest = np.array([self._phases.lowest(self._arrays, self._listed, listed)])
        self._communicator.reduce_to_all(lowest, "min")
        if lowest[0] < end:
            return end
        beyond = float(lowest[0] + width)
        return beyond if beyond > lowest[0] else np.inf  # the width is lost in rounding

    def _pulls(self, limits: Limits, iteration: int, edges: int) -> bool:
        if not self.plan.prepares:
            return False
        if limits.pulls:
            return bool(limits.pulls[min(iteration, len(limits.pulls) - 1)])
        return bool(edges * _PULL_SHARE > self._stored)

    def _exchange_outgoing(self, count: int) -> None:
        """Write the messages of own vertices, and send them to all ranks."""
        self._phases.prepare(self._arrays, self._due, count)
        part, outgoing = self._graph.partition, self._fields["outgoing"]
        mine = outgoing[: int(part.sizes[part.rank])]
        self._communicator.gather_to_all(mine, outgoing, part.sizes, part.first_column)

    def _push(self, count: int, edges: int) -> int:
        """Push from the vertices in `_due`; return the number of own vertices with messages."""
        phases, fields, part = self._phases, self._fields, self._graph.partition
        combines = not self.plan.receives_messages
        room = min(edges, part.num_columns) if combines else edges
        if fields["outbox"].size < room:
            for name in ("outbox", "outbox_messages"):
                fields[name] = np.empty(room, fields[name].dtype)
            self._arrays = Struct("RankProgram", fields)
        if self._number == _LAST_NUMBER:
            fields["mark"][:] = self._number = 0
        self._number += 1
        arrays, number, touched = self._arrays, self._number, self._touched
        found, outbox = phases.push(arrays, self._due, count, number, combines, touched)
        if part.ranks == 1:
            return int(found)
        columns, noted = fields["outbox"][:outbox], fields["outbox_messages"][:outbox]
        numbers, messages, _ = mail(self._communicator, part, columns, noted)
        return int(phases.take_in(arrays, numbers, messages, number, touched, found))

    def _agree(self, active: int) -> None:
        """Sum the program's totals and active vertices over all ranks, if they are needed."""
        from hetero_bfs.programs.kernels.loop import NUM_ACTIVE

        plan, fields = self.plan, self._fields
        if not (plan.totals or "finished" in plan.methods):
            return
        all_sums = np.append(self._sums[: len(plan.totals)], float(active))
        kinds = np.array([*plan.totals.values(), "plus"])
        for kind, operation in _REDUCTIONS.items():
            if (kinds == kind).any():
                shares = all_sums[kinds == kind]
                self._communicator.reduce_to_all(shares, operation)
                all_sums[kinds == kind] = shares
        fields["totals"][: len(plan.totals)] = all_sums[:-1]
        fields["loop"][NUM_ACTIVE] = int(all_sums[-1])

    def _is_finished(self) -> bool:
        if "finished" not in self.plan.methods:
            return False
        ends = np.array([int(self._phases.ends(self._arrays))])
        self._communicator.reduce_to_all(ends, "max")
        return bool(ends[0])

    def _sum_of(self, *numbers: int) -> Any:
        all_numbers = np.array(numbers, np.int64)
        self._communicator.reduce_to_all(all_numbers, "sum")
        found = [int(number) for number in all_numbers]
        return found if len(found) > 1 else found[0]


def _own_names(graph: RankGraph) -> npt.NDArray[np.uint32]:
    """Return the old ids of a rank's vertices: vertices with edges, then isolated ones."""
    part, numbers = graph.partition, graph.relabelling
    alone = np.flatnonzero(numbers.new_of_old == NO_VERTEX) * part.ranks + part.rank
    searched = numbers.old_of_new[: graph.num_searched]
    return np.concatenate([searched, alone.astype(np.uint32)])
