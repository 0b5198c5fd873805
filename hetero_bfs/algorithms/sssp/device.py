"""Shortest paths on an OpenCL device; loop.cl has the kernels.

If all work-groups of a grid make progress at the same time, one launch runs a whole search.
Otherwise the host launches the kernels of each step and reads the next step.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hetero_bfs.devices.opencl.bound_kernel import BoundKernel
from hetero_bfs.devices.opencl.device_info import DeviceInfo
from hetero_bfs.devices.opencl.device_lists import DeviceLists, offset_dtype
from hetero_bfs.devices.opencl.driver import VARIES, OpenCLDevice
from hetero_bfs.devices.opencl.grid import PATIENCE, Grid
from hetero_bfs.devices.opencl.header import SHARED, header
from hetero_bfs.devices.opencl.room import check_room
from hetero_bfs.devices.opencl.verdicts import Family, check_verdict
from hetero_bfs.errors import DeviceError
from hetero_bfs.graph.weighted_lists import (
    FULL,
    PREFIX,
    PULL_ONCE,
    Plan,
    WeightedLists,
    Windows,
)

_GROUP = 128  # work-items in a work-group
_GROUPS_PER_UNIT = 8
_CHUNK_EDGES = 1 << 10  # edges of a work-group's piece of a long list
_PULL_EDGES = 1 << 6  # length from which a work-group, not a work-item, pulls along a list
_WIDER = (
    16.0  # factor of windows of whole lists over the host's: a step costs a barrier of the grid
)
_MOST_RECORDS = 1 << 14
_FILES = (
    "devices/opencl/tiles.cl",
    "devices/opencl/grid.cl",
    "algorithms/sssp/kernels/search_state.cl",
    "algorithms/sssp/kernels/relax.cl",
    "algorithms/sssp/kernels/loop.cl",
    "algorithms/sssp/kernels/tree.cl",
)
ON_DEVICE = 3
"""Added to a record's strategy."""

_WORDS = (
    "STEP", "COUNT", "IS_FULL", "START", "END", "QUEUE_SIDE", "ACTIVE_SIDE", "LISTED", "ROUND",
    "NUMBER", "WINDOW", "UNSETTLED", "EDGES", "LEFT", "VERTICES", "STEPS", "ROWS", "BEGAN",
    "STATUS", "SOURCE", "BEYOND",
)  # fmt: skip
_STEP, _COUNT, _ROWS, _STATUS = (_WORDS.index(word) for word in ("STEP", "COUNT", "ROWS", "STATUS"))
_STEPS = ("DONE", "RELAX", "ACTIVE", "SELECT", "FIND", "PULL")
_RUNNING, _ENDED, _OVERFLOWED, _FAILED = range(4)
_STEP_COUNTERS, _WINDOW_COUNTERS, _RECORD_WIDTH = 6, 2, 6
_NUM_COUNTERS = 3 * _STEP_COUNTERS + 3 * _WINDOW_COUNTERS

OPENCL = {
    **{word: i for i, word in enumerate(_WORDS)},
    "NOW_WORDS": len(_WORDS),
    **{step: i for i, step in enumerate(_STEPS)},
    "RUNNING": _RUNNING,
    "ENDED": _ENDED,
    "OVERFLOWED": _OVERFLOWED,
    "FAILED": _FAILED,
    "NEXT": 0,
    "CHUNKS": 1,
    "SCANNED": 2,
    "LEFT_OVER": 3,
    "FRESH": 4,
    "KEPT": 0,
    "LOWEST": 1,
    "OVERFLOW": 5,
    "STEP_COUNTERS": _STEP_COUNTERS,
    "WINDOW_COUNTERS": _WINDOW_COUNTERS,
    "PREFIX": PREFIX,
    "FULL": FULL,
    "PULL_ONCE": PULL_ONCE,
    "RECORD_WIDTH": _RECORD_WIDTH,
}
"""Numbers that the kernels share; loop.cl explains them."""


class _Type(NamedTuple):
    """A type of weights: its name in OpenCL C, the type of its bits, and the bits of infinity."""

    family: Family
    name: str
    bits: Any
    infinite: int


_TYPES = {
    np.dtype(np.int32): _Type("int32 paths", "int", np.int32, 0x7FFFFFFF),
    np.dtype(np.float32): _Type("float32 paths", "float", np.int32, 0x7F800000),
    np.dtype(np.float64): _Type("float64 paths", "double", np.int64, 0x7FF0000000000000),
}


class DeviceSearch:
    """Searches on an OpenCL device that holds the lists.

    Parameters
    ----------
    lists : WeightedLists
    info : DeviceInfo

    Raises
    ------
    BudgetError
        Lists that the device cannot hold.
    DeviceError
        Weights of a type that the device lacks, failures of its driver.
    """

    def __init__(self, lists: WeightedLists, info: DeviceInfo) -> None:
        self._check_sizes(lists, info)
        self.device = OpenCLDevice(info)
        self._type = _TYPES[lists.weight_dtype]
        if lists.weight_dtype == np.float64 and not info.has_double:
            raise DeviceError("it lacks doubles, which weights of float64 need")
        check_verdict(info, self._type.family)
        self._group = info.group_size(_GROUP)
        self.lists = lists
        began = time.perf_counter()
        self._shared = DeviceLists(self.device)
        forward = self._shared.by_weight(lists.forward)
        backward = self._shared.by_weight(lists.backward)
        self._backward = [*backward, self._shared.array(lists.backward_order)]
        self.device.finish()
        self.upload_seconds = time.perf_counter() - began
        self._arguments = [*forward, *self._backward, *self._make_arrays()]
        self._groups = _GROUPS_PER_UNIT * info.compute_units
        self._one_at_a_time = threading.Lock()  # parents may be requested during a search
        self._tree: BoundKernel
        self._search: BoundKernel | None = None
        self._search = self._find_one_launch()
        self._kernels = {} if self._search else self._bind_steps()

    @property
    def device_name(self) -> str:
        """Name of the device."""
        return self.device.info.name

    @property
    def one_launch(self) -> bool:
        """Whether one launch runs a whole search."""
        return self._search is not None

    @staticmethod
    def _check_sizes(lists: WeightedLists, info: DeviceInfo) -> None:
        n, edges, width = lists.num_vertices, lists.num_stored_edges, lists.weight_dtype.itemsize
        ways = 1 if lists.backward is lists.forward else 2
        largest = max(width * edges, 8 * n)
        records = 8 * _RECORD_WIDTH * _MOST_RECORDS
        needed = ways * ((4 + width) * edges + 8 * n) + (32 + 2 * width) * n + records
        needed += 12 * _most_chunks(edges) + lists.backward_order.nbytes
        check_room(info, "shortest paths need", largest, needed)

    def _make_arrays(self) -> list[Any]:
        """Make the arrays of a search; return the kernels' arguments after the lists."""
        n, buffer, bits = self.lists.num_vertices, self.device.buffer, self._type.bits
        chunks = _most_chunks(self.lists.num_stored_edges)
        self._distance = buffer(n, bits)
        self._found = self.device.host_array(n, bits)
        self._up = buffer(n, np.uint32)
        self._orphans = buffer(1, np.uint32)
        self._now = buffer(len(_WORDS), np.int64)
        self._records = buffer(_MOST_RECORDS * _RECORD_WIDTH, np.int64)
        marks = [buffer(n, kind) for kind in (bits, np.uint32, np.int32, np.int32)]
        pairs = [buffer(2 * n, np.uint32) for _ in range(2)]
        pieces = [buffer(chunks, kind) for kind in (np.uint32, np.uint64)]
        return [
            np.uint32(n), self._distance, *marks, *pairs, *pieces,
            buffer(_NUM_COUNTERS, np.uint64), self._now, self._records, np.uint32(_MOST_RECORDS),
        ]  # fmt: skip

    def _build(self, *extra: str) -> Any:
        narrow = offset_dtype(self.device.info, self.lists.num_stored_edges) == np.uint32
        options = [
            f"-DGROUP={self._group}",
            f"-DCHUNK_EDGES={_CHUNK_EDGES}",
            f"-DPULL_EDGES={_PULL_EDGES}",
            f"-DDIRECTED={int(self.lists.graph.graph.directed)}",
            f"-DOFFSET={'uint' if narrow else 'ulong'}",
            f"-DWEIGHT={self._type.name}",
            f"-DIS_{self._type.name.upper()}",
        ]
        return self.device.build([*options, *extra], header(SHARED, OPENCL), _FILES)

    def _find_one_launch(self) -> BoundKernel | None:
        """Return the kernel of whole searches, if the device has a grid for it."""
        if not self.device.info.may_run_in_one_launch:
            return None  # a CPU device runs work-groups one after another
        self._grid = Grid(self.device, _GROUPS_PER_UNIT)
        program = None
        with suppress(DeviceError):
            program = self._build("-DONE_LAUNCH")
        if program is None:
            return None
        self._bind_tree(program)
        search = self.device.bind(
            program, "search", *self._arguments, *[VARIES] * 4, *self._grid.arguments,
            VARIES, VARIES,
        )  # fmt: skip

        def probe(groups: int, patience: np.uint32) -> bool:
            size, varying = groups * self._group, self._varying(0, None)
            search.launch(size, self._group, *varying, patience, np.uint32(1))
            return bool(self._read_now()[_STATUS] == _ENDED)

        groups = self._grid.largest(probe)
        self._groups = groups or self._groups
        return search if groups else None

    def _bind_steps(self) -> dict[str, list[BoundKernel]]:
        """Return the kernels of each step, and launch them once: some drivers compile then."""
        program, arguments = self._build(), [*self._arguments, *[VARIES] * 4]
        self._bind_tree(program)
        bind = self.device.bind
        relax = [bind(program, name, *arguments) for name in ("relax", "relax_long")]
        kernels = {"start": [bind(program, "start", *arguments)]}
        kernels |= {"RELAX": relax, "ACTIVE": relax}
        kernels |= {"SELECT": [bind(program, "take_window", *arguments)]}
        kernels |= {"FIND": [bind(program, "find", *arguments)]}
        kernels |= {"PULL": [bind(program, name, *arguments) for name in ("pull", "pull_long")]}
        kernels |= {"next": [bind(program, "next_step", *arguments)]}
        varying = self._varying(0, None)
        for kernel in {id(k): k for one in kernels.values() for k in one}.values():
            self.device.fill(self._now, 0)
            kernel.launch(self._group, self._group, *varying)
        self.device.finish()
        return kernels

    def _bind_tree(self, program: Any) -> None:
        """Bind the kernel that finds parents."""
        n = np.uint32(self.lists.num_vertices)
        self._tree = self.device.bind(
            program, "find_parents", n, self._distance, *self._backward, self._up, self._orphans
        )

    def _varying(self, source: int, plan: Plan | None) -> tuple[Any, ...]:
        """Return the last arguments of all kernels."""
        kind = self.lists.weight_dtype.type
        most = self._value(self._type.infinite - 1)
        is_full, prefix_width, full_width = (False, 1.0, 1.0) if plan is None else plan
        widths = prefix_width, full_width * (_WIDER if self.one_launch else 1.0)
        return np.uint32(source), np.int32(is_full), *(kind(min(width, most)) for width in widths)

    def run(self, source: int, plan: Plan) -> Windows | None:
        """Search from `source` (a new id); None if a distance is beyond the weights' type."""
        with self._one_at_a_time:
            return self._run(source, plan)

    def parents(
        self, source: int, distance: npt.NDArray[Any], is_last: bool
    ) -> npt.NDArray[np.uint32]:
        """Return the parents of a search, as `tree_parents` does.

        Parameters
        ----------
        source : int
            A new id.
        distance : array, shape (num_vertices,)
            The distances of the search.
        is_last : bool
            Whether it was the last search, whose distances the device has.
        """
        from hetero_bfs.algorithms.sssp.kernels.tree import complete_tree

        parent, orphans = np.empty(distance.size, np.uint32), np.empty(1, np.uint32)
        size = min(-(-parent.size // self._group), self._groups) * self._group
        with self._one_at_a_time:
            if not is_last:
                self.device.write(self._distance, distance)
            self.device.fill(self._orphans, 0)
            self._tree.launch(size, self._group)
            self.device.read(self._found_up, self._up)
            self.device.read(orphans, self._orphans)
            parent[:] = self._found_up
        complete_tree(self.lists, distance, source, parent, int(orphans[0]))
        return parent

    @cached_property
    def _found_up(self) -> npt.NDArray[np.uint32]:
        return self.device.host_array(self.lists.num_vertices, np.uint32)

    def _run(self, source: int, plan: Plan) -> Windows | None:
        varying = self._varying(source, plan)
        began = time.perf_counter()
        now, seconds = self._run_one_launch(varying) if self._search else self._run_steps(varying)
        if now is None:  # the grid stalled
            self._search, self._kernels = None, self._bind_steps()
            return self._run(source, plan)
        if now[_STATUS] == _OVERFLOWED:
            return None
        self.device.read(self._found, self._distance)
        total = time.perf_counter() - began
        distance = self._found.view(self.lists.weight_dtype)
        infinity = np.array([self._type.infinite], self._type.bits).view(distance.dtype)[0]
        return Windows(distance, infinity, self._read_records(int(now[_ROWS]), seconds, total))

    def _run_one_launch(self, varying: tuple[Any, ...]) -> tuple[Any, list[float]]:
        assert self._search is not None
        size = self._groups * self._group
        self._search.launch(size, self._group, *varying, PATIENCE, np.uint32(0))
        now = self._read_now()
        return (None, []) if now[_STATUS] == _FAILED else (now, [])

    def _run_steps(self, varying: tuple[Any, ...]) -> tuple[Any, list[float]]:
        """Launch step by step; return the state at the end and the seconds of each record."""
        most, n = self._groups * self._group, self.lists.num_vertices
        seconds: list[float] = []
        began = time.perf_counter()
        size = min(-(-n // self._group) * self._group, most)
        self._kernels["start"][0].launch(size, self._group, *varying)
        while True:
            now = self._read_now()
            if now[_ROWS] > len(seconds):
                ended = time.perf_counter()
                seconds.append(ended - began)
                began = ended
            if now[_STATUS] != _RUNNING:
                return now, seconds
            size = min(-(-max(int(now[_COUNT]), 1) // self._group) * self._group, most)
            first, *long = self._kernels[_STEPS[int(now[_STEP])]]
            first.launch(size, self._group, *varying)
            for kernel in long:
                kernel.launch(most, self._group, *varying)
            self._kernels["next"][0].launch(1, 1, *varying)

    def _read_now(self) -> npt.NDArray[np.int64]:
        now = np.empty(len(_WORDS), np.int64)
        self.device.read(now, self._now)
        return now

    def _read_records(
        self, rows: int, seconds: list[float], total: float
    ) -> npt.NDArray[np.float64]:
        """Return the records. Seconds are the device's, else the host's, else equal shares."""
        words = np.empty((min(rows, _MOST_RECORDS), _RECORD_WIDTH), np.int64)
        self.device.read(words, self._records)
        records = words.astype(np.float64)
        starts = words[:, 0].astype(self._type.bits).view(self.lists.weight_dtype)
        records[:, 0] = starts
        records[:, 1] += ON_DEVICE
        records[:, 5] *= 1e-9
        if seconds:
            records[:, 5] = seconds[: len(records)]
        elif not records[:, 5].any():
            records[:, 5] = total / len(records)
        return records

    def _value(self, bits: int) -> float:
        return float(np.array([bits], self._type.bits).view(self.lists.weight_dtype)[0])


def _most_chunks(edges: int) -> int:
    """Return how many pieces of long lists a step may have."""
    return edges // min(_PULL_EDGES, _CHUNK_EDGES // 2) + 1
