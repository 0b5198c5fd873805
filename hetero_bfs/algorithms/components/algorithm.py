"""Connected components of a prepared graph, on the faster of host and device."""

from __future__ import annotations

import time
from typing import ClassVar

import numpy as np

from hetero_bfs.algorithms.base import Analysis, Ran, RankedGraph, Request
from hetero_bfs.algorithms.components.device import DeviceComponents, StreamedComponents
from hetero_bfs.algorithms.components.host import HostComponents
from hetero_bfs.algorithms.components.result import Components, ComponentsReport
from hetero_bfs.algorithms.components.serial import answer_serially
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.scheduling.trace import numbered

_PHASES = ("first neighbours", "lists of roots", "rest", "compress", "device all phases")
"""Names in traces, by phase number: the phases of kernels.py, then the single one of device.py."""


class ComponentRuns(Analysis[Components]):
    """Finds the connected components of one graph. A query has no arguments."""

    what = "components"
    report: ClassVar = ComponentsReport
    executors = HostComponents, DeviceComponents, StreamedComponents

    @classmethod
    def by_one_thread(cls, graph: CSRGraph) -> Components:
        return answer_serially(graph)

    def _known(self) -> Components | None:
        n = self.graph.num_vertices
        return None if self.graph.num_searched else Components(np.arange(n), n, 0.0, 0.0, [])

    def _result(self, ran: Ran) -> Components:
        from hetero_bfs.algorithms.components.kernels import smallest_ids

        began = time.perf_counter()
        graph, found = self.graph, ran.found
        component = smallest_ids(found.label, graph.relabelling)
        restore_seconds = time.perf_counter() - began
        count = found.num_components + graph.num_vertices - graph.num_searched
        records = found.records.tolist()
        traces = numbered((_PHASES[int(p)], int(n), int(m), t) for p, n, m, t in records)
        return Components(
            component, count, ran.seconds, restore_seconds, traces, found.streamed_bytes
        )

    @classmethod
    def by_ranks(cls, engine: RankedGraph) -> Components:
        from hetero_bfs.programs.built_in import LeastLabels

        result = engine.run(LeastLabels())
        component = result.gathered("label").astype(np.int64)
        count = int(np.count_nonzero(component == np.arange(component.size)))
        return Components(component, count, result.seconds, 0.0, result.traces)


REQUEST = Request(ComponentRuns, ())
