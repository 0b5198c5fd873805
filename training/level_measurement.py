"""Measures one level: strategies from the same state, and the migrations before and after them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.bfs.host import CPUExecutor
from hetero_bfs.algorithms.bfs.result import Frontier
from hetero_bfs.engine.engine import Engine
from hetero_bfs.scheduling.strategies import DEVICE_KINDS, Strategy, plain

Middle = Callable[[Sequence[float]], float]
"""Reduces repeated measurements to one: `min`, or the median."""


class LevelMeasurement:
    """Repeats work on one level, each time from the same state.

    frontier : the frontier of the level, in the state of a search on the host
    repeats : runs of the level by each strategy
    middle : reduces the repeats
    """

    def __init__(self, engine: Engine, frontier: Frontier, repeats: int, middle: Middle) -> None:
        self.engine = engine
        self.repeats, self.middle = repeats, middle
        self.frontier = frontier
        self.host: CPUExecutor = engine.platform.host
        self.snapshot = self.host.visited[frontier.visited_index].copy()
        arrays = self.host.queue, self.host.offsets
        self._frontier = [each[frontier.queue_index][: frontier.vertices] for each in arrays]
        self._kept = [each.copy() for each in self._frontier]
        self.unvisited_list = (
            frontier.unvisited_list
        )  # the host's unvisited list, as bottom-up left it
        self.times: dict[str, list[float]] = {}
        self.found: dict[str, int] = {}

    def restore(self) -> None:
        """Restore the host's state at the start of the level.

        A device that shares the host's memory uses the frontier's queue for other things when it
        goes bottom-up (`leave_lists` in bottom_up.cl); a search does not need it any more then.
        """
        self.host.visited[self.frontier.visited_index][:] = self.snapshot
        for each, kept in zip(self._frontier, self._kept, strict=True):
            each[:] = kept

    def strategy(self, strategy: Strategy) -> tuple[float, int | None]:
        """Return the seconds of one strategy, and the edges scanned if it counts them."""
        times = []
        edges_scanned = None
        on_device = strategy.device_kind == "device"
        for _ in range(self.repeats):
            self.restore()
            state = self.frontier.copy()
            if on_device:
                self._enter_device(state)
            executor = self.engine.platform.executor(strategy.place)
            found, seconds = executor.run(strategy, state)
            times.append(seconds)
            edges_scanned = found.edges_scanned
            self.unvisited_list = max(self.unvisited_list, state.unvisited_list)
            is_plain = strategy == plain("bottom-up", strategy.device_kind)
            if is_plain and not state.has_queue:
                self._convert(state, strategy.device_kind, found.vertices)
            if on_device:
                self._leave_device(state)
        return self.middle(times), edges_scanned

    def migrations(self) -> Iterator[tuple[str, float, int]]:
        """Yield (name, seconds, frontier vertices) of conversions and switches of the device."""
        for name, times in self.times.items():
            yield name, self.middle(times), self.found[name]

    def _convert(self, state: Frontier, kind: str, found: int) -> None:
        if found:
            state.queue_index ^= 1  # keep the level's own queue
            seconds = self.engine.platform.executor(DEVICE_KINDS.index(kind)).to_queue(state)
            self._note(f"convert_{kind}", seconds, found)

    def _enter_device(self, state: Frontier) -> None:
        accelerator = self.engine.accelerator
        assert accelerator is not None
        accelerator.launch_nothing(state)  # sends the policy to the device, untimed
        started = time.perf_counter()
        if not accelerator.unified:
            accelerator.clear(state)
            accelerator.add_parents(self._pairs(state))
        accelerator.receive(state, with_queue=True)
        accelerator.launch_nothing(state)
        self._note("to_device", time.perf_counter() - started, state.vertices)

    def _leave_device(self, state: Frontier) -> None:
        """Time the migration back after this level, then restore the host."""
        accelerator = self.engine.accelerator
        assert accelerator is not None
        if not state.has_queue or state.vertices == 0:
            accelerator.release()
            return
        started = time.perf_counter()
        accelerator.send(state, with_queue=True)
        if not accelerator.unified:  # vertices that the host finds later must be copied, too
            accelerator.add_parents(self._pairs(state))
        self._note("to_cpu", time.perf_counter() - started, state.vertices)

    def _pairs(self, state: Frontier) -> npt.NDArray[np.uint32]:
        """Return the frontier's vertices and their parents, at most as a found list has."""
        count = min(state.vertices, len(self.host.found_list))
        queue = self.host.queue[state.queue_index][:count]
        return np.column_stack((queue, self.host.parent[queue]))

    def _note(self, name: str, seconds: float, found: int) -> None:
        self.times.setdefault(name, []).append(seconds)
        self.found[name] = found
