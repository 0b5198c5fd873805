"""The result of finding connected components, in the caller's vertex ids."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from hetero_bfs.scheduling.iterations import Iterated, IterationTrace
from hetero_bfs.timeline.notebook import as_html
from hetero_bfs.timeline.timeline_svg import with_unit


@dataclass(eq=False)
class Components(Iterated):
    """Connected components; in a directed graph, the weakly connected ones.

    Parameters
    ----------
    component : int64 array, shape (num_vertices,)
        The smallest vertex of each vertex's component.
    num_components : int
        A vertex without edges is a component, too.
    seconds : float
        From the call to labels in the internal numbering, in the host's memory.
    restore_seconds : float
        To convert those to `component`.
    traces : list of IterationTrace
        One for each phase.
    streamed_bytes : int
        Bytes of lists that were sent to the device, if it does not hold them.
    """

    component: npt.NDArray[np.int64]
    num_components: int
    seconds: float
    restore_seconds: float
    traces: list[IterationTrace] = field(repr=False)
    streamed_bytes: int = 0

    @cached_property
    def sizes(self) -> npt.NDArray[np.int64]:
        """Vertices of each component, int64 (num_components,), by rising least vertex."""
        counts: npt.NDArray[np.int64] = np.bincount(self.component).astype(np.int64, copy=False)
        return counts[counts > 0]

    @property
    def edges_scanned(self) -> int:
        """Entries of neighbour lists that were read."""
        return sum(trace.edges_scanned for trace in self.traces)

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: the figures, and the timeline of the phases."""
        facts = {
            "vertices": self.component.size,
            "components": self.num_components,
            "largest component": int(self.sizes.max(initial=0)),
            "time": with_unit(self.seconds),
        }
        return as_html("Connected components", facts, self.traces)
