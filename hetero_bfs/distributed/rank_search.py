"""Breadth-first search on all ranks, level by level.

Calls between ranks in a level. Bottom-up: a dense exchange before it. Top-down: counts and words
after it. Both: one reduction, which decides the direction of the next level and finds the end.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.bfs.result import Frontier
from hetero_bfs.distributed.communicator import Communicator
from hetero_bfs.distributed.decision import Decision
from hetero_bfs.distributed.exchange import Exchange, ExchangeCosts
from hetero_bfs.distributed.partition import RankGraph
from hetero_bfs.distributed.rank_device import RankDevice
from hetero_bfs.distributed.rank_executor import RankExecutor
from hetero_bfs.graph.edge_source import check_vertex
from hetero_bfs.selection.strategies import Direction


@dataclass(frozen=True)
class RankLevel:
    """A level as one rank ran it.

    Parameters
    ----------
    direction : str
    seconds : float
        Of the rank's own work.
    exchange_seconds : float
        Of exchanges and the reduction, waiting for other ranks included.
    bytes_sent : int
        To other ranks.
    frontier_vertices, frontier_edges : int
        The rank's own, before the level.
    push_seconds, pull_seconds : float
        Seconds predicted for the slowest rank in both directions, exchange included.
    on_device : bool
        Whether the rank ran it on its OpenCL device.
    """

    direction: Direction
    seconds: float
    exchange_seconds: float
    bytes_sent: int
    frontier_vertices: int
    frontier_edges: int
    push_seconds: float
    pull_seconds: float
    on_device: bool


@dataclass(eq=False)
class RankResult:
    """A search's result on one rank.

    Parameters
    ----------
    source : int
        The caller's id.
    parent : uint32 array, shape (own old ids,)
        Old ids of the parents; NO_VERTEX where not reached.
    seconds : float
        From the key to complete parents, the slowest rank's.
    reached, nedge : int
        Of the whole search: vertices with a parent, and input edges between them.
    levels : list of RankLevel
    """

    source: int
    parent: npt.NDArray[np.uint32]
    seconds: float
    reached: int
    nedge: int
    levels: list[RankLevel]


class DistributedSearch:
    """Searches a graph whose parts all ranks hold; all ranks make the same calls.

    Parameters
    ----------
    communicator : Communicator
    graph : RankGraph
        This rank's part.
    selector : str
        Chooses the direction of a level; see `Decision`.
    threads : int, optional
        Threads of this rank; by default one per core that it may use.
    costs : ExchangeCosts, optional
        Of exchanges, the same on all ranks; measured by default.
    device : RankDevice, optional
        This rank's, for bottom-up levels; it has the threads, too.
    """

    def __init__(
        self,
        communicator: Communicator,
        graph: RankGraph,
        selector: str = "auto",
        threads: int | None = None,
        costs: ExchangeCosts | None = None,
        device: RankDevice | None = None,
    ) -> None:
        self.communicator = communicator
        self.graph = graph
        self.device = device
        self.executor = RankExecutor(graph, threads) if device is None else device.host
        self.executor.start_workers()
        self._exchange = Exchange(communicator, graph.partition)
        self.costs = costs or self._exchange.probe()
        sizes, own = graph.partition.sizes, graph.num_searched
        others = 1.0 - own / max(int(sizes.sum()), 1)
        largest = int(sizes.max())  # the same on all ranks, for what they decide
        self.decision = Decision(communicator, selector, others, largest, self.costs, device)
        self._others_known = 0

    def close(self) -> None:
        """End the rank's threads."""
        self.executor.stop_workers()

    def search(self, source: int) -> RankResult:
        """Search from a vertex (the caller's id).

        Raises
        ------
        GraphError
            The vertex is not in the graph.
        """
        source = check_vertex(source, self.graph.num_vertices)
        self.communicator.barrier()
        started = time.perf_counter()
        frontier = self.executor.start(self.graph.searched_id(source))
        if self.device is not None:
            self.device.begin()
        self._others_known = frontier.visited_index
        levels = self._run(frontier)
        if self.device is not None:
            self.device.complete(frontier)
        self.executor.invalidate_stale_parents(frontier)
        seconds = np.array([time.perf_counter() - started])
        self.communicator.reduce_to_all(seconds, "max")
        return self._result(source, float(seconds[0]), levels)

    def _run(self, frontier: Frontier) -> list[RankLevel]:
        levels: list[RankLevel] = []
        decision, exchange = self.decision, self._exchange
        direction: Direction = "top-down"
        began = time.perf_counter()
        while decision.agree(frontier.state):
            predicted = decision.seconds()
            direction = decision.choose(frontier.level, direction)
            before = frontier.vertices, frontier.edges
            sent = exchange.bytes_sent
            on_device = direction == "bottom-up" and decision.pulls_on_device(frontier.state)
            if direction == "top-down":
                seconds = self._push(frontier)
            else:
                seconds = self._pull(frontier, on_device)
            decision.learn(direction, on_device, seconds)
            now = time.perf_counter()
            levels.append(
                RankLevel(
                    direction,
                    seconds,
                    now - began - seconds,
                    exchange.bytes_sent - sent,
                    *before,
                    *predicted,
                    on_device,
                )
            )
            began = now
        return levels

    def _push(self, frontier: Frontier) -> float:
        """Run a level top-down; return the seconds of the rank's own work."""
        began = time.perf_counter()
        executor, exchange = self.executor, self._exchange
        if self._others_known != frontier.visited_index:
            executor.copy_others(self._others_known, frontier.visited_index)
            self._others_known = frontier.visited_index
        found = executor.push(frontier, exchange.counts)
        seconds = time.perf_counter() - began
        words, counts = exchange.tell(executor.told)
        began = time.perf_counter()
        executor.receive(frontier, words, counts, found)
        return seconds + time.perf_counter() - began

    def _pull(self, frontier: Frontier, on_device: bool) -> float:
        """Run a level bottom-up; return the seconds of the rank's own work."""
        self._others_known = frontier.visited_index
        self._exchange.dense(self.executor.visited[frontier.visited_index])
        began = time.perf_counter()
        if on_device and self.device is not None:
            self.device.pull(frontier)
        else:
            self.executor.pull(frontier)
        return time.perf_counter() - began

    def _result(self, source: int, seconds: float, levels: list[RankLevel]) -> RankResult:
        from hetero_bfs.distributed.kernels.pull import reached_ends

        parent = self.executor.restored()
        part = self.graph.partition
        if part.owner(source) == part.rank:  # also if it has no edges
            parent[source // part.ranks] = source
        totals = np.array(reached_ends(parent, self.graph.input_degree), np.int64)
        self.communicator.reduce_to_all(totals, "sum")
        nedge = int(totals[1]) // (1 if self.graph.graph.directed else 2)
        return RankResult(source, parent, seconds, int(totals[0]), nedge, levels)
