"""Result of PageRank, in the caller's vertex ids."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.pagerank.check import check_pagerank
from hetero_bfs.algorithms.run_report import Report
from hetero_bfs.errors import CheckOutcome, ValidationError
from hetero_bfs.graph.vertex_names import name_of
from hetero_bfs.scheduling.trace import Iterated, IterationTrace
from hetero_bfs.support.messages import number_of
from hetero_bfs.timeline.rendering import as_html, with_unit

_HIGHEST = 5  # vertices printed by the command


@dataclass(eq=False)
class PageRank(Iterated):
    """The PageRank of all vertices.

    Parameters
    ----------
    rank : float64 array, shape (num_vertices,)
        The vertices' scores. Their sum is 1.
    seconds : float
        Time of the run, until the scores are in the host's memory, in the caller's ids.
    change : float
        A bound of the error: the sum of ``abs(rank - exact rank)`` is at most change * alpha / (1 -
        alpha). For the power method this is the L1 change of the last iteration. For iterations
        that overwrite scores in place it is the change that would give the same bound.
    converged : bool
        Whether `change` fell below num_vertices * tol within max_iter iterations.
    traces : list of IterationTrace
    streamed_bytes : int
        Bytes of the adjacency sent to the device, if the device does not hold it.

    Raises
    ------
    ValidationError
        A score is not finite, which `change` shows.
    """

    rank: npt.NDArray[np.float64]
    seconds: float
    change: float
    converged: bool
    traces: list[IterationTrace] = field(repr=False)
    streamed_bytes: int = 0

    def __post_init__(self) -> None:
        if self.traces and not np.isfinite(self.change):
            raise ValidationError(
                f"PageRank's change is {self.change} after {len(self.traces)} iterations: a value "
                "overflowed; try another device or weights nearer to 1, and report the graph"
            )

    def highest(self, count: int = 10) -> list[tuple[int, float]]:
        """Return the vertices with the highest scores, and these, by falling score, then id."""
        count = min(count, self.rank.size)
        if count == 0:
            return []
        least = np.partition(self.rank, -count)[-count]
        able = np.flatnonzero(self.rank >= least)
        order = able[np.argsort(-self.rank[able], kind="stable")][:count]
        return [(int(v), float(self.rank[v])) for v in order]

    def _repr_html_(self) -> str:
        highest = ", ".join(f"{name_of(self, v)} ({rank:.3g})" for v, rank in self.highest(5))
        facts = {
            "vertices": self.rank.size,
            "highest ranks": highest,
            "iterations": self.iterations,
            "converged": self.converged,
            "time": with_unit(self.seconds),
        }
        return as_html("PageRank", facts, self.traces, self.seconds)


class PageRankReport(Report[PageRank]):
    def check(self) -> CheckOutcome | None:
        if not self.result.converged:
            return None
        given = (self.arguments[name] for name in ("alpha", "tol", "weighted"))
        return check_pagerank(self.edges, self.result.rank, *given)

    def notes(self) -> list[str]:
        found, loops, result = [], self.edges.num_self_loops, self.result
        if loops:
            verb = "does" if loops == 1 else "do"
            found.append(f"{number_of(loops, 'self-loop')} {verb} not count")
        if not result.converged:
            found.append(
                f"not converged after {number_of(result.iterations, 'iteration')}, change "
                f"{result.change:.3g} instead of {self.arguments['tol'] * result.rank.size:.3g}; "
                "give a larger --max-iter or --tol"
            )
        return found

    def _highest(self) -> list[tuple[int | str, float]]:
        return [(name_of(self.edges, v), rank) for v, rank in self.result.highest(_HIGHEST)]

    def figures(self) -> dict[str, Any]:
        result = self.result
        return {
            "num_self_loops": self.edges.num_self_loops,
            "highest": [{"vertex": name, "rank": rank} for name, rank in self._highest()],
            "change": result.change,
            "converged": result.converged,
        }

    def lines(self) -> list[str]:
        result = self.result
        return [
            f"{'vertex':>12} {'rank':>12}",
            *(f"{name:>12} {rank:>12.6g}" for name, rank in self._highest()),
            f"{number_of(result.iterations, 'iteration')}, change {result.change:.3g}",
        ]
