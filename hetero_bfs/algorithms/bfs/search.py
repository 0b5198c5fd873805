"""One search, with its migrations between devices.

Levels on the host run in compiled code as long as the policy keeps the search there
(level_loop.py). This module launches levels on a device, migrates the frontier and the parents, and
makes the result in the caller's ids.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.bfs.device_memory import DeviceResults, Receive
from hetero_bfs.algorithms.bfs.host import CPUExecutor
from hetero_bfs.algorithms.bfs.platform import FIRST_RECORDS, Platform
from hetero_bfs.algorithms.bfs.query import Query, Seeds
from hetero_bfs.algorithms.bfs.result import BFSResult, Frontier
from hetero_bfs.errors import GridStalledError
from hetero_bfs.scheduling import schema
from hetero_bfs.scheduling.selectors import Recording, Selector
from hetero_bfs.scheduling.strategies import Strategy
from hetero_bfs.scheduling.trace import LevelTrace

_NO_LIMIT = 2**62


class Search:
    """One search: its state while it runs, and the location of its parents afterwards.

    `source` is a new id, None if no source has edges; then there is nothing to search. `seeds` has
    several sources, of which `source` is the first, or a mask. The search ends with the level that
    finds `target` (a new id); then devices launch each level separately, and the host checks in
    between.
    """

    def __init__(
        self,
        platform: Platform,
        source: int | None,
        selector: Selector,
        decision_interval: int = 1,
        seeds: Seeds | None = None,
        target: int | None = None,
    ) -> None:
        self.platform = platform
        self.source = source
        self.selector = selector
        self.decision_interval = decision_interval
        self.seeds = seeds
        self.target = target
        self.seconds = 0.0
        self.began_again = False  # if the grid stalled; `seconds` includes the stalled time
        self._records: npt.NDArray[np.float64] = np.empty((0, 0))
        self._tiny: npt.NDArray[np.uint8] | None = None
        self._used: set[int] = set()  # places
        self._complete_at: int = schema.HOST
        self._ended_at: float | None = None  # clock at the end, if read before bookkeeping

    @property
    def traces(self) -> list[LevelTrace]:
        return self.recording().traces()

    @property
    def num_levels(self) -> int:
        return self.recording().num_levels

    def recording(self) -> Recording:
        graph = self.platform.graph
        return Recording(
            self._records,
            self.selector,
            graph.num_searched,
            graph.graph.num_stored_edges,
            self.decision_interval,
            self._tiny,
        )

    def run(self, max_levels: int | None = None) -> float:
        """Run all levels; return the seconds from the source to the complete parent array."""
        if self.source is None:
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
        assert self.source is not None
        graph, platform = self.platform.graph, self.platform
        limit = _NO_LIMIT if max_levels is None else max_levels
        candidates = len(self.selector.candidates)
        frontier = Frontier(
            int(graph.degree[self.source]), graph.num_searched, graph.graph.num_stored_edges
        )
        frontier.target = self.target
        if not platform.lists_host_finds:
            frontier.found_list = -1
        if max_levels is None and self.decision_interval == 1:
            frontier.merged = 0
        records = platform.records_of(candidates, FIRST_RECORDS)
        try:
            if self.seeds is None:
                self._start_early(frontier, min(limit, records.shape[0]))
            else:
                self._enter(schema.HOST, frontier)
            while self._run_here(frontier, records, limit):
                records = platform.records_of(candidates, frontier.row + 1)
            self._complete(frontier)
        except BaseException:
            platform.host.note_foreign_parents()  # any parent may have been written
            raise
        finally:
            self._end_mask()
        self._records = records[: frontier.row].copy()  # the next search overwrites them
        if frontier.merged > 0:
            self._tiny = platform.host.tiny_levels(frontier.level)

    def _start_early(self, frontier: Frontier, limit: int) -> None:
        platform, selector = self.platform, self.selector
        if not platform.devices or self.target is not None:
            return
        known = platform.known_choice(selector, frontier)
        if known is None:
            return
        chosen = int(known[schema.STRATEGY])
        place = selector.candidates[chosen].place
        if place != schema.HOST:
            assert self.source is not None
            platform.device_at(place).start_early(
                selector.policy, self.decision_interval, self.source, chosen, frontier, limit
            )

    def _run_here(self, frontier: Frontier, records: npt.NDArray[np.float64], limit: int) -> bool:
        """Run levels where the search is, then migrate if the policy says so.

        Return False at the end of the search.
        """
        platform, selector = self.platform, self.selector
        cpu_only, place = not platform.devices, frontier.place
        if cpu_only or place == schema.HOST:
            assert self.source is not None
            rows = min(limit, records.shape[0])
            ended = platform.host.run_levels(
                selector.policy,
                self.decision_interval,
                self.source,
                cpu_only,
                frontier,
                records,
                rows,
            )
            if ended:
                if cpu_only:
                    self._ended_at = time.perf_counter()
                return not frontier.is_over and frontier.level < limit
        elif frontier.is_over or frontier.level >= limit:
            return False
        elif frontier.chosen < 0:
            platform.choose(selector, self.decision_interval, frontier, records)
        return not self._migrate(place, frontier, records, limit)

    @property
    def device_results(self) -> DeviceResults | None:
        """Restores the result on the device where it is complete; None if the host must do it."""
        if self._complete_at == schema.HOST:
            return None
        return self.platform.device_at(self._complete_at).results

    def gather(self) -> None:
        """Copy the parents to the host's array, where they stay until the next search."""
        host = self.platform.host
        if self._complete_at != schema.HOST:
            device = self.platform.device_at(self._complete_at)
            host.note_foreign_parents()
            if device.unified:
                device.release()
            else:
                device.read_parents(host.parent)

    def save_parents(self, parent: npt.NDArray[np.uint32]) -> None:
        """Copy the parents to an array on the host that later searches do not overwrite."""
        if self._complete_at != schema.HOST:
            device = self.platform.device_at(self._complete_at)
            if not device.unified:
                device.read_parents(parent)
                return
        self.gather()
        parent[:] = self.platform.host.parent

    def gather_saved(self, parent: npt.NDArray[np.uint32]) -> None:
        """Copy saved parents back to the host's array; other searches may have run since."""
        host = self.platform.host
        host.note_foreign_parents()
        for device in self.platform.devices:
            device.release()
        host.parent[:] = parent
        self._complete_at = schema.HOST

    def _migrate(
        self,
        place: int | None,
        frontier: Frontier,
        records: npt.NDArray[np.float64],
        limit: int,
    ) -> bool:
        """Migrate the search from `place` to the chosen strategy's place; on a device, run it.

        Return true if the search is known to be over.
        """
        platform = self.platform
        strategy = self.selector.candidates[frontier.chosen]
        if place != strategy.place:
            record = records[frontier.row]
            before = time.perf_counter()
            self._migrate_frontier(strategy, frontier)
            record[schema.TRANSFER_SECONDS] += time.perf_counter() - before
        if strategy.place == schema.HOST or not platform.devices:
            return False
        device = platform.device_at(strategy.place)
        source = self.source if place is None else None
        policy, interval = self.selector.policy, self.decision_interval
        if self.target is not None:
            limit = min(limit, frontier.level + 1)
        first = frontier.row
        over = device.run_levels(policy, interval, source, frontier, records, limit)
        frontier.place = strategy.place
        if self.target is not None and device.has_visited(self.target, frontier.visited_index):
            frontier.state[schema.TARGET] = schema.FOUND_TARGET
            over = True
        records[first + 1 : frontier.row + 1, schema.PLACE] = strategy.place
        if over and len(self._used) == 1:
            self._ended_at = device.ended_at
        return over

    def _migrate_frontier(self, strategy: Strategy, frontier: Frontier) -> None:
        """Migrate the frontier to the strategy's place, in the representation that it reads.

        On a device the first launch starts the search, and the launch that needs a queue converts
        the bitmap.
        """
        place, before = strategy.place, frontier.place
        with_queue = strategy.direction == "top-down"
        if before is None:
            self._enter(place, frontier)
            return
        if with_queue and not frontier.has_queue:
            self.platform.executor(before).to_queue(frontier)
        if before != schema.HOST:
            self.platform.device_at(before).send(frontier, with_queue)
        if place != schema.HOST:
            device = self.platform.device_at(place)
            if place not in self._used and not device.unified:
                device.clear(frontier)
            if place not in self._used and self.seeds is not None and self.seeds.mask is not None:
                device.receive_mask(self.seeds.mask)
            device.receive(frontier, with_queue)
        frontier.place = place
        self._used.add(place)

    def _enter(self, place: int, frontier: Frontier) -> None:
        assert self.source is not None
        for device in self.platform.devices:
            if device.place != place:
                device.release()
        if place == schema.HOST:
            if self.seeds is None:
                self.platform.host.begin(self.source, frontier)
            else:
                self.platform.host.begin_at(self.seeds, frontier)
        frontier.place = place
        self._used.add(place)

    def _end_mask(self) -> None:
        if self.seeds is not None and self.seeds.mask is not None:
            self.platform.host.end_mask()
            for device in self.platform.devices:  # including one that failed to start
                device.end_mask()

    def _complete(self, frontier: Frontier) -> None:
        platform, host = self.platform, self.platform.host
        if not platform.devices:
            return  # compiled code has completed it
        if frontier.place is None:
            self._enter(schema.HOST, frontier)
        assert frontier.place is not None
        self._complete_at = frontier.place
        if len(self._used) == 1:
            if self._complete_at == schema.HOST:
                host.invalidate_stale_parents(frontier)
            elif platform.device_at(self._complete_at).unified:
                host.note_foreign_parents()  # the device wrote to the host's array
        elif len(platform.devices) == 1 and not platform.devices[0].unified:
            platform.devices[0].add_host_finds(host, frontier)
            self._ended_at = time.perf_counter()
            host.note_finds(frontier)
            self._complete_at = platform.devices[0].place
        else:
            self._merge_parents(frontier)
            self._ended_at = time.perf_counter()
            self._complete_at = schema.HOST

    def _merge_parents(self, frontier: Frontier) -> None:
        from hetero_bfs.algorithms.bfs.kernels.restore import merge_parents

        platform, host = self.platform, self.platform.host
        used = [platform.device_at(place) for place in self._used if place != schema.HOST]
        apart = [device for device in used if not device.unified]
        for device in used:
            device.release()
        visited = host.visited[frontier.visited_index]
        place = frontier.place
        if place and not platform.device_at(place).unified:
            platform.device_at(place).read_visited(visited, frontier.visited_index)
        for device in apart:
            other = platform.scratch_parents
            device.read_parents(other)
            merge_parents(host.parent, other, visited)
        if not apart:
            host.invalidate_stale_parents(frontier)
        else:
            host.note_foreign_parents()


def restored(
    search: Search, sources: tuple[int, ...], want: str, dtype: npt.DTypeLike
) -> npt.NDArray[Any]:
    """Return the parents of a search, int64 or int32, or its levels, int32, in the caller's ids.

    `sources` are in the caller's ids, too. `want` is that of a `Query`.
    """
    host, results = search.platform.host, search.device_results
    levels = want == "levels"
    dtype = np.int32 if levels else dtype
    if search.source is None:
        found = np.full(search.platform.graph.num_vertices, -1, dtype)
    elif results is not None:
        found = host.new_result(dtype)
        if levels:
            results.send_levels(search.num_levels, _into(found, host))
        else:
            results.send_parents(_into(found, host))
    else:
        search.gather()
        found = host.restore_levels() if levels else host.restore_parents(dtype)
    if search.source is None or len(sources) > 1:  # some may have no edges, and are not searched
        found[list(sources)] = 0 if levels else sources
    return found


def _into(result: npt.NDArray[Any], host: CPUExecutor) -> Receive:
    def receive(begin: int, part: npt.NDArray[np.uint32]) -> None:
        host.receive_result(result[begin : begin + part.size], part)

    return receive


def make_result(
    search: Search,
    query: Query,
    parent: npt.NDArray[Any],
    gather_seconds: float,
    streamed_bytes: int,
) -> BFSResult:
    graph = search.platform.graph
    return BFSResult(
        query.sources[0],
        parent,
        search.seconds,
        gather_seconds,
        graph.input_degree,
        graph.graph.directed,
        search.recording().traces,
        streamed_bytes,
        search.selector.rule,
        query.sources,
        query.reverse,
    )
