"""What a run of a vertex program by all ranks gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.iterations import IterationTrace
from hetero_bfs.distributed.communicator import Communicator, parts_of
from hetero_bfs.distributed.partition import count_owned


@dataclass(eq=False)
class RankProgramResult:
    """The final states of a rank's vertices; `gathered` returns those of all.

    Parameters
    ----------
    communicator : Communicator
    state : mapping of name to array, shape (own old ids,)
        Rank r of P has the vertices r, r + P, r + 2 P and so on, in this order.
    num_vertices : int
        Of the whole graph.
    seconds : float
        From the initial states to the last iteration, the slowest rank's.
    iterations : int
    converged : bool
        False if `max_iterations` ended the run.
    totals : mapping of name to float
        The program's sums after the last iteration.
    traces : list of IterationTrace
        Vertices and edges are those of all ranks; the seconds are this rank's.
    """

    communicator: Communicator = field(repr=False)
    state: Mapping[str, npt.NDArray[Any]] = field(repr=False)
    num_vertices: int
    seconds: float
    iterations: int
    converged: bool
    totals: Mapping[str, float]
    traces: list[IterationTrace] = field(repr=False)

    def gathered(self, name: str) -> npt.NDArray[Any]:
        """Return a field of all vertices, in the caller's ids; all ranks must call this."""
        return gathered(self.communicator, self.state[name], self.num_vertices)


def gathered(
    communicator: Communicator, mine: npt.NDArray[Any], num_vertices: int
) -> npt.NDArray[Any]:
    """Return an array of all vertices, given those of each rank's own; all ranks must call this."""
    ranks = communicator.size
    owned = count_owned(num_vertices, ranks)
    first = parts_of(owned)
    parts = np.empty(num_vertices, mine.dtype)
    communicator.gather_to_all(np.ascontiguousarray(mine), parts, owned, first)
    whole = np.empty_like(parts)
    for rank, (begin, count) in enumerate(zip(first, owned, strict=True)):
        whole[rank::ranks] = parts[begin : begin + count]
    return whole
