"""Shortest paths on an OpenCL device; loop.cl has the kernels.

If all work-groups of a grid make progress at the same time, one launch runs a whole search.
Otherwise the host launches the kernels of one step at a time and then reads the number of the next.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from enum import IntEnum
from functools import cached_property
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.sssp.result import MOST_RECORDS, Unfinished, Windows
from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.devices.opencl.built_programs import C_TYPES
from hetero_bfs.devices.opencl.device_run import PATIENCE, DeviceRun, Entries, Grid
from hetero_bfs.devices.opencl.opencl_device import VARIES, BoundKernel
from hetero_bfs.devices.opencl.verdicts import Family
from hetero_bfs.errors import DeviceError
from hetero_bfs.graph.weighted_lists import WeightedLists
from hetero_bfs.programs.built_in import PATHS, beyond_all
from hetero_bfs.programs.codegen.device_code import twins
from hetero_bfs.programs.device_forms import StreamedBuiltIn
from hetero_bfs.scheduling.algorithm_decision import (
    WINDOW_FUNCTIONS,
    WINDOW_KINDS,
    Leaving,
    WindowStrategy,
    plan_windows,
)
from hetero_bfs.scheduling.run_chooser import run_costs
from hetero_bfs.scheduling.speed_model import GraphSize

Word = IntEnum(
    "Word",
    "STEP COUNT STRATEGY START END QUEUE_SIDE ACTIVE_SIDE LISTED ROUND NUMBER WINDOW UNSETTLED "
    "EDGES LEFT VERTICES ROUNDS ROWS BEGAN STATUS SOURCE BEYOND LOST",
    start=0,
)
Step = IntEnum("Step", "DONE RELAX ACTIVE SELECT FIND PULL_LISTS", start=0)
Status = IntEnum("Status", "RUNNING ENDED OVERFLOWED MOVED FAILED", start=0)
StepCounter = IntEnum("StepCounter", "NEXT CHUNKS SCANNED LEFT_OVER FRESH OVERFLOW", start=0)
WindowCounter = IntEnum("WindowCounter", "KEPT LOWEST", start=0)
"""These numbers are explained in loop.cl."""

_CHUNK_EDGES = 1 << 10  # edges of a long neighbour list that a work-group takes at once
_PULL_EDGES = 1 << 6  # longer lists are pulled along by a work-group instead of a work-item
_WIDER = 16.0
"""Windows of full relaxation are wider than the host's by this factor.

Each step costs a barrier of the grid, so fewer steps pay.
"""

_RECORD_WIDTH = 6
_NUM_COUNTERS = 3 * (len(StepCounter) + len(WindowCounter))

ON_DEVICE = len(WindowStrategy)
"""Added to the strategy number of a record."""


class DeviceSearch(DeviceRun):
    """Searches on an OpenCL device that holds the adjacency.

    `leaving` decides when a search ends there and continues on the host.
    """

    need = "shortest paths need"
    files: Sequence[str] = (
        "devices/opencl/tiles.cl",
        "devices/opencl/grid.cl",
        "algorithms/sssp/kernels/phases.cl",
        "algorithms/sssp/kernels/loop.cl",
    )
    constants = (
        WindowStrategy, Word, Step, Status, StepCounter, WindowCounter,
        {"NOW_WORDS": len(Word), "RECORD_WIDTH": _RECORD_WIDTH},
        {"STEP_COUNTERS": len(StepCounter), "WINDOW_COUNTERS": len(WindowCounter)},
    )  # fmt: skip

    def __init__(self, lists: WeightedLists, info: DeviceInfo) -> None:
        if lists.weight_dtype == np.float64 and not info.has_double:
            raise DeviceError("it lacks doubles, which weights of float64 need")
        weights = lists.weight_dtype
        self.family = cast("Family", f"{weights} paths")
        self._bits: Any = np.dtype(f"i{weights.itemsize}")
        largest = np.inf if weights.kind == "f" else np.iinfo(weights).max
        self._infinite = int(np.array(largest, weights).view(self._bits))
        """The bits of the distance of a vertex that is not reached."""
        forward, backward = lists.forward, lists.backward
        ways = [forward] if backward is forward else [forward, backward]
        entries = [Entries(way.indptr, [way.neighbours, way.weights]) for way in ways]
        super().__init__(info, entries)
        self.lists = lists
        self.plan = plan_windows(lists.weight_dtype, *lists.sums)
        self._arrays = self._make_arrays()
        self._found = self.device.host_array(lists.num_vertices, self._bits)
        began = time.perf_counter()
        order = self.read_only.array(lists.backward_order)
        self._backward = [*self.buffers(-1), order]
        lists_and_order = [*self.buffers(0), *self._backward]
        self.device.finish()
        self.upload_seconds = time.perf_counter() - began
        self._arguments = [
            *lists_and_order, np.uint32(lists.num_vertices), *self._arrays.values(),
            np.uint32(MOST_RECORDS),
        ]  # fmt: skip
        size = GraphSize(0, lists.num_vertices, lists.num_stored_edges)
        costs = run_costs("shortest paths", info)
        self.leaving = Leaving(size, costs, info.may_run_in_one_launch)
        self._one_at_a_time = threading.Lock()  # parents may be requested during a search
        self._tree: BoundKernel
        self._search: BoundKernel | None = None
        self._search = self._find_one_launch()
        self._kernels = {} if self._search else self._bind_steps()

    @property
    def one_launch(self) -> bool:
        return self._search is not None

    def _make_arrays(self) -> dict[str, Any]:
        """Return the arrays of a search; they are the kernels' arguments after the adjacency."""
        n, bits, edges = self.lists.num_vertices, self._bits, self.lists.num_stored_edges
        chunks = edges // min(_PULL_EDGES, _CHUNK_EDGES // 2) + 1  # most pieces in one step
        arrays = self.make_arrays(
            {
                "distance": (n, bits),
                "relaxed": (n, bits),
                "position": (n, np.uint32),
                "queued": (n, np.int32),
                "listed": (n, np.int32),
                "queue": (2 * n, np.uint32),
                "active": (2 * n, np.uint32),
                "chunk_vertices": (chunks, np.uint32),
                "chunk_firsts": (chunks, np.uint64),
                "counters": (_NUM_COUNTERS, np.uint64),
                "now": (len(Word), np.int64),
                "records": (MOST_RECORDS * _RECORD_WIDTH, np.int64),
                "up": (n, np.uint32),
                "orphans": (1, np.uint32),
            },
            self.lists.backward_order,
        )
        self._up, self._orphans = arrays.pop("up"), arrays.pop("orphans")
        return arrays

    def _build(self, *, one_launch: bool) -> Any:
        name = C_TYPES[self.lists.weight_dtype]
        return self.build(
            twins(WINDOW_FUNCTIONS, **WINDOW_KINDS),
            CHUNK_EDGES=_CHUNK_EDGES,
            PULL_EDGES=_PULL_EDGES,
            DIRECTED=int(self.lists.graph.graph.directed),
            WEIGHT=name,
            ONE_LAUNCH=one_launch,
            IS_FLOAT=name == "float",
            IS_DOUBLE=name == "double",
            INFINITE=f"{self._infinite:#x}{'L' if name == 'double' else ''}",
        )

    def _find_one_launch(self) -> BoundKernel | None:
        """Return the kernel of whole searches, or None if the device cannot run it."""
        if not self.device.info.may_run_in_one_launch:
            return None  # a CPU device runs work-groups one after another
        self._grid = Grid(self.device, self.GROUPS_PER_UNIT)
        program = None
        with suppress(DeviceError):
            program = self._build(one_launch=True)
        if program is None:
            return None
        self._bind_tree(program)
        search = self.device.bind(
            program, "search", *self._arguments, *[VARIES] * 8, *self._grid.arguments,
            VARIES, VARIES,
        )  # fmt: skip

        def probe(groups: int, patience: np.uint32) -> bool:
            size, varying = groups * self.group, self._varying(0)
            search.launch(size, self.group, *varying, patience, np.uint32(1))
            return bool(self._read_now()[Word.STATUS] == Status.ENDED)

        groups = self._grid.largest(probe)
        self.groups = groups or self.groups
        return search if groups else None

    def _bind_steps(self) -> dict[Any, list[BoundKernel]]:
        """Return the kernels of each step, launched once, since some drivers compile only then."""
        program, arguments = self._build(one_launch=False), [*self._arguments, *[VARIES] * 8]
        self._bind_tree(program)
        names: dict[Any, tuple[str, ...]] = {
            "start": ("start",),
            Step.RELAX: ("relax", "relax_long"),
            Step.SELECT: ("take_window",),
            Step.FIND: ("find",),
            Step.PULL_LISTS: ("pull", "pull_long"),
            "next": ("next_step",),
        }
        kernels = {
            step: [self.device.bind(program, name, *arguments) for name in each]
            for step, each in names.items()
        }
        varying = self._varying(0)
        for kernel in (one for each in kernels.values() for one in each):
            self.device.fill(self._arrays["now"], 0)
            self.launch(kernel, 1, *varying)
        self.device.finish()
        return kernels | {Step.ACTIVE: kernels[Step.RELAX]}

    def _bind_tree(self, program: Any) -> None:
        self._tree = self.device.bind(
            program, "find_parents", np.uint32(self.lists.num_vertices), self._arrays["distance"],
            *self._backward, self._up, self._orphans,
        )  # fmt: skip

    def _varying(self, source: int, may_leave: bool = False) -> tuple[Any, ...]:
        """Return the last arguments of all kernels."""
        kind, plan = self.lists.weight_dtype.type, self.plan
        most = float(self._weight(self._infinite - 1))
        widths = plan.prefix_width, plan.full_width * (_WIDER if self.one_launch else 1.0)
        limits = (kind(min(width, most)) for width in widths)
        return np.uint32(source), np.int32(plan.strategy), *limits, *self.leaving.costs(may_leave)

    def run(self, source: int, may_leave: bool = False) -> Windows | Unfinished | None:
        """Search from `source` (a new id); None if a distance exceeds the weights' type."""
        with self._one_at_a_time:
            return self._run(source, may_leave)

    def parents(
        self, source: int, distance: npt.NDArray[Any], is_last: bool
    ) -> npt.NDArray[np.uint32]:
        """Return the parents of a search, as `tree_parents` does.

        `source` is a new id, and `distance` has shape (num_vertices,). If `is_last`, it was the
        last search, and its distances are still on the device.
        """
        from hetero_bfs.algorithms.sssp.kernels.tree import complete_tree

        parent, orphans = np.empty(distance.size, np.uint32), np.empty(1, np.uint32)
        with self._one_at_a_time:
            if not is_last:
                self.device.write(self._arrays["distance"], distance)
            self.device.fill(self._orphans, 0)
            self.launch(self._tree, parent.size)
            self.device.read(self._found_up, self._up)
            self.device.read(orphans, self._orphans)
            parent[:] = self._found_up
        complete_tree(self.lists, distance, source, parent, int(orphans[0]))
        return parent

    @cached_property
    def _found_up(self) -> npt.NDArray[np.uint32]:
        return self.device.host_array(self.lists.num_vertices, np.uint32)

    def _run(self, source: int, may_leave: bool) -> Windows | Unfinished | None:
        varying = self._varying(source, may_leave)
        began = time.perf_counter()
        now, seconds = self._run_one_launch(varying) if self._search else self._run_steps(varying)
        if now is None:  # the grid stalled
            self._search, self._kernels = None, self._bind_steps()
            return self._run(source, may_leave)
        if now[Word.STATUS] == Status.OVERFLOWED:
            return None
        self.device.read(self._found, self._arrays["distance"])
        ended = time.perf_counter()
        distance = self._found.view(self.lists.weight_dtype)
        records = self._read_records(int(now[Word.ROWS]), seconds, ended - began)
        *_, rounds, taken = records.T
        self.leaving.learn_device(rounds, taken)
        if now[Word.STATUS] == Status.MOVED:
            waiting = np.empty(int(now[Word.LISTED]), np.uint32)
            side = int(now[Word.ACTIVE_SIDE]) * distance.size
            self.device.read(waiting, self._arrays["active"], side * waiting.itemsize)
            start = self._weight(int(now[Word.START]))
            return Unfinished(distance, start, waiting, records, time.perf_counter() - ended)
        return Windows(distance, self._weight(self._infinite), records)

    def _run_one_launch(self, varying: tuple[Any, ...]) -> tuple[Any, list[float]]:
        assert self._search is not None
        self.launch_all(self._search, *varying, PATIENCE, np.uint32(0))
        now = self._read_now()
        return (None, []) if now[Word.STATUS] == Status.FAILED else (now, [])

    def _run_steps(self, varying: tuple[Any, ...]) -> tuple[Any, list[float]]:
        """Launch step by step; return the final state and the seconds of each record."""
        seconds: list[float] = []
        began = time.perf_counter()
        self.launch(self._kernels["start"][0], self.lists.num_vertices, *varying)
        while True:
            now = self._read_now()
            if now[Word.ROWS] > len(seconds):
                ended = time.perf_counter()
                seconds.append(ended - began)
                began = ended
            if now[Word.STATUS] != Status.RUNNING:
                return now, seconds
            first, *long = self._kernels[int(now[Word.STEP])]
            self.launch(first, int(now[Word.COUNT]), *varying)
            for kernel in long:
                self.launch_all(kernel, *varying)
            self._kernels["next"][0].launch(1, 1, *varying)

    def _read_now(self) -> npt.NDArray[np.int64]:
        return self.read(self._arrays["now"], len(Word), np.int64)

    def _read_records(
        self, rows: int, seconds: list[float], total: float
    ) -> npt.NDArray[np.float64]:
        """Return the records. Without times of device or host, all get equal shares of `total`."""
        words = np.empty((min(rows, MOST_RECORDS), _RECORD_WIDTH), np.int64)
        self.device.read(words, self._arrays["records"])
        records = words.astype(np.float64)
        starts = words[:, 0].astype(self._bits).view(self.lists.weight_dtype)
        records[:, 0] = starts
        records[:, 1] += ON_DEVICE
        records[:, 5] *= 1e-9
        if seconds:
            records[:, 5] = seconds[: len(records)]
        elif not records[:, 5].any():
            records[:, 5] = total / len(records)
        return records

    def _weight(self, bits: int) -> Any:
        return np.array([bits], self._bits).view(self.lists.weight_dtype)[0]


class StreamedPaths(StreamedBuiltIn):
    """Searches on a device that cannot hold the adjacency: a program streams it."""

    upload_seconds = 0.0

    def __init__(self, lists: WeightedLists, info: DeviceInfo) -> None:
        super().__init__(lists.graph, info)
        self._program = PATHS[lists.weight_dtype.name]()
        self._type = np.dtype(self._program.state["distance"])
        self._infinity = beyond_all(self._program)
        self._may_overflow = lists.weight_dtype == np.float32 and lists.may_overflow
        self.run(0)  # compiles the program

    def run(self, source: int) -> Windows | None:
        """Search from a vertex (a new id). The program chooses its own buckets, without a plan.

        None if a distance may exceed the weights' type.
        """
        parameters = {
            "source": int(self.graph.relabelling.old_of_new[source]),
            "unreached": self._infinity,
        }
        run = self.run_program(self._program, parameters, None)
        rows = []
        for name, vertices, edges, seconds in (record[:4] for record in run.records):
            strategy = WindowStrategy.PULL if "pull" in name else WindowStrategy.FULL
            rows.append((np.nan, ON_DEVICE + strategy, vertices, edges, 1, seconds))
        records = np.array(rows).reshape(-1, 6)
        distance = run.state["distance"][: self.graph.num_searched]
        if self._may_overflow and np.isinf(distance).any():
            return None
        return Windows(distance, self._type.type(self._infinity), records, run.streamed_bytes)
