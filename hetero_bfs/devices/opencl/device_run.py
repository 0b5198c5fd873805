"""An algorithm's run on an OpenCL device: its arrays, its kernels, and their launches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.devices.opencl.built_programs import C_TYPES, GAVE_UP, SHARED, Constants, header
from hetero_bfs.devices.opencl.opencl_device import BoundKernel, OpenCLDevice
from hetero_bfs.devices.opencl.verdicts import Family
from hetero_bfs.graph.search_graph import SearchGraph

# Neighbour lists in a device's memory: each array once, for all its readers.
#
# All engines and algorithms of a process share a device's context (built_programs.py), so their
# kernels can read the same buffers.

_MOST_STRIDE = 1 << 24
"""Kernels may add this to an offset before they compare it with the end of a neighbour list."""


class DeviceArray:
    """An array in a device's memory. On unified memory kernels read the host's array in place."""

    def __init__(self, device: OpenCLDevice, array: npt.NDArray[Any], dtype: np.dtype[Any]) -> None:
        self._array = array  # so that no other array gets its address
        is_view = array.dtype.itemsize == dtype.itemsize
        host = array.view(dtype) if is_view else array.astype(dtype)
        self.buffer = device.upload(host)


class DeviceLists:
    """Neighbour lists and other read-only arrays of graphs on a device.

    All objects of this class share the buffer of an array, which must not change meanwhile. A
    buffer is released with the last of these objects that used it.
    """

    def __init__(self, device: OpenCLDevice) -> None:
        self.device = device
        self._arrays: dict[Any, DeviceArray] = {}

    def array(self, array: npt.NDArray[Any], dtype: np.dtype[Any] | None = None) -> Any:
        device, dtype = self.device, array.dtype if dtype is None else dtype
        key = (
            array.ctypes.data, array.shape, array.strides, array.dtype, dtype,
            device.info.unified_memory,
        )  # fmt: skip
        if key not in self._arrays:
            self._arrays[key] = device.shared(key, lambda: DeviceArray(device, array, dtype))
        return self._arrays[key].buffer


def offset_dtype(info: DeviceInfo, entries: int) -> np.dtype[Any]:
    """Return the type of offsets for this number of entries; uint64, as on the host, if unified."""
    needs_64_bits = info.unified_memory or entries >= 2**32 - _MOST_STRIDE
    return np.dtype(np.uint64 if needs_64_bits else np.uint32)


PATIENCE = np.uint32(1 << 22)
"""Polls after which a barrier gives up. That takes seconds, since a single group may be working."""

_PROBE_PATIENCE = 1 << 15


class Entries(NamedTuple):
    """CSR arrays that kernels read in one direction.

    indptr : int64, shape (number of vertices + 1,)
    arrays : shape (number of entries,) each; neighbours, and other data per entry, such as weights
    """

    indptr: npt.NDArray[Any]
    arrays: list[npt.NDArray[Any]]


def both_ways(graph: SearchGraph) -> list[Entries]:
    forward, backward = graph.graph, graph.graph.transpose
    lists = [forward] if backward is forward else [forward, backward]
    return [Entries(one.indptr, [one.indices]) for one in lists]


class DeviceRun:
    """Base class of runs on an OpenCL device that holds the neighbour lists.

    `group` is the number of work-items in a work-group, `groups` the most work-groups of a launch.

    on : a device; it is opened unless it is an open one
    ways : the arrays that kernels read in each direction; one item if both directions have the same

    Raises `DeviceError` if the device fails its self-test, or its driver fails.
    """

    family: Family | None = None
    """The kernels for the self-test, None if it has none of them."""

    need: ClassVar[str]
    """Start of the message of a `BudgetError`, such as "programs need"."""

    files: Sequence[str]
    """The kernel files, by path below the package."""

    constants: ClassVar[Sequence[Constants]] = ()
    """Numbers that kernels share with Python."""

    flags: ClassVar[Sequence[str]] = ()
    """Names that are defined when kernels are built."""

    slots: Sequence[tuple[int, npt.DTypeLike]] = ()
    """Arrays for a launch on neighbour lists: items for each entry of a list, and type."""

    GROUP: ClassVar[int] = 128
    """Work-items of a work-group, unless the device allows fewer."""

    GROUPS_PER_UNIT: ClassVar[int] = 8
    """Most work-groups of a launch per compute unit."""

    def __init__(self, on: DeviceInfo | OpenCLDevice, ways: list[Entries]) -> None:
        device = on if isinstance(on, OpenCLDevice) else OpenCLDevice(on, self.family)
        self.device, self.ways = device, ways
        self.read_only = DeviceLists(device)
        self.offset_type = offset_dtype(device.info, max(int(way.indptr[-1]) for way in ways))
        self.group = device.info.group_size(self.GROUP)
        self.groups = self.GROUPS_PER_UNIT * device.info.compute_units

    @property
    def device_name(self) -> str:
        return self.device.device_name

    def prepare(self) -> None:
        """Do nothing: an open device is ready."""

    def make_arrays(
        self, sizes: Mapping[str, tuple[int, npt.DTypeLike]], *read_only: npt.NDArray[Any]
    ) -> dict[str, Any]:
        """Return arrays that kernels write, by name, if the device has room for all arrays.

        sizes : number and type of each array's items
        read_only : arrays that kernels read, besides the neighbour lists

        Raises `BudgetError` if these arrays and the neighbour lists do not fit.
        """
        array_bytes = [size * np.dtype(kind).itemsize for size, kind in sizes.values()]
        offset_bytes = [self.offset_type.itemsize * way.indptr.size for way in self.ways]
        self._make_room([*array_bytes, *offset_bytes, *(array.nbytes for array in read_only)])
        return {name: self.device.buffer(*size) for name, size in sizes.items()}

    def _make_room(self, array_bytes: list[int]) -> None:
        """Check that neighbour lists' entries and their slots fit besides arrays of these sizes."""
        every = [*array_bytes, *(array.nbytes for way in self.ways for array in way.arrays)]
        every += [each * self.launch_entries for each in self._slot_bytes()]
        self.device.info.check_room(self.need, max(every), sum(every))

    def _slot_bytes(self) -> list[int]:
        return [count * np.dtype(kind).itemsize for count, kind in self.slots]

    @property
    def launch_entries(self) -> int:
        return int(self.ways[0].arrays[0].size)

    def make_slots(self) -> list[Any]:
        return [self.device.buffer(count * self.launch_entries, kind) for count, kind in self.slots]

    def offsets(self, way: int) -> Any:
        return self.read_only.array(self.ways[way].indptr, self.offset_type)

    def buffers(self, way: int) -> list[Any]:
        return [
            self.offsets(way),
            *(self.read_only.array(array) for array in self.ways[way].arrays),
        ]

    def build(self, code: str = "", others: Sequence[str] = (), **options: int | str | bool) -> Any:
        """Build the kernels with -D options: True defines a name without value, False omits it.

        `code` follows the shared numbers. `others` are options of the driver's compiler.
        """
        named = {"GROUP": self.group, "OFFSET": C_TYPES[self.offset_type], **options}
        named |= dict.fromkeys(self.flags, True)
        given = [
            f"-D{name}" if value is True else f"-D{name}={value}"
            for name, value in named.items()
            if value is not False
        ]
        code = header(SHARED, *self.constants) + code
        return self.device.build([*given, *others], code, self.files)

    def launch(
        self, kernel: BoundKernel, items: int, *arguments: Any, after: Sequence[Any] = ()
    ) -> Any:
        groups = min(max(-(-items // self.group), 1), self.groups)
        return kernel.launch(groups * self.group, self.group, *arguments, after=after)

    def launch_all(self, kernel: BoundKernel, *arguments: Any) -> Any:
        return kernel.launch(self.groups * self.group, self.group, *arguments)

    def read(self, buffer: Any, size: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        array = np.empty(size, dtype)
        self.device.read(array, buffer)
        return array


class Grid:
    """A grid of work-groups that all make progress at the same time (grid.cl).

    It holds the memory of the barriers, and finds the largest grid in which they work.
    `groups_per_unit` is the most work-groups per compute unit.
    """

    def __init__(self, device: OpenCLDevice, groups_per_unit: int) -> None:
        self._device, self._per_unit = device, groups_per_unit
        self.sync = device.buffer(GAVE_UP + 1, np.uint32)
        self.cells = device.buffer(groups_per_unit * device.info.compute_units, np.uint32)
        self.clear()

    @property
    def arguments(self) -> list[Any]:
        return [self.sync, self.cells]

    def clear(self) -> None:
        self._device.fill(self.sync, 0)

    def largest(self, probe: Callable[[int, np.uint32], bool]) -> int | None:
        """Return the work-groups of the largest grid that passes a probe; None if none passes.

        `probe` gets a number of work-groups and the patience. It launches a kernel that calls
        `probe` of grid.cl, and returns whether all rounds ended.
        """
        units = self._device.info.compute_units
        for per_unit in range(self._per_unit, 0, -1):
            passed = probe(per_unit * units, np.uint32(_PROBE_PATIENCE))
            sync = np.zeros(GAVE_UP + 1, np.uint32)
            self._device.read(sync, self.sync)
            self.clear()
            if passed and not sync[GAVE_UP]:
                return per_unit * units
        return None
