"""The engine: a graph made ready on the host and a device, then searched any number of times."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from types import TracebackType
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.bfs.cpu_executor import CPUExecutor
from hetero_bfs.algorithms.bfs.executor import DeviceExecutor
from hetero_bfs.algorithms.bfs.result import BFSResult
from hetero_bfs.algorithms.bfs.streamed_executor import Streaming
from hetero_bfs.devices.opencl.driver import DeviceInfo, choose_device
from hetero_bfs.errors import DeviceError, EngineClosedError, ModelError
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_source import (
    NO_VERTEX,
    EdgeSource,
    check_edge_source,
    check_sources,
    check_vertex,
)
from hetero_bfs.graph.search_graph import SearchGraph, build_search_graph
from hetero_bfs.runtime.compile_beside import Beside, compiling_beside
from hetero_bfs.runtime.correction import Correction, Corrections, factors_of
from hetero_bfs.runtime.opening import bytes_streamed_by, open_device, streaming_of
from hetero_bfs.runtime.options import EngineOptions, check_selector, takes_settings
from hetero_bfs.runtime.platform import Platform
from hetero_bfs.runtime.reference import has_high_diameter, reference_states
from hetero_bfs.runtime.results import SavedParents, make_result, restored_parents
from hetero_bfs.runtime.search import Search
from hetero_bfs.runtime.warm_up import warm_up
from hetero_bfs.selection.by_objective import make_objective_selector
from hetero_bfs.selection.model_selectors import ModelSelector
from hetero_bfs.selection.objective import Objective
from hetero_bfs.selection.selectors import Selector
from hetero_bfs.selection.strategies import ObjectiveName, available
from hetero_bfs.support import forks


class Engine:
    """A graph made ready on the host and a device: upload, compile and warm up once, search often.

    Parameters
    ----------
    graph : CSRGraph, EdgeSource or SearchGraph
        Anything but a SearchGraph is relabelled and built first.
    selector, device, ... : optional
        Every other parameter is a setting; `EngineOptions` describes them, as `help(Engine)` does.

    Raises
    ------
    ArgumentError
        An argument of the wrong type, out of range, or none of its choices.
    ModelError
        The selector cannot be made, or nothing was measured for `optimize`.
    DeviceError
        A device asked for by name is not there. A device that cannot hold the graph is left out
        instead, with a line in `notes`.
    BudgetError
        `device_memory_bytes` is too little for what is kept per vertex and a few pages of edges.
    ForkError
        This process was forked from one that had used compiled loops or OpenCL.
    """

    @takes_settings(EngineOptions)
    def __init__(self, graph: CSRGraph | EdgeSource | SearchGraph, options: EngineOptions) -> None:
        if options.device is not None:
            choose_device(options.device)  # so that no graph is built for one that is not there
        self.notes: list[str] = []
        self.options = options
        self.decision_interval = options.decision_interval
        self.threads = options.threads
        self.optimize: ObjectiveName = options.optimize
        self._generation = forks.generation()
        self._corrections: Corrections | None = None
        self._learns: Correction | None = None
        self._known_states: npt.NDArray[np.float64] | None = None
        self._on_graph: WeakKeyDictionary[ModelSelector, ModelSelector] = WeakKeyDictionary()
        self._one_at_a_time = threading.Lock()
        self._platform: Platform | None = None
        self.device_info: DeviceInfo | None = None
        """The OpenCL device in use, if any."""
        self.num_parts = 1
        """Parts of the edge array on the device; 1 without a device."""
        self.streaming: Streaming | None = None
        """How the edges stream through the device; None if they do not."""
        self._saved = SavedParents()
        with compiling_beside() as beside:
            self._open_with(graph, beside)

    def _open_with(self, graph: CSRGraph | EdgeSource | SearchGraph, beside: Beside) -> None:
        """Build the graph if need be, and get ready to search it."""
        if not isinstance(graph, SearchGraph):
            graph = build_search_graph(graph, self.options.order)
        options = self.options
        started = time.perf_counter()
        host, accelerator = self._open(graph)
        self._use(Platform(graph, host, [] if accelerator is None else [accelerator]))
        uploaded = time.perf_counter()
        try:
            self._get_ready(options.selector, beside)
        except DeviceError as error:
            if accelerator is None or options.device is not None:
                raise
            self.notes.append(f"{accelerator.device.info.name} is left out: {error}")
            self._use(Platform(graph, CPUExecutor(graph, self.threads)))
            try:
                self._get_ready(options.selector, beside)
            except ModelError:  # the selector wants the device: say what is wrong with that
                raise error from None
        self.upload_seconds = uploaded - started
        self.compile_seconds = time.perf_counter() - uploaded

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Wait for searches, then release the graph, the device and threads; twice is fine.

        What the engine says of itself, such as `device_info`, stays. In a forked process nothing
        happens: all is its parent's.
        """
        if self._generation != forks.generation():
            return
        with self._one_at_a_time:
            if self._platform is None:
                return
            platform, self._platform = self._platform, None
            self._bytes_streamed = bytes_streamed_by(platform.accelerator)
            self._saved.release()
            self._corrections = None
            self._learns = None
            platform.close()

    def _use(self, platform: Platform) -> None:
        """Search there from now on."""
        accelerator = platform.accelerator
        self._platform = platform
        self._bytes_streamed = 0
        self.device_info = None if accelerator is None else accelerator.device.info
        self.num_parts = 1 if accelerator is None else accelerator.num_parts
        self.streaming = streaming_of(accelerator)

    @property
    def platform(self) -> Platform:
        """Host and device with the graph; raises if the engine is closed, or another process's.

        Every search asks for it.
        """
        forks.refuse_other_process(self._generation)
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
    def high_diameter(self) -> bool:
        """Whether searches of the graph take many levels; the first time, one is measured."""
        with self._one_at_a_time:
            return self._has_high_diameter()

    @property
    def accelerator(self) -> DeviceExecutor | None:
        """What runs levels on the OpenCL device, if one is in use."""
        return self.platform.accelerator

    @property
    def bytes_streamed(self) -> int:
        """Bytes of edges that were sent to the device so far because they are not kept there."""
        if self._platform is None:
            return self._bytes_streamed
        return bytes_streamed_by(self._platform.accelerator)

    @property
    def objective(self) -> Objective | None:
        """What the selector was made for, if not for the least time."""
        return self.selector.objective

    def set_selector(self, selector: str | Selector, optimize: ObjectiveName | None = None) -> None:
        """Choose strategies by another selector from now on, for another objective if given."""
        _ = self.platform  # refuses before it waits for searches
        with self._one_at_a_time:
            self._set_selector(selector, optimize)

    def _set_selector(self, selector: str | Selector, optimize: ObjectiveName | None) -> None:
        check_selector(selector)
        if isinstance(selector, str):
            objective_name = self.optimize if optimize is None else optimize
            made, notes = make_objective_selector(
                selector,
                self.device_info,
                self.candidates,
                selector == "auto" and self._has_high_diameter(),
                objective_name,
                streams=self.streaming is not None,
            )
            self.optimize = objective_name
            self.notes += [note for note in notes if note not in self.notes]
            self.selector: Selector = made
        else:
            missing = [s.name for s in selector.candidates if s not in self.candidates]
            if missing:
                raise ModelError(f"{selector.name}: {', '.join(missing)} cannot run here")
            self.selector = selector.uncorrected
        self._tell_reference()
        self._correct()

    @property
    def corrections(self) -> dict[str, float]:
        """Factors by which predictions are corrected, by strategy or move; without those of 1."""
        return factors_of(self.selector)

    def bfs(self, source: int) -> BFSResult:
        """Search from one vertex (the caller's id) and bring the result home.

        Searches from several Python threads wait for each other.

        Raises
        ------
        GraphError
            The vertex is not in the graph.
        EngineClosedError
            The engine is closed.
        ForkError
            The engine was opened in another process, from which this one was forked.
        """
        source = check_vertex(source, self.graph.num_vertices)
        with self._one_at_a_time:
            search = self._new_search(self._searched_id(source))
            streamed = self._run(search)
            started = time.perf_counter()
            search.gather()
            parent = restored_parents(search, source)
            gather_seconds = time.perf_counter() - started
        return make_result(search, source, parent, gather_seconds, streamed)

    def bfs_back_to_back(self, sources: Iterable[int]) -> list[BFSResult]:
        """Search from several vertices one after the other, then bring all results home.

        What `bfs` does after a search drives the next one's code and data from the processor's
        caches; a search that takes a fast device 0.1 ms then takes twice as long. Here parents are
        only copied aside, and the caller's ids restored when all are searched. The copies take 4
        bytes per vertex and search; that memory is kept for the next row, until `close`.

        Raises
        ------
        ArgumentError
            Nothing that yields vertex ids.
        GraphError
            A vertex is not in the graph; none was searched from.
        EngineClosedError, ForkError
            As for `bfs`.
        """
        sources = check_sources(sources, self.graph.num_vertices)
        if len(sources) == 1:
            return [self.bfs(sources[0])]
        with self._one_at_a_time:
            searched = [self._searched_id(source) for source in sources]
            saved = self._saved.room(self.platform, len(sources))
            searches = [self._search_and_save(*pair) for pair in zip(searched, saved, strict=True)]
            results = []
            for source, parent, (search, streamed, seconds) in zip(
                sources, saved, searches, strict=True
            ):
                started = time.perf_counter()
                if search.source is not None:
                    search.gather_saved(parent)
                restored = restored_parents(search, source)
                seconds += time.perf_counter() - started
                results.append(make_result(search, source, restored, seconds, streamed))
        return results

    def _search_and_save(
        self, source: int | None, parent: npt.NDArray[np.uint32]
    ) -> tuple[Search, int, float]:
        """Search, and save the parents; returns the bytes streamed and the seconds of saving."""
        search = self._new_search(source)
        streamed = self._run(search)
        started = time.perf_counter()
        if source is not None:
            search.save_parents(parent)
        return search, streamed, time.perf_counter() - started

    def search(self, source: int) -> Search:
        """Search from one vertex and leave the parents where they are (for measurements)."""
        source = check_vertex(source, self.graph.num_vertices)
        with self._one_at_a_time:
            search = self._new_search(self._searched_id(source))
            self._run(search)
        return search

    def _new_search(self, source: int | None) -> Search:
        return Search(self.platform, source, self.selector, self.decision_interval)

    def _run(self, search: Search) -> int:
        """Search, and learn from it for the next one; returns the bytes of edges it streamed."""
        streamed_before = self.bytes_streamed
        seconds = search.run()
        if self._learns is not None and search.source is not None and not search.began_again:
            self.selector = self._learns.learn(search.recording(), seconds)
        return self.bytes_streamed - streamed_before

    def _open(self, graph: SearchGraph) -> tuple[CPUExecutor, DeviceExecutor | None]:
        options = self.options
        if options.devices == "cpu":
            return CPUExecutor(graph, options.threads), None
        try:
            info = choose_device(options.device)
        except DeviceError as error:
            if options.device is not None:
                raise
            self.notes.append(f"searching on the CPU only: {error}")
            return CPUExecutor(graph, options.threads), None
        host, executor, notes = open_device(info, graph, options)
        self.notes += notes
        return host, executor

    def _get_ready(self, selector: str | Selector, beside: Beside) -> None:
        """Compile for the devices in use, choose a selector, and warm up."""
        self._corrections = None
        self._warm = False
        self.candidates = available(self.accelerator is not None)
        self.set_selector(selector)
        self.platform.host.compile_work()
        if self.accelerator is not None:
            self.accelerator.build_kernels()
        beside.wait()
        self.platform.host.start_workers()
        warm_up(self.platform, self.candidates)
        self._warm = True
        self.set_selector(selector)  # it can be told now what searches are like
        if self.options.correction:
            self._corrections = Corrections(self.platform, self.candidates)
            self._correct()

    def _reference_states(self) -> npt.NDArray[np.float64]:
        if self._known_states is None:
            self._known_states = reference_states(self.platform)
        return self._known_states

    def _has_high_diameter(self) -> bool:
        """Tell what is measured, or before kernels are there what the order lets expect."""
        return has_high_diameter(self._reference_states()) if self._warm else self.graph.is_local

    def _tell_reference(self) -> None:
        """Tell the selector, if it looks ahead, what searches of this graph are like."""
        if not (self._warm and isinstance(self.selector, ModelSelector)):
            return
        states, graph, unbound = self._reference_states(), self.graph, self.selector
        bound = self._on_graph.get(unbound)
        if bound is None:
            bound = unbound.on_graph(
                graph.num_searched,
                graph.graph.num_stored_edges,
                states,
                has_high_diameter(states),
            )
            if bound is not unbound:  # which would keep itself alive
                self._on_graph[unbound] = bound
        self.selector = bound

    def _correct(self) -> None:
        """Correct the selector, if it predicts, by what was measured already."""
        corrections = self._corrections
        self._learns = None if corrections is None else corrections.of(self.selector)
        if self._learns is not None:
            self.selector = self._learns.selector

    def _searched_id(self, source: int) -> int | None:
        """Return the new id, None for a vertex without edges that left the searched range."""
        new = int(self.graph.relabelling.new_of_old[source])
        return None if new == NO_VERTEX else new


def bfs(graph: CSRGraph | EdgeSource, source: int, selector: str = "auto") -> BFSResult:
    """Search once; for many searches of one graph keep an `Engine`."""
    if not isinstance(graph, SearchGraph):
        check_edge_source(graph)
    check_vertex(source, graph.num_vertices)  # before the graph is built
    with Engine(graph, selector=selector) as engine:
        return engine.bfs(source)
