"""A vertex program on an OpenCL device, in sweeps over an arranged graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from hetero_bfs.devices.opencl.bound_kernel import BoundKernel
from hetero_bfs.devices.opencl.device_info import DeviceInfo
from hetero_bfs.devices.opencl.driver import VARIES
from hetero_bfs.programs import device as device_run
from hetero_bfs.programs.arranged import ArrangedGraph
from hetero_bfs.programs.device import DeviceProgram
from hetero_bfs.programs.options import Limits
from hetero_bfs.programs.placed import Record
from hetero_bfs.programs.schema import Counter, Word

_BATCH_LAUNCHES = 1 << 9
"""Launches that are queued at once, unless one sweep has more."""

_HEAVY_EDGES, _HEAVY_EDGES_OF_CPU = 1 << 7, 1 << 12

_STEP, _TIMES = 5, 6  # where a turn has its number, and how many turns are one launch


def heavy_edges(info: DeviceInfo) -> int:
    """Return the length of list from which a work-group shares a vertex's list.

    A CPU runs the work-items of a group one after another: sharing costs it barriers only.
    """
    return _HEAVY_EDGES_OF_CPU if info.type == "CPU" else _HEAVY_EDGES


def turn_of(begin: int, heavy: int, end: int, exact: int, times: int) -> npt.NDArray[np.uint32]:
    """Return a part as a `Turn` (sweep_vertex.cl); its number is to be written."""
    return np.array([begin, heavy, end, exact, end, 0, times, 0], np.uint32)


class DeviceSweeps(DeviceProgram):
    """As `DeviceProgram`, for lists of an arranged graph; sweep.cl has its kernels."""

    graph: ArrangedGraph
    files: Sequence[str] = tuple(
        f"programs/kernels/{name}.cl" for name in ("state", "sweep_vertex", "sweep")
    )
    keeps_order: ClassVar = False

    def _shared_sizes(self) -> dict[str, tuple[int, npt.DTypeLike]]:
        """Return size and type of the arrays that sweep_vertex.cl lists."""
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
        """Set the arguments of all kernels."""
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
        """Set the arguments of the kernels that read lists, and list the launches of a sweep."""
        lists, backward = [*self._lists(0), np.uint32(self._n)], self._lists(-1)
        bind, program, arrays = self.device.bind, self._program, self.arrays()
        self._spread = bind(program, "spread", *lists, *arrays)
        self._gather = bind(program, "gather_part", VARIES, *lists, *backward, *arrays)
        self._run_part = bind(program, "run_part", VARIES, *lists, *backward, *arrays)
        self._apply = bind(program, "apply_part", VARIES, *lists, *arrays)
        self._launches = self._list_launches()
        self._most_batch = max(1, min(self._most_batch, _BATCH_LAUNCHES // len(self._launches)))
        self._batch = min(self._batch, self._most_batch)

    def _list_launches(self) -> list[tuple[BoundKernel, int, npt.NDArray[np.uint32]]]:
        """Return kernel, work-groups and turn of each launch; see `Turn` in sweep_vertex.cl."""
        launches = []
        for begin, heavy, end, exact, times in self.graph.parts.tolist():
            turn = turn_of(begin, heavy, end, exact, times)
            if times > 1:
                launches.append((self._run_part, 1, turn))
                continue
            groups = max(heavy - begin, -(-(end - heavy) // self.group))
            for kernel in [self._gather] if exact else [self._gather, self._apply]:
                launches.append((kernel, min(groups, self.groups), turn))
        return launches

    def launch_start(self) -> None:
        """Queue the kernels that make the initial states."""
        self._step = 1
        self.device.fill(self.shared["sums"], 0)
        self.launch_all(self._begin)
        self._launch_spread()
        self.launch(self._end, 1, np.int32(1))

    def _launch_spread(self) -> None:
        """Queue the kernels that mark the neighbours of initially active vertices."""
        self.launch_all(self._spread)

    def _launch_iteration(self) -> None:
        """Queue a sweep, which does nothing after the end of the run."""
        group = self.group
        for kernel, groups, turn in self._launches:
            if kernel is not self._apply:  # which has the turn of the gather before it
                self._number(turn)
            kernel.launch(groups * group, group, turn)
        self.launch(self._end, 1, np.int32(0))

    def _number(self, turn: npt.NDArray[np.uint32]) -> None:
        """Give a turn its number, or the first of its numbers."""
        turn[_STEP] = self._step
        self._step += int(turn[_TIMES])

    def _write_limits(self, limits: Limits) -> None:
        """Write the limit of iterations."""
        loop = np.zeros(len(Word), np.int64)
        loop[Word.LIMIT] = limits.max_iterations
        self.device.write(self.shared["loop"], loop)
        self.device.fill(self.shared["counters"], 0)

    def _read_records(self, first: int, seconds: list[float]) -> list[Record]:
        name = f"device {self.graph.mode}"
        return [(name, *record[1:]) for record in super()._read_records(first, seconds)]
