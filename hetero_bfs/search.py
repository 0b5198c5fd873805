"""One search: the level loop, and where the frontier and the parents cross between devices."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hetero_bfs.bfs import Frontier
from hetero_bfs.build import SearchGraph
from hetero_bfs.devices.cpu import CPUSearcher
from hetero_bfs.devices.opencl_search import OpenCLSearcher
from hetero_bfs.selector import Choice, Selector
from hetero_bfs.strategy import DeviceKind, Strategy
from hetero_bfs.trace import LevelFeatures, LevelTrace

_COMPACT_SHARE = 16
"""The host's finds are sent as pairs while they are at most 1 / 16 of the vertices."""


@dataclass
class Platform:
    """The host and, if there is one, the OpenCL device, both holding the same graph."""

    graph: SearchGraph
    host: CPUSearcher
    accelerator: OpenCLSearcher | None
    _scratch: npt.NDArray[np.uint32] | None = None

    def searcher(self, kind: DeviceKind) -> CPUSearcher | OpenCLSearcher:
        """Return what runs the levels of one kind of device."""
        if kind == "cpu":
            return self.host
        assert self.accelerator is not None, "no strategy for it is a candidate"
        return self.accelerator

    def scratch_parents(self) -> npt.NDArray[np.uint32]:
        """Return host memory for the parents that the device found."""
        if self._scratch is None:
            assert self.accelerator is not None
            self._scratch = self.accelerator.device.host_array(self.graph.num_searched, np.uint32)
        return self._scratch


class Search:
    """One search while it runs, and where its parents lie afterwards."""

    def __init__(
        self,
        platform: Platform,
        root: int | None,
        selector: Selector,
        decision_interval: int = 1,
    ) -> None:
        self.platform = platform
        self.root = root
        self.selector = selector
        self.decision_interval = decision_interval
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
        graph = self.platform.graph
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
            if choice is None or features.level % self.decision_interval == 0:
                choice = self.selector.choose(features)
            chosen = time.perf_counter()
            self._bring(choice.strategy)
            ready = time.perf_counter()
            found = self.platform.searcher(choice.strategy.device_kind).run(
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
        host = self.platform.host
        if self._complete_on == "cpu":
            return host.parent
        accelerator = self.platform.searcher("device")
        assert isinstance(accelerator, OpenCLSearcher)
        if accelerator.unified:
            accelerator.release()
        else:
            accelerator.read_parents(host.parent)
        return host.parent

    def _features(self, unvisited_vertices: int, unvisited_edges: int) -> LevelFeatures:
        graph = self.platform.graph
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
            self.platform.searcher(self._used[-1]).to_queue(self._frontier)
        if kind != self._used[-1]:
            self._cross(kind, with_queue)

    def _enter(self, kind: DeviceKind) -> None:
        """Start on one device."""
        assert self.root is not None
        if kind == "cpu" and self.platform.accelerator is not None:
            self.platform.accelerator.release()
        self.platform.searcher(kind).start(self.root, self._frontier)
        self._used.append(kind)
        if kind == "cpu" and self._host_found is not None:
            self._host_found.append(np.array([self.root], np.uint32))

    def _cross(self, kind: DeviceKind, with_queue: bool) -> None:
        """Move the search to the other device."""
        accelerator = self.platform.accelerator
        assert accelerator is not None
        first_time = kind not in self._used
        if first_time and not accelerator.unified:
            self.platform.searcher(kind).clear(self._frontier)
        if kind == "device":
            accelerator.receive(self._frontier, with_queue)
        else:
            accelerator.send(self._frontier, with_queue)
        self._used.append(kind)

    def _remember(self, strategy: Strategy) -> None:
        """Keep a list of what the host found, while that is short, for the device's parents."""
        accelerator = self.platform.accelerator
        if strategy.device_kind != "cpu" or self._host_found is None:
            return
        if accelerator is None or accelerator.unified:
            return
        graph = self.platform.graph
        too_many = self._frontier.vertices * _COMPACT_SHARE > graph.num_searched
        if strategy.direction == "bottom-up" or graph.graph.directed or too_many:
            self._host_found = None
            return
        queue = self.platform.host.queue[self._frontier.queue_index]
        self._host_found.append(queue[: self._frontier.vertices].copy())

    def _complete(self) -> None:
        """Make the parent array complete in one memory."""
        accelerator = self.platform.accelerator
        kinds: Sequence[DeviceKind] = sorted(set(self._used))
        self._complete_on = self._used[-1]
        if self._complete_on == "device" and accelerator is not None:
            accelerator.device.finish()
        if len(kinds) == 1 or accelerator is None or accelerator.unified:
            return
        host = self.platform.host
        if self._host_found is not None:
            vertices = np.concatenate(self._host_found)
            accelerator.add_parents(vertices, host.parent[vertices])
            self._complete_on = "device"
            return
        from hetero_bfs.kernels.restore import merge_parents

        other = self.platform.scratch_parents()
        accelerator.read_parents(other)
        merge_parents(host.parent, other)
        self._complete_on = "cpu"
