"""A vertex program on an OpenCL device, in sweeps over an arranged graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.devices.opencl.opencl_device import VARIES, BoundKernel
from hetero_bfs.graph.edge_source import NO_VERTEX
from hetero_bfs.programs import device as device_run
from hetero_bfs.programs import renumbered
from hetero_bfs.programs.device import DeviceProgram
from hetero_bfs.programs.options import Limits
from hetero_bfs.programs.renumbered import BEGIN, TIMES, ArrangedGraph, Record
from hetero_bfs.programs.schema import Counter, Word

_BATCH_LAUNCHES = 1 << 9
"""Launches that are queued at once, unless one sweep has more."""

_HEAVY_EDGES, _HEAVY_EDGES_OF_CPU = 1 << 7, 1 << 12

_RESIDENT_ITEMS = 1 << 11
"""Work-items of a GPU's compute unit that are resident at once."""

EXACT, _SETTLED, STEP, _TIMES, _PART = 3, 4, 5, 6, 7
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
    return sum(1 if one[_TIMES] > 1 or one[EXACT] else 2 for one in visits)


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

    def sizes(self) -> list[Any]:
        return [np.uint32(self._n)]

    def _bind(self) -> None:
        most = np.uint32(device_run._MOST_RECORDS)
        self._end = self._bind_own("end_sweep", VARIES, np.uint32(self.groups), self._records, most)
        self._bind_parts()

    def _bind_parts(self) -> None:
        self._spread = self._bind_own("spread")
        self._gather = self._bind_own("gather_part", VARIES, *self._lists(-1))
        self._apply = self._bind_own("apply_part", VARIES)
        begins = np.append(self.graph.parts[:, BEGIN], self._n).astype(np.uint32)
        self._begins = self.device.buffer(begins.size, np.uint32)
        self.device.write(self._begins, begins)
        self._run_part = self._bind_own("run_part", VARIES, self._begins, *self._lists(-1))

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
        self.launch_all(self.begin)
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
        visit[STEP] = self._step
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
