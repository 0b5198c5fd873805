"""The result of a vertex program's run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt

from hetero_bfs.programs.options import ModeName
from hetero_bfs.scheduling.trace import IterationTrace, Traced
from hetero_bfs.timeline.rendering import as_html, with_unit


@dataclass(eq=False)
class ProgramResult(Traced):
    """The final state of a program's vertices; each field is also an attribute.

    Parameters
    ----------
    state : mapping of name to array, shape (num_vertices,)
        In the caller's ids. Vectors have shape (num_vertices, length).
    seconds : float
        Time of the run, from the initial states to the last iteration, without compiling.
    iterations : int
    converged : bool
        False if `max_iterations` ended the run.
    totals : mapping of name to float
        The program's totals after the last iteration.
    traces : list of IterationTrace
    streamed_bytes : int
        Bytes of neighbour lists sent to the device, if it does not hold them.
    mode : str
        The mode that ran; see `RunOptions`.
    migrated_bytes : int
        Bytes transferred between the CPU and a device, without the final states.
    edges : mapping of name to array, shape (CSRGraph.num_stored_edges,)
        The fields of edges that `apply_edge` has written, in the order of `CSRGraph.indices`.
    """

    state: Mapping[str, npt.NDArray[Any]] = field(repr=False)
    seconds: float
    iterations: int
    converged: bool
    totals: Mapping[str, float]
    traces: list[IterationTrace] = field(repr=False)
    streamed_bytes: int = 0
    mode: ModeName = "synchronous"
    migrated_bytes: int = 0
    edges: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict, repr=False)

    def __getattr__(self, name: str) -> npt.NDArray[Any]:
        state: Mapping[str, npt.NDArray[Any]] = self.__dict__.get("state", {})  # empty while copied
        if name in state:
            return state[name]
        raise AttributeError(f"a result has no {name!r}; fields: {', '.join(state)}")

    def _repr_html_(self) -> str:
        facts: dict[str, Any] = {
            name: f"{values.dtype}, shape {values.shape}" for name, values in self.state.items()
        }
        facts |= {f"total {name}": float(total) for name, total in self.totals.items()}
        facts |= {
            "mode": self.mode,
            "iterations": self.iterations,
            "converged": self.converged,
            "time": with_unit(self.seconds),
        }
        return as_html("Vertex program", facts, self.traces, self.seconds)
