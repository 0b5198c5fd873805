"""A vertex program on the host's cores: arrays, compiled code, threads, and runs in sweeps."""

from __future__ import annotations

import time
from dataclasses import astuple
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.devices.cpu.host_run import HostRun
from hetero_bfs.devices.cpu.thread_pool import BLOCK, most_blocks
from hetero_bfs.programs.codegen.host_code import host_module
from hetero_bfs.programs.kernels import loop, monotone_loop, sweep_loop
from hetero_bfs.programs.options import Limits
from hetero_bfs.programs.plan import Plan
from hetero_bfs.programs.renumbered import ArrangedGraph, PlacedGraph, Record, Run, weights_of
from hetero_bfs.programs.schema import SLOTS, TOTALS
from hetero_bfs.scheduling.program_decision import lone_costs
from hetero_bfs.scheduling.speed_model import ProgramCosts
from hetero_bfs.support.memory import aligned_empty
from hetero_bfs.support.parallel import Head

_POOL_EDGES = 1 << 14
"""Below this number of stored edges no iteration is worth waking another thread."""

_MOST_RECORDS = 1 << 14

_FIRST_PORTION = 16
"""Iterations of the first call to compiled code. Between calls Python handles signals such as
Ctrl-C. The next call runs twice as many iterations if this one took less than _PORTION_SECONDS,
else half as many."""

_PORTION_SECONDS = 0.1


class HostProgram(HostRun):
    """A program compiled for the host, with arrays for one graph.

    `threads` includes the calling thread. `costs` are first guesses, by which iterations choose
    their direction.
    """

    _name = "Program"
    _file = "host"

    def __init__(self, plan: Plan, graph: PlacedGraph, threads: int, costs: ProgramCosts) -> None:
        super().__init__(threads if graph.num_stored_edges >= _POOL_EDGES else 1)
        self.plan, self.graph, self._costs = plan, graph, costs
        self.records = np.zeros((_MOST_RECORDS, loop.RECORD_WIDTH))
        self._planned = 0
        self.prepare()

    def _make_fields(self) -> dict[str, Any]:
        common = self._common_fields()
        self._num_common = len(common)
        return common | self._own_fields()

    def _common_fields(self) -> dict[str, Any]:
        """Return the fields that all programs share; loop.py declares them."""
        plan, graph, threads = self.plan, self.graph, self.threads
        n, searched = graph.num_vertices, graph.num_searched
        blocks = most_blocks(searched, threads)
        chunks = max(-(-n // loop.SUM_CHUNK), blocks)
        return {
            "threads": threads,
            "searched": searched,
            "num_vertices": n,
            "num_edges": graph.num_stored_edges,
            "num_totals": len(plan.totals),
            "all_active": int(plan.all_active),
            "has_identity": int(plan.identity is not None),
            "has_priority": int("priority" in plan.methods),
            "collects": int(bool(plan.collects)),
            "prepares": int(plan.prepares),
            "applies_in_pulls": int(plan.applies_in_pulls),
            "applies_in_pushes": int(plan.applies_in_pulls and plan.identity is None),
            "active": tuple(aligned_empty(-(-max(n, 1) // 64), np.uint64) for _ in range(2)),
            "next": tuple(aligned_empty(blocks * BLOCK, np.uint32) for _ in range(2)),
            "activated": np.zeros((threads, 8), np.int64),
            "touched": np.zeros(searched, np.int32),
            "sums": np.zeros((chunks, max(len(plan.totals), 1))),
            "totals": np.zeros(max(len(plan.totals), 1)),
            "total_kinds": np.array([[*TOTALS].index(one) for one in plan.totals.values()], int),
            "loop": np.zeros(16, np.int64),
            "limits": np.zeros(8),
            "lowest": np.zeros((threads, 8)),
            "costs": lone_costs(astuple(self._costs)),
            "work": np.zeros(loop.NUM_TASKS, np.int64),
            "next_blocks": np.zeros((2, blocks), np.int32),
            "far_blocks": np.zeros((2, blocks), np.int32),
            "touched_blocks": np.zeros((2, blocks), np.int32),
            "owners": np.zeros((3, blocks), np.int32),
            "cursor": np.zeros((threads, 8), np.int64),
            "counters": np.zeros((3, 8), np.int64),
            "place": np.zeros(threads, np.int64),
        }

    def _own_fields(self) -> dict[str, Any]:
        """Return the other fields; host.py declares them."""
        plan, graph = self.plan, self.graph
        n, searched = graph.num_vertices, graph.num_searched
        items = most_blocks(searched, self.threads) * BLOCK
        stored = np.dtype(plan.stored_type)
        combined = aligned_empty(n, stored)
        combined[:] = plan.identity or 0
        fields = self._program_fields() | {
            "first": graph.first,
            "combined": combined,
            "bits": combined.view(f"i{stored.itemsize}") if stored.kind == "f" else combined,
            "outgoing": aligned_empty(n if plan.prepares else 1, stored),
            "waiting": aligned_empty(searched, np.int8),
            "position": aligned_empty(searched if plan.monotone else 1, np.uint32),
            "due": aligned_empty(searched if plan.monotone else 1, np.float64),
            "changed": np.zeros(n, np.uint8),
            "is_directed": int(graph.forward.directed),
            "backward_order": np.zeros(1, np.uint32),
            "far": tuple(
                aligned_empty(items if "priority" in plan.methods else 1, np.uint32)
                for _ in range(2)
            ),
            "touched_items": aligned_empty(items, np.uint32),
        }
        if plan.counts:
            slots = self.threads, SLOTS * int(graph.backward.degree().max(initial=1))
            fields |= {"slot_messages": np.empty(slots, stored)}
            fields |= {"slot_counts": np.empty(slots, np.uint32)}
        if plan.monotone and plan.uses_weights:
            lists = graph.by_weight
            _, fields["neighbours"], fields["weights"] = lists.forward
            _, fields["backward_neighbours"], fields["backward_weights"] = lists.backward
            fields["backward_order"] = lists.backward_order
        return fields

    def _program_fields(self) -> dict[str, Any]:
        """Return the CSR arrays, the program's state, and the parameters."""
        plan, graph, n = self.plan, self.graph, self.graph.num_vertices
        uses_weights = plan.uses_weights
        fields: dict[str, Any] = {
            "indptr": graph.forward.indptr,
            "neighbours": graph.forward.indices,
            "weights": weights_of(graph.forward, uses_weights),
            "backward_indptr": graph.backward.indptr,
            "backward_neighbours": graph.backward.indices,
            "backward_weights": weights_of(graph.backward, uses_weights),
            "names": graph.names,
            "degree": graph.degree,
            **plan.parameters.fields(n),
        }
        for kept in ("state", "new") if plan.collects else ("state",):
            fields |= {f"{kept}_{f}": aligned_empty(n, kind) for f, kind in plan.kinds.items()}
        for name, kind in plan.edge_kinds.items():
            for lists in plan.edge_lists:
                fields[f"{lists}edge_{name}"] = aligned_empty(graph.num_stored_edges, kind)
        return fields

    @cached_property
    def _kernels(self) -> Any:
        return host_module(self.plan, self._file)

    def _sees_all(self, phase: Any) -> bool:
        """Phases of loop.py see the loop's arrays, so they are compiled once for all programs."""
        return bool(phase.py_func.__module__ != loop.__name__)

    def _visible(self, struct: Any) -> Any:
        return Head(self._name, struct, self._num_common)

    def _arguments(self, max_iterations: int) -> tuple[Any, ...]:
        return self.control, self.shared, self._planned, max_iterations, self.records

    def _loops(self) -> list[tuple[Any, tuple[Any, ...]]]:
        return [(self._loop, self._arguments(0))]

    @property
    def _loop(self) -> Any:
        return monotone_loop.run if self.plan.monotone else loop.run

    def run(self, plan: Plan, limits: Limits) -> Run:
        """Run with the parameters of `plan`, which has the same types as `self.plan`."""
        self.start(plan, limits)
        iterations, converged, records = self.run_on(limits.max_iterations)
        choosing = self.records[:iterations, loop.CHOOSING].sum() if limits.clocked else 0.0
        return Run(
            self.read_states(), iterations, converged, self.read_totals(), records,
            choosing_seconds=float(choosing),
            edges={name: self.fields[f"backward_edge_{name}"] for name in plan.written_edges},
        )  # fmt: skip

    def start(self, plan: Plan, limits: Limits) -> None:
        self.fields["loop"][:] = 0
        self.fields["loop"][loop.CLOCKED] = limits.clocked
        plan.parameters.write(self.fields, self.graph.names)
        for name, array in plan.parameters.edges.items():
            for lists in plan.edge_lists:
                self.fields[f"{lists}edge_{name}"][:] = array[self.graph.entries[lists]]
        self._set_width(limits.bucket_width)
        pulls = limits.pulls[:_MOST_RECORDS]
        self.records[: len(pulls), 0] = pulls
        self._planned = len(pulls)

    def run_on(self, max_iterations: int, first: int = 0) -> tuple[int, bool, list[Record]]:
        """Run from iteration `first`; return total iterations, `converged`, and records."""
        done, portion = first, max_iterations if self.plan.monotone else _FIRST_PORTION
        while True:
            end = min(done + portion, max_iterations)
            began = time.perf_counter()
            done, converged = self._loop(*self._arguments(end))
            if converged or done < end or end == max_iterations:  # done < end: it will migrate
                return done, converged, self._records(done, first)
            self.fields["loop"][loop.RESUMES] = True
            is_quick = time.perf_counter() - began < _PORTION_SECONDS
            portion = 2 * portion if is_quick else max(portion // 2, 1)

    def read_states(self) -> dict[str, npt.NDArray[Any]]:
        """Return the vertices' states; the next run overwrites them."""
        return {name: self.fields[f"state_{name}"] for name in self.plan.kinds}

    def read_totals(self) -> dict[str, float]:
        return dict(zip(self.plan.totals, self.fields["totals"].tolist(), strict=False))

    def _set_width(self, width: float) -> None:
        limits = self.fields["limits"]
        limits[loop.WIDTH] = width
        if self.plan.monotone:
            limits[[monotone_loop.SENDS_ALL, loop.WIDTH, monotone_loop.FULL_WIDTH]] = (
                self.graph.monotone_widths(width)
            )

    def _records(self, iterations: int, first: int) -> list[Record]:
        rows: npt.NDArray[np.float64] = self.records[first:iterations, :4]
        return [
            ("pull" if pulls else "push", int(vertices), int(edges), seconds)
            for pulls, vertices, edges, seconds in rows.tolist()
        ]


class HostSweeps(HostProgram):
    """A `HostProgram` for an arranged graph, with the kernels of sweep_loop.py and sweep.py."""

    graph: ArrangedGraph
    _file = "sweep"

    def _common_fields(self) -> dict[str, Any]:
        n, totals = self.graph.num_vertices, max(len(self.plan.totals), 1)
        self._words = aligned_empty(-(-n // 8), np.uint64)
        return {
            "threads": self.threads,
            "num_vertices": n,
            "num_totals": len(self.plan.totals),
            "all_active": int(self.plan.all_active),
            "parts": self.graph.parts,
            "dirty": self._words.view(np.uint8),
            "sums": np.zeros((-(-n // sweep_loop.CHUNK), totals)),
            "totals": np.zeros(totals),
            "next_totals": np.zeros(totals),
            "loop": np.zeros(16, np.int64),
            "work": np.zeros(sweep_loop.NUM_TASKS, np.int64),
        }

    def _own_fields(self) -> dict[str, Any]:
        n, stored = self.graph.num_vertices, self.plan.stored_type
        return self._program_fields() | {
            "words": self._words,
            "combined": aligned_empty(n, stored),
            "outgoing": aligned_empty(n if self.plan.prepares else 1, stored),
            "sent": aligned_empty(n, np.uint8),
            "gathered": aligned_empty(n, np.int32),
        }

    def start(self, plan: Plan, limits: Limits) -> None:
        super().start(plan, limits)
        shared = (limits.num_classes or 1 + len(self.graph.parts)) - 1
        self.fields["loop"][sweep_loop.SHARED] = shared

    @property
    def _loop(self) -> Any:
        return sweep_loop.run_sweeps

    def _set_width(self, width: float) -> None:
        """Do nothing: sweeps have no buckets."""

    def _arguments(self, max_iterations: int) -> tuple[Any, ...]:
        return self.control, self.shared, max_iterations, self.records

    def _records(self, iterations: int, first: int) -> list[Record]:
        return [
            (self.graph.mode, int(vertices), int(edges), seconds)
            for vertices, edges, seconds, *_ in self.records[first:iterations].tolist()
        ]
