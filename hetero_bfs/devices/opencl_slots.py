"""Parts of the edge array in the memory of a device that has no room for all of them.

A slot keeps its part from level to level and from search to search, until another part needs the
room; of a part, only the blocks that some level needed are there. Copies run in a queue of their
own, so that one part is read by a kernel while the next ones arrive.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.devices.opencl import OpenCLDevice
from hetero_bfs.devices.opencl_stream_graph import StreamPlan
from hetero_bfs.partition import EDGE_BYTES

_GAP_BYTES = 2**18
"""Blocks that nobody needs are sent along if fewer lie between others: a copy costs as much."""

_ROTATING_SLOTS = 3
"""Slots that parts pass through; the others keep theirs as long as these suffice."""

Mask = npt.NDArray[np.bool_]


@dataclass
class Slot:
    """Room for one part, and what is there.

    Parameters
    ----------
    number : int
    buffer : pyopencl.Buffer
    present : bool (blocks of a part,)
    part : (int, int), optional
        Direction and number of the part; None while the slot is empty.
    last : pyopencl.Event, optional
        Of the last kernel that reads it.
    """

    number: int
    buffer: Any
    present: Mask
    part: tuple[int, int] | None = None
    last: Any = field(default=None, repr=False)


@dataclass(frozen=True)
class Piece:
    """What a kernel reads: edges [begin, end) of the part that begins at `part_begin`."""

    direction: int
    part_begin: int
    begin: int
    end: int


Launch = Callable[[Slot, Piece, list[Any]], Any]
"""Queues the kernel on what a slot holds, after some events; returns the kernel's own."""


class PartSlots:
    """The slots of a device.

    Parameters
    ----------
    device : OpenCLDevice
    edges : sequence of lists of uint32 arrays
        The parts of the edges of each direction, on the host.
    plan : StreamPlan
    """

    def __init__(
        self,
        device: OpenCLDevice,
        edges: Sequence[list[npt.NDArray[np.uint32]]],
        plan: StreamPlan,
    ) -> None:
        self._device = device
        self._edges = edges
        self._plan = plan
        self._queue = device.second_queue()
        self._blocks = 1 << (plan.part_shift - plan.block_shift)
        self._gap = max(_GAP_BYTES // EDGE_BYTES >> plan.block_shift, 1)
        part_edges = 1 << plan.part_shift
        self.slots = [
            Slot(number, device.buffer(part_edges, np.uint32), np.zeros(self._blocks, np.bool_))
            for number in range(plan.num_slots)
        ]
        self.bytes_sent = 0

    def stream(self, direction: int, needed: Mask, launch: Launch) -> None:
        """Bring what is missing of the needed blocks, and launch a kernel on each part of them.

        Parameters
        ----------
        direction : int
        needed : bool (blocks of all parts,)
        launch : Launch
        """
        padded = np.zeros(self._plan.num_parts * self._blocks, np.bool_)
        padded[: needed.size] = needed
        masks = padded.reshape(-1, self._blocks)
        parts = np.flatnonzero(masks.any(axis=1)).tolist()
        held = {slot.part: slot for slot in self.slots}
        parts.sort(key=lambda part: (direction, part) not in held)  # evicts what has been read
        victims = self._victims({(direction, part) for part in parts})
        for part in parts:
            slot = held.get((direction, part)) or self._evict(next(victims), (direction, part))
            copied = self._fill(slot, masks[part])
            slot.last = launch(slot, self._piece(direction, part, masks[part]), copied)
            self._device.queue.flush()  # copies into the slot wait for it

    def _victims(self, needed: set[tuple[int, int]]) -> Iterator[Slot]:
        """Return slots in the order in which they take other parts, again and again."""
        idle = [slot for slot in self.slots if slot.part not in needed]
        idle.sort(key=lambda slot: int(slot.present.sum()))
        busy = [slot for slot in self.slots if slot.part in needed]
        spared = max(len(busy) - max(_ROTATING_SLOTS - len(idle), 0), 0)
        return itertools.cycle(idle + busy[spared:])

    def _evict(self, slot: Slot, part: tuple[int, int]) -> Slot:
        slot.part = part
        slot.present[:] = False
        return slot

    def _fill(self, slot: Slot, needed: Mask) -> list[Any]:
        """Send what is missing of a slot's part; returns the events to wait for."""
        assert slot.part is not None
        direction, part = slot.part
        edges, shift = self._edges[direction][part], self._plan.block_shift
        after = [] if slot.last is None else [slot.last]
        copied: list[Any] = []
        for begin, end in _runs(np.flatnonzero(needed & ~slot.present), self._gap):
            piece = edges[begin << shift : end << shift]
            offset = EDGE_BYTES * begin << shift
            copied = [self._device.send(self._queue, slot.buffer, offset, piece, after)]
            slot.present[begin:end] = True
            self.bytes_sent += piece.nbytes
        if copied:
            self._queue.flush()
        return copied

    def _piece(self, direction: int, part: int, needed: Mask) -> Piece:
        blocks, shift = np.flatnonzero(needed), self._plan.block_shift
        part_begin = part << self._plan.part_shift
        end = min(int(blocks[-1]) + 1 << shift, self._edges[direction][part].size)
        return Piece(
            direction, part_begin, part_begin + (int(blocks[0]) << shift), part_begin + end
        )


def _runs(blocks: npt.NDArray[np.intp], gap: int) -> list[tuple[int, int]]:
    """Return the runs [begin, end) of these blocks, joined where less than `gap` lies between."""
    if blocks.size == 0:
        return []
    breaks = np.flatnonzero(np.diff(blocks) > gap)
    begins = blocks[np.append(0, breaks + 1)]
    ends = blocks[np.append(breaks, blocks.size - 1)] + 1
    return list(zip(begins.tolist(), ends.tolist(), strict=True))
