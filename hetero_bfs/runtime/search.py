"""One search, and where the frontier and the parents cross between devices.

Levels on the host run in compiled code as long as the policy keeps the search there
(level_loop.py); what is here are the moves that only Python can make: levels on the
device, and crossings.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.bfs.cpu_executor import CPUSearcher
from hetero_bfs.algorithms.bfs.opencl_executor import OpenCLSearcher
from hetero_bfs.algorithms.bfs.result import Frontier
from hetero_bfs.errors import GridStalledError
from hetero_bfs.graph.build import SearchGraph
from hetero_bfs.selection import schema as layout
from hetero_bfs.selection.policy import Policy
from hetero_bfs.selection.selectors import Selector, alpha_beta
from hetero_bfs.selection.strategies import STRATEGIES, DeviceKind, Strategy
from hetero_bfs.selection.trace import LevelFeatures, LevelTrace

_FIRST_RECORDS = 64
_NO_LIMIT = 2**62
_MOST_FIRST_RECORDS = 4096


@dataclass
class Platform:
    """The host and, if there is one, the OpenCL device, both holding the same graph."""

    graph: SearchGraph
    host: CPUSearcher
    accelerator: OpenCLSearcher | None
    records: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)))
    _first_records: dict[tuple[int, int], tuple[Policy, npt.NDArray[np.float64]]] = field(
        default_factory=dict
    )
    """First levels' records by policy (its id) and what that tells apart of frontiers."""

    _scratch: npt.NDArray[np.uint32] | None = None

    def searcher(self, kind: DeviceKind) -> CPUSearcher | OpenCLSearcher:
        """Return what runs the levels of one kind of device."""
        if kind == "cpu":
            return self.host
        assert self.accelerator is not None, "no strategy for it is a candidate"
        return self.accelerator

    def close(self) -> None:
        """Wait for the device and end the host's threads; memory goes with the last user."""
        self.host.stop_team()
        if self.accelerator is not None:
            self.accelerator.device.finish()

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

    def choose(
        self,
        selector: Selector,
        interval: int,
        frontier: Frontier,
        records: npt.NDArray[np.float64],
    ) -> None:
        """Choose a level's strategy while the search is not on the host.

        The first choice is made for all roots that are much alike, and kept: choosing takes as long
        as a small level on the device.
        """
        from hetero_bfs.selection.policy import choose_level

        n, m = self.graph.num_searched, self.graph.graph.num_stored_edges
        if frontier.level > 0:
            choose_level(selector.policy, interval, n, m, frontier.state, records)
            return
        key = self._first_key(selector, frontier)
        known = self._first_records[key][1] if key in self._first_records else None
        if known is None:
            choose_level(selector.policy, interval, n, m, Frontier(key[1], n, m).state, records)
            known = records[0].copy()
            known[layout.PREDICTED :] = np.nan  # which are another root's
            if len(self._first_records) >= _MOST_FIRST_RECORDS:  # many by policies of the past
                self._first_records.clear()
            self._first_records[key] = selector.policy, known
        records[0] = known
        records[0, : layout.RECORD_STATE] = frontier.state[: layout.RECORD_STATE]
        frontier.state[layout.CHOSEN] = known[layout.STRATEGY]

    def known_choice(
        self, selector: Selector, frontier: Frontier
    ) -> npt.NDArray[np.float64] | None:
        """Return the record that a search begins with which stands at this frontier, its root."""
        known = self._first_records.get(self._first_key(selector, frontier))
        return None if known is None else known[1]

    def _first_key(self, selector: Selector, frontier: Frontier) -> tuple[int, int]:
        """Return a selector's policy, and the edges of a root that stands for this one."""
        left = self.graph.graph.num_stored_edges - frontier.edges
        return id(selector.policy), selector.first_edges(frontier.edges, left)

    def scratch_parents(self) -> npt.NDArray[np.uint32]:
        """Return host memory for the parents that the device found."""
        if self._scratch is None:
            assert self.accelerator is not None
            self._scratch = self.accelerator.device.host_array(self.graph.num_searched, np.uint32)
        return self._scratch


@dataclass(frozen=True)
class Recording:
    """The levels of a search as compiled code recorded them (schema.py)."""

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
        level = features.level
        skipped = level % self.decision_interval
        if not skipped:
            self.selector.complete(features, record)
        kept = skipped or record[layout.CHOSEN_AT] != level
        choice = self.selector.read_choice(features, record)
        return LevelTrace(
            features,
            choice.strategy.name,
            float(record[layout.SECONDS]),
            float(record[layout.TRANSFER_SECONDS]),
            float(record[layout.SELECT_SECONDS]),
            int(record[layout.FOUND_VERTICES]),
            choice.predicted_seconds,
            "as the level before" if kept else choice.reason,
        )


class Search:
    """One search while it runs, and where its parents lie afterwards."""

    def __init__(
        self,
        platform: Platform,
        root: int | None,
        selector: Selector,
        decision_interval: int = 1,
        level_by_level: bool = False,
    ) -> None:
        self.platform = platform
        self.root = root
        self.selector = selector
        self.decision_interval = decision_interval
        self.level_by_level = level_by_level
        self.seconds = 0.0
        self.began_again = False  # after a grid that stalled, whose time is in `seconds` too
        self._records: npt.NDArray[np.float64] = np.empty((0, 0))
        self._used: set[DeviceKind] = set()
        self._complete_on: DeviceKind = "cpu"
        self._ended_at: float | None = None  # the clock, if known before all is written down

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
        started = time.perf_counter()
        try:
            self._run(max_levels)
        except GridStalledError:  # the device runs step by step from now on
            self.began_again = True
            self._used = set()
            self._run(max_levels)
        self.seconds = (self._ended_at or time.perf_counter()) - started
        return self.seconds

    def _run(self, max_levels: int | None) -> None:
        assert self.root is not None
        graph, platform = self.platform.graph, self.platform
        limit = _NO_LIMIT if max_levels is None else max_levels
        candidates = len(self.selector.candidates)
        frontier = Frontier(
            int(graph.degree[self.root]), graph.num_searched, graph.graph.num_stored_edges
        )
        if not platform.lists_host_finds:
            frontier.keep_no_list()
        records = platform.records_of(candidates, _FIRST_RECORDS)
        try:
            self._start_early(frontier, min(limit, records.shape[0]))
            while self._run_here(frontier, records, limit):
                records = platform.records_of(candidates, frontier.level + 1)
            self._complete(frontier)
        except BaseException:
            platform.host.note_foreign_parents()  # they are anywhere
            raise
        self._records = records[: frontier.level].copy()

    def _start_early(self, frontier: Frontier, limit: int) -> None:
        """Have the device begin, if it is known that the first level runs there."""
        platform, selector = self.platform, self.selector
        if platform.accelerator is None or self.level_by_level:
            return
        known = platform.known_choice(selector, frontier)
        if known is None:
            return
        chosen = int(known[layout.STRATEGY])
        if selector.candidates[chosen].device_kind == "device":
            assert self.root is not None
            platform.accelerator.start_early(
                selector.policy, self.decision_interval, self.root, chosen, frontier, limit
            )

    def _run_here(self, frontier: Frontier, records: npt.NDArray[np.float64], limit: int) -> bool:
        """Run levels where the search is, and move it if the policy says so; False at its end."""
        platform, selector = self.platform, self.selector
        alone, kind = platform.accelerator is None, frontier.kind
        if alone or kind == "cpu":
            assert self.root is not None
            rows = min(limit, records.shape[0])
            ended = platform.host.run_levels(
                selector.policy, self.decision_interval, self.root, alone, frontier, records, rows
            )
            if ended:
                if alone:
                    self._ended_at = time.perf_counter()
                return not frontier.is_over and frontier.level < limit
        elif frontier.is_over or frontier.level >= limit:
            return False
        else:
            platform.choose(selector, self.decision_interval, frontier, records)
        return not self._move(kind, frontier, records, limit)

    def gather(self) -> None:
        """Bring the parents to the host's array, where they stay until the next search."""
        host = self.platform.host
        accelerator = self.platform.accelerator
        if self._complete_on == "device":
            assert accelerator is not None
            host.note_foreign_parents()
            if accelerator.unified:
                accelerator.release()
            else:
                accelerator.read_parents(host.parent)

    def save_parents(self, parent: npt.NDArray[np.uint32]) -> None:
        """Copy the parents to the host, to where the next searches leave them alone."""
        accelerator = self.platform.accelerator
        if accelerator and not accelerator.unified and self._complete_on == "device":
            accelerator.read_parents(parent)
        else:
            self.gather()
            parent[:] = self.platform.host.parent

    def gather_saved(self, parent: npt.NDArray[np.uint32]) -> None:
        """Bring parents that were saved to the host's array; as `gather`, after other searches."""
        host, accelerator = self.platform.host, self.platform.accelerator
        host.note_foreign_parents()
        if accelerator:
            accelerator.release()
        host.parent[:] = parent

    def _move(
        self,
        kind: DeviceKind | None,
        frontier: Frontier,
        records: npt.NDArray[np.float64],
        limit: int,
    ) -> bool:
        """Bring the search from `kind` to where the chosen strategy runs; on the device, run it.

        Returns true if the search is known to be over.
        """
        strategy = self.selector.candidates[frontier.chosen]
        if kind != strategy.device_kind:
            record = records[frontier.level]
            before = time.perf_counter()
            self._bring(strategy, frontier)
            record[layout.TRANSFER_SECONDS] += time.perf_counter() - before
        accelerator = self.platform.accelerator
        if strategy.device_kind == "cpu" or accelerator is None:
            return False
        root = self.root if kind is None else None
        policy, interval = self.selector.policy, self.decision_interval
        if self.level_by_level:
            limit = min(limit, frontier.level + 1)
        over = accelerator.run_levels(policy, interval, root, frontier, records, limit)
        if over and len(self._used) == 1:
            self._ended_at = accelerator.ended_at
        return over

    def _bring(self, strategy: Strategy, frontier: Frontier) -> None:
        """Bring the frontier to the strategy's device, in the form that it reads.

        A search that begins on the device begins in the first launch, and bitmaps there become
        queues in the launch that needs them.
        """
        kind = strategy.device_kind
        with_queue = strategy.direction == "top-down"
        if frontier.kind is None:
            self._enter(kind, frontier)
            return
        if with_queue and not frontier.has_queue:
            self.platform.searcher(frontier.kind).to_queue(frontier)
        self._cross(kind, with_queue, frontier)

    def _enter(self, kind: DeviceKind, frontier: Frontier) -> None:
        """Start on one device."""
        assert self.root is not None
        if kind == "cpu":
            if self.platform.accelerator is not None:
                self.platform.accelerator.release()
            self.platform.host.begin(self.root, frontier)
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
        from hetero_bfs.algorithms.bfs.kernels.restore import merge_parents

        host = self.platform.host
        visited = host.visited[frontier.visited_index]
        if frontier.kind == "device":
            accelerator.read_visited(visited, frontier.visited_index)
        other = self.platform.scratch_parents()
        accelerator.read_parents(other)
        merge_parents(host.parent, other, visited)
        host.note_foreign_parents()


def usual_root(platform: Platform) -> int:
    """Return a vertex of low degree beside the one of highest, as most search keys are.

    In a directed graph that may lead nowhere, so there it is the one of highest degree.
    """
    graph = platform.graph.graph
    hub = int(platform.graph.degree.argmax())
    neighbours = graph.indices[graph.indptr[hub] : graph.indptr[hub + 1]]
    if graph.directed or neighbours.size == 0:
        return hub
    return int(neighbours[platform.graph.degree[neighbours].argmin()])


def usual_states(platform: Platform) -> npt.NDArray[np.float64]:
    """Search once on the host; return the state before each level (cost_to_go.py's profile)."""
    if platform.graph.num_searched == 0:
        return np.empty((0, layout.RECORD_STATE))
    rule = alpha_beta(None, [STRATEGIES["TC"], STRATEGIES["BC"]])
    search = Search(platform, usual_root(platform), rule)
    search.run()
    return search.recording().records[:, : layout.RECORD_STATE].copy()
