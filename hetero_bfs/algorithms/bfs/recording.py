"""The records of a search's levels, and the traces made from them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hetero_bfs.scheduling import schema
from hetero_bfs.scheduling.selectors import Selector
from hetero_bfs.scheduling.trace import LevelFeatures, LevelTrace


@dataclass(frozen=True)
class Recording:
    """The levels of a search as compiled code recorded them (schema.py)."""

    records: npt.NDArray[np.float64]
    selector: Selector
    num_vertices: int
    num_edges: int
    decision_interval: int

    def traces(self) -> list[LevelTrace]:
        return [self._trace(record) for record in self.records]

    def _trace(self, record: npt.NDArray[np.float64]) -> LevelTrace:
        features = LevelFeatures.from_state(record, self.num_vertices, self.num_edges)
        level = features.level
        skipped = level % self.decision_interval
        if not skipped:
            self.selector.complete(features, record)
        kept = skipped or record[schema.CHOSEN_AT] != level
        choice = self.selector.read_choice(features, record)
        return LevelTrace(
            features,
            choice.strategy.name,
            float(record[schema.SECONDS]),
            float(record[schema.TRANSFER_SECONDS]),
            float(record[schema.SELECT_SECONDS]),
            int(record[schema.FOUND_VERTICES]),
            choice.predicted_seconds,
            "as the level before" if kept else choice.reason,
        )
