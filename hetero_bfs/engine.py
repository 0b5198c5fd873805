"""The level loop: the only place where a search crosses from one device to the other."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType

import numpy as np
import numpy.typing as npt

from hetero_bfs.bfs import BFSResult, Frontier
from hetero_bfs.build import SearchGraph, build_search_graph
from hetero_bfs.devices.cpu import CPUSearcher
from hetero_bfs.devices.opencl import DeviceInfo, OpenCLDevice, choose_device
from hetero_bfs.devices.opencl_search import OpenCLSearcher
from hetero_bfs.errors import DeviceError, GraphError
from hetero_bfs.graph import NO_VERTEX, CSRGraph, EdgeSource
from hetero_bfs.relabel import Order
from hetero_bfs.selector import Choice, FixedSelector, Selector, make_selector
from hetero_bfs.strategy import STRATEGIES, DeviceKind, Strategy, available
from hetero_bfs.trace import LevelFeatures, LevelTrace

_WARM_UP = (
    ("TC", "BC", "TC"),
    ("TG", "BG", "TG"),
    ("BGC",),
    ("TC", "TG", "TC"),
    ("BG", "BC", "BG"),
)
"""Schedules that together run every kernel and cross in both directions."""

_COMPACT_SHARE = 16
"""The host's finds are sent as pairs while they are at most 1 / 16 of the vertices."""


class Engine:
    """A graph made ready on the host and a device: upload, compile and warm up once, search often.

    Parameters
    ----------
    graph : CSRGraph, EdgeSource or SearchGraph
        Anything but a SearchGraph is relabelled and built first.
    selector : str or Selector
        "auto", "learned", "average", "alpha-beta", "daga", "fixed:TC" and so on.
    device : str, optional
        Index or part of the name of an OpenCL device; by default a GPU before any other.
    devices : {"all", "cpu"}
        "cpu" searches without an OpenCL device.
    max_alloc_bytes : int, optional
        Limit for one part of the edge array; by default the device's own.
    order : {"degree", "given"}
        Relabelling; ignored for a SearchGraph, which has it done.
    decision_interval : int
        Levels between two choices of the selector.

    Raises
    ------
    DeviceError
        A device asked for by name is not there. A device that cannot hold the graph is left out
        instead, with a line in `notes`.
    """

    def __init__(
        self,
        graph: CSRGraph | EdgeSource | SearchGraph,
        selector: str | Selector = "auto",
        device: str | None = None,
        devices: str = "all",
        max_alloc_bytes: int | None = None,
        order: Order = "degree",
        decision_interval: int = 1,
    ) -> None:
        if decision_interval < 1:
            raise ValueError(f"decision_interval is {decision_interval}; it must be at least 1")
        if devices not in ("all", "cpu"):
            raise ValueError(f'devices is {devices!r}; it must be "all" or "cpu"')
        self.graph = graph if isinstance(graph, SearchGraph) else build_search_graph(graph, order)
        self.notes: list[str] = []
        self.decision_interval = decision_interval
        started = time.perf_counter()
        self.host, self.accelerator = self._open(device, devices, max_alloc_bytes)
        uploaded = time.perf_counter()
        self.candidates = available(self.accelerator is not None)
        self.set_selector(selector)
        self._other_parents: npt.NDArray[np.uint32] | None = None
        if self.accelerator is not None:
            self.accelerator.build_kernels()
        self._warm_up()
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
        """Wait for the device; its memory goes with the engine."""
        if self.accelerator is not None:
            self.accelerator.device.finish()

    @property
    def device_info(self) -> DeviceInfo | None:
        """The OpenCL device in use, if any."""
        return None if self.accelerator is None else self.accelerator.device.info

    @property
    def num_parts(self) -> int:
        """Parts of the edge array on the device; 1 without a device."""
        return 1 if self.accelerator is None else len(self.accelerator.partition.parts)

    def set_selector(self, selector: str | Selector) -> None:
        """Choose strategies by another selector from now on."""
        if isinstance(selector, str):
            made, notes = make_selector(selector, self.device_info, self.candidates)
            self.notes += [note for note in notes if note not in self.notes]
            self.selector: Selector = made
        else:
            self.selector = selector

    def bfs(self, source: int) -> BFSResult:
        """Search from one vertex (the caller's id) and bring the result home.

        Raises
        ------
        GraphError
            The vertex is not in the graph.
        """
        search = Search(self, self._searched_id(source))
        seconds = search.run()
        started = time.perf_counter()
        parent = self._restore(source, search)
        gather_seconds = time.perf_counter() - started
        nedge = self._count_edges(parent)
        return BFSResult(source, parent, seconds, gather_seconds, nedge, search.traces)

    def search(self, source: int) -> Search:
        """Search from one vertex and leave the parents where they are (for measurements)."""
        search = Search(self, self._searched_id(source))
        search.run()
        return search

    def searcher(self, kind: DeviceKind) -> CPUSearcher | OpenCLSearcher:
        """Return what runs the levels of one kind of device."""
        if kind == "cpu":
            return self.host
        assert self.accelerator is not None, "candidates exclude it"
        return self.accelerator

    def _open(
        self, device: str | None, devices: str, max_alloc_bytes: int | None
    ) -> tuple[CPUSearcher, OpenCLSearcher | None]:
        if devices == "cpu":
            return CPUSearcher(self.graph), None
        try:
            info = choose_device(device)
        except DeviceError as error:
            if device is not None:
                raise
            self.notes.append(f"searching on the CPU only: {error}")
            return CPUSearcher(self.graph), None
        opened = OpenCLDevice(info)
        try:
            host = CPUSearcher(self.graph, opened.host_array)
            return host, OpenCLSearcher(opened, self.graph, host, max_alloc_bytes)
        except DeviceError as error:
            if max_alloc_bytes is not None:
                raise
            self.notes.append(f"{info.name} is left out: {error}")
            return CPUSearcher(self.graph), None

    def _warm_up(self) -> None:
        """Run every strategy, conversion and crossing, so that no search pays for compiling."""
        if self.graph.num_searched == 0:
            return
        names = {s.name for s in self.candidates}
        for schedule in _WARM_UP:
            if names.issuperset(schedule):
                search = Search(self, 0, FixedSelector(*(STRATEGIES[name] for name in schedule)))
                search.run(max_levels=len(schedule))
                self._restore(int(self.graph.relabelling.old_of_new[0]), search)

    def _scratch_parents(self) -> npt.NDArray[np.uint32]:
        """Return host memory for the parents that the device found."""
        if self._other_parents is None:
            assert self.accelerator is not None
            self._other_parents = self.accelerator.device.host_array(
                self.graph.num_searched, np.uint32
            )
        return self._other_parents

    def _searched_id(self, source: int) -> int | None:
        """Return the new id, None for a vertex without edges that left the searched range."""
        if not 0 <= source < self.graph.num_vertices:
            raise GraphError(
                f"vertex {source} is not in the graph; its ids are 0 to "
                f"{self.graph.num_vertices - 1}"
            )
        new = int(self.graph.relabelling.new_of_old[source])
        return None if new == NO_VERTEX else new

    def _restore(self, source: int, search: Search) -> npt.NDArray[np.int64]:
        if search.root is None:
            parent = np.full(self.graph.num_vertices, -1, np.int64)
            parent[source] = source
            return parent
        return self.graph.relabelling.restore_parents(search.gather())

    def _count_edges(self, parent: npt.NDArray[np.int64]) -> int:
        """Count input edges of the traversed component (Graph500's nedge)."""
        ends = int(self.graph.input_degree.sum(where=parent >= 0, dtype=np.int64))
        return ends if self.graph.graph.directed else ends // 2


class Search:
    """One search while it runs, and where its parents lie afterwards."""

    def __init__(self, engine: Engine, root: int | None, selector: Selector | None = None) -> None:
        self.engine = engine
        self.root = root
        self.selector = engine.selector if selector is None else selector
        self.traces: list[LevelTrace] = []
        self.seconds = 0.0
        self._frontier = Frontier()
        self._previous_edges = 1.0
        self._used: list[DeviceKind] = []
        self._host_found: list[npt.NDArray[np.uint32]] | None = []
        self._complete_on: DeviceKind = "cpu"

    def run(self, max_levels: int | None = None) -> float:
        """Run all levels; returns seconds from the key to the complete parent array."""
        if self.root is None:
            return 0.0
        self.selector.reset()
        graph = self.engine.graph
        degree = int(graph.degree[self.root])
        started = time.perf_counter()
        self._frontier.edges = degree
        mean_degree = max(graph.graph.num_stored_edges / graph.num_searched, 1.0)
        self._previous_edges = max(degree, 1) / mean_degree
        unvisited_vertices = graph.num_searched - 1
        unvisited_edges = graph.graph.num_stored_edges - degree
        choice: Choice | None = None
        while self._frontier.edges > 0 and unvisited_vertices > 0:
            if max_levels is not None and len(self.traces) == max_levels:
                break
            features = self._features(unvisited_vertices, unvisited_edges)
            before = time.perf_counter()
            if choice is None or features.level % self.engine.decision_interval == 0:
                choice = self.selector.choose(features)
            chosen = time.perf_counter()
            self._bring(choice.strategy)
            ready = time.perf_counter()
            found = self.engine.searcher(choice.strategy.device_kind).run(
                choice.strategy, self._frontier
            )
            done = time.perf_counter()
            self._remember(choice.strategy)
            self._previous_edges = features.frontier_edges
            unvisited_vertices -= found.vertices
            unvisited_edges -= found.edges
            self.traces.append(
                LevelTrace(
                    features,
                    choice.strategy.name,
                    done - ready,
                    ready - chosen,
                    chosen - before,
                    found.vertices,
                    choice.predicted_seconds,
                    choice.reason,
                )
            )
        if not self._used:
            self._enter("cpu")
        self._complete()
        self.seconds = time.perf_counter() - started
        return self.seconds

    def gather(self) -> npt.NDArray[np.uint32]:
        """Return the parents in new ids, uint32, in host memory; valid until the next search."""
        host = self.engine.host
        if self._complete_on == "cpu":
            return host.parent
        accelerator = self.engine.searcher("device")
        assert isinstance(accelerator, OpenCLSearcher)
        if accelerator.unified:
            accelerator.release()
        else:
            accelerator.read_parents(host.parent)
        return host.parent

    def _features(self, unvisited_vertices: int, unvisited_edges: int) -> LevelFeatures:
        graph = self.engine.graph
        return LevelFeatures(
            level=len(self.traces),
            frontier_vertices=self._frontier.vertices,
            frontier_edges=self._frontier.edges,
            unvisited_vertices=unvisited_vertices,
            unvisited_edges=unvisited_edges,
            num_vertices=graph.num_searched,
            num_edges=graph.graph.num_stored_edges,
            growth=self._frontier.edges / self._previous_edges,
            device_kind=self._used[-1] if self._used else None,
            form=self._frontier.form,
        )

    def _bring(self, strategy: Strategy) -> None:
        """Bring the frontier to the strategy's device, in the form that it reads."""
        kind = strategy.device_kind
        if not self._used:
            self._enter(kind)
            return
        with_queue = strategy.direction == "top-down"
        if with_queue and self._frontier.form == "bitmap":
            self.engine.searcher(self._used[-1]).to_queue(self._frontier)
        if kind != self._used[-1]:
            self._cross(kind, with_queue)

    def _enter(self, kind: DeviceKind) -> None:
        """Start on one device."""
        assert self.root is not None
        if kind == "cpu" and self.engine.accelerator is not None:
            self.engine.accelerator.release()
        self.engine.searcher(kind).start(self.root, self._frontier)
        self._used.append(kind)
        if kind == "cpu" and self._host_found is not None:
            self._host_found.append(np.array([self.root], np.uint32))

    def _cross(self, kind: DeviceKind, with_queue: bool) -> None:
        """Move the search to the other device."""
        accelerator = self.engine.accelerator
        assert accelerator is not None
        first_time = kind not in self._used
        if first_time and not accelerator.unified:
            self.engine.searcher(kind).clear(self._frontier)
        if kind == "device":
            accelerator.receive(self._frontier, with_queue)
        else:
            accelerator.send(self._frontier, with_queue)
        self._used.append(kind)

    def _remember(self, strategy: Strategy) -> None:
        """Keep a list of what the host found, while that is short, for the device's parents."""
        accelerator = self.engine.accelerator
        if strategy.device_kind != "cpu" or self._host_found is None:
            return
        if accelerator is None or accelerator.unified:
            return
        graph = self.engine.graph
        too_many = self._frontier.vertices * _COMPACT_SHARE > graph.num_searched
        if strategy.direction == "bottom-up" or graph.graph.directed or too_many:
            self._host_found = None
            return
        queue = self.engine.host.queue[self._frontier.queue_index]
        self._host_found.append(queue[: self._frontier.vertices].copy())

    def _complete(self) -> None:
        """Make the parent array complete in one memory."""
        accelerator = self.engine.accelerator
        kinds: Sequence[DeviceKind] = sorted(set(self._used))
        self._complete_on = self._used[-1]
        if self._complete_on == "device" and accelerator is not None:
            accelerator.device.finish()
        if len(kinds) == 1 or accelerator is None or accelerator.unified:
            return
        host = self.engine.host
        if self._host_found is not None:
            vertices = np.concatenate(self._host_found)
            accelerator.add_parents(vertices, host.parent[vertices])
            self._complete_on = "device"
            return
        from hetero_bfs.kernels.restore import merge_parents

        other = self.engine._scratch_parents()
        accelerator.read_parents(other)
        merge_parents(host.parent, other)
        self._complete_on = "cpu"


def bfs(graph: CSRGraph | EdgeSource, source: int, selector: str = "auto") -> BFSResult:
    """Search once; for many searches of one graph keep an `Engine`."""
    with Engine(graph, selector=selector) as engine:
        return engine.bfs(source)
