"""Seconds of a vertex program's iterations, by direction: from training, or as a first guess.

    push    push_vertex x active vertices + push_edge x their edges + push_change x changes
    pull    pull_vertex x vertices + pull_edge x edges scanned + pull_miss x misses

`changes` counts vertices that messages make active. Their number per edge is predicted to be the
same as in the previous iteration. `misses` is edges scanned x p x (1 - p), where p is the share of
edges with an active sender: a processor mispredicts the branch most often if half of the senders
are active.

A program runs in the direction that these formulas predict to be faster. On the host it corrects
them by the measured seconds of its iterations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from hetero_bfs.scheduling.strategies import DeviceKind

MESSAGE_KINDS = ("any_one", "unweighted", "weighted")
"""Kinds of messages, by the work of a pull. any_one: it ends with a vertex's first message.
unweighted: it reads messages that senders wrote. weighted: it computes each message from the edge's
weight."""


@dataclass(frozen=True)
class ProgramCosts:
    """Seconds of an iteration's parts (see above), of all threads together.

    Models from before 2026-11-24 lack push_vertex and push_change.
    """

    push_edge: float
    pull_vertex: float
    pull_edge: float
    pull_miss: float
    push_vertex: float = 0.0
    push_change: float = 0.0

    @classmethod
    def names(cls) -> list[str]:
        return [one.name for one in fields(cls)]


CostTable = Mapping[DeviceKind, Mapping[str, ProgramCosts]]
"""Costs by place and kind of message."""


def first_guess(place: DeviceKind, threads: int) -> ProgramCosts:
    """Return costs for a machine without a trained model."""
    if place == "cpu":
        seconds = 2.4e-9, 1.0e-9, 1.0e-9, 8.0e-9, 6.0e-9, 28.0e-9
        return ProgramCosts(*(value / threads for value in seconds))
    return ProgramCosts(1.0e-10, 2.0e-11, 5.0e-11, 0.0)
