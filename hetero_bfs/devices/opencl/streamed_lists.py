"""Neighbour lists in blocks: the first blocks are resident on a device, the others are sent to it.

A block is consecutive entries of neighbour lists. Vertex programs, components and colouring have
blocks of whole lists: the lists of the vertices that a work-group processes. Breadth-first search
needs few entries of most lists, so its blocks are pages of a fixed size, which divide lists
(algorithms/bfs/streamed.py). The device decides which blocks it needs. If vertices are numbered by
falling degree, the first blocks hold the hubs.

There are several slots, so that gathering, copying and reading overlap. The host gathers blocks in
a slot's pinned memory. A second queue copies them to the slot's buffers, where kernels read them.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.devices.opencl.device_run import DeviceRun
from hetero_bfs.devices.opencl.opencl_device import BoundKernel, OpenCLDevice
from hetero_bfs.errors import BudgetError, DeviceError
from hetero_bfs.graph.kernels.neighbour_lists import gather_blocks, place_blocks

T = TypeVar("T")

NUM_SLOTS = 4
_MOST_SLOT_BYTES = 1 << 22
_SLOTS_SHARE = 4  # slots take at most 1 / 4 of the free memory, unless that is too little
_ROW_BYTES = 8  # bytes of a block's number and of the position of its first entry
_ENTRIES_OF_BLOCK = 64  # a slot has room for one block per 64 entries
_MOST_ENTRIES = 1 << 31

Numbers = npt.NDArray[np.int64]
"""Block numbers; in rising order if resident blocks are among them."""


class Blocks:
    """The blocks that one direction reads.

    arrays : shape (number of entries,) each; neighbours, and other data per entry, such as weights
    bounds : int64, shape (number of blocks + 1,); first entry of each block, then their number
    """

    def __init__(self, arrays: list[npt.NDArray[Any]], bounds: npt.NDArray[np.int64]) -> None:
        self.arrays, self.bounds = arrays, bounds
        self.sizes: npt.NDArray[np.int64] = np.diff(bounds)


@dataclass(frozen=True)
class Layout:
    """The use of a device's memory for neighbour lists, the same for each direction.

    resident : number of resident blocks, which are the first ones
    part_entries : most entries of a resident part; also of a slot, if messages are counted
    slot_entries, slot_blocks : room of a slot; 0 if all blocks are resident
    """

    resident: int
    part_entries: int
    slot_entries: int
    slot_blocks: int


def lay_out(
    info: DeviceInfo,
    what: str,
    ways: Sequence[Blocks],
    array_bytes: Sequence[int],
    entry_bytes: Sequence[int],
    slot_bytes: Sequence[int],
) -> Layout:
    """Divide the memory that other arrays leave between resident blocks and slots.

    what : begins error messages, see `DeviceInfo.check_room`
    array_bytes : size of each of the other arrays
    entry_bytes : bytes per entry in each array of entries
    slot_bytes : bytes per entry in each array that counts messages; it has room for one launch

    Raises `BudgetError` if there is no room for slots that hold the largest block.
    """
    whole, counting, others = sum(entry_bytes), sum(slot_bytes), sum(array_bytes)
    widest = max([*entry_bytes, *slot_bytes])
    most = min(info.max_alloc_bytes // widest, _MOST_ENTRIES)
    share = max(info.memory_bytes - others, 0) // (_SLOTS_SHARE * NUM_SLOTS)
    sizes = np.array([way.sizes for way in ways])
    most_entries = np.maximum(sizes.max(axis=0), 1)  # of a block; OpenCL copies no empty array
    largest = np.maximum.accumulate(most_entries[::-1])[::-1]  # of this and later blocks
    resident = np.append(0, np.cumsum((whole * sizes + _ROW_BYTES).sum(axis=0)))
    for usual in (min(_MOST_SLOT_BYTES, share) // whole, 0):
        # Item i of each array is for i resident blocks.
        slots = np.append(np.maximum(largest, min(usual, most)), 0)
        needed = others + resident + bytes_of_slots(slots, whole) + counting * slots[0]
        if needed.min() <= info.memory_bytes:
            break
    info.check_room(what, max(*array_bytes, int(largest[0]) * widest), int(needed.min()))
    fitting = int(np.flatnonzero(needed <= info.memory_bytes)[-1])
    slot = int(slots[fitting])
    return Layout(fitting, int(slots[0]) if counting else most, slot, int(_rows(slot)))


def bytes_of_slots(entries: Any, entry_bytes: int) -> Any:
    return NUM_SLOTS * (entry_bytes * entries + _ROW_BYTES * _rows(entries))


def _rows(entries: Any) -> Any:
    return (entries + _ENTRIES_OF_BLOCK - 1) // _ENTRIES_OF_BLOCK


class Part(NamedTuple):
    """Resident blocks from `begin` to `end`: their rows and arrays, which a device may share."""

    begin: int
    end: int
    arrays: list[npt.NDArray[Any]]
    buffers: list[Any]


@dataclass
class Slot:
    """Room for blocks' rows and arrays: pinned host memory, and a device buffer for each array.

    `copied` and `read` are the events of the last copies and of the last kernel. PyOpenCL waits for
    a copy when its event is deleted.
    """

    number: int
    staging: list[npt.NDArray[Any]]
    buffers: list[Any]
    copied: list[Any] = field(default_factory=list, repr=False)
    read: Any = field(default=None, repr=False)


LaunchBlocks = Callable[[Part | Slot, Numbers, Sequence[Any]], Any]
"""Queues kernels that read blocks in some buffers, after events; returns the last kernel's event.

If the blocks are in a slot, None means that no further blocks are needed.
"""

LaunchOnAll = Callable[[list[Part | Slot], Sequence[Any]], Any]
"""Like `LaunchBlocks`, for one block with a buffer per direction."""

Sent = list[tuple[Part | Slot, Numbers]]
"""The buffers where blocks were on the device."""


class _Slots:
    """The slots through which blocks of all directions are sent, in rotation."""

    def __init__(self, device: OpenCLDevice, ways: Sequence[Blocks], layout: Layout) -> None:
        self._device, self._layout = device, layout
        self._queue = device.second_queue()
        sizes: list[tuple[int, npt.DTypeLike]] = [(2 * layout.slot_blocks, np.uint32)]
        sizes += [(layout.slot_entries, array.dtype) for array in ways[0].arrays]
        self.slots = [
            Slot(
                number,
                [device.host_array(*size) for size in sizes],
                [device.buffer(*size) for size in sizes],
            )
            for number in range(NUM_SLOTS)
        ]
        self._turn = 0
        self.bytes_sent = 0
        for blocks in ways:  # compiles the loops now
            self._fill(blocks, np.empty(0, np.int64), self.slots[0].staging)

    def send(self, blocks: Blocks, chosen: Numbers, launch: LaunchBlocks) -> Sent:
        """Send blocks, and launch kernels on every slot that they fill; return the slots."""
        sent: Sent = []
        while chosen.size:
            slot = self.slots[self._turn]
            self._turn = (self._turn + 1) % NUM_SLOTS
            if slot.read is not None:
                self._device.wait(slot.read)  # the copies have then ended, too
            count, filled = self._fill(blocks, chosen, slot.staging)
            slot.copied = [
                self._device.send(self._queue, buffer, array)
                for buffer, array in zip(slot.buffers, filled, strict=True)
            ]
            self._device.flush()
            here, chosen = chosen[:count], chosen[count:]
            event = launch(slot, here, slot.copied[-1:])
            slot.read = slot.copied[-1] if event is None else event
            self._device.flush()  # otherwise a slot may wait for a kernel that never starts
            self.bytes_sent += sum(array.nbytes for array in filled)
            sent.append((slot, here))
            if event is None:
                break
        return sent

    def _fill(
        self, blocks: Blocks, chosen: Numbers, staging: list[npt.NDArray[Any]]
    ) -> tuple[int, list[npt.NDArray[Any]]]:
        """Gather the first chosen blocks; return their number, and each array's part to send."""
        rows, arrays = staging[0].reshape(-1, 2), staging[1:]
        count, entries = place_blocks(chosen, blocks.bounds, self._layout.slot_entries, rows)
        for array, gathered in zip(blocks.arrays, arrays, strict=True):
            gather_blocks(rows[:count], blocks.bounds, array, gathered)
        entries = max(entries, 1)
        return count, [staging[0][: 2 * count], *(array[:entries] for array in arrays)]


class BlockMemory:
    """Blocks on a device. Only one memory of a device has its blocks there at a time.

    what : begins error messages, see `DeviceInfo.check_room`
    ways : the blocks of each direction
    array_bytes, slot_bytes : see `lay_out`
    info : the device with the memory that may be used
    forget : called when the memory is released, to drop kernels bound to it

    Raises `BudgetError` if there is no room for a few blocks besides the other arrays.
    """

    def __init__(
        self, device: OpenCLDevice, what: str, ways: list[Blocks], array_bytes: Sequence[int],
        slot_bytes: Sequence[int], info: DeviceInfo, forget: Callable[[], None] = lambda: None,
    ) -> None:  # fmt: skip
        self.device, self._what, self.ways, self._info = device, what, ways, info
        entry_bytes = [array.itemsize for array in ways[0].arrays]
        self._sizes = array_bytes, entry_bytes, slot_bytes
        self._forget = forget
        self.parts: list[list[Part]] = []
        self._slots: _Slots | None = None
        self.layout = self._lay_out(info.memory_bytes)

    def _lay_out(self, memory_bytes: int) -> Layout:
        info = replace(self._info, memory_bytes=memory_bytes)
        return lay_out(info, self._what, self.ways, *self._sizes)

    @property
    def bytes_sent(self) -> int:
        return 0 if self._slots is None else self._slots.bytes_sent

    @property
    def slots(self) -> list[Slot]:
        return [] if self._slots is None else self._slots.slots

    def take(self) -> None:
        """Allocate resident parts and slots; smaller ones if the device refuses the memory."""
        holder = None if self.device.blocks is None else self.device.blocks()
        if holder is self:
            return
        if holder is not None:
            holder.give()
        self.device.blocks = refused = None
        memory = self._info.memory_bytes
        self.layout = self._lay_out(memory)
        while not self.parts:
            try:
                self._fill()
            except DeviceError as error:
                refused = refused or DeviceError(str(error))  # no traceback, which keeps arrays
                self.give()
                memory = memory * 3 // 4
                try:
                    self.layout = self._lay_out(memory)
                except BudgetError:
                    raise refused from None
        self.device.blocks = weakref.ref(self)

    def give(self) -> None:
        self.device.finish()  # an interrupted run may still read them
        self.parts, self._slots = [], None
        self._forget()

    def _fill(self) -> None:
        parts = [self._resident_parts(blocks) for blocks in self.ways]
        if self.layout.slot_entries:
            self._slots = _Slots(self.device, self.ways, self.layout)
        self.parts = parts

    def _resident_parts(self, blocks: Blocks) -> list[Part]:
        parts, begin, bounds = [], 0, blocks.bounds
        while begin < self.layout.resident:
            first = bounds[begin]
            most = first + self.layout.part_entries
            end = int(np.searchsorted(bounds, most, side="right")) - 1
            end = min(end, self.layout.resident)
            rows = np.column_stack([np.arange(begin, end), bounds[begin:end] - first])
            arrays = [rows.astype(np.uint32).ravel()]
            arrays += [array[first : bounds[end]] for array in blocks.arrays]
            arrays = [np.require(array, requirements=["C", "W"]) for array in arrays]  # for OpenCL
            parts.append(Part(begin, end, arrays, [self.device.upload(array) for array in arrays]))
            begin = end
        return parts

    def launch_along(self, way: int, chosen: Numbers, launch: LaunchBlocks) -> Sent:
        """Launch kernels on chosen blocks of a direction; return the buffers of the blocks."""
        rooms: Sent = []
        for part in self.parts[way]:
            here = chosen[slice(*np.searchsorted(chosen, (part.begin, part.end)))]
            if here.size:
                launch(part, here, ())
                rooms.append((part, here))
        missing = chosen[np.searchsorted(chosen, self.layout.resident) :]
        return rooms + self.send(way, missing, launch)

    def send(self, way: int, missing: Numbers, launch: LaunchBlocks) -> Sent:
        """Send blocks that are not resident, in any order; launch kernels on each full slot."""
        return [] if self._slots is None else self._slots.send(self.ways[way], missing, launch)

    def launch_again(self, sent: Sent, launch: LaunchBlocks) -> bool:
        """Launch kernels on the same blocks again; return False if some were overwritten."""
        if sum(isinstance(room, Slot) for room, _ in sent) > NUM_SLOTS:
            return False
        for room, blocks in sent:
            event = launch(room, blocks, ())
            if isinstance(room, Slot):
                room.read = event
        return True

    def launch_on_all(self, block: int, launch: LaunchOnAll) -> None:
        """Launch kernels that read one block's neighbour lists of all directions."""
        rooms: list[Part | Slot] = []
        copies: list[Any] = []

        def keep(room: Part | Slot, _: Numbers, copied: Sequence[Any]) -> Any:
            rooms.append(room)
            copies.extend(copied)
            return copied[0] if copied else None

        for way in range(len(self.ways)):
            self.launch_along(way, np.array([block]), keep)
        event = launch(rooms, copies)
        self.device.flush()  # as for each slot
        for room in rooms:
            if isinstance(room, Slot):
                room.read = event


class StreamedRun(DeviceRun):
    """A `DeviceRun` whose entries of neighbour lists are in a `BlockMemory`.

    A block is the neighbour lists of a work-group's vertices; `firsts[i]` is the first vertex of
    block i. Kernels mark blocks in `marks_buffer`, which has one more byte after the blocks' bytes.

    Raises `BudgetError` if the device cannot hold the vertices' arrays and a few blocks.
    """

    flags: ClassVar = ("STREAMED",)
    memory: BlockMemory
    firsts: npt.NDArray[Any]

    def _make_room(self, array_bytes: list[int], firsts: npt.NDArray[Any] | None = None) -> None:
        n = self.ways[0].indptr.size - 1
        self.firsts = np.append(np.arange(0, n, self.group), n) if firsts is None else firsts
        self._bound_kernels: dict[Any, Any] = {}  # kernels bound to buffers of the memory
        self.marks = np.zeros(self.firsts.size, np.uint8)
        self.memory = BlockMemory(
            self.device,
            self.need,
            [Blocks(way.arrays, way.indptr[self.firsts]) for way in self.ways],
            [*array_bytes, self.marks.nbytes],
            self._slot_bytes(),
            self.device.info,
            self._bound_kernels.clear,
        )
        self.marks_buffer = self.device.buffer(self.marks.size, np.uint8)

    def bound_once(self, key: Any, bind: Callable[[], T]) -> T:
        found: T | None = self._bound_kernels.get(key)
        if found is None:
            found = self._bound_kernels[key] = bind()
        return found

    @property
    def launch_entries(self) -> int:
        return self.memory.layout.part_entries

    def note_long_lists(self, edges: int) -> None:
        """Note for each direction which blocks have a neighbour list with more entries."""
        longest = [np.maximum.reduceat(np.diff(w.indptr), self.firsts[:-1]) for w in self.ways]
        self._has_long = [sizes > edges for sizes in longest]

    def _bind_room(self, way: int, buffers: list[Any]) -> tuple[BoundKernel, BoundKernel]:
        """Return the kernels for short and for long lists, bound to a room's buffers."""
        raise NotImplementedError

    def launch_blocks(
        self, way: int, chosen: Numbers, rows: Callable[[int], Any], end: BoundKernel
    ) -> None:
        """Launch kernels on chosen blocks of a direction.

        The kernels take `rows` of the number of a room's rows. `end` takes it, too, and runs after
        the kernel for long lists.
        """
        has_long = self._has_long[way]

        def launch(room: Part | Slot, blocks: Numbers, after: Sequence[Any]) -> Any:
            count = room.end - room.begin if isinstance(room, Part) else blocks.size
            given = rows(count)
            short, long = self.bound_once(
                (id(room), way), lambda: self._bind_room(way, room.buffers)
            )
            event = self.launch(short, count * self.group, given, after=after)
            if has_long[blocks].any():
                self.launch_all(long, given)
                event = end.launch(1, 1, given)
            return event

        self.memory.launch_along(way, chosen, launch)

    def marked(self) -> Numbers:
        self.device.read(self.marks, self.marks_buffer)
        return np.flatnonzero(self.marks[:-1])

    @property
    def bytes_sent(self) -> int:
        return self.memory.bytes_sent
