"""Base classes of algorithms: a graph prepared for host and device, and a run.

A function in each algorithm's folder checks the arguments of a run. It returns a `Request`: an
`Analysis` class and a query for it. Each interface (a call, an engine, ranks, a command) prepares
the graph in its own way and passes the query on.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, Protocol, Self, TypeVar, cast

from hetero_bfs.algorithms.run_report import Report
from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.errors import AgreedError, BudgetError, DeviceError
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_source import EdgeSource
from hetero_bfs.graph.search_graph import SearchGraph, as_given, build_search_graph
from hetero_bfs.graph.weights import needed_weights, weight_dtype_of
from hetero_bfs.options import EngineOptions
from hetero_bfs.scheduling.run_chooser import (
    USUAL_LEVELS,
    RunChoice,
    RunChooser,
    choose_place,
    why_no_device,
)
from hetero_bfs.scheduling.speed_model import GraphSize
from hetero_bfs.scheduling.strategies import DeviceKind
from hetero_bfs.support.code_cache import note_compiled

if TYPE_CHECKING:
    from hetero_bfs.programs.options import RunOptions
    from hetero_bfs.programs.program import Along, Program
    from hetero_bfs.programs.ranks import RankProgramResult
    from hetero_bfs.ranks.communicator import Communicator
    from hetero_bfs.ranks.partition import RankGraph

R = TypeVar("R")
T = TypeVar("T")

RUNS_OF_AN_ENGINE = 16
"""Runs that are expected of an algorithm where an engine, or its like, stays open."""


class RankedGraph(Protocol):
    """The parts of a `RankEngine` that algorithms use; all ranks make the same calls."""

    communicator: Communicator
    graph: RankGraph
    """This rank's part."""
    options: EngineOptions

    @property
    def num_vertices(self) -> int: ...

    def along(self, way: Along) -> RankGraph: ...

    def keep(self, key: object, make: Callable[[], T]) -> T: ...

    def note_search(self, device: DeviceInfo | None, notes: list[str]) -> None: ...

    def run(
        self, program: Program, options: RunOptions = ..., **parameters: Any
    ) -> RankProgramResult: ...

    def run_part(
        self, graph: RankGraph, program: Program, options: RunOptions, **parameters: Any
    ) -> RankProgramResult: ...


class Runs(Generic[R]):
    """Runs of one algorithm, as every door to it sees them."""

    what: ClassVar[str]
    """The algorithm's name in notes and speed models, such as "shortest paths"."""

    needs_weights: ClassVar[bool] = False

    needs_engine: ClassVar[bool] = False
    """Whether only an engine can prepare it, since it searches breadth-first."""

    runs_on_devices: ClassVar[bool] = True

    ranks_use_devices: ClassVar[bool] = False

    report: ClassVar[type[Report[Any]]]
    """The command's text for a result."""

    @classmethod
    def check_ranks(cls, options: EngineOptions) -> None:
        """Raise `AgreedError` for a setting with which several ranks cannot run it."""
        from hetero_bfs.ranks.refusals import ON_CPU, refuse

        if not cls.ranks_use_devices:
            refuse(ON_CPU, vars(options))

    @classmethod
    def by_ranks(cls, engine: RankedGraph, *query: Any) -> R:
        """Run on all ranks of an engine, which make the same call.

        Raises `AgreedError` on all ranks if the algorithm runs in one process only.
        """
        from hetero_bfs.ranks.refusals import of_one_process

        raise AgreedError(of_one_process(cls.what))

    @classmethod
    def by_one_thread(cls, graph: CSRGraph, *query: Any) -> R:
        """Run once on a graph in the caller's ids, in this thread, without preparing much.

        Raises `GraphError` if the graph lacks something that the algorithm needs.
        """
        raise NotImplementedError

    def run(self, *query: Any) -> R:
        """Run the algorithm with the query of a `Request`; the result has the caller's ids."""
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


class Prepared(Runs[R]):
    """A graph prepared for one algorithm on the host and, optionally, a device.

    The device is opened at its first use. If it cannot hold the graph, `notes` says so. Raises
    `GraphError` if the graph lacks something that the algorithm needs, such as weights.
    """

    levels: int = USUAL_LEVELS
    """Levels of a typical search of the graph."""

    expected_runs: int = 1
    """Runs that will follow, for which opening a device has to pay."""

    resident: float = 0.0
    """Share of the neighbour lists that the device holds already, for the engine's searches."""

    shared_lists: float = 1.0
    """Share of this algorithm's lists that searches upload, too."""

    search: Callable[..., Any] | None = None
    """The engine's breadth-first search, which takes a `Query`; None without an engine."""

    named_place: DeviceKind | None = None
    """The place of all runs if the caller named it."""

    choice: RunChoice[Any] | None = None
    """How the place of the latest run was chosen; None if it was given."""

    no_device: str = "no other place is in use"
    """Why all runs are on the host, if they are."""

    executors: ClassVar[tuple[Callable[..., Any], ...]]
    """The makers of the executors for the host, for a device that holds the neighbour lists, and
    for a device to which they are streamed.

    The first takes `lists` and the number of threads, the others `lists` and a `DeviceInfo`. The
    host's executor has `prepare`, `run` and `close`, a device's has `run` and `device_name`. Those
    of devices raise `BudgetError` if they lack the room, and `DeviceError` if they lack a type of
    the weights or the driver fails.
    """

    def __init__(self, graph: SearchGraph, threads: int, device: DeviceInfo | None = None) -> None:
        self.graph = graph
        self.lists: Any = self._make_lists()
        self.notes: list[str] = []
        self.host: Any = self._make_host(threads)
        self._info = device if graph.num_searched else None
        self._device: Any = None

    @property
    def device(self) -> Any:
        """The device's executor, opened at the first access; None if no device can be used."""
        if self._device is None and self._info is not None:
            try:
                self._device = self._make_device(self._info)
            except DeviceError as error:
                self.notes.append(f"{self._info.name} is left out of {self.what}: {error}")
                self._info = None
                self.places.drop("device")
            else:
                self.places.opened("device")
        return self._device

    @cached_property
    def places(self) -> RunChooser[DeviceKind]:
        """The places of runs, and known seconds."""
        if self._info is None:
            return RunChooser(["cpu"], alone=self.no_device)
        graph = self.graph
        size = graph.num_searched, graph.graph.num_stored_edges, int(graph.degree.max())
        return choose_place(self.what, GraphSize(self.levels, *size), self._info, self.resident)

    def _make_lists(self) -> Any:
        """Return the neighbour lists in the form that the algorithm needs."""
        return self.graph

    def _make_host(self, threads: int) -> Any:
        return self.executors[0](self.lists, threads)

    def _make_device(self, info: DeviceInfo) -> Any:
        """Return the device's executor. Raises `DeviceError` if it cannot run there."""
        _, whole, streamed = self.executors
        try:
            return whole(self.lists, info)
        except BudgetError as error:
            made = streamed(self.lists, info)
            self.notes.append(f"lists stream: {error}")
            return made

    @property
    def device_info(self) -> DeviceInfo | None:
        """The device of runs, None if no device can be used."""
        return None if self.device is None else self._info

    @property
    def device_name(self) -> str | None:
        return None if self.device is None else str(self.device.device_name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.host.close()
        self._device = self._info = None


class Request(NamedTuple, Generic[R]):
    """A run with validated arguments: `query` has the arguments of `kind.run`."""

    kind: type[Runs[R]]
    query: tuple[Any, ...]
    reverse: bool = False
    """Whether to follow the edges of a directed graph from their ends to their starts."""

    searches: int = 1
    """Searches that one thread would make."""

    @property
    def analysis(self) -> type[Analysis[R]]:
        """The kind, where it needs no engine."""
        return cast("type[Analysis[R]]", self.kind)


class Ran(NamedTuple):
    """A finished run: the executor's result, and its seconds."""

    found: Any
    seconds: float


class Analysis(Prepared[R]):
    """Runs of one algorithm on a prepared graph. A subclass defines only the differences."""

    @classmethod
    def by_one_thread(cls, graph: CSRGraph, *query: Any) -> R:
        with cls(as_given(graph), 1) as analysis:
            return analysis.complete(analysis.run(*query, place="cpu"))

    def run(self, *query: Any, place: DeviceKind | None = None) -> R:
        """Run the algorithm, and return the result in the caller's ids.

        `query` is that of a `Request`. The default place is `named_place`, or else the faster one.
        """
        known = self._known(*query)
        return self._result(self._timed(query, place), *query) if known is None else known

    def complete(self, result: R) -> R:
        """Return a result that does not need this object any more."""
        return result

    def _known(self, *query: Any) -> R | None:
        """Return the result if it needs no search, for example in a graph without edges."""
        return None

    def _timed(self, query: tuple[Any, ...], place: DeviceKind | None) -> Ran:
        """Run on a place, and note the seconds for the next choice."""
        place, self.choice = place or self.named_place, None
        if place is None:
            self.choice = self.places.choose(runs=self.expected_runs)
            place = self.choice.option
        executor = self.host if place == "cpu" else self.device or self.host
        if executor is self.host:
            if self.choice is not None and place != "cpu":
                self.choice = self.choice._replace(option="cpu", reason="the device cannot run it")
            place = "cpu"
            self.host.prepare()
        began = time.perf_counter()
        found = self._on(executor, *query)
        if found is None:  # the device's numbers are too coarse for this query
            executor = self.host
            executor.prepare()
            found = self._on(executor, *query)
        seconds = time.perf_counter() - began
        if executor is self.host:
            note_compiled(type(self).__name__)
        self._note(place, seconds, *query)
        return Ran(self._kept(found, executor), seconds)

    def _on(self, executor: Any, *query: Any) -> Any:
        """Run on the host or the device; None if the device cannot answer."""
        return executor.run(*query)

    def _note(self, place: DeviceKind, seconds: float, *query: Any) -> None:
        self.places.learn(place, seconds)

    def _kept(self, found: Any, executor: Any) -> Any:
        """Return `found` with copies of the arrays that the next run overwrites."""
        return found

    def _result(self, ran: Ran, *query: Any) -> R:
        """Return the result in the caller's ids."""
        raise NotImplementedError


A = TypeVar("A", bound=Prepared[Any])


def open_analysis(
    kind: type[A],
    graph: CSRGraph | EdgeSource | SearchGraph,
    options: EngineOptions,
    expected_runs: int = 1,
) -> A:
    """Prepare a graph for an algorithm. Only the options for devices and vertex order matter.

    If no device is named, one is looked for where that may pay in the expected runs.

    Raises `GraphError` and `DeviceError` as `Engine` does, and `GraphError` if the graph lacks
    something that the algorithm needs.
    """
    import numba

    info, notes = None, list[str]()
    reason = None
    if options.device is None:
        reason = why_no_device(kind.what, graph.num_vertices, graph.num_input_edges, expected_runs)
    if reason is None:
        found, notes = options.find_devices()
        info = within_limits(found[0], options) if found else None
    check_weights(kind, graph)
    if not isinstance(graph, SearchGraph):
        graph = build_search_graph(graph, options.order)
    analysis = kind(graph, options.threads or numba.get_num_threads(), info)
    analysis.expected_runs = expected_runs
    if reason is not None:
        analysis.no_device = reason
    if options.device is not None:
        if analysis.device is None and analysis.notes:
            raise DeviceError(analysis.notes[0])
        analysis.named_place = "cpu" if analysis.device is None else "device"
    analysis.notes[:0] = notes
    return analysis


def check_weights(kind: type[Runs[Any]], graph: CSRGraph | EdgeSource | SearchGraph) -> None:
    """Raise `GraphError` before a graph is built if it lacks the weights that are needed."""
    is_built = isinstance(graph, SearchGraph)
    if kind.needs_weights and not is_built and weight_dtype_of(graph) is None:
        needed_weights(graph)


def within_limits(info: DeviceInfo, options: EngineOptions) -> DeviceInfo:
    """Return a device with its memory reduced to the options' limit."""
    return replace(
        info,
        memory_bytes=min(info.memory_bytes, options.device_memory_bytes or info.memory_bytes),
        max_alloc_bytes=min(info.max_alloc_bytes, options.max_alloc_bytes or info.max_alloc_bytes),
    )
