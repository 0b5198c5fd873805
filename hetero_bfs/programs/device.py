"""A vertex program on an OpenCL device: its arrays, its kernels, and batches of launches."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import astuple
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.devices.opencl.device_run import DeviceRun, Entries
from hetero_bfs.devices.opencl.opencl_device import VARIES, BoundKernel, OpenCLDevice, kernel_source
from hetero_bfs.errors import DeviceError, GridStalledError
from hetero_bfs.programs import schema
from hetero_bfs.programs.codegen.device_code import device_text, lengths, state_arrays, twins
from hetero_bfs.programs.options import Limits
from hetero_bfs.programs.plan import Plan
from hetero_bfs.programs.renumbered import WIDER_AFTER_PULL, PlacedGraph, Record, Run, weights_of
from hetero_bfs.programs.schema import RECORD_WIDTH, Counter, Limit, Mode, Word
from hetero_bfs.scheduling.program_decision import NUM_COSTS, lone_costs
from hetero_bfs.scheduling.speed_model import ProgramCosts

_PHASES = ("state", "monotone", "messages", "device", "loop")
_OF_GRAPH = ("names", "degree")
_LEAST_VERTEX_BYTES = 40  # per vertex, a lower bound for all programs
_HEAVY_EDGES = 1 << 12
_LONG_PULL_OF_GPU = 1 << 6
_PIECE_EDGES = 1 << 12  # a pull cuts long lists into pieces; a work-group takes one piece
_MOST_RECORDS = 1 << 14
_FIRST_BATCH, _MOST_BATCH = 8, 64  # iterations queued at a time

_BYTES = {"uchar": 1, "int": 4, "uint": 4, "float": 4}
"""Bytes per item of an OpenCL C type; all other types have 8."""


def num_planned(limits: Limits) -> int:
    """Return the number of iterations whose planned direction fits into the records."""
    return min(len(limits.pulls), _MOST_RECORDS)


def long_pull(info: DeviceInfo) -> int:
    """Return the list length beyond which a pull gives a list to work-groups of its own.

    On a GPU, a group with long lists finishes long after the others. A CPU balances them anyway.
    """
    return _HEAVY_EDGES if info.type == "CPU" else _LONG_PULL_OF_GPU


def open_device(num_vertices: int, info: DeviceInfo) -> OpenCLDevice:
    """Open a device for programs.

    Raises `BudgetError` if the device cannot hold arrays with an entry for each vertex.
    """
    info.check_room(DeviceProgram.need, 8 * num_vertices, _LEAST_VERTEX_BYTES * num_vertices)
    return OpenCLDevice(info, DeviceProgram.family)


class DeviceProgram(DeviceRun):
    """A program compiled for a device that holds the graph's CSR arrays.

    Raises `BudgetError` if the device cannot hold them. Raises `DeviceError` if it lacks memory or
    a type that the program needs, or if its driver fails.
    """

    family = "vertex programs"
    need = "programs need"
    files: Sequence[str] = (
        "devices/opencl/tiles.cl",
        *(f"programs/kernels/{name}.cl" for name in _PHASES),
    )
    constants = schema.OPENCL
    keeps_order: ClassVar = True
    """Whether a monotone program reads neighbour lists by rising weight."""

    def __init__(
        self, plan: Plan, device: OpenCLDevice, graph: PlacedGraph, costs: ProgramCosts
    ) -> None:
        self.plan, self.graph, self._costs = plan, graph, costs
        self._monotone = plan.monotone and self.keeps_order
        self._in_order = self._monotone and plan.uses_weights
        """Whether neighbour lists are sorted by rising weight."""
        if plan.counts:
            self.slots = [(schema.SLOTS, plan.stored_type), (schema.SLOTS, np.uint32)]
        _check_types(plan, device.info)
        super().__init__(device, self._entries())
        self._n = n = graph.num_vertices
        shared, state = self._shared_sizes(), _state_sizes(plan, n, graph.num_stored_edges)
        read_only = {name: getattr(graph, name) for name in _OF_GRAPH}
        if self._in_order:
            read_only["order"] = graph.by_weight.backward_order
        sizes = {"records": (_MOST_RECORDS * RECORD_WIDTH, np.int64)} | shared | state
        written = {name: size for name, size in sizes.items() if name not in read_only}
        arrays = self.make_arrays(written, *read_only.values())
        arrays |= {name: self.read_only.array(array) for name, array in read_only.items()}
        self._records = arrays["records"]
        self.shared = {name: arrays[name] for name in shared}
        self.state = {name: arrays[name] for name in state}
        self.total_type = np.float64 if device.info.has_double else np.float32
        self._nothing = device.buffer(1, np.int64)
        self._batch, self._most_batch = _FIRST_BATCH, _MOST_BATCH
        self._program = self._build()
        self.begin = self._bind_own("begin")
        self._bind()

    def _entries(self) -> list[Entries]:
        """Return the CSR arrays of each direction, by rising weight for a monotone program."""
        graph, weighted = self.graph, self.plan.uses_weights
        if self._in_order:
            lists = graph.by_weight
            by_weight = [lists.forward]
            if lists.backward is not lists.forward:
                by_weight.append(lists.backward)
            return [Entries(way.indptr, [way.neighbours, way.weights]) for way in by_weight]
        ways = [graph.forward]
        if graph.backward is not graph.forward:
            ways.append(graph.backward)
        if self.plan.all_active and not self.plan.sends_back:  # it never pushes
            ways = ways[-1:]
        return [
            Entries(way.indptr, [way.indices, *([weights_of(way, True)] if weighted else [])])
            for way in ways
        ]

    def _shared_sizes(self) -> dict[str, tuple[int, npt.DTypeLike]]:
        """Return size and type of the arrays that state.cl declares."""
        plan, n, stored = self.plan, self._n, np.dtype(self.plan.stored_type)
        pieces = self.graph.num_stored_edges // _PIECE_EDGES + 1
        return {
            "combined": (n, stored),
            "outgoing": (n if plan.prepares else 1, stored),
            "active_in": (n, np.int32),
            "touched": (n, np.int32),
            "waiting": (n, np.uint8),
            "next": (2 * n, np.uint32),
            "far": (2 * n if "priority" in plan.methods else 1, np.uint32),
            "touched_items": (n, np.uint32),
            "heavy": (n + max(n if self._monotone else 0, pieces), np.uint32),
            "changed": (n, np.uint8),
            "position": (n if self._monotone else 1, np.uint32),
            "begun": (n if self._monotone else 1, np.uint8),
            "order": (1, np.uint32),
            "counters": (len(Counter), np.uint64),
            "sums": (self.groups * max(len(plan.totals), 1), np.float64),
            "loop": (len(Word), np.int64),
            "limits": (Limit.FIRST_COST + NUM_COSTS, np.float32),
        }

    def _build(self) -> Any:
        from hetero_bfs.scheduling.program_decision import FUNCTIONS, KINDS

        info = self.device.info
        decision = twins(FUNCTIONS, **KINDS)
        own = device_text(self.plan, info.has_double)
        return self.build(
            kernel_source("programs/kernels/scalars.cl") + decision + own,
            HEAVY_EDGES=_HEAVY_EDGES,
            MONOTONE=int(self._monotone),
            WIDER=f"{WIDER_AFTER_PULL}f",
            DIRECTED=int(self.graph.forward.directed),
            LONG_PULL=long_pull(info),
            PIECE_EDGES=_PIECE_EDGES,
            HAS_DOUBLE=info.has_double,
        )

    def _bind(self) -> None:
        self._bind_expand()
        self._apply = self._bind_own("apply_messages")
        self._advance = self._bind_own(
            "advance", VARIES, np.uint32(self.groups), self._records, np.uint32(_MOST_RECORDS)
        )

    def _bind_own(self, name: str, *first: Any) -> BoundKernel:
        """Bind a kernel whose last arguments are COMMON of state.cl."""
        return self.device.bind(self._program, name, *first, *self.forward(), *self.arrays())

    def forward(self) -> list[Any]:
        """Return the arguments of COMMON in state.cl that come before ARRAYS."""
        return [*self._lists(0), *self.sizes()]

    def sizes(self) -> list[Any]:
        """Return the last of these arguments: numbers of searched and of all vertices."""
        return [np.uint32(self.graph.num_searched), np.uint32(self.graph.num_vertices)]

    def arrays(self) -> list[Any]:
        return [*self.shared.values(), *self.state.values()]

    def _lists(self, way: int) -> list[Any]:
        """Return the three CSR buffers of a direction; a dummy stands for missing weights."""
        return [*self.buffers(way), self._nothing][:3]

    @property
    def _expand_names(self) -> tuple[str, str]:
        """Kernels that send messages along short and along long neighbour lists."""
        return ("count", "count_long") if self.plan.counts else ("expand", "expand_long")

    def _bind_expand(self) -> None:
        lists = [*self.make_slots(), *self._lists(-1)]
        self._expand = [self._bind_own(name, *lists) for name in self._expand_names]

    @property
    def bytes_sent(self) -> int:
        """Total bytes of streamed CSR arrays sent so far; 0 if the device holds them."""
        return 0

    def run(self, plan: Plan, limits: Limits) -> Run:
        """Run with the parameters of `plan`, which has the same types as `self.plan`.

        The seconds of a batch are divided equally among its iterations.
        """
        before = self.start(plan, limits)
        self.launch_start()
        done, converged, records = self.run_on(limits.max_iterations)
        self._batch = min(max(done, _FIRST_BATCH), self._most_batch)  # a guess for the next run
        sent = self.bytes_sent - before
        edges = self._read_fields("backward_edge", plan.written_edges, self.graph.num_stored_edges)
        return Run(
            self.read_states(), done, converged, self.read_totals(), records, sent, edges=edges
        )

    def start(self, plan: Plan, limits: Limits) -> int:
        self._write_parameters(plan)
        self._write_limits(limits)
        self._clocked = limits.clocked
        return self.bytes_sent

    def run_on(self, max_iterations: int, first: int = 0) -> tuple[int, bool, list[Record]]:
        """Run from iteration `first`; return total iterations, `converged`, and records."""
        began = time.perf_counter()
        loop = np.zeros(len(Word), np.int64)
        seconds: list[float] = []
        batch, most = (1, 1) if self._clocked else (self._batch, self._most_batch)
        done = first
        while True:
            for _ in range(min(batch, max(max_iterations - done, 1))):
                self._launch_iteration()
            self.device.read(loop, self.shared["loop"])
            done = int(loop[Word.ITERATION])
            ended = time.perf_counter()
            more = done - first - len(seconds)
            seconds += [(ended - began) / max(more, 1)] * more
            began = ended
            if loop[Word.CONVERGED] < 0:
                raise GridStalledError(f"{self.device_name} did not run its work-groups")
            if not loop[Word.MODE]:
                return done, bool(loop[Word.CONVERGED]), self._read_records(first, seconds)
            batch = min(2 * batch, most)

    def launch_start(self) -> None:
        """Queue the kernels that make the initial states."""
        self.launch_all(self.begin)
        self.launch_entry()

    @cached_property
    def enter(self) -> BoundKernel:
        """The kernel that follows `DeviceStay.enter`."""
        return self._bind_own("enter")

    def launch_entry(self) -> None:
        """Queue the decision for the first iteration, whose active vertices are listed."""
        self.launch(self._advance, 1, np.int32(1))

    def _launch_iteration(self) -> None:
        """Queue an iteration, which does nothing after the end of the run."""
        for kernel in (*self._expand, self._apply):
            self.launch_all(kernel)
        self.launch(self._advance, 1, np.int32(0))

    def _write_limits(self, limits: Limits) -> None:
        device, graph = self.device, self.graph
        counters = np.zeros(len(Counter), np.uint64)
        counters[Counter.LOWEST] = 0x7FFFFFFF
        device.write(self.shared["counters"], counters)
        loop = np.zeros(len(Word), np.int64)
        planned = num_planned(limits)
        loop[Word.LIMIT], loop[Word.PLANNED] = limits.max_iterations, planned
        loop[Word.RECEIVERS], loop[Word.UNMET] = graph.num_searched, graph.num_stored_edges
        width = limits.bucket_width
        if self._monotone:
            loop[Word.SENDS_ALL], width, _ = graph.monotone_widths(width)
            if planned and limits.pulls[0]:
                loop[Word.SENDS_ALL], width = 1, limits.bucket_width
        device.write(self.shared["loop"], loop)
        if planned:
            records = np.zeros((planned, RECORD_WIDTH), np.int64)
            records[:, 0] = np.where(limits.pulls[:planned], Mode.PULL, Mode.PUSH)
            device.write(self._records, records)
        end = -np.inf if "priority" in self.plan.methods else np.inf
        self.write_bucket(end, width, lone_costs(astuple(self._costs)))

    def write_bucket(self, end: float, width: float, costs: npt.NDArray[np.float64]) -> None:
        with np.errstate(over="ignore"):
            numbers = np.array([end, width, *costs]).astype(np.float32)
        self.device.write(self.shared["limits"], numbers)

    def _write_parameters(self, plan: Plan) -> None:
        device, graph, parameters = self.device, self.graph, plan.parameters
        integers = [graph.num_vertices, *parameters.integers.values()]
        device.write(self.state["integers"], np.array(integers, np.int64))
        if parameters.fractions:
            fractions = np.array(list(parameters.fractions.values()), np.float64)
            device.write(self.state["fractions"], fractions)
        for name, array in parameters.arrays.items():
            placed = np.ascontiguousarray(array[graph.names])
            if placed.size:
                device.write(self.state[f"parameter_{name}"], placed.view(np.uint8))
        for name, array in parameters.edges.items():
            for lists in plan.edge_lists if array.size else ():
                placed = array[graph.entries[lists]]
                device.write(self.state[f"{lists}edge_{name}"], placed.view(np.uint8))

    def read_states(self) -> dict[str, npt.NDArray[Any]]:
        return self._read_fields("state", self.plan.kinds, self._n)

    def _read_fields(
        self, array: str, kinds: Mapping[str, str], size: int
    ) -> dict[str, npt.NDArray[Any]]:
        fields = {name: np.empty(size, kind) for name, kind in kinds.items()}
        for name, values in fields.items() if size else ():
            self.device.read(values.view(np.uint8), self.state[f"{array}_{name}"])
        return fields

    def read_totals(self) -> dict[str, float]:
        names = self.plan.totals
        if not names:
            return {}
        totals = self.read(self.state["totals"], len(names), self.total_type)
        return dict(zip(names, totals.tolist(), strict=True))

    def _read_records(self, first: int, seconds: list[float]) -> list[Record]:
        count = min(first + len(seconds), _MOST_RECORDS) - first
        rows = np.empty((max(count, 0), RECORD_WIDTH), np.int64)
        if rows.size:
            self.device.read(rows, self._records, first * rows.itemsize * RECORD_WIDTH)
        return [
            ("device pull" if mode == Mode.PULL else "device push", vertices, edges, seconds[i])
            for i, (mode, vertices, edges, _) in enumerate(rows.tolist())
        ]


def _state_sizes(
    plan: Plan, num_vertices: int, num_entries: int
) -> dict[str, tuple[int, npt.DTypeLike]]:
    """Return bytes and type of each array, in the order of the kernels' arguments."""
    parameters, long = plan.parameters, lengths(plan)
    items = {
        "integers": 1 + len(parameters.integers),
        "fractions": len(parameters.fractions),
        "totals": max(len(plan.totals), 1),
    }
    for name in plan.edge_kinds:
        items |= {f"{lists}edge_{name}": num_entries for lists in plan.edge_lists}
    return {
        name: (_BYTES.get(kind, 8) * items.get(name, num_vertices * long.get(name, 1)), np.uint8)
        for name, kind, _ in state_arrays(plan)
    }


def _check_types(plan: Plan, info: DeviceInfo) -> None:
    """Raise `DeviceError` if the device lacks a type that the program needs."""
    kinds = {*plan.fields.values(), *plan.messages.values(), *plan.edge_kinds.values()}
    doubles = "float64" in kinds | {plan.weight_type} or plan.parameters.fractions or plan.totals
    if doubles and not info.has_double:
        raise DeviceError(f"{plan.name} needs float64, which {info.name} lacks")
