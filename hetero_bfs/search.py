"""One search, and where the frontier and the parents cross between devices.

Levels on the host run in compiled code as long as the policy keeps the search there
(kernels/host_search.py); what is here are the moves that only Python can make: levels on the
device, and crossings.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from hetero_bfs.bfs import Frontier
from hetero_bfs.build import SearchGraph
from hetero_bfs.devices.cpu import CPUSearcher
from hetero_bfs.devices.opencl_search import OpenCLSearcher
from hetero_bfs.kernels import level as layout
from hetero_bfs.selector import Selector
from hetero_bfs.strategy import DeviceKind, Strategy
from hetero_bfs.trace import LevelFeatures, LevelTrace

_FIRST_RECORDS = 64
_NO_LIMIT = 2**62


@dataclass
class Platform:
    """The host and, if there is one, the OpenCL device, both holding the same graph."""

    graph: SearchGraph
    host: CPUSearcher
    accelerator: OpenCLSearcher | None
    records: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)))
    _scratch: npt.NDArray[np.uint32] | None = None

    def searcher(self, kind: DeviceKind) -> CPUSearcher | OpenCLSearcher:
        """Return what runs the levels of one kind of device."""
        if kind == "cpu":
            return self.host
        assert self.accelerator is not None, "no strategy for it is a candidate"
        return self.accelerator

    @property
    def lists_host_finds(self) -> bool:
        """Whether the host lists what it found, for a device with memory of its own.

        Of a directed graph it could not: the queue lacks vertices without edges.
        """
        accelerator = self.accelerator
        return not (accelerator is None or accelerator.unified or self.graph.graph.directed)

    def records_of(self, candidates: int, rows: int) -> npt.NDArray[np.float64]:
        """Return records for at least so many levels, with what the first ones held before."""
        width = layout.record_width(candidates)
        if self.records.shape[1] != width:
            self.records = np.empty((_FIRST_RECORDS, width))
        while self.records.shape[0] < rows:
            self.records = np.concatenate((self.records, np.empty_like(self.records)))
        return self.records

    def scratch_parents(self) -> npt.NDArray[np.uint32]:
        """Return host memory for the parents that the device found."""
        if self._scratch is None:
            assert self.accelerator is not None
            self._scratch = self.accelerator.device.host_array(self.graph.num_searched, np.uint32)
        return self._scratch


@dataclass(frozen=True)
class Recording:
    """The levels of a search as compiled code recorded them (kernels/level.py)."""

    records: npt.NDArray[np.float64]
    selector: Selector
    num_vertices: int
    num_edges: int
    decision_interval: int

    def traces(self) -> list[LevelTrace]:
        """Return one trace per level."""
        return [self._trace(record) for record in self.records]

    def _trace(self, record: npt.NDArray[np.float64]) -> LevelTrace:
        features = LevelFeatures.from_state(record, self.num_vertices, self.num_edges)
        choice = self.selector.read_choice(features, record)
        skipped = features.level % self.decision_interval
        return LevelTrace(
            features,
            choice.strategy.name,
            float(record[layout.SECONDS]),
            float(record[layout.TRANSFER_SECONDS]),
            float(record[layout.SELECT_SECONDS]),
            int(record[layout.FOUND_VERTICES]),
            choice.predicted_seconds,
            "as the level before" if skipped else choice.reason,
        )


class Search:
    """One search while it runs, and where its parents lie afterwards."""

    def __init__(
        self,
        platform: Platform,
        root: int | None,
        selector: Selector,
        decision_interval: int = 1,
    ) -> None:
        self.platform = platform
        self.root = root
        self.selector = selector
        self.decision_interval = decision_interval
        self.seconds = 0.0
        self._records: npt.NDArray[np.float64] = np.empty((0, 0))
        self._used: set[DeviceKind] = set()
        self._complete_on: DeviceKind = "cpu"

    @property
    def traces(self) -> list[LevelTrace]:
        """One record per level that ran."""
        return self.recording().traces()

    def recording(self) -> Recording:
        """Return the levels that ran, without what the search itself needed."""
        graph = self.platform.graph
        return Recording(
            self._records,
            self.selector,
            graph.num_searched,
            graph.graph.num_stored_edges,
            self.decision_interval,
        )

    def run(self, max_levels: int | None = None) -> float:
        """Run all levels; returns seconds from the key to the complete parent array."""
        if self.root is None:
            return 0.0
        graph, platform = self.platform.graph, self.platform
        accelerator = platform.accelerator
        alone = accelerator is None
        limit = _NO_LIMIT if max_levels is None else max_levels
        candidates = len(self.selector.candidates)
        started = time.perf_counter()
        frontier = Frontier(
            int(graph.degree[self.root]), graph.num_searched, graph.graph.num_stored_edges
        )
        if not platform.lists_host_finds:
            frontier.keep_no_list()
        rows = _FIRST_RECORDS
        try:
            while True:
                records = platform.records_of(candidates, rows)
                ended = platform.host.run_levels(
                    self.selector.policy,
                    self.decision_interval,
                    self.root,
                    alone,
                    frontier,
                    records,
                    min(limit, records.shape[0]),
                )
                if not ended:
                    self._move(frontier, records[frontier.level])
                elif frontier.is_over or frontier.level == limit:
                    break
                rows = frontier.level + 1
            self._complete(frontier)
        except BaseException:
            platform.host.note_foreign_parents()  # they are anywhere
            raise
        self.seconds = time.perf_counter() - started
        self._records = records[: frontier.level].copy()
        return self.seconds

    def gather(self) -> npt.NDArray[np.uint32]:
        """Return the parents in new ids, uint32, in host memory; valid until the next search."""
        host = self.platform.host
        accelerator = self.platform.accelerator
        if self._complete_on == "device":
            assert accelerator is not None
            host.note_foreign_parents()
            if accelerator.unified:
                accelerator.release()
            else:
                accelerator.read_parents(host.parent)
        return host.parent

    def _move(self, frontier: Frontier, record: npt.NDArray[np.float64]) -> None:
        """Bring the search where the chosen strategy runs; if that is the device, run the level."""
        strategy = self.selector.candidates[frontier.chosen]
        before = time.perf_counter()
        self._bring(strategy, frontier)
        ready = time.perf_counter()
        record[layout.TRANSFER_SECONDS] += ready - before
        accelerator = self.platform.accelerator
        assert accelerator is not None
        if strategy.device_kind == "device":
            found, record[layout.SECONDS] = accelerator.run(strategy, frontier)
            record[layout.FOUND_VERTICES] = found.vertices
            record[layout.EXAMINED] = -1

    def _bring(self, strategy: Strategy, frontier: Frontier) -> None:
        """Bring the frontier to the strategy's device, in the form that it reads."""
        kind = strategy.device_kind
        if frontier.kind is None:
            self._enter(kind, frontier)
            return
        with_queue = strategy.direction == "top-down"
        if with_queue and frontier.form == "bitmap":
            self.platform.searcher(frontier.kind).to_queue(frontier)
        if kind != frontier.kind:
            self._cross(kind, with_queue, frontier)

    def _enter(self, kind: DeviceKind, frontier: Frontier) -> None:
        """Start on one device."""
        assert self.root is not None
        if kind == "cpu" and self.platform.accelerator is not None:
            self.platform.accelerator.release()
        self.platform.searcher(kind).begin(self.root, frontier)
        frontier.kind = kind
        self._used.add(kind)

    def _cross(self, kind: DeviceKind, with_queue: bool, frontier: Frontier) -> None:
        """Move the search to the other device."""
        accelerator = self.platform.accelerator
        assert accelerator is not None
        if kind == "device":
            if kind not in self._used and not accelerator.unified:
                accelerator.clear(frontier)
            accelerator.receive(frontier, with_queue)
        else:
            accelerator.send(frontier, with_queue)
            self.platform.host.note_foreign_queue(frontier)
        frontier.kind = kind
        self._used.add(kind)

    def _complete(self, frontier: Frontier) -> None:
        """Make the parent array complete in one memory."""
        accelerator, host = self.platform.accelerator, self.platform.host
        if accelerator is None:
            return  # done in compiled code
        if frontier.kind is None:
            self._enter("cpu", frontier)
        self._complete_on = frontier.kind or "cpu"
        if self._complete_on == "device":
            accelerator.device.finish()
        if len(self._used) == 1:
            if self._complete_on == "cpu":
                host.forget_stale_parents(frontier)
            elif accelerator.unified:
                host.note_foreign_parents()  # the device wrote to the host's array
        elif accelerator.unified:
            accelerator.release()
            host.forget_stale_parents(frontier)
            self._complete_on = "cpu"
        elif frontier.listed >= 0:
            vertices = host.listed[: frontier.listed]
            accelerator.add_parents(vertices, host.parent[vertices])
            host.note_foreign_parents()
            self._complete_on = "device"
        else:
            self._merge_parents(accelerator, frontier)
            self._complete_on = "cpu"

    def _merge_parents(self, accelerator: OpenCLSearcher, frontier: Frontier) -> None:
        """Bring the device's parents to the host's."""
        from hetero_bfs.kernels.restore import merge_parents

        host = self.platform.host
        visited = host.visited[frontier.visited_index]
        if frontier.kind == "device":
            accelerator.read_visited(visited, frontier.visited_index)
        other = self.platform.scratch_parents()
        accelerator.read_parents(other)
        merge_parents(host.parent, other, visited)
        host.note_foreign_parents()
