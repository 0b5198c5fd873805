"""A vertex program on an OpenCL device: its arrays, its kernels, and the batches of launches."""

from __future__ import annotations

import time
from dataclasses import astuple
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from hetero_bfs.devices.opencl.bound_kernel import BoundKernel
from hetero_bfs.devices.opencl.device_info import DeviceInfo
from hetero_bfs.devices.opencl.device_lists import offset_dtype
from hetero_bfs.devices.opencl.driver import VARIES, kernel_source
from hetero_bfs.devices.opencl.header import header
from hetero_bfs.devices.opencl.room import check_room
from hetero_bfs.errors import GridStalledError
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.programs.codegen.device_code import device_text
from hetero_bfs.programs.device_state import DeviceState, state_sizes
from hetero_bfs.programs.lists import NEED, DeviceGraph, check_types
from hetero_bfs.programs.options import Limits
from hetero_bfs.programs.placed import WIDER_AFTER_PULL, PlacedGraph, Record, Run
from hetero_bfs.programs.plan import Plan
from hetero_bfs.scheduling.place_costs import NUM_COSTS, OPENCL, lone_costs
from hetero_bfs.scheduling.program_costs import ProgramCosts

_OF_GRAPH = ("names", "degree")
_PHASES = ("state", "monotone", "messages", "device", "loop")
_GROUP = 128  # work-items in a work-group
_GROUPS_PER_UNIT = 8
_HEAVY_EDGES = 1 << 12
_LONG_PULL_OF_GPU = 1 << 6
_PIECE_EDGES = 1 << 12  # edges of a piece of a long list in a pull; a work-group takes one piece
_MOST_RECORDS = 1 << 14
_RECORD_WIDTH = 4
_FIRST_BATCH, _MOST_BATCH = 8, 64  # iterations queued at a time
_COUNTERS, _LOWEST, _LOOP_WORDS = 12, 10, 16
_FIRST_COST = 2  # behind END and WIDTH in `limits`

_SCALARS = "programs/kernels/scalars.cl"
_COUNTING = "programs/kernels/counting.cl"
_ITERATION, _MODE, _CONVERGED, _LIMIT, _PLANNED, _RECEIVERS = 0, 2, 7, 8, 9, 10
_SENDS_ALL, _UNMET = 12, 15
PUSH, PULL = 1, 2  # modes of an iteration
_C_TYPES = {"int32": "int", "int64": "long", "float32": "float", "float64": "double"}


def num_planned(limits: Limits) -> int:
    """Return the number of iterations for which the records can hold a planned direction."""
    return min(len(limits.pulls), _MOST_RECORDS)


def long_pull(info: DeviceInfo) -> int:
    """Return beyond which number of entries a pull gives a list to work-groups of its own.

    A GPU's group with long lists works long after the others. A CPU's shares are even anyway.
    """
    return _HEAVY_EDGES if info.type == "CPU" else _LONG_PULL_OF_GPU


class DeviceProgram:
    """A program compiled for a device, with arrays for one graph, whose lists the device holds.

    Raises
    ------
    BudgetError
        The device cannot hold the lists.
    DeviceError
        The device lacks a type that the program needs, or memory; failures of its driver.
    """

    _kernels: ClassVar[list[str]] = [
        "devices/opencl/tiles.cl",
        *(f"programs/kernels/{name}.cl" for name in _PHASES),
    ]
    _options: ClassVar[list[str]] = []
    _keeps_order: ClassVar[bool] = True
    """Whether it uses a program's promise to be monotone."""

    def __init__(
        self, plan: Plan, lists: DeviceGraph, graph: PlacedGraph, costs: ProgramCosts
    ) -> None:
        self.plan, self.lists, self.device = plan, lists, lists.device
        self._monotone = plan.monotone and self._keeps_order
        self.graph, self._costs = graph, costs
        info = self.device.info
        check_types(plan, info)
        self.group = info.group_size(_GROUP)
        self.groups = _GROUPS_PER_UNIT * info.compute_units
        self._n = graph.num_vertices
        self._offset = offset_dtype(info, graph.num_stored_edges)
        shared, state = self._shared_sizes(), state_sizes(plan, self._n)
        records = _MOST_RECORDS * _RECORD_WIDTH, np.int64
        arrays = *shared.values(), *state.values(), records
        self._make_room([size * np.dtype(kind).itemsize for size, kind in arrays])
        buffer = self.device.buffer
        self.shared = {name: buffer(*size) for name, size in shared.items()}
        if self._in_order:
            self.shared["order"] = lists.array(graph.by_weight.backward_order)
        self._records = buffer(*records)
        of_vertices = {name: lists.array(getattr(graph, name)) for name in _OF_GRAPH}
        own = {key: of_vertices.get(key) or buffer(*size) for key, size in state.items()}
        self.state = DeviceState(plan, self.device, own)
        self._batch, self._most_batch = _FIRST_BATCH, _MOST_BATCH
        self.program = self._build(info)
        self._own: dict[str, BoundKernel] = {}
        self._bind(self.program)

    def _make_room(self, array_bytes: list[int]) -> None:
        """Check that arrays of these sizes and the lists fit in the memory; make the slots."""
        edges = self.graph.num_stored_edges
        of_edges = [size * edges for size in (*self._entry_bytes, *self._slot_bytes)]
        largest = max(*array_bytes, *of_edges)
        ways = len(self._ways())
        needed = sum(array_bytes) + sum(self._offset_bytes())
        needed += edges * (ways * sum(self._entry_bytes) + sum(self._slot_bytes))
        needed += self.graph.by_weight.backward_order.nbytes if self._in_order else 0
        check_room(self.device.info, NEED, largest, needed)
        self._make_slots(edges)

    def _ways(self) -> list[CSRGraph]:
        """Return the lists that pushes read, and those that pulls read if they differ."""
        forward, backward = self.graph.forward, self.graph.backward
        return [forward] if backward is forward else [forward, backward]

    def _offset_bytes(self) -> list[int]:
        """Return the bytes of `indptr`, for each way."""
        return [self._offset.itemsize * way.indptr.size for way in self._ways()]

    @property
    def _entry_bytes(self) -> list[int]:
        """Bytes of an entry of the lists: neighbour, and weight if there is one."""
        if not self.plan.uses_weights:
            return [4]
        return [4, np.dtype(self.plan.weight_type).itemsize]

    @property
    def _slot_bytes(self) -> list[int]:
        """Bytes of the slots of an entry, in which messages are counted: messages, and counts."""
        each = self._slots_each
        return [each * np.dtype(self.plan.stored_type).itemsize, each * 4]

    def _make_slots(self, entries: int) -> None:
        """Make the slots for so many entries of the lists, if the program counts messages."""
        size, kinds = self._slots_each * entries, (self.plan.stored_type, np.uint32)
        self._slots = [self.device.buffer(size, kind) for kind in kinds if self.plan.counts]

    def _shared_sizes(self) -> dict[str, tuple[int, npt.DTypeLike]]:
        """Return size and type of the arrays that state.cl lists."""
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
            "counters": (_COUNTERS, np.uint64),
            "sums": (self.groups * max(len(plan.totals), 1), np.float64),
            "loop": (_LOOP_WORDS, np.int64),
            "limits": (_FIRST_COST + NUM_COSTS, np.float32),
        }

    @property
    def _slots_each(self) -> int:
        """Slots in which messages are counted, for an entry of the lists."""
        from hetero_bfs.programs.kernels.counting import SLOTS

        return SLOTS if self.plan.counts else 0

    def _build(self, info: DeviceInfo) -> Any:
        weight = _C_TYPES[self.plan.weight_type or "int32"] if self.plan.uses_weights else "int"
        offset = "uint" if self._offset.itemsize == 4 else "ulong"
        text = device_text(self.plan, weight, offset, info.has_double)
        options = [*self._options, f"-DGROUP={self.group}", f"-DHEAVY_EDGES={_HEAVY_EDGES}"]
        options += [f"-DMONOTONE={int(self._monotone)}", f"-DWIDER={WIDER_AFTER_PULL}f"]
        options += [f"-DDIRECTED={int(self.graph.forward.directed)}"]
        options += [f"-DLONG_PULL={long_pull(info)}", f"-DPIECE_EDGES={_PIECE_EDGES}"]
        options += [f"-DSLOTS={self._slots_each}"] if self.plan.counts else []
        options += ["-DHAS_DOUBLE"] if info.has_double else []
        kernels = [*self._kernels, _COUNTING] if self.plan.counts else self._kernels
        return self.device.build(options, self._header() + text, kernels)

    def _header(self) -> str:
        """Return the header that precedes the program's own code."""
        return header(OPENCL) + kernel_source(_SCALARS)

    def _bind(self, program: Any) -> None:
        """Set the arguments of all kernels."""
        lists, rest = self.forward(), [*self.shared.values(), *self.state.buffers.values()]
        bind, records = self.device.bind, self._records
        self._begin = bind(program, "begin", *lists, *rest)
        self._bind_expand(program, rest)
        self._apply = bind(program, "apply_messages", *lists, *rest)
        self._advance = bind(
            program, "advance", VARIES, np.uint32(self.groups), records, np.uint32(_MOST_RECORDS),
            *lists, *rest,
        )  # fmt: skip

    def forward(self) -> list[Any]:
        """Return the arguments GRAPH in state.cl."""
        graph = self.graph
        sizes = np.uint32(graph.num_searched), np.uint32(graph.num_vertices)
        return [*self._lists(graph.forward), *sizes]

    @property
    def _in_order(self) -> bool:
        """Whether lists are read by rising weight."""
        return self._monotone and self.plan.uses_weights

    def _lists(self, way: CSRGraph) -> list[Any]:
        """Return the buffers of a direction's lists, by rising weight for a monotone program."""
        weighted = self.plan.uses_weights
        if self._in_order:
            is_forward = way is self.graph.forward
            by_weight = self.graph.by_weight
            return self.lists.by_weight(by_weight.forward if is_forward else by_weight.backward)
        return self.lists.with_weights(way, weighted)

    @property
    def _expand_names(self) -> tuple[str, str]:
        """Kernels that send the messages of short lists and of long ones."""
        return ("count", "count_long") if self.plan.counts else ("expand", "expand_long")

    def _bind_expand(self, program: Any, rest: list[Any]) -> None:
        """Set the arguments of the kernels that read the lists."""
        lists = [*self.forward(), *self._lists(self.graph.backward)]
        self._expand: list[BoundKernel] = [
            self.device.bind(program, name, *lists, *self._slots, *rest)
            for name in self._expand_names
        ]

    @property
    def current(self) -> DeviceProgram:
        """The program to run: this one, or its replacement."""
        return self

    def after_stall(self) -> None:
        """Do nothing: launches for each phase do not stall."""

    @property
    def bytes_sent(self) -> int:
        """Bytes of lists that were sent to the device, if it does not hold them."""
        return 0

    def run(self, plan: Plan, limits: Limits) -> Run:
        """Run with the parameters of `plan`, which has the types of this program's own.

        Iterations that are queued at once have equal shares of the seconds.
        """
        before = self.start(plan, limits)
        self.launch_start()
        done, converged, records = self.run_on(limits.max_iterations)
        self._batch = min(max(done, _FIRST_BATCH), self._most_batch)  # as many as this run took
        sent = self.bytes_sent - before
        state, totals = self.state.read_fields(self._n), self.state.read_totals()
        return Run(state, done, converged, totals, records, sent)

    def start(self, plan: Plan, limits: Limits) -> int:
        """Write the inputs of a run; return `bytes_sent`."""
        self.state.write_parameters(plan, self.graph)
        self._write_limits(limits)
        self._clocked = limits.clocked
        return self.bytes_sent

    def run_on(self, max_iterations: int, first: int = 0) -> tuple[int, bool, list[Record]]:
        """Run from iteration `first` on; return iterations of the run, `converged`, and records."""
        began = time.perf_counter()
        loop = np.zeros(_LOOP_WORDS, np.int64)
        seconds: list[float] = []
        batch, most = (1, 1) if self._clocked else (self._batch, self._most_batch)
        done = first
        while True:
            for _ in range(min(batch, max(max_iterations - done, 1))):
                self._launch_iteration()
            self.device.read(loop, self.shared["loop"])
            done = int(loop[_ITERATION])
            ended = time.perf_counter()
            more = done - first - len(seconds)
            seconds += [(ended - began) / max(more, 1)] * more
            began = ended
            if loop[_CONVERGED] < 0:
                raise GridStalledError(f"{self.lists.device_name} did not run its work-groups")
            if not loop[_MODE]:
                return done, bool(loop[_CONVERGED]), self._read_records(first, seconds)
            batch = min(2 * batch, most)

    def launch_start(self) -> None:
        """Queue the kernels that make the initial states."""
        self._begin.launch(self.groups * self.group, self.group)
        self._advance.launch(self.group, self.group, np.int32(1))

    def launch_own(self, name: str) -> None:
        """Queue a kernel that takes the arguments of `begin`, for a run that migrates."""
        if name not in self._own:
            arguments = [*self.forward(), *self.shared.values(), *self.state.buffers.values()]
            self._own[name] = self.device.bind(self.program, name, *arguments)
        self._own[name].launch(self.groups * self.group, self.group)

    def launch_entry(self) -> None:
        """Queue the decision for an iteration whose active vertices are already listed."""
        self._advance.launch(self.group, self.group, np.int32(1))

    def _launch_iteration(self) -> None:
        """Queue an iteration, which does nothing after the end of the run."""
        for kernel in (*self._expand, self._apply):
            kernel.launch(self.groups * self.group, self.group)
        self._advance.launch(self.group, self.group, np.int32(0))

    def _write_limits(self, limits: Limits) -> None:
        """Write the limits, and what iterations count."""
        device, graph = self.device, self.graph
        counters = np.zeros(_COUNTERS, np.uint64)
        counters[_LOWEST] = 0x7FFFFFFF
        device.write(self.shared["counters"], counters)
        loop = np.zeros(_LOOP_WORDS, np.int64)
        planned = num_planned(limits)
        loop[_LIMIT], loop[_PLANNED] = limits.max_iterations, planned
        loop[_RECEIVERS], loop[_UNMET] = graph.num_searched, graph.num_stored_edges
        width = limits.bucket_width
        if self._monotone:
            loop[_SENDS_ALL], width, _ = graph.monotone_widths(width)
            if planned and limits.pulls[0]:
                loop[_SENDS_ALL], width = 1, limits.bucket_width
        device.write(self.shared["loop"], loop)
        if planned:
            records = np.zeros((planned, _RECORD_WIDTH), np.int64)
            records[:, 0] = np.where(limits.pulls[:planned], PULL, PUSH)
            device.write(self._records, records)
        end = -np.inf if "priority" in self.plan.methods else np.inf
        with np.errstate(over="ignore"):
            numbers = np.array([end, width, *lone_costs(astuple(self._costs))])
            device.write(self.shared["limits"], numbers.astype(np.float32))

    def _read_records(self, first: int, seconds: list[float]) -> list[Record]:
        count = min(first + len(seconds), _MOST_RECORDS) - first
        rows = np.empty((max(count, 0), _RECORD_WIDTH), np.int64)
        if rows.size:
            self.device.read(rows, self._records, first * rows.itemsize * _RECORD_WIDTH)
        return [
            ("device pull" if mode == PULL else "device push", vertices, edges, seconds[i])
            for i, (mode, vertices, edges, _) in enumerate(rows.tolist())
        ]
