"""Result of finding connected components, in the caller's vertex ids."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.components.check import check_components
from hetero_bfs.algorithms.run_report import Report
from hetero_bfs.errors import CheckOutcome
from hetero_bfs.scheduling.trace import Iterated, IterationTrace
from hetero_bfs.support.messages import number_of
from hetero_bfs.timeline.rendering import as_html, with_unit


@dataclass(eq=False)
class Components(Iterated):
    """Connected components; in a directed graph, the weakly connected ones.

    Parameters
    ----------
    component : int64 array, shape (num_vertices,)
        The smallest vertex of each vertex's component.
    num_components : int
        Isolated vertices count as components.
    seconds : float
        Time of the run, until labels in the internal numbering are in the host's memory.
    restore_seconds : float
        Time to convert these labels to `component`.
    traces : list of IterationTrace
        One for each phase.
    streamed_bytes : int
        Bytes of the adjacency sent to the device, if the device does not hold it.
    """

    component: npt.NDArray[np.int64]
    num_components: int
    seconds: float
    restore_seconds: float
    traces: list[IterationTrace] = field(repr=False)
    streamed_bytes: int = 0

    @cached_property
    def sizes(self) -> npt.NDArray[np.int64]:
        """Vertices of each component, int64 (num_components,), in order of `component`."""
        counts: npt.NDArray[np.int64] = np.bincount(self.component).astype(np.int64, copy=False)
        return counts[counts > 0]

    def _repr_html_(self) -> str:
        facts = {
            "vertices": self.component.size,
            "components": self.num_components,
            "largest component": int(self.sizes.max(initial=0)),
            "time": with_unit(self.seconds),
        }
        return as_html("Connected components", facts, self.traces, self.seconds)


class ComponentsReport(Report[Components]):
    def check(self) -> CheckOutcome:
        return check_components(self.edges, self.result.component)

    def figures(self) -> dict[str, Any]:
        return {
            "num_components": self.result.num_components,
            "largest": int(self.result.sizes.max(initial=0)),
            "isolated": int((self.result.sizes == 1).sum()),
            "restore_seconds": self.result.restore_seconds,
            "edges_scanned": self.result.edges_scanned,
        }

    def lines(self) -> list[str]:
        figures = self.figures()
        return [
            f"{number_of(figures['num_components'], 'component')}, the largest of "
            f"{number_of(figures['largest'], 'vertex')}; "
            f"{number_of(figures['isolated'], 'isolated vertex')}",
            f"{number_of(figures['edges_scanned'], 'edge')} scanned",
        ]
