"""The engine: it prepares a graph on the host and a device, then searches it many times.

`Searches` run breadth-first on a `Platform`, which holds the host and all devices; a `Selection`
chooses the strategy of each level. Each other algorithm has `Runs` of its own, created at its first
run. An algorithm's method is its row of the table (algorithms/table.py). Runs wait for each other.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, ParamSpec, TypeVar, cast

from hetero_bfs.algorithms.base import RUNS_OF_AN_ENGINE, Prepared, Request, Runs, within_limits
from hetero_bfs.algorithms.bfs.algorithm import Searches
from hetero_bfs.algorithms.bfs.host import CPUExecutor
from hetero_bfs.algorithms.bfs.platform import (
    Device,
    Platform,
    bytes_streamed_by,
    open_devices,
    streaming_of,
)
from hetero_bfs.algorithms.bfs.query import Query
from hetero_bfs.algorithms.bfs.result import BFSResult
from hetero_bfs.algorithms.bfs.search import Search
from hetero_bfs.algorithms.bfs.selection import Selection, warm_up
from hetero_bfs.algorithms.bfs.streamed import Streaming
from hetero_bfs.algorithms.program_runs import ProgramRuns
from hetero_bfs.algorithms.table import Algorithms, Row
from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.devices.opencl.verdicts import seconds_of_tests
from hetero_bfs.engine.background_compiling import BackgroundCompiling, compiling_in_background
from hetero_bfs.errors import DeviceError, EngineClosedError, ModelError
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_source import EdgeSource, check_sources, check_vertex
from hetero_bfs.graph.search_graph import SearchGraph, build_search_graph
from hetero_bfs.graph.vertex_names import with_names
from hetero_bfs.options import EngineOptions, takes_settings
from hetero_bfs.programs.options import RunOptions
from hetero_bfs.programs.program import Program
from hetero_bfs.programs.result import ProgramResult
from hetero_bfs.scheduling.correction import factors_of
from hetero_bfs.scheduling.selectors import Selector
from hetero_bfs.scheduling.strategies import Strategy
from hetero_bfs.support import code_cache, processes
from hetero_bfs.support.processes import OfOneProcess
from hetero_bfs.timeline.rendering import as_html

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound=Runs[Any])

_DEFAULTS = RunOptions()


class Engine(Algorithms, OfOneProcess):
    """A graph prepared on the host and a device: upload, compile and warm up once, search often.

    Parameters
    ----------
    graph : CSRGraph, EdgeSource or SearchGraph
        Unless it is a SearchGraph, it is relabelled and built first.
    selector, device, ... : optional
        All other parameters are settings; `EngineOptions` and `help(Engine)` describe them.

    Raises
    ------
    ArgumentError
        An argument of the wrong type, out of range, or not among its choices.
    ModelError
        The selector cannot be made.
    DeviceError
        No device has the given name. If a device cannot hold the graph, no error is raised: the
        device is left out, with a line in `notes`.
    BudgetError
        `device_memory_bytes` is too small for the arrays per vertex and a few pages of edges.
    ForkError
        This process was forked from one that had used compiled loops or OpenCL.
    """

    _selection: Selection

    @takes_settings(EngineOptions)
    def __init__(self, graph: CSRGraph | EdgeSource | SearchGraph, options: EngineOptions) -> None:
        if options.device is not None:
            options.find_devices()  # raises before the graph is built
        self.notes: list[str] = []
        self.options = options
        self.threads = options.threads
        self._process = os.getpid()
        self._one_at_a_time = threading.Lock()
        self._platform: Platform | None = None
        self.device_info: DeviceInfo | None = None
        """The first OpenCL device in use, if any."""
        self.num_parts = 1
        """Parts of the edge array on the device; 1 without a device."""
        self.streaming: Streaming | None = None
        """How the edges stream through the device; None if they do not."""
        self._runs: dict[type[Runs[Any]], Runs[Any]] = {}
        self._backward: Engine | None = None  # on the transposed graph
        with compiling_in_background() as background:
            self._open_with(graph, background)

    def _open_with(
        self, graph: CSRGraph | EdgeSource | SearchGraph, background: BackgroundCompiling
    ) -> None:
        if not isinstance(graph, SearchGraph):
            graph = build_search_graph(graph, self.options.order)
        options = self.options
        started = time.perf_counter() - seconds_of_tests()
        host, devices, notes = open_devices(graph, options)
        self.notes += notes
        self._use(Platform(graph, host, devices))
        uploaded = time.perf_counter() - seconds_of_tests()
        try:
            self._get_ready(background)
        except DeviceError as error:
            if not devices or options.device is not None:
                raise
            self.notes.append(f"{devices[0].device.info.name} is left out: {error}")
            self._use(Platform(graph, CPUExecutor(graph, self.threads)))
            try:
                self._get_ready(background)
            except ModelError:  # the selector needs the device, so the device's error is the cause
                raise error from None
        self.upload_seconds = uploaded - started
        self.compile_seconds = time.perf_counter() - seconds_of_tests() - uploaded
        code_cache.note_compiled(Engine.__name__)

    def _get_ready(self, background: BackgroundCompiling) -> None:
        platform, selection = self.platform, Selection(self.platform, self.notes)
        selection.choose(self.options.selector)
        platform.host.compile_work()
        for device in platform.devices:
            device.build_kernels()
        background.wait()
        platform.host.prepare()
        warm_up(platform, selection.candidates)
        selection.get_ready(self.options.correction)
        self._selection = selection
        self._searches = Searches(platform, selection, self.options.decision_interval)
        self._runs = {Searches: self._searches}

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Wait for searches, then release graph, device and threads. Further calls do nothing.

        Attributes such as `device_info` remain. In a forked process this does nothing, since
        everything belongs to the parent process.
        """
        if self._process != os.getpid():
            return
        with self._one_at_a_time:
            if self._platform is None:
                return
            self._bytes_streamed = bytes_streamed_by(self._platform.accelerator)
            self._platform = None
            if self._backward is not None:
                self._backward.close()
                self._backward = None
            while self._runs:
                self._runs.popitem()[1].close()  # the searches last

    def _use(self, platform: Platform) -> None:
        accelerator = platform.accelerator
        self._platform = platform
        self._bytes_streamed = 0
        self.device_info = None if accelerator is None else accelerator.device.info
        self.num_parts = 1 if accelerator is None else accelerator.num_parts
        self.streaming = streaming_of(accelerator)
        for device in platform.devices:
            device.notes = self.notes

    def _repr_html_(self) -> str:
        if self._platform is None:
            return as_html("Engine", {"state": "closed"})
        graph, host = self.graph, self._platform.host
        names = [device.device.info.name for device in self._platform.devices]
        facts: dict[str, Any] = {
            "vertices": graph.num_vertices,
            "input edges": graph.num_input_edges,
            "directed": graph.graph.directed,
            "OpenCL devices": ", ".join(names) or "none",
            "CPU threads": host.threads,
            "order": graph.relabelling.order,
            "selector": self.selector.name,
        }
        facts |= {f"note {number}": note for number, note in enumerate(self.notes, 1)}
        return as_html("Engine", facts)

    @property
    def platform(self) -> Platform:
        """Host and devices with the graph.

        Every search reads it. It raises if the engine is closed or was opened in another process.
        """
        processes.refuse_other_process(self._process)
        if self._platform is None:
            raise EngineClosedError(
                "the engine is closed; search before close() and within its `with` block, or open "
                "another one"
            )
        return self._platform

    @property
    def graph(self) -> SearchGraph:
        """The graph that is searched."""
        return self.platform.graph

    @property
    def reference_levels(self) -> int:
        """Levels of a typical search of the graph; the first access runs it."""
        _ = self.platform  # raises if the engine is closed
        with self._one_at_a_time:
            return self._selection.reference_levels

    @property
    def accelerator(self) -> Device | None:
        """The executor of the first OpenCL device; None if none is in use."""
        return self.platform.accelerator

    @property
    def bytes_streamed(self) -> int:
        if self._platform is None:
            return self._bytes_streamed
        return bytes_streamed_by(self._platform.accelerator)

    @property
    def selector(self) -> Selector:
        """The object that chooses the strategy of each level."""
        return self._selection.selector

    @property
    def candidates(self) -> list[Strategy]:
        """The strategies that can run on this host and its devices."""
        return self._selection.candidates

    @property
    def decision_interval(self) -> int:
        """Levels from one choice to the next."""
        return self._searches.decision_interval

    @decision_interval.setter
    def decision_interval(self, levels: int) -> None:
        self._searches.decision_interval = levels

    @property
    def corrections(self) -> dict[str, float]:
        """Factors that correct predictions, by strategy or transition, without factors of 1."""
        return factors_of(self.selector)

    def set_selector(self, selector: str | Selector) -> None:
        """Use another selector for all later searches."""
        _ = self.platform  # raises at once, before waiting for searches
        with self._one_at_a_time:
            self._selection.choose(selector)

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
        n = self.graph.num_vertices
        queries = [Query((source,)) for source in check_sources(sources, n)]
        with self._one_at_a_time:
            found = self._searches.run_back_to_back(queries)
        return [with_names(result, self.graph) for result in found]

    def search(self, source: int) -> Search:
        """Search from one vertex without gathering the parents (for measurements)."""
        query = Query((check_vertex(source, self.graph.num_vertices),))
        with self._one_at_a_time:
            return self._searches.search(query)

    def answer(self, request: Request[R]) -> R:
        """Run an algorithm, on the transposed graph if the request is `reverse`."""
        with self._one_at_a_time:
            if request.reverse and self.graph.graph.directed:
                return self._reversed().answer(request._replace(reverse=False))
            return with_names(self._runs_of(request.kind).run(*request.query), self.graph)

    def _reversed(self) -> Engine:
        """Return an engine on the transposed graph; the caller holds the lock."""
        asked = self._selection.asked
        if self._backward is None:
            options = replace(self.options, selector=asked)
            self._backward = Engine(self.graph.reversed(), **options.settings())
            self.notes += [note for note in self._backward.notes if note not in self.notes]
        elif self._backward._selection.asked != asked:
            self._backward.set_selector(asked)
        self._backward.decision_interval = self.decision_interval
        return self._backward

    def _answer(self, row: Row[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.answer(row.ask(self.graph.num_vertices, *args, **kwargs))

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
            indexed by the caller's ids.

        Raises
        ------
        ProgramError
            The program cannot be translated; the message names class, line and word.
        ArgumentError
            A parameter is missing, unknown, or not a number.
        GraphError
            The program reads weights, and the graph has none.
        EngineClosedError, ForkError
            As for `bfs`.
        """
        _ = self.graph  # raises at once, before waiting for searches
        with self._one_at_a_time:
            result = self._runs_of(ProgramRuns).run(program, parameters, options or _DEFAULTS)
            return with_names(result, self.graph)

    def _runs_of(self, kind: type[S]) -> S:
        """Return the runs of an algorithm on the graph; the caller holds the lock."""
        platform = self.platform
        if kind not in self._runs:
            assert issubclass(kind, Prepared)
            info = self.device_info and within_limits(self.device_info, self.options)
            analysis = kind(self.graph, platform.host.threads, info)
            analysis.expected_runs = RUNS_OF_AN_ENGINE
            analysis.search = self._searches.run
            if self.num_parts == 1 and platform.accelerator is not None and self.streaming is None:
                analysis.resident = analysis.shared_lists
            if info is not None or kind.needs_engine:
                analysis.levels = self._selection.reference_levels
            self.notes += analysis.notes
            analysis.notes = self.notes  # so that notes of later runs appear there
            self._runs[kind] = analysis
        return cast(S, self._runs[kind])
