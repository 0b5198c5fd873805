"""The data that moves when a vertex program's run migrates, and a run's stays on a device.

Both places use the same vertex numbers and compute the initial states themselves. During a run
each place marks the vertices whose states it writes, so the places differ only in marked vertices.
The migration transfers their states with their numbers, or all states if that is smaller. It
transfers the active vertices, and those that wait for their priority, as a list or as a bitmap,
whichever is smaller. `num_bytes` does not count about 100 bytes of counters.

GraphMat's hybrid also sends sparse vectors as pairs of index and value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hetero_bfs.devices.opencl.opencl_device import VARIES
from hetero_bfs.programs import device as device_run
from hetero_bfs.programs.device import DeviceProgram
from hetero_bfs.programs.options import Limits
from hetero_bfs.programs.plan import Plan
from hetero_bfs.programs.renumbered import Record
from hetero_bfs.programs.schema import Counter, Limit, Mode, Waiting, Word
from hetero_bfs.scheduling.program_decision import CHANGES_PER_EDGE, NUM_COSTS

_ID_BYTES = 4


def crosses_whole(changed: int, num_vertices: int, item_bytes: int) -> bool:
    """Tell whether all states are smaller than the changed ones with their vertex numbers."""
    return num_vertices * item_bytes < changed * (_ID_BYTES + item_bytes)


def bitmap_words(num_vertices: int) -> int:
    return -(-num_vertices // 32)


def is_listed(count: int, num_vertices: int) -> bool:
    """Tell whether a list of `count` vertices is at most as large as a bitmap."""
    return count <= bitmap_words(num_vertices)


class VertexSet(NamedTuple):
    """A set of vertices in transfer: uint32, either vertex numbers or words of a bitmap."""

    words: npt.NDArray[np.uint32]
    num_vertices: int
    is_list: bool

    def listed(self) -> npt.NDArray[np.uint32]:
        if self.is_list:
            return self.words
        bits = np.unpackbits(self.words.view(np.uint8), bitorder="little")
        return np.flatnonzero(bits).astype(np.uint32)

    @classmethod
    def of_list(cls, items: npt.NDArray[np.uint32], num_vertices: int) -> VertexSet:
        """Convert a list to the smaller representation."""
        if is_listed(items.size, num_vertices):
            return cls(items, items.size, True)
        bits = np.zeros(32 * bitmap_words(num_vertices), np.bool_)
        bits[items] = True
        return cls(np.packbits(bits, bitorder="little").view(np.uint32), items.size, False)

    @classmethod
    def of_bitmap(cls, words: npt.NDArray[np.uint32], count: int, num_vertices: int) -> VertexSet:
        """Convert a bitmap with `count` bits set to the smaller representation."""
        bitmap = cls(words, count, False)
        return cls(bitmap.listed(), count, True) if is_listed(count, num_vertices) else bitmap


@dataclass
class Handover:
    """State in transfer; its arrays belong to the sender, which may overwrite them later.

    `edges` counts the edges of the `num_active` active vertices; `receivers` is the expected number
    of receivers. program_decision.py explains `changes_per_edge`. `lowest` is the lowest priority
    that waits. `values` has arrays by field, for the vertices in `changed`, or for all vertices if
    that is None.
    """

    iteration: int
    num_active: int
    edges: int
    receivers: int
    changes_per_edge: float
    bucket_end: float
    lowest: float
    totals: npt.NDArray[np.float64]
    active: VertexSet
    waiting: VertexSet
    changed: npt.NDArray[np.uint32] | None
    values: dict[str, npt.NDArray[Any]]

    @property
    def num_bytes(self) -> int:
        arrays = [self.active.words, self.waiting.words, *self.values.values()]
        return sum(array.nbytes for array in arrays) + (
            0 if self.changed is None else self.changed.nbytes
        )


_KERNELS = ["programs/kernels/migration.cl"]
_NO_PRIORITY = 0x7FFFFFFF  # the lowest priority if no vertex waits
_WAITING = np.uint8(Waiting.WAITING)
_ZERO = np.uint32(0)


def _ordered(value: float) -> int:
    """Map a float to an integer with the same order, as state.cl does."""
    bits = int(np.float32(value).view(np.int32))
    return bits ^ 0x7FFFFFFF if bits < 0 else bits


def _from_ordered(bits: int) -> float:
    if bits == _NO_PRIORITY:
        return np.inf
    return float(np.int32(bits ^ 0x7FFFFFFF if bits < 0 else bits).view(np.float32))


class Packing:
    """Kernels that pack and unpack a program's arrays, and staging memory on the host."""

    def __init__(self, program: DeviceProgram) -> None:
        self._program, self.device = program, program.device
        self._built = self.device.build([f"-DGROUP={self._program.group}"], "", _KERNELS)
        graph = program.graph
        self._n, self._words = graph.num_vertices, bitmap_words(graph.num_searched)
        self._searched = graph.num_searched
        self._bits = self.device.buffer(self._words, np.uint32)
        self._count = self.device.buffer(1, np.uint32)
        self._items = program.shared["touched_items"]  # free between iterations, like `heavy`
        self._values = program.shared["heavy"]
        self._staging: dict[str, npt.NDArray[Any]] = {}
        self._bound: dict[Any, Any] = {}

    def launch(self, name: str, *arguments: Any) -> None:
        """Queue a kernel of migration.cl.

        NumPy scalars may differ at each call. Other arguments are buffers, which the bound kernel
        keeps.
        """
        given = [argument for argument in arguments if isinstance(argument, np.generic)]
        fixed = [VARIES if isinstance(one, np.generic) else one for one in arguments]
        key = name, *map(id, fixed)
        if key not in self._bound:
            self._bound[key] = self.device.bind(self._built, name, *fixed)
        self._program.launch_all(self._bound[key], *given)

    def staging(self, name: str, size: int, kind: Any, most: int) -> npt.NDArray[Any]:
        """Return a pinned host array of `size` items; the next call with this name reuses it.

        `most` is the largest size that any call with this name asks for.
        """
        if name not in self._staging:
            self._staging[name] = self.device.host_array(most, kind)
        return self._staging[name][:size]

    def read_list(self, buffer: Any, count: int, first: int, name: str) -> VertexSet:
        """Read `count` vertices from item `first` of a buffer, as a list or as a bitmap."""
        size, whole = count, self._words
        if not is_listed(count, self._searched):
            self.device.fill(self._bits, 0)
            self.launch("set_bits", np.uint32(count), np.uint32(first), buffer, self._bits)
            buffer, first, size = self._bits, 0, whole
        words = self.staging(name, size, np.uint32, whole)
        if size:
            self.device.read(words, buffer, 4 * first)
        return VertexSet(words, count, is_listed(count, self._searched))

    def write_list(self, vertices: VertexSet, buffer: Any, first: int) -> None:
        """Write a set of vertices as a list, from item `first` of a buffer."""
        if vertices.is_list:
            if vertices.num_vertices:
                self.device.write(buffer, vertices.words, 4 * first)
            return
        self.device.write(self._bits, vertices.words)
        self.device.fill(self._count, 0)
        searched = np.uint32(self._searched)
        self.launch("list_bits", searched, self._bits, np.uint32(first), buffer, self._count)

    def list_marked(self, marks: Any, mark: np.uint8, vertices: int) -> int:
        """Write the vertices with this mark to `items`; return their number."""
        self.device.fill(self._count, 0)
        self.launch("list_marked", np.uint32(vertices), marks, mark, self._items, self._count)
        count = np.empty(1, np.uint32)
        self.device.read(count, self._count)
        return int(count[0])

    def read_states(self) -> tuple[npt.NDArray[np.uint32] | None, dict[str, npt.NDArray[Any]]]:
        """Read the changed vertices (None for all) and their states; clear the marks."""
        n, fields = self._n, self._program.plan.fields
        item_bytes = sum(np.dtype(kind).itemsize for kind in fields.values())
        marks, whole, count = self._program.shared["changed"], self._program.plan.all_active, n
        if not whole:
            count = self.list_marked(marks, np.uint8(1), n)
            self.device.fill(marks, 0)
            whole = crosses_whole(count, n, item_bytes)
        values = {name: self.staging(f"state_{name}", n, kind, n) for name, kind in fields.items()}
        if whole:
            for name, array in values.items():
                self.device.read(array.view(np.uint8), self._program.state[f"state_{name}"])
            return None, values
        items = self.staging("items", count, np.uint32, n)
        if count:
            self.device.read(items, self._items)
        for name, array in values.items():
            values[name] = array[:count]
            field = self._program.state[f"state_{name}"]
            for first, part in self._portions(values[name]):
                size, kernel = np.uint32(part.size), f"gather_{part.itemsize}"
                self.launch(kernel, size, np.uint32(first), self._items, field, self._values)
                self.device.read(part.view(np.uint8), self._values)
        return items, values

    def write_states(
        self, changed: npt.NDArray[np.uint32] | None, values: dict[str, npt.NDArray[Any]]
    ) -> None:
        """Write the states of the `changed` vertices; None: of all."""
        device = self.device
        if changed is not None and changed.size:
            device.write(self._items, changed)
        for name, array in values.items():
            field = self._program.state[f"state_{name}"]
            if changed is None:
                device.write(field, array.view(np.uint8))
                continue
            for first, part in self._portions(array):
                size, kernel = np.uint32(part.size), f"scatter_{part.itemsize}"
                device.write(self._values, part.view(np.uint8))
                self.launch(kernel, size, np.uint32(first), self._items, field, self._values)

    def _portions(self, array: npt.NDArray[Any]) -> list[tuple[int, npt.NDArray[Any]]]:
        """Divide an array into parts that fit into `values`; return them with first indices."""
        most = max(4 * self._n // array.itemsize, 1)
        return [(first, array[first : first + most]) for first in range(0, array.size, most)]


class DeviceStay:
    """One run's stays on a device.

    `program` runs iterations, not sweeps; `packing` belongs to it. `costs` is a float64 array in
    the layout of program_decision.py, with the costs on the device first, then those on the host.
    """

    def __init__(
        self, program: DeviceProgram, packing: Packing, plan: Plan, limits: Limits,
        costs: npt.NDArray[np.float64],
    ) -> None:  # fmt: skip
        self._program, self._packing, self.device = program, packing, program.device
        self._costs, self._n = costs, program.graph.num_vertices
        self._has_priority = "priority" in plan.methods
        self._bytes_before = program.start(plan, limits)
        self._width, self._planned = limits.bucket_width, device_run.num_planned(limits)
        self._loop = np.zeros(len(Word), np.int64)
        self._counters = np.zeros(len(Counter), np.uint64)
        self._loop[Word.RECEIVERS] = program.graph.num_searched
        self._loop[Word.TRACKS] = not plan.all_active
        end = -np.inf if self._has_priority else np.inf
        program.write_bucket(end, self._width, costs)
        self.device.fill(program.shared["changed"], 0)
        self._has_begun = False

    def run_on(self, max_iterations: int, first: int) -> tuple[int, bool, list[Record]]:
        """Start, or continue after `enter`; see `DeviceProgram.run_on`."""
        program, loop = self._program, self._loop
        loop[Word.LIMIT], loop[Word.PLANNED] = max_iterations, self._planned
        self.device.write(program.shared["loop"], loop)
        if self._has_begun:
            program.launch_all(program.enter)
            program.launch_entry()
        else:
            program.launch_start()
        self._has_begun = True
        outcome = program.run_on(max_iterations, first)
        self.device.read(loop, program.shared["loop"])
        self.device.read(self._counters, program.shared["counters"])
        return outcome

    @property
    def streamed_bytes(self) -> int:
        """Bytes of CSR arrays that this run has sent to the device."""
        return self._program.bytes_sent - self._bytes_before

    def leave(self) -> Handover:
        program, packing, loop = self._program, self._packing, self._loop
        limits = np.empty(Limit.FIRST_COST + NUM_COSTS, np.float32)
        self.device.read(limits, program.shared["limits"])
        lowest = int(self._counters[Counter.LOWEST : Counter.LOWEST + 1].view(np.int32)[0])
        first = self._n if loop[Word.SIDES] & 1 else 0
        active = packing.read_list(program.shared["next"], int(loop[Word.LISTED]), first, "active")
        count = 0
        if self._has_priority:
            searched = program.graph.num_searched
            count = packing.list_marked(program.shared["waiting"], _WAITING, searched)
        waiting = packing.read_list(program.shared["touched_items"], count, 0, "waiting")
        changed, values = packing.read_states()
        return Handover(
            int(loop[Word.ITERATION]), int(loop[Word.NUM_ACTIVE]), int(loop[Word.EDGES]),
            int(loop[Word.RECEIVERS]),
            float(limits[Limit.FIRST_COST + CHANGES_PER_EDGE]),
            float(limits[0]), _from_ordered(lowest),
            np.array([*program.read_totals().values()], np.float64), active, waiting, changed,
            values,
        )  # fmt: skip

    def enter(self, handover: Handover) -> None:
        program, packing, loop, n = self._program, self._packing, self._loop, self._n
        if not self._has_begun:
            self.device.write(program.shared["loop"], loop)
            program.launch_all(program.begin)
            self._has_begun = True
        packing.write_states(handover.changed, handover.values)
        packing.write_list(handover.active, program.shared["next"], n)
        if self._has_priority:
            self.device.fill(program.shared["waiting"], 0)
            packing.write_list(handover.waiting, program.shared["far"], n)
        if handover.totals.size:
            totals = handover.totals.astype(program.total_type)
            self.device.write(program.state["totals"], totals)
        counters = self._counters
        counters[:] = 0
        counters[Counter.NEXT_COUNT] = handover.active.num_vertices
        counters[Counter.FAR_COUNT] = handover.waiting.num_vertices
        counters[Counter.ACTIVE] = handover.num_active
        counters[Counter.ACTIVE_EDGES] = handover.edges
        counters[Counter.LOWEST] = np.uint32(_ordered(handover.lowest) & 0xFFFFFFFF)
        self.device.write(program.shared["counters"], counters)
        tracks = loop[Word.TRACKS]
        loop[:] = 0
        loop[Word.ITERATION], loop[Word.MODE] = handover.iteration, Mode.SELECT
        loop[Word.RECEIVERS], loop[Word.TRACKS] = handover.receivers, tracks
        self._costs[CHANGES_PER_EDGE] = handover.changes_per_edge
        program.write_bucket(handover.bucket_end, self._width, self._costs)
