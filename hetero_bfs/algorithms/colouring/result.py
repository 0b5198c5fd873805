"""Result of a colouring, in the caller's vertex ids."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.colouring.check import check_colouring
from hetero_bfs.algorithms.run_report import Report
from hetero_bfs.errors import CheckOutcome
from hetero_bfs.scheduling.trace import Iterated, IterationTrace
from hetero_bfs.support.messages import number_of
from hetero_bfs.timeline.rendering import as_html, with_unit

_LARGEST_CLASSES = 5  # printed by the command


@dataclass(eq=False)
class Colouring(Iterated):
    """A colour for each vertex. No edge joins two vertices of the same colour.

    Parameters
    ----------
    colour : int32 array, shape (num_vertices,)
        The first colour is 0, and isolated vertices have 0. All colours up to the largest occur. If
        the colouring began from other colours, isolated vertices keep theirs, and a colour may have
        no vertices.
    seconds : float
        Time of the colouring, until the colours are in the memory of the place that ran it.
    traces : list of IterationTrace
    streamed_bytes : int
        Bytes of the adjacency sent to the device, if the device does not hold it.
    """

    colour: npt.NDArray[np.int32]
    seconds: float
    traces: list[IterationTrace] = field(repr=False)
    streamed_bytes: int = 0

    @cached_property
    def num_colours(self) -> int:
        """Number of colours."""
        return int(self.colour.max(initial=-1)) + 1

    @cached_property
    def class_sizes(self) -> npt.NDArray[np.int64]:
        """Vertices of each colour, int64 (num_colours,)."""
        return np.bincount(self.colour, minlength=self.num_colours).astype(np.int64)

    def _repr_html_(self) -> str:
        facts = {
            "vertices": self.colour.size,
            "colours": self.num_colours,
            "time": with_unit(self.seconds),
        }
        return as_html("Colouring", facts, self.traces, self.seconds)


class ColouringReport(Report[Colouring]):
    def check(self) -> CheckOutcome:
        return check_colouring(self.edges, self.result.colour)

    def figures(self) -> dict[str, Any]:
        sizes = self.result.class_sizes
        largest = np.argsort(-sizes, kind="stable")[:_LARGEST_CLASSES]
        return {
            "num_colours": self.result.num_colours,
            "largest_classes": {str(colour): int(sizes[colour]) for colour in largest},
            "edges_scanned": self.result.edges_scanned,
        }

    def lines(self) -> list[str]:
        figures = self.figures()
        classes = ", ".join(f"{one}: {size}" for one, size in figures["largest_classes"].items())
        return [
            f"{number_of(figures['num_colours'], 'colour')} for {self.result.colour.size} "
            f"vertices; largest classes {classes or 'none'}",
            f"{number_of(self.result.iterations, 'iteration')}, "
            f"{number_of(figures['edges_scanned'], 'edge')} scanned",
        ]
