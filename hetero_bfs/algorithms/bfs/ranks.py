"""Breadth-first search on all ranks, level by level.

A bottom-up level starts with a dense exchange. A top-down level ends with an exchange of message
counts and messages. After each level one reduction decides the direction of the next level and
detects the end, or that the target's owner has found it. A depth limit needs no call, since all
ranks run the same levels.

Each rank runs its part of a level on its host or on its device, wherever its part of the search is.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.base import RankedGraph
from hetero_bfs.algorithms.bfs.device_memory import SavedParents
from hetero_bfs.algorithms.bfs.query import Query, Seeds
from hetero_bfs.algorithms.bfs.ranks_device import RankDevice, open_rank_device
from hetero_bfs.algorithms.bfs.ranks_host import RankExecutor
from hetero_bfs.algorithms.bfs.result import SUMMED, BFSResult, Frontier, RankLevel
from hetero_bfs.algorithms.bfs.serial import as_parents
from hetero_bfs.graph.edge_source import NO_VERTEX
from hetero_bfs.options import EngineOptions
from hetero_bfs.ranks.communicator import Communicator, agreed
from hetero_bfs.ranks.exchange import Exchange
from hetero_bfs.ranks.partition import RankGraph, gathered
from hetero_bfs.ranks.rank_run import RankRun, of_all_ranks, usual_threads
from hetero_bfs.scheduling import schema
from hetero_bfs.scheduling.rank_decision import ExchangeCosts, RankDecision
from hetero_bfs.scheduling.strategies import Direction


def search_by_ranks(engine: RankedGraph, query: Query) -> BFSResult:
    """Search on all ranks of an engine.

    Raises `AgreedError` on all ranks if one of them cannot use a device that the engine names.
    """
    communicator, n = engine.communicator, engine.num_vertices
    directed = engine.graph.graph.directed
    back = query.reverse and directed

    def opened() -> tuple[DistributedSearch, npt.NDArray[np.uint32]]:
        graph = engine.along("in" if back else "out")
        threads = engine.options.threads or usual_threads(communicator)
        search, notes = open_search(communicator, graph, engine.options, threads)
        engine.note_search(None if search.device is None else search.device.info, notes)
        search.search(Query(query.sources[:1]))  # untimed: it loads or compiles other kernels
        return search, gathered(communicator, graph.input_degree, n)

    search, degree = engine.keep((DistributedSearch, back), opened)
    found = search.search(query)
    parent = as_parents(gathered(communicator, found.parent, n), query.dtype)
    levels: Any = of_all_ranks(communicator, found.levels, *SUMMED)
    result = BFSResult(
        query.sources[0], parent, found.seconds, 0.0, degree, directed, lambda: levels,
        sources=query.sources, reverse=query.reverse,
    )  # fmt: skip
    if query.want == "levels":
        _ = result.level  # computed from the parents, and kept
        result.parent = np.empty(0, parent.dtype)
    return result


def open_search(
    communicator: Communicator, graph: RankGraph, options: EngineOptions, threads: int
) -> tuple[DistributedSearch, list[str]]:
    """Open searches with an engine's settings, and these threads; also return lines for the user.

    Raises `AgreedError` on all ranks if one of them cannot use a device that the options name.
    """
    device, note = agreed(
        communicator, lambda: open_rank_device(options, communicator.host_rank, graph, threads)
    )
    noted = enumerate(communicator.collect(note))
    search = DistributedSearch(
        communicator, graph, str(options.selector), threads,
        device=device, correction=options.correction,
    )  # fmt: skip
    return search, [f"rank {rank}: {text}" for rank, text in noted if text is not None]


@dataclass(eq=False)
class RankResult:
    """A search's result on one rank; `source` is its first source, the caller's id.

    `parent`, shape (own old ids,), has old ids; NO_VERTEX where not reached. `seconds` are from the
    key to complete parents on the slowest rank. `reached` and `nedge` are of the whole search:
    vertices with a parent, and input edges between them.
    """

    source: int
    parent: npt.NDArray[np.uint32]
    seconds: float
    reached: int
    nedge: int
    levels: list[RankLevel]


class DistributedSearch(RankRun[RankExecutor]):
    """Searches a graph that is distributed over all ranks; all ranks make the same calls.

    `graph` is this rank's part. `selector` chooses the direction of a level (`RankDecision`).
    `threads` are by default one per core that this rank may use. `costs` of exchanges are the same
    on all ranks, by default measured. `device` has its own host executor and threads. `correction`:
    whether measured times correct predictions.
    """

    def __init__(
        self,
        communicator: Communicator,
        graph: RankGraph,
        selector: str = "auto",
        threads: int | None = None,
        costs: ExchangeCosts | None = None,
        device: RankDevice | None = None,
        correction: bool = True,
    ) -> None:
        self.device = device
        super().__init__(
            communicator,
            graph,
            lambda: RankExecutor(graph, threads) if device is None else device.host,
        )
        self._exchange = Exchange(
            communicator, graph.partition, None if device is None else device.device
        )
        self.costs = costs or self._exchange.probe(device or self.host)
        sizes, own = graph.partition.sizes, graph.num_searched
        others = 1.0 - own / max(int(sizes.sum()), 1)
        largest = int(sizes.max())  # the same on all ranks, so that they decide the same
        self.decision = RankDecision(
            lambda numbers: communicator.reduce_to_all(numbers, "max"),
            selector, others, largest, self.costs, device, correction,
        )  # fmt: skip
        self._others_known = 0
        self._saved = SavedParents()

    def search(self, query: Query) -> RankResult:
        return self.search_in_a_row([query])[0]

    def search_in_a_row(self, queries: Sequence[Query]) -> list[RankResult]:
        """Search back-to-back, then restore the caller's ids.

        Work between searches would evict the next one's code and data from the caches. So the
        parents are only copied: 4 bytes per own vertex and search, in memory that is reused.

        Raises `AgreedError` on all ranks if one of them cannot prepare a mask.
        """
        parent, searches = self.host.parent, []
        for query, saved in zip(
            queries, self._saved.room(len(queries), parent.size, None), strict=True
        ):
            try:
                seeds = self._seeds(query)
                levels, seconds = self.timed(self._search, query, seeds)
            finally:
                self._end_mask(query)
            if self.device is not None:
                self.device.gather()
            searches.append((query, saved, seconds, levels))
            saved[:] = parent
        return [self._result(*search) for search in searches]

    def _seeds(self, query: Query) -> Seeds:
        def found() -> Seeds:
            seeds = query.seeds(self.graph)
            if self.device is not None and seeds.mask is not None:
                self.device.receive_mask(seeds.mask)  # it may compile, and fail
            return seeds

        return found() if query.mask is None else agreed(self.communicator, found)

    def _end_mask(self, query: Query) -> None:
        if query.mask is not None:
            self.host.end_mask()
            if self.device is not None:
                self.device.end_mask()

    def _search(self, query: Query, seeds: Seeds) -> list[RankLevel]:
        started = time.perf_counter()
        device = self.device
        if device is not None:
            device.clear()
        if device is not None and self.decision.begins_on_device():
            frontier = device.start(seeds)
        else:
            frontier = self.host.start(seeds, lists_found=device is not None)
        frontier.target = query.searched_target(self.graph)
        self._others_known = frontier.visited_index
        levels = self._run(frontier, started, query.max_levels)
        if device is None:
            self.host.invalidate_stale_parents(frontier)
        else:
            device.complete(frontier)
        return levels

    def _run(self, frontier: Frontier, started: float, limit: int | None) -> list[RankLevel]:
        levels: list[RankLevel] = []
        began_on_host = frontier.place == schema.HOST
        decision, exchange = self.decision, self._exchange
        direction: Direction = "top-down"
        began = time.perf_counter()
        on_host = began - started  # seconds of the rank's own work before a move
        while len(levels) != limit and decision.agree(frontier.state):
            predicted = decision.seconds()
            direction = decision.choose(frontier.level, direction)
            before = frontier.vertices, frontier.edges
            sent = exchange.bytes_sent
            on_device = decision.is_on_device(direction, frontier.state)
            moving = self._move(frontier, direction, on_device)
            runner: RankExecutor | RankDevice = self.host
            if self.device is not None and frontier.place != schema.HOST:
                runner = self.device
            run = self._push if direction == "top-down" else self._pull
            seconds = run(runner, frontier)
            decision.learn(direction, on_device, seconds)
            target = frontier.target
            if target is not None and runner.has_visited(target, frontier.visited_index):
                frontier.state[schema.TARGET] = schema.FOUND_TARGET  # this rank owns it
            if moving and on_device and began_on_host:
                decision.learn_start(on_host + moving, len(levels))
            on_host += seconds
            now = time.perf_counter()
            levels.append(
                RankLevel(
                    len(levels),
                    direction,
                    *before,
                    *predicted,
                    on_device,
                    moving + seconds,
                    now - began - moving - seconds,
                    exchange.bytes_sent - sent,
                )
            )
            began = now
        return levels

    def _move(self, frontier: Frontier, direction: Direction, on_device: bool) -> float:
        if self.device is None or on_device == (frontier.place != schema.HOST):
            return 0.0
        began = time.perf_counter()
        if on_device:
            self.device.enter(frontier, direction)
        else:
            self.device.leave(frontier, direction)
        return time.perf_counter() - began

    def _push(self, runner: RankExecutor | RankDevice, frontier: Frontier) -> float:
        began = time.perf_counter()
        exchange = self._exchange
        if self._others_known != frontier.visited_index:
            runner.copy_others(self._others_known, frontier.visited_index)
            self._others_known = frontier.visited_index
        found = runner.push(frontier, exchange.counts)
        seconds = time.perf_counter() - began
        sent = exchange.send(runner)
        began = time.perf_counter()
        runner.receive(frontier, sent, found)
        return seconds + time.perf_counter() - began

    def _pull(self, runner: RankExecutor | RankDevice, frontier: Frontier) -> float:
        self._others_known = frontier.visited_index
        self._exchange.dense(runner, frontier.visited_index)
        began = time.perf_counter()
        runner.pull(frontier)
        return time.perf_counter() - began

    def _result(
        self, query: Query, saved: npt.NDArray[np.uint32], seconds: float, levels: list[RankLevel]
    ) -> RankResult:
        parent = self.host.restored(saved)
        part, sources = self.graph.partition, np.array(query.sources)
        own = sources[sources % part.ranks == part.rank]  # also those without edges
        parent[own // part.ranks] = own
        reached = self.count(parent != NO_VERTEX)
        return RankResult(query.sources[0], parent, seconds, *reached, levels)
