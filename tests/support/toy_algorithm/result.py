"""The result, in the caller's vertex ids."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.run_report import Report
from hetero_bfs.errors import CheckOutcome
from hetero_bfs.scheduling.trace import Iterated, IterationTrace
from toy_algorithm import check


@dataclass(eq=False)
class BusyNeighbours(Iterated):
    """The counts.

    Parameters
    ----------
    count : int32 array, shape (num_vertices,)
    seconds : float
    traces : list of IterationTrace
    streamed_bytes : int
    """

    count: npt.NDArray[np.int32]
    seconds: float
    traces: list[IterationTrace] = field(repr=False)
    streamed_bytes: int = 0


class BusyReport(Report[BusyNeighbours]):
    """What `hetero-bfs busy` says of a result."""

    def check(self) -> CheckOutcome:
        return check.check_busy(self.edges, self.result.count, self.arguments["least"])

    def figures(self) -> dict[str, Any]:
        return {"most": int(self.result.count.max(initial=0))}

    def lines(self) -> list[str]:
        return [f"at most {self.figures()['most']} busy neighbours", "counted"]
