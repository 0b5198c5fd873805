"""Selectors: they choose the strategy of the next level, and give the reason of recorded choices.

model_selectors.py has the selectors that use a speed model. named_selectors.py makes selectors by
name.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.scheduling import schema
from hetero_bfs.scheduling.policy import (
    DIRECTION,
    FIXED,
    MODEL,
    SPEEDS,
    Policy,
    fixed_policy,
    make_policy,
)
from hetero_bfs.scheduling.speed_model import SpeedModel
from hetero_bfs.scheduling.strategies import DeviceKind, Direction, Strategy
from hetero_bfs.scheduling.trace import LevelFeatures, LevelTrace

ALPHA = 15
BETA = 18
NEVER_BACK = 2.0**31
"""A beta beyond this keeps bottom-up to the end: no graph has that many vertices."""


@dataclass(frozen=True)
class Choice:
    """A chosen strategy, the seconds of each candidate (see `LevelTrace`), and the reason."""

    strategy: Strategy
    predicted_seconds: Mapping[str, float] = field(default_factory=dict)
    compared_seconds: Mapping[str, float] = field(default_factory=dict)
    reason: str = ""


class Selector:
    """Chooses the strategy of each level among its candidates.

    `policy` is the rule as data (policy.py), which compiled code evaluates on host and device.
    """

    model: SpeedModel | None = None
    """The speed model that predicts; None without one."""

    def __init__(self, name: str, candidates: Sequence[Strategy], policy: Policy) -> None:
        self.name = name
        self.candidates = tuple(candidates)
        self.policy = policy
        self.uncorrected: Selector = self
        """This selector before correction; itself if it was not corrected."""

    @property
    def rule(self) -> str:
        """The rule for all levels, for the report; empty if the name says it."""
        return ""

    def first_edges(self, frontier_edges: int, unvisited_edges: int) -> int:
        """Return a number of edges for which the first choice is the same as for `frontier_edges`.

        It returns few different numbers, so that first choices can be stored: powers of the square
        root of two for a model, one number on each side of the threshold for rules with one.
        """
        policy = self.policy
        if policy.rule == FIXED or frontier_edges == 0:
            return 0
        if policy.rule in (DIRECTION, SPEEDS):
            rises = frontier_edges * policy.alpha > unvisited_edges
            return frontier_edges + unvisited_edges if rises else 0
        rounded = round(float(2.0 ** (round(2.0 * math.log2(frontier_edges)) / 2.0)))
        return min(rounded, frontier_edges + unvisited_edges)

    def read_choice(self, features: LevelFeatures, record: npt.NDArray[np.float64]) -> Choice:
        strategy = self.candidates[int(record[schema.STRATEGY])]
        count, names = len(self.candidates), [s.name for s in self.candidates]
        predicted = record[schema.PREDICTED :][:count]
        if np.isnan(predicted).any():
            return Choice(strategy, reason=self._reason(features, record))
        named = dict(zip(names, predicted.tolist(), strict=True))
        compared = {}
        if self.policy.rule == MODEL:
            total = record[schema.PREDICTED + count :][:count]
            compared = dict(zip(names, total.tolist(), strict=True))
        return Choice(strategy, named, compared, self._reason(features, record))

    def complete(self, features: LevelFeatures, record: npt.NDArray[np.float64]) -> None:
        """Fill in the predictions of a level that the device chose; it records only its choice."""

    def _reason(self, features: LevelFeatures, record: npt.NDArray[np.float64]) -> str:
        raise NotImplementedError


@dataclass(frozen=True)
class Recording:
    """The levels of a search as compiled code recorded them (schema.py), and as traces.

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

    def seconds(self) -> npt.NDArray[np.float64]:
        """Return seconds of each level, choosing included, and of the migration before it.

        The result is float64 (levels, 2). Levels that share a record share its seconds equally.
        """
        levels = 1 + self.records[:, schema.FURTHER_LEVELS].astype(np.int64)
        level = (self.records[:, schema.SECONDS] + self.records[:, schema.SELECT_SECONDS]) / levels
        found = np.zeros((self.num_levels, 2))
        found[:, 0] = np.repeat(level, levels)
        found[np.cumsum(levels) - levels, 1] = self.records[:, schema.TRANSFER_SECONDS]
        return found

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


class FixedSelector(Selector):
    """Given strategies, one per level; the last one is for all later levels."""

    def __init__(self, *strategies: Strategy) -> None:
        name = f"fixed:{','.join(s.name for s in strategies)}"
        candidates = list(dict.fromkeys(strategies))
        schedule = [candidates.index(s) for s in strategies]
        super().__init__(name, candidates, fixed_policy(schedule, candidates))

    def _reason(self, features: LevelFeatures, record: npt.NDArray[np.float64]) -> str:
        return "fixed"


class DirectionSelector(Selector):
    """Beamer's rule (2012) for the direction; each direction always runs on the same device.

    Bottom-up once the frontier's edges are more than at the last level and exceed 1 / alpha of the
    unvisited ones, top-down again once the frontier has fewer than 1 / beta of the vertices.
    """

    def __init__(
        self,
        name: str,
        strategies: Mapping[Direction, Strategy],
        alpha: float = ALPHA,
        beta: float = BETA,
    ) -> None:
        candidates = [strategies["top-down"], strategies["bottom-up"]]
        policy = make_policy(
            DIRECTION, candidates, schedule=[0, 1], alpha=float(alpha), beta=float(beta)
        )
        super().__init__(name, candidates, policy)

    def _reason(self, features: LevelFeatures, record: npt.NDArray[np.float64]) -> str:
        return direction_reason(record, record[schema.STRATEGY] == 1, self.policy)


def direction_reason(record: npt.NDArray[np.float64], bottom_up: bool, policy: Policy) -> str:
    """Describe how a level's frontier compares with the threshold that applies."""
    if policy.alpha == 0:
        return "always top-down"
    if not schema.was_bottom_up(record):
        if not schema.grows(record):
            return "the frontier does not grow"
        return f"its edges {'>' if bottom_up else '<='} unvisited edges / {policy.alpha:.3g}"
    if policy.beta > NEVER_BACK:
        return "bottom-up to the end"
    return f"frontier {'>=' if bottom_up else '<'} vertices / {policy.beta:g}"


def alpha_beta(
    device: DeviceInfo | None,
    candidates: Sequence[Strategy],
    alpha: float = ALPHA,
    beta: float = BETA,
) -> Selector:
    kind: DeviceKind = "cpu" if device is None else "device"
    is_usual = (alpha, beta) == (ALPHA, BETA)
    name = "alpha-beta" if is_usual else f"alpha-beta({alpha:g},{beta:g},{kind})"
    return DirectionSelector(name, by_direction(candidates, kind, kind), alpha, beta)


def by_direction(
    candidates: Sequence[Strategy], top_down: DeviceKind, bottom_up: DeviceKind
) -> dict[Direction, Strategy]:
    wanted = {("top-down", top_down), ("bottom-up", bottom_up)}
    found: dict[Direction, Strategy] = {}
    for s in candidates:
        if (s.direction, s.device_kind) in wanted:
            found.setdefault(s.direction, s)
    return found
