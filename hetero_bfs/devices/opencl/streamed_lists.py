"""Neighbour lists in blocks: the first blocks are resident on a device, the others are sent to it.

A block is the neighbour lists of consecutive vertices, which a work-group processes. No list is
divided. If vertices are numbered by falling degree, the first blocks hold the hubs.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.devices.opencl.device_run import DeviceRun
from hetero_bfs.devices.opencl.opencl_device import NUM_SLOTS, Launch, OpenCLDevice, Slot, Slots
from hetero_bfs.errors import BudgetError, DeviceError
from hetero_bfs.graph.edge_source import OffsetArray

T = TypeVar("T")

_MOST_SLOT_BYTES = 1 << 22
_SLOTS_SHARE = 8  # slots take at most 1 / 8 of the free memory, unless that is too little
_ROW_BYTES = 8  # bytes of a block's number and of the position of its first entry
_ENTRIES_OF_BLOCK = 64  # a slot has room for one block per 64 entries
_MOST_ENTRIES = 1 << 31

Numbers = npt.NDArray[np.int64]
"""Block numbers in rising order."""


class Blocks:
    """The blocks that one direction reads.

    indptr : int64, shape (number of vertices + 1,); of at least one vertex
    arrays : shape (number of entries,) each; neighbours, and other data per entry, such as weights
    firsts : shape (number of blocks + 1,); first vertex of each block, then the number of vertices
    """

    def __init__(
        self, indptr: OffsetArray, arrays: list[npt.NDArray[Any]], firsts: npt.NDArray[Any]
    ) -> None:
        self.arrays = arrays
        self.bounds = indptr[firsts]
        self.sizes: npt.NDArray[np.int64] = np.diff(self.bounds)


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
        needed = others + resident + NUM_SLOTS * (whole * slots + _ROW_BYTES * _rows(slots))
        needed += counting * slots[0]
        if needed.min() <= info.memory_bytes:
            break
    info.check_room(what, max(*array_bytes, int(largest[0]) * widest), int(needed.min()))
    fitting = int(np.flatnonzero(needed <= info.memory_bytes)[-1])
    slot = int(slots[fitting])
    return Layout(fitting, int(slots[0]) if counting else most, slot, int(_rows(slot)))


def _rows(entries: Any) -> Any:
    """Return the most blocks in a slot with `entries` entries."""
    return (entries + _ENTRIES_OF_BLOCK - 1) // _ENTRIES_OF_BLOCK


class Part(NamedTuple):
    """Resident blocks from `begin` to `end`: their rows and arrays, which a device may share."""

    begin: int
    end: int
    arrays: list[npt.NDArray[Any]]
    buffers: list[Any]


def resident_parts(device: OpenCLDevice, blocks: Blocks, layout: Layout) -> list[Part]:
    parts, begin = [], 0
    while begin < layout.resident:
        most = blocks.bounds[begin] + layout.part_entries
        end = int(np.searchsorted(blocks.bounds, most, side="right")) - 1
        end = min(end, layout.resident)
        parts.append(_upload(device, blocks, begin, end))
        begin = end
    return parts


def _upload(device: OpenCLDevice, blocks: Blocks, begin: int, end: int) -> Part:
    first, last = blocks.bounds[begin], blocks.bounds[end]
    rows = np.column_stack([np.arange(begin, end), blocks.bounds[begin:end] - first])
    arrays = [rows.astype(np.uint32).ravel(), *(array[first:last] for array in blocks.arrays)]
    arrays = [np.require(array, requirements=["C", "W"]) for array in arrays]  # as OpenCL wants
    buffers = [device.upload(array) for array in arrays]
    return Part(begin, end, arrays, buffers)


class BlockSlots(Slots):
    """The slots through which blocks of all directions are sent: their rows and arrays."""

    def __init__(self, device: OpenCLDevice, ways: Sequence[Blocks], layout: Layout) -> None:
        super().__init__(
            device,
            [
                (2 * layout.slot_blocks, np.uint32),
                *((layout.slot_entries, array.dtype) for array in ways[0].arrays),
            ],
        )
        self._layout = layout
        for blocks in ways:  # compiles `gather_blocks` now
            _fill(blocks, np.empty(0, np.int64), self.slots[0].staging)

    def batches(self, blocks: Blocks, chosen: Numbers) -> Iterator[Numbers]:
        """Cut chosen blocks into batches that each fit a slot."""
        ends = np.cumsum(blocks.sizes[chosen])
        begin = before = 0
        while begin < chosen.size:
            end = int(np.searchsorted(ends, before + self._layout.slot_entries, side="right"))
            end = min(end, begin + self._layout.slot_blocks)
            yield chosen[begin:end]
            begin, before = end, int(ends[end - 1])

    def send(self, blocks: Blocks, chosen: Numbers, launch: Launch) -> None:
        """Send chosen blocks, and launch kernels on every slot that they fill."""
        for some in self.batches(blocks, chosen):
            self.send_slot(partial(_fill, blocks, some), launch)


def _fill(
    blocks: Blocks, chosen: Numbers, staging: list[npt.NDArray[Any]]
) -> tuple[int, list[npt.NDArray[Any]]]:
    from hetero_bfs.graph.kernels.neighbour_lists import gather_blocks

    sizes = blocks.sizes[chosen]
    begins = np.cumsum(sizes) - sizes
    rows, arrays = staging[0], staging[1:]
    rows[: 2 * chosen.size : 2] = chosen
    rows[1 : 2 * chosen.size : 2] = begins
    for array, gathered in zip(blocks.arrays, arrays, strict=True):
        gather_blocks(chosen, begins, blocks.bounds, array, gathered)
    entries = max(int(sizes.sum()), 1)
    return chosen.size, [rows[: 2 * chosen.size], *(array[:entries] for array in arrays)]


LaunchBlocks = Callable[[Part | Slot, Numbers, Sequence[Any]], Any]
"""Queues kernels that read blocks in some buffers, after events; returns the last kernel's event.
"""

LaunchOnAll = Callable[[list[Part | Slot], Sequence[Any]], Any]
"""Like `LaunchBlocks`, for one block with a buffer per direction."""

Sent = list[tuple[Part | Slot, Numbers]]
"""The buffers where blocks were on the device."""


class BlockMemory:
    """Blocks on a device. Only one memory of a device has its blocks there at a time.

    what : begins error messages, see `DeviceInfo.check_room`
    ways : the blocks of each direction
    array_bytes, slot_bytes : see `lay_out`
    forget : called when the memory is released, to drop kernels bound to it

    Raises `BudgetError` if there is no room for a few blocks besides the other arrays.
    """

    def __init__(
        self, device: OpenCLDevice, what: str, ways: list[Blocks], array_bytes: list[int],
        slot_bytes: list[int], forget: Callable[[], None],
    ) -> None:  # fmt: skip
        self.device, self._what, self.ways = device, what, ways
        entry_bytes = [array.itemsize for array in ways[0].arrays]
        self._sizes = array_bytes, entry_bytes, slot_bytes
        self._forget = forget
        self.parts: list[list[Part]] = []
        self._slots: BlockSlots | None = None
        self.layout = self._lay_out()

    def _lay_out(self, memory_bytes: int | None = None) -> Layout:
        """Divide the device's memory, or `memory_bytes` of it."""
        info = self.device.info
        if memory_bytes is not None:
            info = replace(info, memory_bytes=memory_bytes)
        return lay_out(info, self._what, self.ways, *self._sizes)

    @property
    def bytes_sent(self) -> int:
        """Bytes of blocks sent since the memory was taken."""
        return 0 if self._slots is None else self._slots.bytes_sent

    def take(self) -> None:
        """Allocate resident parts and slots; smaller ones if the device refuses the memory."""
        holder = None if self.device.blocks is None else self.device.blocks()
        if holder is self:
            return
        if holder is not None:
            holder.give()
        self.device.blocks = refused = None
        memory = self.device.info.memory_bytes
        self.layout = self._lay_out()
        while not self.parts:
            try:
                self._fill()
            except DeviceError as error:
                refused = refused or DeviceError(str(error))  # no traceback, which keeps arrays
                self.give()
                memory = memory * 3 // 4
                self._use_less(memory, refused)
        self.device.blocks = weakref.ref(self)

    def _use_less(self, memory_bytes: int, refused: DeviceError) -> None:
        """Lay out with less memory; raise `refused` if that is too little."""
        try:
            self.layout = self._lay_out(memory_bytes)
        except BudgetError:
            raise refused from None

    def give(self) -> None:
        """Release the blocks on the device."""
        self.device.finish()  # an interrupted run may still read them
        self.parts, self._slots = [], None
        self._forget()

    def _fill(self) -> None:
        """Make each direction's parts, and the slots."""
        parts = [resident_parts(self.device, blocks, self.layout) for blocks in self.ways]
        if self.layout.slot_entries:
            self._slots = BlockSlots(self.device, self.ways, self.layout)
        self.parts = parts

    def launch_along(self, way: int, chosen: Numbers, launch: LaunchBlocks) -> Sent:
        """Launch kernels on chosen blocks of a direction; return the buffers of the blocks."""
        rooms: Sent = []
        for part in self.parts[way]:
            here = chosen[slice(*np.searchsorted(chosen, (part.begin, part.end)))]
            if here.size:
                launch(part, here, ())
                rooms.append((part, here))
        missing = chosen[np.searchsorted(chosen, self.layout.resident) :]
        if self._slots is None or not missing.size:
            return rooms
        rest = missing

        def launch_slot(slot: Slot, count: int, copied: Any) -> Any:
            nonlocal rest
            here, rest = rest[:count], rest[count:]
            rooms.append((slot, here))
            return launch(slot, here, (copied,))

        self._slots.send(self.ways[way], missing, launch_slot)
        return rooms

    def batches(self, way: int) -> Iterator[Numbers]:
        """Yield all blocks of a direction, in batches that share a buffer."""
        for part in self.parts[way]:
            yield np.arange(part.begin, part.end)
        if self._slots is not None:
            blocks = self.ways[way]
            missing = np.arange(self.layout.resident, blocks.sizes.size)
            yield from self._slots.batches(blocks, missing)

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
        self.device.queue.flush()  # as `Slots` does
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
        """Choose the blocks that are resident besides arrays of these sizes."""
        n = self.ways[0].indptr.size - 1
        self.firsts = np.append(np.arange(0, n, self.group), n) if firsts is None else firsts
        self._bound_kernels: dict[Any, Any] = {}  # kernels bound to buffers of the memory
        self.marks = np.zeros(self.firsts.size, np.uint8)
        self.memory = BlockMemory(
            self.device,
            self.need,
            [Blocks(*way, self.firsts) for way in self.ways],
            [*array_bytes, self.marks.nbytes],
            self._slot_bytes(),
            self._bound_kernels.clear,
        )
        self.marks_buffer = self.device.buffer(self.marks.size, np.uint8)

    def bound_once(self, key: Any, bind: Callable[[], T]) -> T:
        """Return the kernels of a key, bound to buffers of the memory; bind them if needed."""
        found: T | None = self._bound_kernels.get(key)
        if found is None:
            found = self._bound_kernels[key] = bind()
        return found

    @property
    def launch_entries(self) -> int:
        return self.memory.layout.part_entries

    def blocks_with_lists_over(self, edges: int) -> list[npt.NDArray[np.bool_]]:
        """Return for each direction which blocks have a neighbour list with more entries."""
        longest = [np.maximum.reduceat(np.diff(w.indptr), self.firsts[:-1]) for w in self.ways]
        return [sizes > edges for sizes in longest]

    def marked(self) -> Numbers:
        """Read `marks` from the device, and return the marked blocks."""
        self.device.read(self.marks, self.marks_buffer)
        return np.flatnonzero(self.marks[:-1])

    @property
    def bytes_sent(self) -> int:
        return self.memory.bytes_sent
