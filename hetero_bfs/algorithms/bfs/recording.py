"""The levels of a search as compiled code recorded them, and as traces."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hetero_bfs.scheduling import schema
from hetero_bfs.scheduling.policy import MODEL
from hetero_bfs.scheduling.selectors import Selector
from hetero_bfs.scheduling.trace import LevelFeatures, LevelTrace


@dataclass(frozen=True)
class Recording:
    """The records of a search (schema.py).

    `tiny`, uint8 (levels, 2), has vertices and edges of each tiny frontier, if records stand for
    several levels.
    """

    records: npt.NDArray[np.float64]
    selector: Selector
    num_vertices: int
    num_edges: int
    decision_interval: int
    tiny: npt.NDArray[np.uint8] | None = None

    @property
    def num_levels(self) -> int:
        return len(self.records) + int(self.records[:, schema.FURTHER_LEVELS].sum())

    def traces(self) -> list[LevelTrace]:
        return [
            self._trace(level, None if level[schema.CHOSEN_AT] == row else self._kept_from(level))
            for row, record in enumerate(self.records)
            for level in self._levels(record)
        ]

    def _kept_from(self, level: npt.NDArray[np.float64]) -> int:
        row = int(level[schema.CHOSEN_AT])
        if row < 0:  # a level of a record that stands for several
            levels = self.records[:, schema.LEVEL]
            row = int(np.searchsorted(levels, level[schema.LEVEL], "right")) - 1
        return int(self.records[row, schema.LEVEL])

    def _levels(self, record: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return a row for each level that a record stands for, their seconds divided equally."""
        count = 1 + int(record[schema.FURTHER_LEVELS])
        rows = np.repeat(record[None], count, axis=0)
        if count == 1:
            return rows
        assert self.tiny is not None
        first = int(record[schema.LEVEL])
        vertices, edges = self.tiny[first : first + count].astype(np.float64).T
        rows[:, schema.LEVEL] += np.arange(count)
        rows[1:, schema.FRONTIER_VERTICES] = vertices[1:]
        rows[1:, schema.FRONTIER_EDGES] = edges[1:]
        rows[1:, schema.PREVIOUS_EDGES] = edges[:-1]
        rows[1:, schema.UNVISITED_VERTICES] -= np.cumsum(vertices[1:])
        rows[1:, schema.UNVISITED_EDGES] -= np.cumsum(edges[1:])
        rows[1:, schema.PLACE], rows[1:, schema.REPRESENTATION] = schema.HOST, schema.QUEUE
        rows[:-1, schema.FOUND_VERTICES] = vertices[1:]
        rows[:, schema.SECONDS] /= count
        rows[1:, [schema.TRANSFER_SECONDS, schema.SELECT_SECONDS]] = 0.0
        rows[1:, schema.PREDICTED :] = np.nan
        if self.selector.policy.rule == MODEL:  # the other rules are checked at each level
            rows[1:, schema.CHOSEN_AT] = -1
        return rows

    def _trace(self, record: npt.NDArray[np.float64], kept_from: int | None) -> LevelTrace:
        features = LevelFeatures.from_state(record, self.num_vertices, self.num_edges)
        level = features.level
        skipped = level % self.decision_interval
        if not skipped:
            self.selector.complete(features, record)
        choice = self.selector.read_choice(features, record)
        if skipped:
            reason = f"as level {level - skipped}, for {self.decision_interval} levels"
        elif kept_from is not None:
            reason = f"as level {kept_from}, which is alike"
        else:
            reason = choice.reason
        return LevelTrace(
            features,
            choice.strategy.name,
            float(record[schema.SECONDS]),
            float(record[schema.TRANSFER_SECONDS]),
            float(record[schema.SELECT_SECONDS]),
            int(record[schema.FOUND_VERTICES]),
            choice.predicted_seconds,
            reason,
            choice.compared_seconds,
        )
