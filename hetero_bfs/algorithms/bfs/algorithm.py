"""Breadth-first searches on a platform, in the caller's ids. The selector learns from each."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np

from hetero_bfs.algorithms.base import RankedGraph, Request, Runs
from hetero_bfs.algorithms.bfs.device_memory import SavedParents
from hetero_bfs.algorithms.bfs.platform import Platform, bytes_streamed_by
from hetero_bfs.algorithms.bfs.query import Query, check_query
from hetero_bfs.algorithms.bfs.result import BFSResult, SearchReport
from hetero_bfs.algorithms.bfs.search import Search, make_result, restored
from hetero_bfs.algorithms.bfs.selection import Selection
from hetero_bfs.algorithms.bfs.serial import answer_serially
from hetero_bfs.graph.csr import CSRGraph


class Searches(Runs[BFSResult]):
    """Searches of an engine, which makes its platform and selection. A query is a `Query`."""

    what = "breadth-first search"
    report: ClassVar = SearchReport
    needs_engine = True
    ranks_use_devices = True

    def __init__(self, platform: Platform, selection: Selection, decision_interval: int) -> None:
        self.platform, self.selection = platform, selection
        self.decision_interval = decision_interval
        self._saved = SavedParents()

    @classmethod
    def by_ranks(cls, engine: RankedGraph, *query: Any) -> BFSResult:
        from hetero_bfs.algorithms.bfs.ranks import search_by_ranks

        return search_by_ranks(engine, *query)

    @classmethod
    def by_one_thread(cls, graph: CSRGraph, *query: Any) -> BFSResult:
        return answer_serially(graph, *query)

    def close(self) -> None:
        self._saved.release()
        self.selection.release()
        self.platform.close()
        del self.platform

    def run(self, *query: Any) -> BFSResult:
        """Search along this platform's neighbour lists; `reverse` of a `Query` is only noted."""
        (asked,) = query
        search, streamed = self._searched(asked)
        started = time.perf_counter()
        found = restored(search, asked.sources, asked.want, asked.dtype)
        seconds = time.perf_counter() - started
        if asked.want == "parents":
            return make_result(search, asked, found, seconds, streamed)
        result = make_result(search, asked, np.empty(0, asked.dtype), seconds, streamed)
        result.__dict__["level"] = found
        return result

    def search(self, query: Query) -> Search:
        """Search without gathering the parents."""
        return self._searched(query)[0]

    def run_back_to_back(self, queries: Iterable[Query]) -> list[BFSResult]:
        """Run whole searches, and restore the caller's ids after the last one."""
        asked = list(queries)
        if len(asked) == 1:
            return [self.run(asked[0])]
        accelerator = self.platform.accelerator
        device = None if accelerator is None else accelerator.device
        saved = self._saved.room(len(asked), self.platform.graph.num_searched, device)
        searches = []
        for query, parent in zip(asked, saved, strict=True):
            search, streamed = self._searched(query)
            started = time.perf_counter()
            if search.source is not None:
                search.save_parents(parent)
            searches.append((search, streamed, time.perf_counter() - started))
        results = []
        for query, parent, (search, streamed, seconds) in zip(asked, saved, searches, strict=True):
            started = time.perf_counter()
            if search.source is not None:
                search.gather_saved(parent)
            found = restored(search, query.sources, "parents", query.dtype)
            seconds += time.perf_counter() - started
            results.append(make_result(search, query, found, seconds, streamed))
        return results

    def _searched(self, query: Query) -> tuple[Search, int]:
        """Search, and let the selector learn from it; return the bytes of edges streamed, too."""
        platform = self.platform
        source, seeds = query.start(platform.graph)
        is_learned_from = query.is_whole and source is not None
        selector = self.selection.of_next(is_learned_from)
        target = query.searched_target(platform.graph)
        search = Search(platform, source, selector, self.decision_interval, seeds, target)
        streamed_before = bytes_streamed_by(platform.accelerator)
        seconds = search.run(query.max_levels)
        if is_learned_from and not search.began_again:
            self.selection.learn(search, seconds, self.decision_interval)
        return search, bytes_streamed_by(platform.accelerator) - streamed_before


def requested(num_vertices: int, *given: Any) -> Request[BFSResult]:
    query = check_query(num_vertices, *given)
    return Request(Searches, (query,), query.reverse)
