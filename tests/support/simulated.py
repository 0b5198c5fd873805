"""Distributed searches by simulated ranks, for tests."""

from __future__ import annotations

from contextvars import copy_context
from dataclasses import dataclass

import numpy as np
from simulated_ranks import SimulatedCommunicator, run_ranks

from hetero_bfs.algorithms.bfs.query import Query
from hetero_bfs.algorithms.bfs.ranks import DistributedSearch, RankResult
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.ranks.construction import construct


@dataclass
class Found:
    """A search as all ranks found it: parents of all vertices, -1 for none."""

    parent: np.ndarray
    results: list[RankResult]


def run_commands_on_ranks(patch, ranks: int, *modules) -> None:
    """Let commands of these modules run on simulated ranks.

    Ranks are threads, and each needs the command's names of options.
    """

    def together(work):
        contexts = [copy_context() for _ in range(ranks)]
        return run_ranks(ranks, lambda c: contexts[c.rank].run(work, c))[0]

    for module in modules:
        patch.setattr(module, "launched_ranks", lambda: ranks)
        patch.setattr(module, "run_together", together)


def share_of(edges: EdgeList, rank: int, ranks: int) -> EdgeList:
    """Return every `ranks`-th edge."""
    mine = slice(rank, None, ranks)
    src, dst = edges.src[mine].copy(), edges.dst[mine].copy()
    return EdgeList(src, dst, edges.num_vertices, edges.directed)


def constructed(communicator: SimulatedCommunicator, edges: EdgeList):
    share = share_of(edges, communicator.rank, communicator.size)
    return construct(communicator, share, edges.num_input_edges)


def search_all(
    edges: EdgeList,
    sources: list[int],
    ranks: int,
    selector: str = "auto",
    threads: int = 1,
    reverse: bool = False,
    host_size: int | None = None,
) -> list[Found]:
    """Search from each source by so many simulated ranks, against the edges if `reverse`.

    By default they share a host. The searches run in a row.
    """

    def run(communicator: SimulatedCommunicator) -> list[RankResult]:
        graph = constructed(communicator, edges)
        graph = graph.reversed() if reverse else graph
        search = DistributedSearch(communicator, graph, selector, threads)
        try:
            return search.search_in_a_row([Query((source,)) for source in sources])
        finally:
            search.close()

    by_rank = run_ranks(ranks, run, host_size)
    return [joined([results[i] for results in by_rank], edges) for i in range(len(sources))]


def joined(results: list[RankResult], edges: EdgeList) -> Found:
    parent = np.full(edges.num_vertices, -1, np.int64)
    for rank, result in enumerate(results):
        own = result.parent.astype(np.int64)
        parent[rank :: len(results)] = np.where(own == 0xFFFFFFFF, -1, own)
    return Found(parent, results)
