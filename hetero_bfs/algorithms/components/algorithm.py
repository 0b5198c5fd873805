"""Components of a prepared graph: where they are found, and the result."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from hetero_bfs.algorithms.base import Analysis
from hetero_bfs.algorithms.components.device import DeviceComponents
from hetero_bfs.algorithms.components.host import HostComponents, Labels
from hetero_bfs.algorithms.components.result import Components
from hetero_bfs.algorithms.components.streamed import StreamedComponents
from hetero_bfs.devices.opencl.device_info import DeviceInfo
from hetero_bfs.scheduling.iterations import IterationTrace
from hetero_bfs.scheduling.trials import Place

_PHASES = ("first neighbours", "lists of roots", "rest", "compress", "device all phases")
"""In the order of the numbers in hook.py and device.py."""


class ComponentRuns(Analysis):
    """Finds the connected components of one graph; see `Analysis`."""

    what = "components"

    def _make_host(self, threads: int) -> HostComponents:
        return HostComponents(self.graph, threads)

    def _make_device(self, info: DeviceInfo) -> DeviceComponents:
        return self._whole_or_streamed(
            lambda: DeviceComponents(self.graph, info), lambda: StreamedComponents(self.graph, info)
        )

    def find(self, place: Place | None = None) -> Components:
        """Find the components.

        Parameters
        ----------
        place : {"cpu", "device"}, optional
            By default the one that has been faster.
        """
        graph = self.graph
        if graph.num_searched == 0:
            return Components(np.arange(graph.num_vertices), graph.num_vertices, 0.0, 0.0, [])
        found, seconds = self._run(place or self.places.choose())
        began = time.perf_counter()
        from hetero_bfs.algorithms.components.kernels.smallest_ids import smallest_ids

        component = smallest_ids(found.label, graph.relabelling)
        restore_seconds = time.perf_counter() - began
        alone = graph.num_vertices - graph.num_searched
        traces = [_trace(i, record) for i, record in enumerate(found.records.tolist())]
        return Components(
            component, found.num_components + alone, seconds, restore_seconds, traces,
            found.streamed_bytes,
        )  # fmt: skip

    def _run(self, place: Place) -> tuple[Labels, float]:
        executor = self.host if place == "cpu" else self.device
        executor.prepare()
        began = time.perf_counter()
        found: Labels = executor.run()
        seconds = time.perf_counter() - began
        self.places.note(place, seconds)
        return found, seconds


def _trace(number: int, record: list[Any]) -> IterationTrace:
    phase, vertices, edges, seconds = record
    return IterationTrace(number, _PHASES[int(phase)], int(vertices), int(edges), seconds)
