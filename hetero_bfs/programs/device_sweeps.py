"""A vertex program on an OpenCL device, in sweeps over an arranged graph, which may be streamed.

Streamed sweeps process one part (layer or colour) at a time. For each part the host reads which
blocks have dirty vertices, sends those that are not resident, and launches the
kernels on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.devices.opencl.opencl_device import VARIES, BoundKernel, OpenCLDevice
from hetero_bfs.devices.opencl.streamed_lists import Numbers, Part, Sent, Slot
from hetero_bfs.errors import BudgetError
from hetero_bfs.graph.edge_source import NO_VERTEX
from hetero_bfs.programs import device as device_run
from hetero_bfs.programs import renumbered
from hetero_bfs.programs.device import DeviceProgram
from hetero_bfs.programs.options import Limits
from hetero_bfs.programs.plan import Plan
from hetero_bfs.programs.renumbered import BEGIN, END, TIMES, ArrangedGraph, Record
from hetero_bfs.programs.schema import Counter, Phase, Word
from hetero_bfs.programs.streamed import InBlocks
from hetero_bfs.scheduling.speed_model import ProgramCosts

_BATCH_LAUNCHES = 1 << 9
"""Launches that are queued at once, unless one sweep has more."""

_HEAVY_EDGES, _HEAVY_EDGES_OF_CPU = 1 << 7, 1 << 12

_RESIDENT_ITEMS = 1 << 11
"""Work-items of a GPU's compute unit that are resident at once."""

_EXACT, _SETTLED, _STEP, _TIMES, _PART = 3, 4, 5, 6, 7
"""Items of a `Visit`: whether its part is exact; the vertex before which the sweep visits none
again; the number of the visit; passes in one launch; and the part of the first pass."""

Visit = npt.NDArray[np.uint32]
"""One pass through a part, as sweep.cl describes it."""


def heavy_edges(info: DeviceInfo) -> int:
    """Return the list length from which a work-group shares one vertex's neighbour list.

    A CPU runs the work-items of a group one after another, so sharing only costs it barriers.
    """
    return _HEAVY_EDGES_OF_CPU if info.type == "CPU" else _HEAVY_EDGES


def combined_edges(info: DeviceInfo) -> int:
    """Return the least edges of joined levels: an edge for each work-item that a GPU can hold.

    This is WolfPath's equation 1. A CPU runs few work-items at once, and saves launches.
    """
    items = 0 if info.type == "CPU" else info.compute_units * _RESIDENT_ITEMS
    return max(items, renumbered._PART_EDGES)


def most_in_one_group(info: DeviceInfo) -> int:
    """Return the most vertices of joined levels that one work-group goes through in a launch."""
    return NO_VERTEX if info.type == "CPU" else 4 * info.group_size(DeviceProgram.GROUP)


def visit_of(begin: int, heavy: int, end: int, exact: int, times: int) -> npt.NDArray[np.uint32]:
    """Return a part as a `Visit` (sweep.cl); the caller writes its number."""
    return np.array([begin, heavy, end, exact, end, 0, times, 0], np.uint32)


class Launch(NamedTuple):
    """A kernel, its number of work-groups, and the visit that it makes."""

    kernel: BoundKernel
    groups: int
    visit: Visit


def visits_of_sweep(graph: ArrangedGraph, info: DeviceInfo) -> list[Visit]:
    """Return the visits of a sweep on a device, each with a launch or two.

    One work-group makes all visits to a few joined levels in one launch. Other joined levels are
    visited by all work-groups, once per level.
    """
    visits = []
    for part in graph.joined(combined_edges(info)).tolist():
        visit = visit_of(*part)
        begin, end = int(visit[0]), int(visit[2])
        if end - begin > most_in_one_group(info):
            visit[_TIMES] = 1
            earlier = visit.copy()
            earlier[_SETTLED] = begin
            visits += [earlier.copy() for _ in range(part[TIMES] - 1)]
        visits.append(visit)
    return visits


def launches_of_sweep(graph: ArrangedGraph, info: DeviceInfo) -> int:
    """Return the launches of kernels that go through the parts in a sweep."""
    visits = visits_of_sweep(graph, info)
    return sum(1 if one[_TIMES] > 1 or one[_EXACT] else 2 for one in visits)


class DeviceSweeps(DeviceProgram):
    """A `DeviceProgram` for an arranged graph, with the kernels of sweep.cl."""

    graph: ArrangedGraph
    files: Sequence[str] = tuple(f"programs/kernels/{name}.cl" for name in ("state", "sweep"))
    keeps_order: ClassVar = False
    _planned_classes: int | None = None
    """The number of classes for which launches are planned, None before the first run."""

    def _shared_sizes(self) -> dict[str, tuple[int, npt.DTypeLike]]:
        n, stored = self._n, np.dtype(self.plan.stored_type)
        return {
            "outgoing": (n if self.plan.prepares else 1, stored),
            "sent": (n, np.uint8),
            "dirty": (n, np.uint8),
            "messages": (n, stored),
            "gathered": (n, np.int32),
            "counters": (len(Counter), np.uint64),
            "sums": (self.groups * max(len(self.plan.totals), 1), np.float64),
            "loop": (len(Word), np.int64),
        }

    def _bind(self) -> None:
        offsets, *_ = self._lists(0)
        self._without_lists = [
            offsets, self._nothing, self._nothing, np.uint32(self._n), *self.arrays()
        ]  # fmt: skip
        most, bind, program = np.uint32(device_run._MOST_RECORDS), self.device.bind, self._program
        self._begin = bind(program, "begin_run", *self._without_lists)
        self._end = bind(
            program, "end_sweep", VARIES, np.uint32(self.groups), self._records, most,
            *self._without_lists,
        )  # fmt: skip
        self._bind_parts()

    def _bind_parts(self) -> None:
        lists, backward = [*self._lists(0), np.uint32(self._n)], self._lists(-1)
        bind, program, arrays = self.device.bind, self._program, self.arrays()
        self._spread = bind(program, "spread", *lists, *arrays)
        self._gather = bind(program, "gather_part", VARIES, *lists, *backward, *arrays)
        begins = np.append(self.graph.parts[:, BEGIN], self._n).astype(np.uint32)
        self._begins = self.device.buffer(begins.size, np.uint32)
        self.device.write(self._begins, begins)
        self._run_part = bind(
            program, "run_part", VARIES, self._begins, *lists, *backward, *arrays
        )  # fmt: skip
        self._apply = bind(program, "apply_part", VARIES, *lists, *arrays)

    def _list_launches(self, num_classes: int) -> list[Launch]:
        """Return the launches of a sweep; see `RunOptions` for the number of classes."""
        launches: list[Launch] = []
        for number, visit in enumerate(visits_of_sweep(self.graph, self.device.info)):
            begin, heavy, end, exact, *_ = visit.tolist()
            groups = max(heavy - begin, -(-(end - heavy) // self.group))
            is_last = number >= num_classes - 1 if num_classes else groups == 1 and heavy == begin
            if visit[_TIMES] > 1 or (exact and is_last):
                before = launches[-1] if launches else None
                if exact and before is not None and before.kernel is self._run_part:
                    before.visit[_TIMES] += 1
                else:
                    visit[_PART] = number  # of a colour
                    launches.append(Launch(self._run_part, 1, visit))
                continue
            for kernel in [self._gather] if exact else [self._gather, self._apply]:
                launches.append(Launch(kernel, min(groups, self.groups), visit))
        return launches

    def launch_start(self) -> None:
        self._step = 1
        self.device.fill(self.shared["sums"], 0)
        self.launch_all(self._begin)
        self._launch_spread()
        self.launch(self._end, 1, np.int32(1))

    def _launch_spread(self) -> None:
        """Queue the kernel that marks the neighbours of initially active vertices."""
        self.launch_all(self._spread)

    def _launch_iteration(self) -> None:
        """Queue a sweep, which does nothing after the end of the run."""
        group = self.group
        for kernel, groups, visit in self._launches:
            if kernel is not self._apply:  # it uses the number of the gather before it
                self._number(visit)
            kernel.launch(groups * group, group, visit)
        self.launch(self._end, 1, np.int32(0))

    def _number(self, visit: npt.NDArray[np.uint32]) -> None:
        """Give a visit its number, or the first of its numbers if it is repeated."""
        visit[_STEP] = self._step
        self._step += int(visit[_TIMES])

    def _write_limits(self, limits: Limits) -> None:
        loop = np.zeros(len(Word), np.int64)
        loop[Word.LIMIT] = limits.max_iterations
        self.device.write(self.shared["loop"], loop)
        self.device.fill(self.shared["counters"], 0)
        self._plan_launches(limits.num_classes)

    def _plan_launches(self, num_classes: int) -> None:
        if num_classes == self._planned_classes:
            return
        self._planned_classes = num_classes
        self._launches = self._list_launches(num_classes)
        self._most_batch = max(
            1, min(device_run._MOST_BATCH, _BATCH_LAUNCHES // len(self._launches))
        )
        self._batch = min(self._batch, self._most_batch)

    def _read_records(self, first: int, seconds: list[float]) -> list[Record]:
        name = f"device {self.graph.mode}"
        return [(name, *record[1:]) for record in super()._read_records(first, seconds)]


class _BlocksOfPart:
    """A part's visit and its range of blocks; blocks of long lists come before block `others`."""

    def __init__(self, part: list[int], begin: int, others: int, end: int) -> None:
        self.visit = visit_of(*part)
        self.begin, self.others, self.end = begin, others, end
        self.is_joined = part[TIMES] > 1
        self.is_exact = bool(self.visit[_EXACT])


def _cut(
    parts: npt.NDArray[np.int64], group: int
) -> tuple[npt.NDArray[np.uint32], list[_BlocksOfPart]]:
    """Cut parts into blocks; return the first vertex of each block, and the blocks of each part.

    A block is one vertex with a long list, up to `group` other vertices, or a whole joined part.
    """
    firsts: list[npt.NDArray[np.int64]] = []
    of_parts, count = [], 0
    for part in parts.tolist():
        begin, heavy, end, _, times = part
        long = np.arange(begin, begin if times > 1 else heavy)
        others = np.arange(long.size + begin, end, end - begin if times > 1 else group)
        of_parts.append(
            _BlocksOfPart(part, count, count + long.size, count + long.size + others.size)
        )
        firsts += [long, others]
        count += long.size + others.size
    return np.concatenate([*firsts, [parts[-1, END]]]).astype(np.uint32), of_parts


class StreamedSweeps(InBlocks, DeviceSweeps):
    """`DeviceSweeps` whose vertex arrays and a few blocks of CSR arrays fit on the device.

    In a directed graph every visit, even of an exact part, gathers along one direction and then
    applies along the other. Raises `BudgetError` if vertex arrays and a few blocks do not fit.
    """

    files = ("devices/opencl/tiles.cl", *DeviceSweeps.files)

    def _make_room(self, array_bytes: list[int], firsts: npt.NDArray[Any] | None = None) -> None:
        """Choose the resident blocks that fit with arrays of these sizes."""
        blocks, self._parts = _cut(self.graph.parts, self.group)
        super()._make_room([*array_bytes, blocks.nbytes], blocks)
        self._firsts = self.device.buffer(blocks.size, np.uint32)
        self.device.write(self._firsts, blocks)

    def _bind_parts(self) -> None:
        self._choose = self.device.bind(
            self._program, "choose_in_sweep", VARIES, self._firsts, self.marks_buffer,
            *self._without_lists,
        )  # fmt: skip
        self._apply_all = self._bind_on("apply_part", None, None)
        self._batch = self._most_batch = 1
        self.memory.take()

    def _plan_launches(self, num_classes: int) -> None:
        """Do nothing: the host chooses the launches of each part."""

    def _kernel_on(self, name: str, room: Part | Slot, backward: Part | Slot) -> BoundKernel:
        """Return a kernel bound to the buffers of `room`, and of `backward` if it reads both."""
        return self.bound_once(
            (name, id(room), id(backward)),
            lambda: self._bind_on(name, room.buffers, backward.buffers),
        )

    def _bind_on(
        self, name: str, forward: list[Any] | None, backward: list[Any] | None
    ) -> BoundKernel:
        """Bind a kernel to buffers; None for a direction that it does not read."""
        nothing = self._nothing

        def arrays(buffers: list[Any] | None) -> list[Any]:
            return [*(buffers or [nothing] * 3), nothing][:3]

        rows, *lists = arrays(forward)
        backward_rows, *backward_lists = arrays(backward)
        arguments = [self._firsts, rows, backward_rows, VARIES]
        arguments += [self.offsets(0), *lists, np.uint32(self._n)]
        if name in ("gather_part", "run_part"):
            arguments += [self.offsets(-1), *backward_lists]
        visit = [] if name == "spread" else [VARIES]
        return self.device.bind(self._program, name, *visit, *arguments, *self.arrays())

    def _launch_spread(self) -> None:
        if self.plan.all_active:
            return
        chosen = self._chosen(Phase.STARTS, 0, self.marks.size - 1)
        self._launch_along(0, "spread", chosen, None, 0)

    def _launch_iteration(self) -> None:
        """Run a sweep; after the end of the run it does nothing."""
        if not self.read(self.shared["loop"], len(Word), np.int64)[Word.MODE]:
            return
        for part in self._parts:
            self._number(part.visit)
            self._run_turn(part)
        self.launch(self._end, 1, np.int32(0))

    def _run_turn(self, part: _BlocksOfPart) -> None:
        """Queue a pass through a part, or all passes through joined levels."""
        visit, all_active = part.visit, self.plan.all_active
        blocks = part.begin, part.end
        dirty = np.arange(*blocks) if all_active else self._chosen(Phase.GATHERS, *blocks)
        if not dirty.size:
            return
        if part.is_joined:
            self._run_joined(part.begin, visit)
            return
        visit[_EXACT] = part.is_exact and not len(self.ways) > 1
        sent = self._launch_along(-1, "gather_part", dirty, visit, part.others)
        if visit[_EXACT]:
            return
        if all_active:
            self.launch_all(self._apply_all, visit, self._rows(0, 0, 0))
        elif len(self.ways) > 1 or not self._launch_again(sent, visit, part.others):
            gathered = self._chosen(Phase.APPLIES, *blocks, int(visit[_STEP]))
            self._launch_along(0, "apply_part", gathered, visit, part.others)

    def _chosen(self, phase: int, begin: int, end: int, step: int = 0) -> Numbers:
        """Return the blocks from `begin` to `end` whose neighbour lists a phase reads."""
        numbers = np.array([phase, begin, end, step], np.uint32)
        self.launch(self._choose, (end - begin) * self.group, numbers)
        marks = self.marks[begin:end]
        self.device.read(marks, self.marks_buffer, begin)
        return np.flatnonzero(marks) + begin

    def _launch_along(
        self, way: int, name: str, blocks: Numbers, visit: Visit | None, others: int
    ) -> Sent:
        """Queue a kernel on blocks of a direction; blocks before `others` have long lists."""
        return self.memory.launch_along(way, blocks, self._launching(name, visit, others))

    def _launch_again(self, sent: Sent, visit: Visit, others: int) -> bool:
        """Queue the applies on the blocks of the gathers, if they are still on the device."""
        return self.memory.launch_again(sent, self._launching("apply_part", visit, others))

    def _launching(self, name: str, visit: Visit | None, others: int) -> Any:
        given = [] if visit is None else [visit]

        def launch(room: Part | Slot, blocks: Numbers, after: Sequence[Any]) -> Any:
            first, end, count = 0, int(np.searchsorted(blocks, others)), blocks.size
            if isinstance(room, Part):  # it has rows of all its blocks
                first, count = blocks[0] - room.begin, blocks[-1] + 1 - room.begin
                end = np.clip(others - room.begin, first, count)
            rows = self._rows(first, end, count)
            kernel = self._kernel_on(name, room, room)
            return self.launch(kernel, int(count - first) * self.group, *given, rows, after=after)

        return launch

    def _rows(self, *numbers: int) -> npt.NDArray[np.uint32]:
        """Return `rows` of sweep.cl: three numbers, and the number of all blocks."""
        return np.array([*numbers, self.marks.size - 1], np.uint32)

    def _run_joined(self, block: int, visit: Visit) -> None:
        """Queue all passes through joined levels, which are one block."""

        def launch(rooms: list[Part | Slot], after: Sequence[Any]) -> Any:
            at = [block - room.begin if isinstance(room, Part) else 0 for room in rooms]
            kernel = self._kernel_on("run_part", rooms[0], rooms[-1])
            rows = self._rows(at[0], at[-1], 0)
            return self.launch(kernel, 1, visit, rows, after=after)

        self.memory.launch_on_all(block, launch)


def sweeps_on(
    plan: Plan, device: OpenCLDevice, graph: ArrangedGraph, costs: ProgramCosts
) -> DeviceSweeps:
    """Compile a program for sweeps on a device; stream the graph if it does not fit."""
    try:
        return DeviceSweeps(plan, device, graph, costs)
    except BudgetError:
        return StreamedSweeps(plan, device, graph, costs)
