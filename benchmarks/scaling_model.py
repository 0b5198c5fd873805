"""Searches by simulated ranks: own work measured, exchanges predicted.

Every rank is one thread on a host of its own. A rank's levels are measured while the others wait
(tests/support/simulated_ranks.py). What the ranks send is counted, and its seconds are predicted:

- reduction: log2 P steps of a message;
- dense exchange (allgatherv): recursive doubling, as Bruck's: log2 P messages, and the bytes of all
  other ranks;
- counts (alltoall): Bruck's, log2 P messages of 4 P bytes;
- words (alltoallv): P - 1 messages one after the other, of which the first's latency shows; the
  bytes of the rank that sends most.
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hetero_bfs.algorithms.bfs.query import Query, Seeds
from hetero_bfs.algorithms.bfs.ranks import DistributedSearch, RankResult
from hetero_bfs.algorithms.bfs.result import Frontier
from hetero_bfs.graph.generators.kronecker import KroneckerEdges, search_keys
from hetero_bfs.ranks.communicator import Communicator
from hetero_bfs.ranks.construction import construct
from hetero_bfs.ranks.exchange import WORD_BYTES
from hetero_bfs.ranks.partition import KroneckerShare, RankGraph
from hetero_bfs.scheduling.rank_decision import ExchangeCosts

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))
from simulated_ranks import SimulatedCommunicator, run_ranks

Row = dict[str, Any]

REDUCED_BYTES = 64


@dataclass(frozen=True)
class Network:
    """Latency in seconds, bandwidth of a host in bytes a second, seconds between messages."""

    latency: float = 2e-6
    bandwidth: float = 12.5e9
    gap: float = 0.2e-6

    def reduction(self, ranks: int) -> float:
        """Return the seconds of a reduction to all."""
        return _steps(ranks) * (self.latency + REDUCED_BYTES / self.bandwidth)

    def dense(self, ranks: int, others_bytes: float) -> float:
        """Return the seconds of a dense exchange; the bytes are those that a rank receives."""
        return _steps(ranks) * self.latency + others_bytes / self.bandwidth

    def sparse(self, ranks: int, most_bytes: float) -> float:
        """Return the seconds of a sparse exchange; the bytes are the most that a rank sends."""
        if ranks == 1:
            return 0.0
        counts = _steps(ranks) * (self.latency + WORD_BYTES * ranks / 2 / self.bandwidth)
        return counts + self.latency + (ranks - 2) * self.gap + most_bytes / self.bandwidth

    def costs(self, ranks: int, others_bytes: float) -> ExchangeCosts:
        """Return what ranks would measure when a search opens."""
        dense = self.dense(ranks, others_bytes)
        return ExchangeCosts(dense, self.sparse(ranks, 0.0), 1 / self.bandwidth)


def _steps(ranks: int) -> int:
    return math.ceil(math.log2(ranks))


class TimedSearch(DistributedSearch):
    """Notes the seconds before the first level and after the last one of each search, too."""

    def __init__(self, communicator: Communicator, graph: RankGraph, network: Network) -> None:
        most = max(communicator.collect(others_bytes(graph)))  # all ranks must have the same costs
        costs = network.costs(communicator.size, most)
        super().__init__(communicator, graph, "auto", 1, costs)
        self.ends_seconds: list[float] = []
        start, finish = self.host.start, self.host.invalidate_stale_parents

        def timed_start(seeds: Seeds, lists_found: bool = False) -> Frontier:
            began = time.perf_counter()
            frontier = start(seeds, lists_found)
            self.ends_seconds.append(time.perf_counter() - began)
            return frontier

        def timed_finish(frontier: Frontier) -> None:
            began = time.perf_counter()
            finish(frontier)
            self.ends_seconds[-1] += time.perf_counter() - began

        self.host.start = timed_start  # type: ignore[method-assign]
        self.host.invalidate_stale_parents = timed_finish  # type: ignore[method-assign]


def others_bytes(graph: RankGraph) -> int:
    part = graph.partition
    return 4 * int(part.sent_words.sum() - part.sent_words[part.rank])


@dataclass
class Measured:
    """What one rank noted: results, seconds outside levels by key, and bytes."""

    results: list[RankResult]
    ends: list[float]
    others_bytes: int
    rank_bytes: int
    replicated_bytes: int


def simulate(scale: int, ranks: int, num_keys: int, rounds: int, network: Network) -> Row:
    """Search a Kronecker graph by simulated ranks; return a row of the table."""
    edges = KroneckerEdges(scale)

    def run(communicator: SimulatedCommunicator) -> Measured:
        share = KroneckerShare(**vars(edges), rank=communicator.rank, ranks=ranks)
        graph = construct(communicator, share, edges.num_input_edges)
        degrees = communicator.collect(graph.input_degree)
        keys = search_keys(
            edges.num_vertices, lambda v: degrees[v % ranks][v // ranks] == 0, num_keys
        )
        search = TimedSearch(communicator, graph, network)
        queries = [Query((key,)) for key in keys]
        search.search_in_a_row(queries)  # untimed: the ranks learn how fast they are
        search.ends_seconds.clear()
        results = [result for _ in range(rounds) for result in search.search_in_a_row(queries)]
        ends = search.ends_seconds
        search.close()
        lists = graph.graph
        own = lists.indptr, lists.indices, graph.degree, graph.first, graph.input_degree
        size = sum(int(array.nbytes) for array in own)
        return Measured(results, ends, others_bytes(graph), size, graph.replicated_bytes)

    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})  # a rank must not change cores between its levels
    try:
        measured = run_ranks(ranks, run, 1)
    finally:
        os.sched_setaffinity(0, cores)
    return _row(scale, ranks, measured, rounds, network)


def _row(scale: int, ranks: int, measured: list[Measured], rounds: int, network: Network) -> Row:
    keys = len(measured[0].results) // rounds
    parts = np.array([_seconds(measured, k, keys, network) for k in range(keys)])
    seconds = parts[:, 0] + parts[:, 2]
    nedge = np.array([result.nedge for result in measured[0].results[:keys]])
    levels = [level for result in measured[0].results for level in result.levels]
    searches = keys * rounds
    return {
        "scale": scale,
        "ranks": ranks,
        "median_seconds": float(np.median(seconds)),
        "teps": float(keys / np.sum(seconds / nedge)),
        "work_seconds": float(np.median(parts[:, 0])),
        "mean_work_seconds": float(np.median(parts[:, 1])),
        "exchange_seconds": float(np.median(parts[:, 2])),
        "latency_seconds": float(np.median(parts[:, 3])),
        "levels": len(levels) / searches,
        "dense_levels": sum(level.direction == "bottom-up" for level in levels) / searches,
        "dense_bytes": max(one.others_bytes for one in measured),
        "rank_bytes": max(one.rank_bytes for one in measured),
        "replicated_bytes": max(one.replicated_bytes for one in measured),
    }


def _seconds(
    measured: list[Measured], key: int, keys: int, network: Network
) -> tuple[float, float, float, float]:
    """Return the slowest ranks' work, the mean one, exchange, and the latency in it.

    The seconds of a rank's level are the median over the rounds that took the most usual directions
    of this key: the slowest of 64 ranks would else be one that the system disturbed.
    """
    places = range(key, len(measured[0].results), keys)
    ways = [tuple(level.direction for level in measured[0].results[i].levels) for i in places]
    usual, _ = Counter(ways).most_common(1)[0]
    places = [i for i, way in zip(places, ways, strict=True) if way == usual]
    by_round = [[[x.seconds for x in one.results[i].levels] for one in measured] for i in places]
    work = np.median(np.array(by_round), axis=0)
    sent = np.array([[x.bytes_sent for x in one.results[places[-1]].levels] for one in measured])
    ends = np.median([[one.ends[i] for one in measured] for i in places], axis=0)
    ranks, received = len(measured), max(one.others_bytes for one in measured)
    calls = network.reduction(ranks)
    exchange = latency = (len(usual) + 1) * calls  # the last one finds that no vertex is left
    for direction, most in zip(usual, sent.max(axis=0), strict=True):
        if direction == "bottom-up":
            exchange += network.dense(ranks, received)
            latency += network.dense(ranks, 0)
        else:
            exchange += network.sparse(ranks, float(most))
            latency += network.sparse(ranks, 0)
    slowest = work.max(axis=0).sum() + ends.max()
    return slowest, work.mean(axis=0).sum() + ends.mean(), exchange, latency
