"""A vertex program on an OpenCL device: its arrays, its kernels, and the batches of launches."""

from __future__ import annotations

import time
from dataclasses import astuple
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from hetero_bfs.devices.opencl.driver import (
    VARIES,
    BoundKernel,
    DeviceInfo,
    OpenCLDevice,
    kernel_source,
)
from hetero_bfs.errors import DeviceError
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.programs.device_code import device_text, state_arrays
from hetero_bfs.programs.placed import PlacedGraph, Run, weights_of
from hetero_bfs.programs.run_options import Limits
from hetero_bfs.programs.typed_program import Plan
from hetero_bfs.selection.program_costs import ProgramCosts
from hetero_bfs.support.memory import format_bytes

_GROUP = 128  # work-items in a work-group
_GROUPS_PER_UNIT = 8
_HEAVY_EDGES = 1 << 12
_MOST_RECORDS = 1 << 14
_RECORD_WIDTH = 4
_FIRST_BATCH, _MOST_BATCH = 8, 64  # iterations that are queued at once
_COUNTERS, _LOWEST, _LOOP_WORDS = 9, 8, 12

_SCALARS = "programs/kernels/scalars.cl"
_COUNTING = "programs/kernels/counting.cl"
_ITERATION, _MODE, _CONVERGED, _LIMIT, _DIRECTION, _RECEIVERS = 0, 2, 7, 8, 9, 10
_PULL = 2
_C_TYPES = {"int32": "int", "int64": "long", "float32": "float", "float64": "double"}


class DeviceGraph:
    """Graphs' lists on a device, which several programs share.

    Raises
    ------
    DeviceError
        The device cannot hold them.
    """

    def __init__(self, graph: PlacedGraph, info: DeviceInfo) -> None:
        self.device = OpenCLDevice(info)
        self.check_sizes(graph)
        self._kept: list[Any] = []  # a device may use them in place
        self._uploaded: dict[Any, Any] = {}

    def check_sizes(self, graph: PlacedGraph, *further: int) -> None:
        """Raise `DeviceError` if the device cannot hold a graph's arrays.

        `further` are bytes for an entry of the lists, of arrays beside the lists.
        """
        info, edges, n = self.device.info, graph.num_stored_edges, graph.num_vertices
        of_edges = (4, *further)
        largest, needed = max(max(of_edges) * edges, 8 * n), sum(of_edges) * edges + 40 * n
        if largest > info.max_alloc_bytes or needed > info.memory_bytes:
            raise DeviceError(
                f"programs need {format_bytes(needed)} on {info.name}, up to "
                f"{format_bytes(largest)} in one piece; {format_bytes(info.memory_bytes)} may be "
                f"used, in pieces of {format_bytes(info.max_alloc_bytes)}"
            )

    @property
    def device_name(self) -> str:
        """Name of the device."""
        return self.device.info.name

    def lists(self, lists: CSRGraph, weighted: bool) -> list[Any]:
        """Return the buffers of `indptr`, neighbours and weights of lists that are kept."""
        offsets = np.uint32 if is_narrow(lists) else np.uint64
        return [
            self._buffer((lists, "indptr"), lambda: lists.indptr.astype(offsets)),
            self._buffer((lists, "neighbours"), lambda: lists.indices),
            self._buffer((lists, "weights", weighted), lambda: weights_of(lists, weighted)),
        ]

    def of_vertices(self, graph: PlacedGraph, name: str) -> Any:
        """Return the buffer of "names" or "degree"."""
        return self._buffer((graph, name), lambda: getattr(graph, name))

    def _buffer(self, key: Any, make: Any) -> Any:
        if key not in self._uploaded:
            self._kept.append(
                np.require(make(), requirements=["C", "W"])
            )  # OpenCL wants writable ones
            self._uploaded[key] = self.device.upload(self._kept[-1])
        return self._uploaded[key]


def is_narrow(lists: CSRGraph) -> bool:
    """Tell whether offsets into lists fit into 32 bits."""
    return lists.num_stored_edges < 2**32


class DeviceProgram:
    """A program compiled for a device, with arrays for one graph.

    Raises
    ------
    DeviceError
        The device lacks a type that the program needs, or memory; failures of its driver.
    """

    _kernels: ClassVar[list[str]] = [
        "devices/opencl/tiles.cl",
        *(f"programs/kernels/{name}.cl" for name in ("state", "messages", "device", "loop")),
    ]

    def __init__(
        self, plan: Plan, lists: DeviceGraph, graph: PlacedGraph, costs: ProgramCosts
    ) -> None:
        self.plan, self.lists, self.device = plan, lists, lists.device
        self.graph, self._costs = graph, costs
        info = self.device.info
        self._check_types(info)
        stored, each = np.dtype(plan.stored_type), self._slots_each
        lists.check_sizes(graph, each * stored.itemsize, each * 4)
        slots = each * graph.num_stored_edges
        buffer = self.device.buffer
        self._slots = [buffer(slots, kind) for kind in (stored, np.uint32)] if plan.counts else []
        self._groups = _GROUPS_PER_UNIT * info.compute_units
        self._n = graph.num_vertices
        self._shared = self._make_shared()
        self._records = self.device.buffer(_MOST_RECORDS * _RECORD_WIDTH, np.int64)
        self._state = self._make_state()
        self._batch, self._most_batch = _FIRST_BATCH, _MOST_BATCH
        self._bind(self._build(info))

    def _make_shared(self) -> dict[str, Any]:
        """Return the buffers that state.cl lists."""
        plan, n, buffer = self.plan, self._n, self.device.buffer
        stored = np.dtype(plan.stored_type)
        far = 2 * n if "priority" in plan.methods else 1
        return {
            "combined": buffer(n, stored),
            "outgoing": buffer(n if plan.prepares else 1, stored),
            "active_in": buffer(n, np.int32),
            "touched": buffer(n, np.int32),
            "waiting": buffer(n, np.uint8),
            "next": buffer(2 * n, np.uint32),
            "far": buffer(far, np.uint32),
            "touched_items": buffer(n, np.uint32),
            "heavy": buffer(n, np.uint32),
            "counters": buffer(_COUNTERS, np.uint64),
            "sums": buffer(self._groups * max(len(plan.totals), 1), np.float64),
            "loop": buffer(_LOOP_WORDS, np.int64),
            "limits": buffer(8, np.float32),
        }

    def _check_types(self, info: DeviceInfo) -> None:
        plan = self.plan
        kinds = {*plan.fields.values(), plan.stored_type, plan.weight_type}
        doubles = "float64" in kinds or plan.parameters.fractions or plan.totals
        if doubles and not info.has_double:
            raise DeviceError(f"{plan.name} needs float64, which {info.name} lacks")

    @property
    def _slots_each(self) -> int:
        """Slots in which messages are counted, for an entry of the lists."""
        from hetero_bfs.programs.kernels.counting import SLOTS

        return SLOTS if self.plan.counts else 0

    def _make_state(self) -> dict[str, Any]:
        state, parameters = {}, self.plan.parameters
        sizes = {"integers": 1 + len(parameters.integers), "fractions": len(parameters.fractions),
                 "totals": max(len(self.plan.totals), 1)}  # fmt: skip
        for name, kind, _ in state_arrays(self.plan):
            if name in ("names", "degree"):
                state[name] = self.lists.of_vertices(self.graph, name)
                continue
            bytes_each = {"uchar": 1, "int": 4, "uint": 4, "float": 4}.get(kind, 8)
            state[name] = self.device.buffer(bytes_each * sizes.get(name, self._n), np.uint8)
        return state

    def _build(self, info: DeviceInfo) -> Any:
        weight = _C_TYPES[self.plan.weight_type or "int32"] if self.plan.uses_weights else "int"
        offset = "uint" if is_narrow(self.graph.forward) else "ulong"
        text = device_text(self.plan, weight, offset, info.has_double)
        options = [f"-DGROUP={_GROUP}", f"-DHEAVY_EDGES={_HEAVY_EDGES}"]
        options += [f"-DSLOTS={self._slots_each}"] if self.plan.counts else []
        options += ["-DHAS_DOUBLE"] if info.has_double else []
        kernels = [*self._kernels, _COUNTING] if self.plan.counts else self._kernels
        return self.device.build(options, kernel_source(_SCALARS) + text, kernels)

    def _bind(self, program: Any) -> None:
        """Set the arguments of all kernels."""
        weighted, graph = self.plan.uses_weights, self.graph
        sizes = np.uint32(graph.num_searched), np.uint32(graph.num_vertices)
        lists = [*self.lists.lists(graph.forward, weighted), *sizes]
        backward = self.lists.lists(graph.backward, weighted)
        rest = [*self._shared.values(), *self._state.values()]
        bind, records = self.device.bind, self._records
        self._begin = bind(program, "begin", *lists, *rest)
        names = ("count", "count_long") if self.plan.counts else ("expand", "expand_long")
        self._expand: list[BoundKernel] = [
            bind(program, name, *lists, *backward, *self._slots, *rest) for name in names
        ]
        self._apply = bind(program, "apply_messages", *lists, *rest)
        self._advance = bind(
            program, "advance", VARIES, np.uint32(self._groups), records, np.uint32(_MOST_RECORDS),
            *lists, *rest,
        )  # fmt: skip

    def run(self, plan: Plan, limits: Limits) -> Run:
        """Run with the parameters of `plan`, which has the types of this program's own."""
        self._write(plan)
        self._write_limits(limits)
        began = time.perf_counter()
        loop = np.zeros(_LOOP_WORDS, np.int64)
        self._launch_start()
        seconds: list[float] = []
        while True:
            for _ in range(self._batch):
                self._launch_iteration()
            self.device.read(loop, self._shared["loop"])
            done = int(loop[_ITERATION])
            ended = time.perf_counter()
            share = (ended - began) / max(done - len(seconds), 1)
            seconds += [share] * (done - len(seconds))
            began = ended
            if not loop[_MODE]:
                break
            self._batch = min(2 * self._batch, self._most_batch)
        self._batch = min(max(done, _FIRST_BATCH), self._most_batch)  # as many as this run took
        return Run(
            self._read_state(), done, bool(loop[_CONVERGED]), self._read_totals(),
            self._read_records(seconds),
        )  # fmt: skip

    def _launch_start(self) -> None:
        """Queue what makes the initial states."""
        self._begin.launch(self._groups * _GROUP, _GROUP)
        self._advance.launch(_GROUP, _GROUP, np.int32(1))

    def _launch_iteration(self) -> None:
        """Queue an iteration, which does nothing after the end of the run."""
        for kernel in (*self._expand, self._apply):
            kernel.launch(self._groups * _GROUP, _GROUP)
        self._advance.launch(_GROUP, _GROUP, np.int32(0))

    def _write_limits(self, limits: Limits) -> None:
        """Write the limits, and what iterations count."""
        device, graph = self.device, self.graph
        counters = np.zeros(_COUNTERS, np.uint64)
        counters[_LOWEST] = 0x7FFFFFFF
        device.write(self._shared["counters"], counters)
        loop = np.zeros(_LOOP_WORDS, np.int64)
        loop[_LIMIT], loop[_DIRECTION] = limits.max_iterations, limits.direction
        loop[_RECEIVERS] = graph.num_searched
        device.write(self._shared["loop"], loop)
        end = -np.inf if "priority" in self.plan.methods else np.inf
        with np.errstate(over="ignore"):
            numbers = np.zeros(8, np.float32)
            numbers[:5] = end, limits.bucket_width, *astuple(self._costs)
        device.write(self._shared["limits"], numbers)

    def _write(self, plan: Plan) -> None:
        """Write the parameters."""
        device, graph, parameters = self.device, self.graph, plan.parameters
        integers = [graph.num_vertices, *parameters.integers.values()]
        device.write(self._state["integers"], np.array(integers, np.int64))
        if parameters.fractions:
            fractions = np.array(list(parameters.fractions.values()), np.float64)
            device.write(self._state["fractions"], fractions)
        for name, array in parameters.arrays.items():
            placed = np.ascontiguousarray(array[graph.names])
            if placed.size:
                device.write(self._state[f"parameter_{name}"], placed.view(np.uint8))

    def _read_state(self) -> dict[str, npt.NDArray[Any]]:
        state = {}
        for name, kind in self.plan.fields.items():
            array = np.empty(self._n, kind)
            if self._n:
                self.device.read(array.view(np.uint8), self._state[f"state_{name}"])
            state[name] = array
        return state

    def _read_totals(self) -> dict[str, float]:
        if not self.plan.totals:
            return {}
        kind = np.float64 if self.device.info.has_double else np.float32
        totals = np.empty(len(self.plan.totals), kind)
        self.device.read(totals, self._state["totals"])
        return dict(zip(self.plan.totals, totals.tolist(), strict=True))

    def _read_records(self, seconds: list[float]) -> list[tuple[str, int, int, float]]:
        count = min(len(seconds), _MOST_RECORDS)
        rows = np.empty((count, _RECORD_WIDTH), np.int64)
        if count:
            self.device.read(rows, self._records)
        return [
            ("device pull" if mode == _PULL else "device push", vertices, edges, seconds[i])
            for i, (mode, vertices, edges, _) in enumerate(rows.tolist())
        ]
