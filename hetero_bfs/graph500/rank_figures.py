"""Figures of all ranks combined, for the reports of both kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.ranks.communicator import Communicator

_Rows = npt.NDArray[np.float64]


def combined(communicator: Communicator, rows: Sequence[tuple[float, ...]]) -> tuple[_Rows, _Rows]:
    """Return the maximum and the sum over ranks, for each figure of each step of a search."""
    most = np.array(rows, np.float64)
    total = most.copy()
    communicator.reduce_to_all(most.reshape(-1), "max")
    communicator.reduce_to_all(total.reshape(-1), "sum")
    return most, total


def imbalance(most: float, total: float, ranks: int) -> float:
    """Return a rank's maximum divided by the mean."""
    return most * ranks / total if total else 1.0


@dataclass(frozen=True)
class SearchOfRanks:
    """A search as the report shows it; see `BFSResult`."""

    source: int
    seconds: float
    gather_seconds: float
    nedge: int
    traces: list[Any]

    @property
    def teps(self) -> float:
        """Traversed edges per second."""
        return self.nedge / self.seconds if self.seconds > 0 else 0.0
