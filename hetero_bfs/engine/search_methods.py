"""The engine's methods for breadth-first search."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.bfs.correction import Correction
from hetero_bfs.algorithms.bfs.platform import Platform
from hetero_bfs.algorithms.bfs.query import (
    ManyWant,
    Query,
    Vertices,
    Want,
    check_many,
    check_query,
)
from hetero_bfs.algorithms.bfs.restoring import (
    SavedParents,
    make_result,
    restored_levels,
    restored_parents,
)
from hetero_bfs.algorithms.bfs.result import BFSResult
from hetero_bfs.algorithms.bfs.search import Search
from hetero_bfs.algorithms.multi_source.algorithm import ManyRuns, one_by_one
from hetero_bfs.algorithms.multi_source.result import ManySearches
from hetero_bfs.engine.analysis_methods import AnalysisMethods
from hetero_bfs.errors import DeviceError
from hetero_bfs.graph.edge_source import check_sources, check_vertex
from hetero_bfs.scheduling.selectors import Selector


class SearchMethods(AnalysisMethods):
    """Methods of `Engine`, which has the platform, the selector and the lock."""

    decision_interval: int
    selector: Selector
    _saved: SavedParents
    _learns: Correction | None

    @property
    @abstractmethod
    def platform(self) -> Platform:
        """Host and devices with the graph; raises if the engine is closed or of another process."""

    @property
    @abstractmethod
    def bytes_streamed(self) -> int:
        """Bytes of edges that streamed to the device so far."""

    @property
    @abstractmethod
    def high_diameter(self) -> bool:
        """Whether searches of the graph take many levels; the first access runs a search."""

    @abstractmethod
    def _reversed(self) -> SearchMethods:
        """Return an engine on the transposed lists; the caller holds the lock."""

    def bfs(
        self,
        source: Vertices,
        depth_limit: int | None = None,
        target: int | None = None,
        mask: npt.ArrayLike | None = None,
        reverse: bool = False,
        want: Want = "parents",
    ) -> BFSResult:
        """Search from one vertex or several; all ids, here and in the result, are the caller's.

        Searches of several Python threads run one after another.

        Parameters
        ----------
        source : int or iterable of int
            Of several vertices, each one reached has the nearest as root of its tree. Duplicates
            count once.
        depth_limit : int, optional
            Reach no vertex that is farther than so many edges.
        target : int, optional
            End with the level that reaches this vertex. All vertices that are as near are reached,
            none that is farther.
        mask : array, optional
            Vertices to pass over, as if they were not in the graph: bool, shape (num_vertices,), or
            their ids.
        reverse : bool
            Follow the edges of a directed graph from their ends to their starts. The first such
            search opens an engine on the transposed lists, which keeps arrays of its own.
        want : {"parents", "levels"}
            "parents" returns parents, and finds levels when they are read. "levels" returns levels
            and no parents.

        Raises
        ------
        ArgumentError
            An argument of the wrong type or out of range; an empty sequence of sources.
        GraphError
            A vertex is not in the graph, or a source is masked.
        EngineClosedError
            The engine is closed.
        ForkError
            The engine was opened in another process, from which this one was forked.
        """
        graph = self.graph
        query = check_query(graph.num_vertices, source, depth_limit, target, mask, reverse, want)
        if query.reverse and graph.graph.directed:
            with self._one_at_a_time:
                return self._reversed().answer(query)
        return self.answer(query)

    def answer(self, query: Query) -> BFSResult:
        """Search for what was asked, along the lists of this engine whatever the direction."""
        with self._one_at_a_time:
            graph = self.graph
            source, seeds = query.start(graph)
            target = query.searched_target(graph)
            search = Search(
                self.platform, source, self.selector, self.decision_interval, False, seeds, target
            )
            streamed = self._run(search, query)
            started = time.perf_counter()
            search.gather()
            levels: dict[str, Any] = {}
            if query.want == "levels":
                levels["level"] = restored_levels(search, query.sources)
                parent = np.empty(0, np.int64)
            else:
                parent = restored_parents(search, query.sources)
            gather_seconds = time.perf_counter() - started
        result = make_result(search, query, parent, gather_seconds, streamed)
        result.__dict__.update(levels)
        return result

    def bfs_many(
        self,
        sources: Iterable[int],
        depth_limit: int | None = None,
        mask: npt.ArrayLike | None = None,
        reverse: bool = False,
        want: ManyWant = "levels",
    ) -> ManySearches:
        """Search from many vertices, each on its own, 64 side by side (MS-BFS, Then et al., 2014).

        Each edge is looked at for 64 searches at once. Where searches take many levels, as on road
        networks, few vertices of a level have several searches; there the searches run one by one.

        Parameters
        ----------
        sources : iterable of int
            Each gets a row of its own, duplicates too.
        depth_limit, mask, reverse : optional
            As for `bfs`.
        want : {"levels", "sums"}
            "levels" takes 1 to 4 bytes for each vertex and search. "sums" keeps none of them, for
            eccentricities or closeness of all vertices of a large graph.

        Raises
        ------
        ArgumentError, GraphError, EngineClosedError, ForkError
            As for `bfs`; levels that memory has no room for.
        """
        graph = self.graph
        query = check_many(graph.num_vertices, sources, depth_limit, mask, reverse, want)
        if query.reverse and graph.graph.directed:
            with self._one_at_a_time:
                return self._reversed().answer_many(query)
        return self.answer_many(query)

    def answer_many(self, query: Query) -> ManySearches:
        """Search from many vertices, along the lists of this engine whatever the direction."""
        if not (query.sources and self.high_diameter):
            with self._one_at_a_time:
                return self._analysis(ManyRuns).search(query)
        each = replace(query, want="levels")
        return one_by_one(
            query,
            self.graph.num_vertices,
            lambda source: self.answer(replace(each, sources=(source,))),
        )

    def bfs_back_to_back(self, sources: Iterable[int]) -> list[BFSResult]:
        """Search from several vertices back-to-back, then return all results.

        After each search `bfs` restores the caller's ids, which evicts the next search's code and
        data from the caches. On a fast device a search of 0.1 ms then takes twice as long. This
        method only copies the parents after each search, and restores the caller's ids at the end.
        The copies take 4 bytes per vertex and search. Their memory is kept until `close`.

        Raises
        ------
        ArgumentError
            `sources` yields no vertex ids.
        GraphError
            A vertex is not in the graph; no search was run.
        EngineClosedError, ForkError
            As for `bfs`.
        """
        queries = [Query((source,)) for source in check_sources(sources, self.graph.num_vertices)]
        if len(queries) == 1:
            return [self.answer(queries[0])]
        with self._one_at_a_time:
            accelerator = self.platform.accelerator
            device = None if accelerator is None else accelerator.device
            saved = self._saved.room(len(queries), self.graph.num_searched, device)
            searches = [self._search_and_save(*pair) for pair in zip(queries, saved, strict=True)]
            results = []
            for query, parent, (search, streamed, seconds) in zip(
                queries, saved, searches, strict=True
            ):
                started = time.perf_counter()
                if search.source is not None:
                    search.gather_saved(parent)
                restored = restored_parents(search, query.sources)
                seconds += time.perf_counter() - started
                results.append(make_result(search, query, restored, seconds, streamed))
        return results

    def _search_and_save(
        self, query: Query, parent: npt.NDArray[np.uint32]
    ) -> tuple[Search, int, float]:
        """Search and save the parents; return the bytes streamed and the seconds of saving."""
        source, _ = query.start(self.graph)
        search = Search(self.platform, source, self.selector, self.decision_interval)
        streamed = self._run(search, query)
        started = time.perf_counter()
        if source is not None:
            search.save_parents(parent)
        return search, streamed, time.perf_counter() - started

    def search(self, source: int) -> Search:
        """Search from one vertex without gathering the parents (for measurements)."""
        query = Query((check_vertex(source, self.graph.num_vertices),))
        with self._one_at_a_time:
            start, _ = query.start(self.graph)
            search = Search(self.platform, start, self.selector, self.decision_interval)
            self._run(search, query)
        return search

    def _run(self, search: Search, query: Query) -> int:
        """Search and correct the selector by it; return the bytes of edges it streamed."""
        streamed_before = self.bytes_streamed
        seconds = search.run(query.max_levels)
        teaches = query.is_whole and search.source is not None and not search.began_again
        if self._learns is not None and teaches:
            learned = self._learns.learn(search.recording(), seconds)
            if learned is not self.selector:
                self.selector = learned
                degree = int(self.graph.degree[search.source])
                with suppress(DeviceError):  # the next search meets it again
                    self.platform.expect(learned, self.decision_interval, degree)
        return self.bytes_streamed - streamed_before
