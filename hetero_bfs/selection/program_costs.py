"""Seconds of a vertex program's iterations, by direction: from training, or as a first guess.

    push    seconds = push_edge x edges of the active vertices
    pull    seconds = pull_vertex x vertices + pull_edge x edges scanned + pull_miss x misses

where `misses` is edges scanned x p x (1 - p), and p is the share of edges whose sender is active. A
processor guesses whether a sender is active, and errs most where half of them are.

A program goes the direction that these formulas say is faster. On the host it corrects them by what
its own iterations take.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from hetero_bfs.selection.strategies import DeviceKind

MESSAGE_KINDS = ("any_one", "unweighted", "weighted")
"""What a pull does. any_one: it ends with a vertex's first message. unweighted: it reads messages
that were written before. weighted: it makes each of them from the edge's weight."""


@dataclass(frozen=True)
class ProgramCosts:
    """Seconds of an edge of a push, and of a vertex, an edge and a miss of a pull; all threads."""

    push_edge: float
    pull_vertex: float
    pull_edge: float
    pull_miss: float

    @classmethod
    def names(cls) -> list[str]:
        """Return the names of the costs, in order."""
        return [one.name for one in fields(cls)]


CostTable = Mapping[DeviceKind, Mapping[str, ProgramCosts]]
"""Costs by place and kind of message."""


def first_guess(place: DeviceKind, threads: int) -> ProgramCosts:
    """Return costs for a machine without a trained model."""
    if place == "cpu":
        seconds = 4.0e-9, 3.0e-9, 1.0e-9, 14.0e-9
        return ProgramCosts(*(value / threads for value in seconds))
    return ProgramCosts(1.0e-10, 2.0e-11, 5.0e-11, 0.0)
