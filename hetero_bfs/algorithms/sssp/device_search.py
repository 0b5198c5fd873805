"""Shortest paths on an OpenCL device; near_far.cl has the kernels."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np

from hetero_bfs.algorithms.sssp.weighted_lists import Plan, WeightedLists, Windows
from hetero_bfs.devices.opencl.driver import VARIES, DeviceInfo, OpenCLDevice
from hetero_bfs.errors import DeviceError
from hetero_bfs.support.memory import format_bytes

_GROUP = 128  # work-items in a work-group
_GROUPS_PER_UNIT = 8
_HEAVY_EDGES = 1 << 13
_FILES = ("devices/opencl/tiles.cl", "algorithms/sssp/kernels/near_far.cl")
_NEXT, _PILE, _HEAVY, _OVERFLOW, _LOWEST, _EDGES = range(6)
_DOUBLES_NEED = "cl_khr_int64_extended_atomics"
_DEVICE_FULL = 3
"""The way of a record (windows.py): whole lists, on the device."""


class _Type(NamedTuple):
    """A type of weights: its name in OpenCL C, of what type its bits are, those of infinity."""

    name: str
    bits: Any
    infinite: int


_TYPES = {
    np.dtype(np.int32): _Type("int", np.int32, 0x7FFFFFFF),
    np.dtype(np.float32): _Type("float", np.int32, 0x7F800000),
    np.dtype(np.float64): _Type("double", np.int64, 0x7FF0000000000000),
}


class DeviceSearch:
    """Searches on an OpenCL device, which keeps the lists.

    Parameters
    ----------
    lists : WeightedLists
    info : DeviceInfo

    Raises
    ------
    DeviceError
        Weights of a type that the device lacks, lists that it cannot hold, failures of its driver.
    """

    def __init__(self, lists: WeightedLists, info: DeviceInfo) -> None:
        self._check_sizes(lists, info)
        self.device = OpenCLDevice(info)
        self._type = _TYPES[lists.weight_dtype]
        if lists.weight_dtype == np.float64 and not (
            info.has_double and self.device.has_extension(_DOUBLES_NEED)
        ):
            raise DeviceError(f"it lacks {_DOUBLES_NEED}, which weights of float64 need")
        self.lists = lists
        n = lists.num_vertices
        forward = lists.forward
        narrow = forward.indptr[-1] < 2**32
        indptr = np.ascontiguousarray(forward.indptr, np.uint32 if narrow else np.uint64)
        self._kept = [indptr, forward.neighbours, forward.weights]  # a device may use them in place
        began = time.perf_counter()
        self._graph = [self.device.upload(array) for array in self._kept]
        self.device.finish()
        self.upload_seconds = time.perf_counter() - began
        self._distance = self.device.buffer(n, self._type.bits)
        self._marks = [self.device.buffer(n, np.int32) for _ in range(2)]  # queued, piled
        self._lists = {
            name: [self.device.buffer(n, np.uint32) for _ in range(2)] for name in ("queue", "pile")
        }
        self._heavy = self.device.buffer(n, np.uint32)
        self._counters = self.device.buffer(8, np.uint64)
        self._global = _GROUP * _GROUPS_PER_UNIT * info.compute_units
        self._bind(self._build(narrow))
        self._warm_up()

    @property
    def device_name(self) -> str:
        """Name of the device."""
        return self.device.info.name

    @staticmethod
    def _check_sizes(lists: WeightedLists, info: DeviceInfo) -> None:
        n, edges, width = lists.num_vertices, lists.num_stored_edges, lists.weight_dtype.itemsize
        largest, needed = max(width * edges, 8 * n), (4 + width) * edges + (36 + width) * n
        if largest > info.max_alloc_bytes or needed > info.memory_bytes:
            raise DeviceError(
                f"shortest paths need {format_bytes(needed)} on {info.name}, up to "
                f"{format_bytes(largest)} in one piece; {format_bytes(info.memory_bytes)} may be "
                f"used, in pieces of {format_bytes(info.max_alloc_bytes)}"
            )

    def _build(self, narrow: bool) -> Any:
        options = [
            f"-DGROUP={_GROUP}",
            f"-DHEAVY_EDGES={_HEAVY_EDGES}",
            f"-DOFFSET={'uint' if narrow else 'ulong'}",
            f"-DWEIGHT={self._type.name}",
            f"-DIS_{self._type.name.upper()}",
        ]
        return self.device.build(options, "", _FILES)

    def _bind(self, program: Any) -> None:
        """Set the arguments of all kernels, for either queue and either pile that is read."""
        graph = self._graph  # kernels do not keep their arguments
        bind, queue, pile = self.device.bind, self._lists["queue"], self._lists["pile"]
        rest = self._distance, *self._marks, self._counters
        n = np.uint32(self.lists.num_vertices)
        self._start = bind(program, "start", n, VARIES, self._distance, *self._marks)
        ways = [(q, p) for q in range(2) for p in range(2)]
        self._relax = {
            (q, p): bind(
                program, "relax", VARIES, VARIES, VARIES,
                *graph, queue[q], queue[1 - q], pile[1 - p], self._heavy, *rest,
            )
            for q, p in ways
        }  # fmt: skip
        self._relax_heavy = {
            (q, p): bind(
                program, "relax_heavy", VARIES, VARIES,
                *graph, queue[1 - q], pile[1 - p], self._heavy, *rest,
            )
            for q, p in ways
        }  # fmt: skip
        self._select = {
            (q, p): bind(
                program, "select_window", VARIES, VARIES, VARIES, VARIES,
                pile[p], queue[1 - q], pile[1 - p], *rest,
            )
            for q, p in ways
        }  # fmt: skip

    def _warm_up(self) -> None:
        """Launch all kernels without work: some drivers compile them only then."""
        nothing, end, first = np.uint32(0), self._type.bits(0), np.int32(1)
        self.device.write(self._counters, np.zeros(8, np.uint64))
        self._start.launch(_GROUP, _GROUP, nothing)
        for way in self._relax:
            self._relax[way].launch(_GROUP, _GROUP, nothing, end, first)
            self._relax_heavy[way].launch(_GROUP, _GROUP, end, first)
            self._select[way].launch(_GROUP, _GROUP, nothing, end, end, first)
        self.device.finish()

    def run(self, source: int, plan: Plan) -> Windows | None:
        """Search from `source` (a new id); None if a distance is beyond the weights' type."""
        began = time.perf_counter()
        device, counters = self.device, np.zeros(8, np.uint64)
        n, queue, pile, number = self.lists.num_vertices, 0, 0, np.int32(0)
        self._start.launch(self._size(n), _GROUP, np.uint32(source))
        device.write(self._lists["queue"][0], np.array([source], np.uint32))
        queued, piled, start, records = 1, 0, 0.0, []
        while True:
            begin, end = self._bits(start), self._bits(start + plan.device_width)
            if end <= begin:  # a width that the type cannot tell from nothing
                end = self._type.bits(self._type.infinite)
            vertices, rounds = 0, 0
            counters[:] = 0
            counters[_LOWEST] = self._type.infinite
            device.write(self._counters, counters)
            if piled:
                number += np.int32(1)
                self._select[queue, pile].launch(
                    self._size(piled), _GROUP, np.uint32(piled), begin, end, number
                )
                device.read(counters, self._counters)
                queued, queue = int(counters[_NEXT]), 1 - queue
            while queued:
                counters[[_NEXT, _HEAVY]] = 0
                device.write(self._counters, counters)
                number += np.int32(1)
                self._relax[queue, pile].launch(
                    self._size(queued), _GROUP, np.uint32(queued), end, number
                )
                self._relax_heavy[queue, pile].launch(self._global, _GROUP, end, number)
                device.read(counters, self._counters)
                vertices, rounds = vertices + queued, rounds + 1
                queued, queue = int(counters[_NEXT]), 1 - queue
            ended = time.perf_counter()
            edges = int(counters[_EDGES])
            records.append((start, _DEVICE_FULL, vertices, edges, rounds, ended - began))
            began = ended
            if counters[_OVERFLOW]:
                return None
            piled, pile = int(counters[_PILE]), 1 - pile
            if not piled or counters[_LOWEST] >= self._type.infinite:
                break
            start = self._value(int(counters[_LOWEST]))
        bits = np.empty(n, self._type.bits)
        device.read(bits, self._distance)
        distance = bits.view(self.lists.weight_dtype)
        infinity = np.array([self._type.infinite], self._type.bits).view(distance.dtype)[0]
        return Windows(distance, infinity, np.array(records, np.float64))

    def _size(self, items: int) -> int:
        """Return the work-items for so many items: whole work-groups, at most the grid."""
        return min(-(-items // _GROUP) * _GROUP, self._global)

    def _bits(self, distance: float) -> np.signedinteger[Any]:
        """Return a distance as the kernels store it."""
        dtype = self.lists.weight_dtype
        if dtype.kind == "i":
            return np.int32(min(int(distance), self._type.infinite))
        with np.errstate(over="ignore"):
            bits: np.signedinteger[Any] = np.array([distance], dtype).view(self._type.bits)[0]
        return bits

    def _value(self, bits: int) -> float:
        return float(np.array([bits], self._type.bits).view(self.lists.weight_dtype)[0])
