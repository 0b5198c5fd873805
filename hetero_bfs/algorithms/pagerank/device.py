"""PageRank on an OpenCL device; kernels.cl has the kernels."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.pagerank.host import PageRankLists, PageRankSettings, Scores
from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.devices.opencl.built_programs import C_TYPES
from hetero_bfs.devices.opencl.device_run import DeviceRun, Entries
from hetero_bfs.devices.opencl.opencl_device import VARIES, BoundKernel
from hetero_bfs.errors import DeviceError
from hetero_bfs.graph.weights import needed_weights
from hetero_bfs.programs.built_in import PowerRanks, WeightedPowerRanks
from hetero_bfs.programs.device_forms import StreamedBuiltIn

Total = IntEnum("Total", "STEP MOVED MASS DANGLING", start=0)
State = IntEnum(
    "State",
    "BASE LAST_BASE SUM_BEFORE WHOLE RELAXATION LAST_MOVED CHANGE DONE STEPS FIRST_FAST",
    start=0,
)
Setting = IntEnum(
    "Setting", "ALPHA GOAL WITHIN OUTSIDE SYMMETRIC RATE ROUNDING RESTART_STEP", start=0
)
"""Indices of `totals`, `state` and `settings` in kernels.cl."""

_LANES = 16  # work-items for a vertex of medium degree
_LOW_EDGES = 16  # highest degree for a single work-item
_MEDIUM_EDGES = 4096  # highest degree for _LANES work-items; length of segments of higher degrees
_STEPS_AT_ONCE = 5  # steps that are queued before the host reads the state

_FINE = 2.0**-17
"""For a required change below this, portions are float64."""

_ROUNDING = 2.0**-23  # of float32 portions; kernels.py has the host's bound


class _Kernels(NamedTuple):
    """The kernels for one type of portions; some exist for either array of portions as input."""

    start: BoundKernel
    sum_segments: list[BoundKernel]
    step: list[BoundKernel]
    report: BoundKernel
    write: list[BoundKernel]


class DevicePageRank(DeviceRun):
    """Runs on an OpenCL device that holds the adjacency."""

    family = "PageRank"
    need = "PageRank needs"
    files: Sequence[str] = ("algorithms/pagerank/kernels.cl",)
    constants = (Total, State, Setting, {"NUM_TOTALS": len(Total), "NUM_STATES": len(State)})

    def __init__(self, lists: PageRankLists, info: DeviceInfo) -> None:
        backward, weights = lists.backward, []
        if lists.weighted:
            weights = [needed_weights(backward)]
            if weights[0].dtype == np.float64 and not info.has_double:
                raise DeviceError("it lacks doubles, which weights of float64 need")
        entries = Entries(backward.indptr, [backward.indices, *weights])
        super().__init__(info, [entries])
        self.lists = lists
        self._sum: Any = np.float64 if info.has_double else np.float32
        given = lists.given.astype(self._sum) if lists.weighted else lists.given
        rows, self._high, self._medium = _by_degree(backward.indptr)
        begin, end, first_segment = _cut(backward.indptr, rows[: self._high])
        segments = np.stack([begin, end], axis=1).ravel().astype(self.offset_type)
        n, every, self._segments = lists.num_vertices, lists.graph.num_vertices, begin.size
        new_of_old = lists.graph.relabelling.new_of_old
        sizes = {
            "restart": n,
            "settings": len(Setting),
            "state": 2 * len(State),
            "totals": 2 * len(Total) * self.groups,
            "said": len(State),
            "segment_sums": self._segments,
            "rank": every,
            "portions": n,
            "next": n,
        }
        self._work = self.make_arrays(
            {name: (size, self._sum) for name, size in sizes.items()},
            given, rows, segments, first_segment, new_of_old,
        )  # fmt: skip
        array, upload = self.read_only.array, self.device.upload
        self._graph = {
            "given": upload(given) if lists.weighted else array(given),
            "rows": upload(rows),
            "segments": upload(segments),
            "first_segment": upload(first_segment),
            "new_of_old": array(new_of_old),
        }
        self._found = self.device.host_array(every, self._sum)
        self._kernels: dict[Any, _Kernels] = {}
        self._kernels_for(np.float32)

    def _kernels_for(self, real: Any) -> _Kernels:
        """Return the kernels for portions of a type; compile them at the first call."""
        if real not in self._kernels:
            self._kernels[real] = self._bind(self._build(real))
            self._warm_up(self._kernels[real])
        return self._kernels[real]

    def _build(self, real: Any) -> Any:
        sums, weighted = C_TYPES[np.dtype(self._sum)], self.lists.weighted
        return self.build(
            LANES=_LANES,
            REAL=C_TYPES[np.dtype(real)],
            SUM=sums,
            GIVEN=sums if weighted else "uint",
            HAS_DOUBLE=self.device.info.has_double,
            WEIGHT=weighted and C_TYPES[self.ways[0].arrays[1].dtype],
        )

    def _bind(self, program: Any) -> _Kernels:
        bind, graph, work = self.device.bind, self._graph, self._work
        portions = work["portions"], work["next"]
        n, every = np.uint32(self.lists.num_vertices), np.uint32(self.lists.graph.num_vertices)
        indptr, *edges = self.buffers(0)
        lists = (
            n, np.uint32(self._high), np.uint32(self._medium), graph["rows"], indptr, *edges,
            graph["given"],
        )  # fmt: skip
        record = work["settings"], work["state"], work["totals"]
        count = np.uint32(self._segments)
        return _Kernels(
            bind(
                program, "start", n, VARIES, graph["given"], *portions,
                work["totals"], work["state"],
            ),
            [
                bind(
                    program, "sum_segments", VARIES, count, graph["segments"], *edges,
                    portions[i], work["state"], work["segment_sums"],
                )
                for i in range(2)
            ],
            [
                bind(
                    program, "power_step", VARIES, *lists, graph["first_segment"],
                    work["segment_sums"], work["restart"], portions[i], portions[1 - i], *record,
                )
                for i in range(2)
            ],
            bind(program, "report", VARIES, np.uint32(self.groups), *record, work["said"]),
            [
                bind(
                    program, "write_ranks", every, VARIES, VARIES, graph["new_of_old"],
                    graph["given"], portions[i], work["rank"],
                )
                for i in range(2)
            ],
        )  # fmt: skip

    def _warm_up(self, kernels: _Kernels) -> None:
        """Run a step, since some drivers compile kernels only at their first launch."""
        settings = PageRankSettings(0.5, 1.0, 1)
        self._begin(kernels, settings, False)
        self._queue_steps(kernels, 1, 1)
        self._ask(kernels, 2)
        self._ranks(kernels, 0, 1.0, 0.0)

    def run(self, settings: PageRankSettings) -> Scores | None:
        """Compute the scores of a graph with edges; None if the device's type is too coarse.

        The next run overwrites them.
        """
        is_fine = settings.change < _FINE
        if is_fine and self._sum is np.float32:
            return None
        kernels = self._kernels_for(np.float64 if is_fine else np.float32)
        began = time.perf_counter()
        self._begin(kernels, settings, is_fine)
        records: list[tuple[str, float]] = []
        queued, said = 0, np.zeros(len(State))
        while queued < settings.max_iter and not said[State.DONE]:
            first, queued = queued + 1, min(queued + _STEPS_AT_ONCE, settings.max_iter)
            self._queue_steps(kernels, first, queued)
            said = self._ask(kernels, queued + 1)
            ended = time.perf_counter()
            steps, fast = int(said[State.STEPS]), int(said[State.FIRST_FAST])
            for number in range(first, steps + 1):
                strategy = "device Chebyshev" if 0 < fast <= number else "device power"
                records.append((strategy, (ended - began) / (steps + 1 - first)))
            began = ended
        scale = 1.0 / said[State.WHOLE]
        outside = scale * said[State.LAST_BASE]
        rank = self._ranks(
            kernels, int(said[State.STEPS]) % 2, scale, outside / self.lists.graph.num_vertices
        )
        if settings.personalization is not None:
            left_out = self.lists.outside
            rank[left_out] = outside * settings.personalization[left_out]
        if self._sum is np.float32:
            rank /= rank.sum()  # the device's float32 sums do not give a total of 1
        return Scores(rank, float(said[State.CHANGE]), records)

    def _begin(self, kernels: _Kernels, settings: PageRankSettings, is_fine: bool) -> None:
        """Write the settings of steps, and give all vertices the same score."""
        alpha, personalization = settings.alpha, settings.personalization
        rate = alpha / (1.0 + math.sqrt(1.0 - alpha * alpha))  # of Chebyshev's acceleration
        within, outside = self.lists.shares(personalization)
        rounding = 0.0 if is_fine else _ROUNDING
        numbers = [
            alpha, settings.change, within, outside, self.lists.is_symmetric, rate, rounding,
            personalization is not None,
        ]  # fmt: skip
        equal = 1.0 / self.lists.graph.num_vertices
        restart = np.array([equal])
        if personalization is not None:
            restart = personalization[self.lists.graph.relabelling.old_of_new]
        self.device.write(self._work["settings"], np.array(numbers, self._sum))
        self.device.write(self._work["restart"], restart.astype(self._sum))
        self.launch_all(kernels.start, self._sum(equal))

    def _queue_steps(self, kernels: _Kernels, first: int, last: int) -> None:
        for step in range(first, last + 1):
            if self._high:
                self.launch_all(kernels.sum_segments[(step - 1) % 2], np.uint32(step))
            self.launch_all(kernels.step[(step - 1) % 2], np.uint32(step))

    def _ask(self, kernels: _Kernels, step: int) -> npt.NDArray[np.float64]:
        """Return the state before step `step`."""
        self.launch(kernels.report, 1, np.uint32(step))
        return self.read(self._work["said"], len(State), self._sum).astype(np.float64)

    def _ranks(
        self, kernels: _Kernels, which: int, scale: float, outside: float
    ) -> npt.NDArray[np.float64]:
        """Return the scores in the caller's ids; `outside` for vertices that are not searched."""
        self.launch_all(kernels.write[which], self._sum(scale), self._sum(outside))
        self.device.read(self._found, self._work["rank"])
        return self._found.astype(np.float64, copy=False)


def _by_degree(indptr: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.uint32], int, int]:
    """Return the vertices of high, medium and low degree, and the numbers of high and medium."""
    degree = np.diff(indptr)
    kind = (degree <= _MEDIUM_EDGES).astype(np.int8) + (degree <= _LOW_EDGES)
    rows = np.argsort(kind, kind="stable").astype(np.uint32)
    return rows, int((kind == 0).sum()), int((kind == 1).sum())


def _cut(
    indptr: npt.NDArray[np.int64], rows: npt.NDArray[np.uint32]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.uint32]]:
    """Return begin and end of each segment of these vertices, and each vertex's first segment."""
    first, last = indptr[rows], indptr[rows.astype(np.int64) + 1]
    counts = -(-(last - first) // _MEDIUM_EDGES)
    firsts = np.concatenate([[0], np.cumsum(counts)])
    begin = np.repeat(first - firsts[:-1] * _MEDIUM_EDGES, counts)
    begin += np.arange(firsts[-1]) * _MEDIUM_EDGES
    end = np.minimum(begin + _MEDIUM_EDGES, np.repeat(last, counts))
    return begin, end, firsts.astype(np.uint32)


class StreamedPageRank(StreamedBuiltIn):
    """The power method on a device that cannot hold the adjacency: a program streams it."""

    def __init__(self, lists: PageRankLists, info: DeviceInfo) -> None:
        from hetero_bfs.graph.kernels.old_ids import by_old_ids

        super().__init__(lists.graph, info)
        self._program = WeightedPowerRanks() if lists.weighted else PowerRanks()
        self._more: dict[str, Any] = {}
        if lists.weighted:
            numbers, n = lists.graph.relabelling, lists.graph.num_vertices
            self._more["given"] = by_old_ids(lists.given, numbers.old_of_new, n)
        self.run(PageRankSettings(0.5, 1.0, 1))  # compiles the program

    def run(self, settings: PageRankSettings) -> Scores:
        from hetero_bfs.graph.kernels.old_ids import by_old_ids

        start = 1.0 / self.graph.num_vertices
        restart = start if settings.personalization is None else settings.personalization
        parameters = self._more | {
            "start": start, "restart": restart, "alpha": settings.alpha, "goal": settings.change,
        }  # fmt: skip
        run = self.run_program(self._program, parameters, settings.max_iter)
        rank = by_old_ids(run.state["rank"], self.placed.names, self.graph.num_vertices)
        records = [("device power", seconds) for _, _, _, seconds, *_ in run.records]
        return Scores(rank, run.totals["change"], records, run.streamed_bytes)
