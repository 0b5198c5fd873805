"""The engine's methods for algorithms other than breadth-first search."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import Any

from hetero_bfs.algorithms.base import A
from hetero_bfs.algorithms.colouring.algorithm import Colourings
from hetero_bfs.algorithms.colouring.result import Colouring
from hetero_bfs.algorithms.components.algorithm import ComponentRuns
from hetero_bfs.algorithms.components.result import Components
from hetero_bfs.algorithms.pagerank.algorithm import ranks_kind
from hetero_bfs.algorithms.pagerank.lists import check_settings
from hetero_bfs.algorithms.pagerank.result import PageRank
from hetero_bfs.algorithms.program_runs import ProgramRuns
from hetero_bfs.algorithms.sssp.algorithm import PathSearches
from hetero_bfs.algorithms.sssp.result import ShortestPaths
from hetero_bfs.graph.edge_source import check_vertex
from hetero_bfs.graph.search_graph import SearchGraph
from hetero_bfs.programs.options import RunOptions
from hetero_bfs.programs.program import Program
from hetero_bfs.programs.result import ProgramResult


class AnalysisMethods(ABC):
    """Methods of `Engine`, which has the graph, the devices and the lock."""

    _one_at_a_time: threading.Lock

    @property
    @abstractmethod
    def graph(self) -> SearchGraph:
        """The graph; raise if the engine is closed or belongs to another process."""

    @abstractmethod
    def _analysis(self, kind: type[A]) -> A:
        """Return the runs of another algorithm on the graph; the caller holds the lock."""

    def colour(self) -> Colouring:
        """Colour the graph, a directed one as if it were undirected.

        Raises
        ------
        EngineClosedError, ForkError
            As for `bfs`.
        """
        _ = self.graph  # raises at once, before waiting for searches
        with self._one_at_a_time:
            return self._analysis(Colourings).colour()

    def connected_components(self) -> Components:
        """Find the connected components; in a directed graph, the weakly connected ones.

        Raises
        ------
        EngineClosedError, ForkError
            As for `bfs`.
        """
        _ = self.graph  # raises at once, before waiting for searches
        with self._one_at_a_time:
            return self._analysis(ComponentRuns).find()

    def pagerank(
        self,
        alpha: float = 0.85,
        tol: float = 1e-6,
        max_iter: int = 100,
        weighted: bool = False,
        personalization: Any = None,
    ) -> PageRank:
        """Find the ranks of all vertices; see `hetero_bfs.pagerank`.

        Raises
        ------
        ArgumentError, GraphError
            As `hetero_bfs.pagerank` does.
        EngineClosedError, ForkError
            As for `bfs`.
        """
        n = self.graph.num_vertices
        settings = check_settings(n, alpha, tol, max_iter, personalization)
        kind = ranks_kind(weighted)
        with self._one_at_a_time:
            return self._analysis(kind).rank(settings)

    def sssp(self, source: int) -> ShortestPaths:
        """Find the least distances from one vertex (the caller's id); the graph needs weights.

        Raises
        ------
        GraphError
            The vertex is not in the graph; the graph has no weights, or a negative one.
        EngineClosedError, ForkError
            As for `bfs`.
        """
        source = check_vertex(source, self.graph.num_vertices)
        with self._one_at_a_time:
            return self._analysis(PathSearches).search(source)

    def run(
        self, program: Program, options: RunOptions | None = None, /, **parameters: Any
    ) -> ProgramResult:
        """Run a vertex program: `engine.run(SSSP(), source=3)`.

        Parameters
        ----------
        program : Program
        options : RunOptions, optional
            How to run it, such as `RunOptions(max_iterations=10)`.
        **parameters
            Parameters that the program's methods name: numbers, or arrays of shape (num_vertices,)
            in the caller's ids.

        Raises
        ------
        ProgramError
            The program cannot be translated; the message names class, line and word.
        ArgumentError
            A parameter is missing, unknown, or no number.
        GraphError
            The program reads weights, and the graph has none.
        EngineClosedError, ForkError
            As for `bfs`.
        """
        _ = self.graph  # raises at once, before waiting for searches
        with self._one_at_a_time:
            return self._analysis(ProgramRuns).run(program, parameters, options or RunOptions())
