"""A device's memory for lists that do not all fit: resident blocks, and slots for the others."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hetero_bfs.devices.opencl.driver import OpenCLDevice
from hetero_bfs.devices.opencl.streaming.block_lists import (
    Blocks,
    BlockSlots,
    Layout,
    Numbers,
    Part,
    lay_out,
    resident_parts,
)
from hetero_bfs.devices.opencl.streaming.paged_graph import NUM_SLOTS
from hetero_bfs.devices.opencl.streaming.pages import Slot
from hetero_bfs.errors import BudgetError, DeviceError

Launch = Callable[[Part | Slot, Numbers, Sequence[Any]], Any]
"""Queues kernels that read blocks in some buffers, after events; returns the last one's event."""

LaunchOnAll = Callable[[list[Part | Slot], Sequence[Any]], Any]
"""The same for a block whose lists of each direction are in buffers of their own."""

Sent = list[tuple[Part | Slot, Numbers]]
"""Where blocks were on the device."""


class BlockMemory:
    """Blocks of lists on a device. Of all memories of a device only one has its blocks there.

    Parameters
    ----------
    device : OpenCLDevice
    what : str
        Begins the message of an error, see `check_room`.
    ways : list of Blocks
        The blocks of each direction.
    array_bytes, slot_bytes : list of int
        See `lay_out`.
    forget : callable
        Called without arguments when the memory is released, to drop kernels bound to it.

    Raises
    ------
    BudgetError
        There is no room for a few blocks beside the other arrays.
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
        """Share the device's memory, or less of it."""
        info = self.device.info
        if memory_bytes is not None:
            info = replace(info, memory_bytes=memory_bytes)
        return lay_out(info, self._what, self.ways, *self._sizes)

    @property
    def bytes_sent(self) -> int:
        """Bytes of blocks that were sent since the memory was taken."""
        return 0 if self._slots is None else self._slots.bytes_sent

    def take(self) -> None:
        """Allocate resident parts and slots; fewer if the device refuses the memory."""
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
        """Lay out with less memory; raise the device's error if it is too little."""
        try:
            self.layout = self._lay_out(memory_bytes)
        except BudgetError:
            raise refused from None

    def give(self) -> None:
        """Release the lists on the device."""
        self.device.finish()  # an interrupted run may still read them
        self.parts, self._slots = [], None
        self._forget()

    def _fill(self) -> None:
        """Make the parts of each direction, and the slots."""
        parts = [resident_parts(self.device, blocks, self.layout) for blocks in self.ways]
        if self.layout.slot_entries:
            self._slots = BlockSlots(self.device, self.ways, self.layout)
        self.parts = parts

    def launch_along(self, way: int, chosen: Numbers, launch: Launch) -> Sent:
        """Launch kernels on chosen blocks of a direction; return where these were."""
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
        """Yield all blocks of a direction, in batches that are in a buffer together."""
        for part in self.parts[way]:
            yield np.arange(part.begin, part.end)
        if self._slots is not None:
            blocks = self.ways[way]
            missing = np.arange(self.layout.resident, blocks.sizes.size)
            yield from self._slots.batches(blocks, missing)

    def launch_again(self, sent: Sent, launch: Launch) -> bool:
        """Launch kernels on the same blocks again; return whether all were still there."""
        if sum(isinstance(room, Slot) for room, _ in sent) > NUM_SLOTS:
            return False
        for room, blocks in sent:
            event = launch(room, blocks, ())
            if isinstance(room, Slot):
                room.read = event
        return True

    def launch_on_all(self, block: int, launch: LaunchOnAll) -> None:
        """Launch kernels that read one block's lists of all directions."""
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
