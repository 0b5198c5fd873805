"""The engine: it prepares a graph on the host and a device, then searches it many times."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import cast
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.base import A, Analysis, within_limits
from hetero_bfs.algorithms.bfs.correction import Correction, Corrections, factors_of
from hetero_bfs.algorithms.bfs.executor import DeviceExecutor
from hetero_bfs.algorithms.bfs.host import CPUExecutor
from hetero_bfs.algorithms.bfs.opening import bytes_streamed_by, open_devices, streaming_of
from hetero_bfs.algorithms.bfs.paged_graph import Streaming
from hetero_bfs.algorithms.bfs.platform import Platform
from hetero_bfs.algorithms.bfs.reference import has_high_diameter, reference_states
from hetero_bfs.algorithms.bfs.restoring import SavedParents
from hetero_bfs.algorithms.bfs.warm_up import warm_up
from hetero_bfs.devices.opencl.device_info import DeviceInfo
from hetero_bfs.devices.opencl.driver import choose_devices
from hetero_bfs.engine.compile_beside import Beside, compiling_beside
from hetero_bfs.engine.engine_html import engine_html
from hetero_bfs.engine.search_methods import SearchMethods
from hetero_bfs.errors import DeviceError, EngineClosedError, ModelError
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_source import EdgeSource
from hetero_bfs.graph.search_graph import SearchGraph, build_search_graph
from hetero_bfs.options import EngineOptions, check_selector, takes_settings
from hetero_bfs.scheduling.by_objective import make_objective_selector
from hetero_bfs.scheduling.model_selectors import ModelSelector
from hetero_bfs.scheduling.objective import Objective
from hetero_bfs.scheduling.selectors import Selector
from hetero_bfs.scheduling.strategies import MOST_DEVICES, ObjectiveName, available
from hetero_bfs.support import forks
from hetero_bfs.support.one_process import OfOneProcess


class Engine(SearchMethods, OfOneProcess):
    """A graph prepared on the host and a device: upload, compile and warm up once, search often.

    Parameters
    ----------
    graph : CSRGraph, EdgeSource or SearchGraph
        A graph that is no SearchGraph is relabelled and built first.
    selector, device, ... : optional
        All other parameters are settings; `EngineOptions` and `help(Engine)` describe them.

    Raises
    ------
    ArgumentError
        An argument of the wrong type, out of range, or not among its choices.
    ModelError
        The selector cannot be made, or the model has no watts for `optimize`.
    DeviceError
        No device has the given name. A device that cannot hold the graph is no error: it is left
        out, with a line in `notes`.
    BudgetError
        `device_memory_bytes` is too small for the arrays per vertex and a few pages of edges.
    ForkError
        This process was forked from one that had used compiled loops or OpenCL.
    """

    @takes_settings(EngineOptions)
    def __init__(self, graph: CSRGraph | EdgeSource | SearchGraph, options: EngineOptions) -> None:
        if options.device is not None:
            choose_devices(options.device, MOST_DEVICES)  # raises before the graph is built
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
        """The first OpenCL device in use, if any."""
        self.num_parts = 1
        """Parts of the edge array on the device; 1 without a device."""
        self.streaming: Streaming | None = None
        """How the edges stream through the device; None if they do not."""
        self._saved = SavedParents()
        self._analyses: dict[type[Analysis], Analysis] = {}
        self._backward: Engine | None = None  # on the transposed lists
        self._asked: tuple[str | Selector, ObjectiveName] = options.selector, options.optimize
        with compiling_beside() as beside:
            self._open_with(graph, beside)

    def _open_with(self, graph: CSRGraph | EdgeSource | SearchGraph, beside: Beside) -> None:
        """Build the graph if necessary, and prepare to search it."""
        if not isinstance(graph, SearchGraph):
            graph = build_search_graph(graph, self.options.order)
        options = self.options
        started = time.perf_counter()
        host, devices, notes = open_devices(graph, options)
        self.notes += notes
        self._use(Platform(graph, host, devices))
        uploaded = time.perf_counter()
        try:
            self._get_ready(options.selector, beside)
        except DeviceError as error:
            if not devices or options.device is not None:
                raise
            self.notes.append(f"{devices[0].device.info.name} is left out: {error}")
            self._use(Platform(graph, CPUExecutor(graph, self.threads)))
            try:
                self._get_ready(options.selector, beside)
            except ModelError:  # the selector needs the device, so the device's error is the cause
                raise error from None
        self.upload_seconds = uploaded - started
        self.compile_seconds = time.perf_counter() - uploaded

    def _repr_html_(self) -> str:
        return engine_html(self._platform, self.selector.name, self.notes)

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Wait for searches, then release the graph, the device and threads; twice is fine.

        Attributes such as `device_info` remain. In a forked process this does nothing, since
        everything belongs to the parent process.
        """
        if self._generation != forks.generation():
            return
        with self._one_at_a_time:
            if self._platform is None:
                return
            platform, self._platform = self._platform, None
            self._bytes_streamed = bytes_streamed_by(platform.accelerator)
            self._saved.release()
            if self._backward is not None:
                self._backward.close()
                self._backward = None
            while self._analyses:
                self._analyses.popitem()[1].close()
            self._corrections = None
            self._learns = None
            platform.close()

    def _use(self, platform: Platform) -> None:
        """Search on this platform from now on."""
        accelerator = platform.accelerator
        self._platform = platform
        self._bytes_streamed = 0
        self.device_info = None if accelerator is None else accelerator.device.info
        self.num_parts = 1 if accelerator is None else accelerator.num_parts
        self.streaming = streaming_of(accelerator)

    @property
    def platform(self) -> Platform:
        """Host and devices with the graph; raise if the engine is closed or belongs to another
        process.

        Every search reads it.
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
        """Whether searches of the graph take many levels; the first access runs a search."""
        with self._one_at_a_time:
            return self._has_high_diameter()

    @property
    def accelerator(self) -> DeviceExecutor | None:
        """The executor of the first OpenCL device; None if none is in use."""
        return self.platform.accelerator

    @property
    def bytes_streamed(self) -> int:
        """Bytes of edges that streamed to the device so far."""
        if self._platform is None:
            return self._bytes_streamed
        return bytes_streamed_by(self._platform.accelerator)

    @property
    def objective(self) -> Objective | None:
        """The selector's objective; None for the least time."""
        return self.selector.objective

    def set_selector(self, selector: str | Selector, optimize: ObjectiveName | None = None) -> None:
        """Use another selector from now on, for another objective if given."""
        _ = self.platform  # raises at once, before waiting for searches
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
                self.streaming is not None,
                [device.device.info for device in self.platform.devices[1:]],
            )
            self.optimize = objective_name
            self.notes += [note for note in notes if note not in self.notes]
            self.selector: Selector = made
        else:
            missing = [s.name for s in selector.candidates if s not in self.candidates]
            if missing:
                raise ModelError(f"{selector.name}: {', '.join(missing)} cannot run here")
            self.selector = selector.uncorrected
        self._asked = selector, self.optimize
        self._tell_reference()
        self._correct()

    @property
    def corrections(self) -> dict[str, float]:
        """Correction factors of predictions that are not 1, by strategy or transition."""
        return factors_of(self.selector)

    def _reversed(self) -> Engine:
        if self._backward is None:
            selector, optimize = self._asked
            options = replace(self.options, selector=selector, optimize=optimize)
            self._backward = Engine(self.graph.reversed(), **options.settings())
            self.notes += [note for note in self._backward.notes if note not in self.notes]
        elif self._backward._asked != self._asked:
            self._backward.set_selector(*self._asked)
        self._backward.decision_interval = self.decision_interval
        return self._backward

    def _analysis(self, kind: type[A]) -> A:
        """Return the runs of another algorithm on the graph; the caller holds the lock."""
        platform = self.platform
        if kind not in self._analyses:
            info = self.device_info and within_limits(self.device_info, self.options)
            analysis = kind(self.graph, platform.host.threads, info)
            self.notes += analysis.notes
            analysis.notes = self.notes  # which runs may add to
            self._analyses[kind] = analysis
        return cast(A, self._analyses[kind])

    def _get_ready(self, selector: str | Selector, beside: Beside) -> None:
        """Compile for the devices in use, choose a selector, and warm up."""
        self._corrections = None
        self._warm = False
        self.candidates = available(len(self.platform.devices))
        self.set_selector(selector)
        self.platform.host.compile_work()
        for device in self.platform.devices:
            device.build_kernels()
        beside.wait()
        self.platform.host.prepare()
        warm_up(self.platform, self.candidates)
        self._warm = True
        self.set_selector(selector)  # again: now kernels are ready for a reference search
        if self.options.correction:
            self._corrections = Corrections(self.platform, self.candidates)
            self._correct()

    def _reference_states(self) -> npt.NDArray[np.float64]:
        if self._known_states is None:
            self._known_states = reference_states(self.platform)
        return self._known_states

    def _has_high_diameter(self) -> bool:
        """Decide by the reference search, or, before kernels are ready, by the order."""
        return has_high_diameter(self._reference_states()) if self._warm else self.graph.is_local

    def _tell_reference(self) -> None:
        """Give the selector the graph's reference search if it uses the cost-to-go table."""
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
            if bound is not unbound:  # an engine in its own dict would stay alive
                self._on_graph[unbound] = bound
        self.selector = bound

    def _correct(self) -> None:
        """Correct a selector that predicts by the searches so far."""
        corrections = self._corrections
        self._learns = None if corrections is None else corrections.of(self.selector)
        if self._learns is not None:
            self.selector = self._learns.selector
