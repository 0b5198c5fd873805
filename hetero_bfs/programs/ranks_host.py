"""A rank's arrays for a vertex program, and the program's compiled phases for one thread."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.devices.cpu.host_run import HostRun
from hetero_bfs.graph.edge_source import NO_VERTEX
from hetero_bfs.programs.codegen.host_code import host_module
from hetero_bfs.programs.plan import Plan
from hetero_bfs.programs.renumbered import weights_of
from hetero_bfs.ranks.exchange import mail_loops
from hetero_bfs.ranks.partition import RankGraph
from hetero_bfs.support.memory import aligned_empty
from hetero_bfs.support.parallel import Struct


class RankProgramHost(HostRun):
    """A program compiled for a rank, with arrays for its part of the graph.

    `plan` must not count equal messages.
    """

    _name = "RankProgram"

    def __init__(self, plan: Plan, graph: RankGraph) -> None:
        super().__init__(1)
        self.plan, self._graph = plan, graph
        self.names = _own_names(graph)
        searched = max(graph.num_searched, 1)
        self.listed, self.due, self.touched = (np.empty(searched, np.uint32) for _ in range(3))
        self.sums = np.zeros(max(len(plan.totals), 1))

    @cached_property
    def _kernels(self) -> Any:
        return host_module(self.plan, "rank_phases")

    def _phases(self) -> dict[int, Any]:
        return {}

    def _loops(self) -> list[tuple[Any, tuple[Any, ...]]]:
        phases, arrays, vertices, sums = self._kernels, self.struct, self.listed, self.sums
        outbox, messages = self.fields["outbox"], self.fields["outbox_messages"]
        plan, number, count = self.plan, 1, 0
        loops: list[tuple[Any, tuple[Any, ...]]] = [
            (phases.begin, (arrays, vertices, sums)),
            (phases.ends, (arrays,)),
            *mail_loops(self._graph.partition, outbox, messages),
        ]
        if plan.prepares:
            loops.append((phases.prepare, (arrays, vertices, count)))
            loops.append((phases.pull, (arrays, vertices, count, sums)))
        if not (plan.all_active and plan.prepares):
            loops.append((phases.push, (arrays, vertices, count, number, True, vertices)))
            loops.append((phases.take_in, (arrays, outbox, messages, number, vertices, count)))
        if plan.all_active:
            loops.append((phases.apply_all, (arrays, number, sums)))
        else:
            loops.append((phases.lowest, (arrays, vertices, count)))
            loops.append((phases.take_due, (arrays, vertices, count, 0.0, vertices)))
            loops.append((phases.apply_touched, (arrays, vertices, count, vertices, count, sums)))
        return loops

    def _make_fields(self) -> dict[str, Any]:
        plan, graph = self.plan, self._graph
        own, searched, columns = self.names.size, graph.num_searched, graph.partition.num_columns
        stored = np.dtype(plan.stored_type)
        degree = np.zeros(own, np.uint32)
        degree[:searched] = graph.degree
        fields: dict[str, Any] = {
            "own": own,
            "searched": searched,
            "num_vertices": graph.num_vertices,
            "indptr": graph.graph.indptr,
            "neighbours": graph.graph.indices,
            "backward_indptr": graph.graph.transpose.indptr,
            "backward_neighbours": graph.graph.transpose.indices,
            "weights": weights_of(graph.graph, plan.uses_weights),
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
            **plan.parameters.fields(own),
        }
        fields |= {f"state_{name}": aligned_empty(own, kind) for name, kind in plan.fields.items()}
        return fields

    def make_room(self, messages: int) -> None:
        """Let the outbox hold this number of messages."""
        fields = self.fields
        if fields["outbox"].size < messages:
            for name in ("outbox", "outbox_messages"):
                fields[name] = np.empty(messages, fields[name].dtype)
            self.struct = Struct(self._name, fields)


def _own_names(graph: RankGraph) -> npt.NDArray[np.uint32]:
    """Return the old ids of a rank's vertices: vertices with edges, then isolated ones."""
    part, numbers = graph.partition, graph.relabelling
    alone = np.flatnonzero(numbers.new_of_old == NO_VERTEX) * part.ranks + part.rank
    searched = numbers.old_of_new[: graph.num_searched]
    return np.concatenate([searched, alone.astype(np.uint32)])
