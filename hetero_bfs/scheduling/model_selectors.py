"""Selectors that choose by a speed model: at each level, or once for a graph.

`ZhangSelector` is the paper's own. The rest of this file is about `ModelSelector`.

A `ModelSelector` has one or two rules. PLAN predicts every candidate at every level, the rest of
the search included. THRESHOLDS asks the model only when an engine opens and when corrections
change: it finds the device and the two thresholds of Beamer's rule that take the least time on a
reference search of the graph. So a search itself spends no time on predictions. With both rules,
the one with the least predicted seconds on the reference search applies.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.errors import ModelError
from hetero_bfs.scheduling import schema
from hetero_bfs.scheduling.columns import NUM_MIGRATION_COLUMNS
from hetero_bfs.scheduling.policy import (
    CAUTION,
    DIRECTION,
    MODEL,
    SPEEDS,
    Policy,
    choose,
    make_policy,
    num_places,
)
from hetero_bfs.scheduling.rehearsal import find_rule, rehearse, with_alike, with_cost_to_go
from hetero_bfs.scheduling.selectors import (
    ALPHA,
    BETA,
    NEVER_BACK,
    Choice,
    Recording,
    Selector,
    direction_reason,
)
from hetero_bfs.scheduling.speed_model import TRAIN_COMMAND, Linear, SpeedModel, ZhangSpeeds
from hetero_bfs.scheduling.strategies import DIRECTIONS, Strategy, place_name
from hetero_bfs.scheduling.trace import LevelFeatures

PLAN, THRESHOLDS = "plan", "thresholds"
"""Rules of a `ModelSelector`."""

CLEARLY = 0.97
"""A new policy replaces the one in use if it is predicted to take less than this share of its time.
Replacing delays searches, as the devices must get the policy."""

_EACH_LEVEL = "choosing at each level"
_SHOWN_RIVALS = 2

_RULES = {
    "auto": (PLAN, THRESHOLDS),
    "learned": (PLAN,),
    "thresholds": (THRESHOLDS,),
}
"""The rules of model selectors by name."""


def migration_names(candidates: Sequence[Strategy]) -> list[str]:
    places = range(num_places(candidates))
    whats = ("start on", "switch to", "convert on")
    return [f"{what} {place_name(place)}" for what in whats for place in places]


class ModelSelector(Selector):
    """Chooses the candidate with the least predicted seconds, migration included.

    With PLAN, once `on_graph` has given a graph's reference search, each candidate's cost includes
    the expected cost of the remaining levels. Otherwise the selector might choose a cheap first
    level on the host although the next level must leave it again. On the host, bottom-up must be
    clearly faster early in a search (CAUTION in policy.py).

    With THRESHOLDS alone and before `on_graph`, the thresholds are Beamer's own, on the first
    device that has candidates.

    The policy `by_model` predicts the seconds of a level; it has no cost-to-go. `predictors` are
    formulas of the candidates at SMALL and at LARGE levels.
    """

    model: SpeedModel

    _made: tuple[tuple[Any, ...], Policy] | None = None  # the last thresholds and their policy

    def __init__(
        self,
        name: str,
        model: SpeedModel,
        candidates: Sequence[Strategy],
        predictors: tuple[Sequence[Linear], Sequence[Linear]],
    ) -> None:
        self.model = model
        self.rules = _RULES[name]
        self.factors = np.ones(2 * len(candidates) + len(migration_names(candidates)))
        self._graph: tuple[int, int, npt.NDArray[np.float64]] | None = None
        self._searches: list[npt.NDArray[np.float64]] = []
        """The graph's reference search, and searches like it (rehearsal.py)."""
        self._compared: dict[str, float] = {}
        """Predicted seconds of a search by each pair of strategies, and by choosing each level."""
        self.by_model = make_policy(
            MODEL,
            candidates,
            weights=np.array([[linear.weights() for linear in size] for size in predictors]),
            migrations=_migration_weights(model, num_places(candidates)),
            caution=CAUTION,
        )
        super().__init__(name, candidates, self._rule(candidates))

    def on_graph(
        self, num_vertices: int, num_edges: int, reference: npt.NDArray[np.float64]
    ) -> ModelSelector:
        if self._graph is not None and self._graph[2] is reference:
            return self
        other = copy(self.uncorrected)
        assert isinstance(other, ModelSelector)
        other.uncorrected = other
        other._graph = (num_vertices, num_edges, reference)
        other._searches = with_alike(reference)
        other.policy = other._rule(other.candidates)
        return other

    @property
    def is_on_graph(self) -> bool:
        return self._graph is not None

    def _rule(self, candidates: Sequence[Strategy]) -> Policy:
        if self._graph is None:
            if self.rules == (THRESHOLDS,):
                return self._by_thresholds(candidates, (*_pairs(candidates)[0], ALPHA, BETA))
            return self.by_model
        num_vertices, num_edges, reference = self._graph
        pairs, compared, by_thresholds = _pairs(candidates), dict[str, float](), None
        if THRESHOLDS in self.rules and pairs:
            rule, costs = find_rule(self.by_model, num_vertices, self._searches, pairs)
            names = [_pair_name(candidates, pair) for pair in pairs]
            compared = dict(zip(names, costs.tolist(), strict=True))
            by_thresholds = self._by_thresholds(candidates, rule)
        if by_thresholds is not None and PLAN not in self.rules:
            return by_thresholds
        plan = with_cost_to_go(self.by_model, num_vertices, num_edges, reference)
        if by_thresholds is None:
            return plan
        compared[_EACH_LEVEL] = of_plan = self._expected(plan)
        # find_rule takes a usual alpha, which may cost a little more than the pair's best one.
        compared[_pair_name(candidates, rule[:2])] = of_rule = self._expected(by_thresholds)
        self._compared = {name: cost / len(self._searches) for name, cost in compared.items()}
        return plan if of_plan < of_rule else by_thresholds

    def _expected(self, policy: Policy) -> float:
        assert self._graph is not None
        size = self._graph[:2]
        return sum(rehearse(policy, self.by_model, *size, one)[1] for one in self._searches)

    def improves_on(self, other: ModelSelector) -> bool:
        """Tell whether searches by this selector are predicted to be clearly faster.

        `other` is a selector of the same kind and graph, corrected by other factors.
        """
        if self._graph is None:
            return True
        return self._expected(self.policy) < CLEARLY * self._expected(other.policy)

    def expected_seconds(self, recording: Recording) -> float:
        """Predict the seconds by this selector of a search that another selector has run."""
        records = recording.records
        counts = 1.0 + records[:, schema.FURTHER_LEVELS]
        levels = np.column_stack((records[:, : schema.RECORD_STATE], counts))
        size = recording.num_vertices, recording.num_edges
        return rehearse(self.policy, self.by_model, *size, levels)[1]

    def _by_thresholds(self, candidates: Sequence[Strategy], rule: tuple[Any, ...]) -> Policy:
        if self._made is not None and self._made[0] == rule:
            return self._made[1]  # the same object, of which the device already has a copy
        top_down, bottom_up, alpha, beta = rule
        policy = make_policy(
            DIRECTION,
            candidates,
            schedule=[top_down, bottom_up],
            alpha=float(alpha),
            beta=float(beta),
        )
        self._made = rule, policy
        return policy

    def corrected(self, factors: npt.NDArray[np.float64]) -> ModelSelector:
        """Return a copy of this uncorrected selector with its predictions times `factors`."""
        other = copy(self)
        count = len(self.candidates)
        other.factors = factors
        other.by_model = self.by_model._replace(
            weights=self.by_model.weights * factors[: 2 * count].reshape(2, count, 1),
            migrations=self.by_model.migrations * factors[2 * count :].reshape(3, -1, 1),
        )
        other.policy = other._rule(self.candidates)
        return other

    @property
    def rule(self) -> str:
        if self.policy.rule != DIRECTION:
            return _EACH_LEVEL if self._compared else ""
        down, up = (self.candidates[i].name for i in self.policy.schedule)
        back = "never back" if self.policy.beta > NEVER_BACK else f"beta {self.policy.beta:g}"
        if self.policy.alpha == 0:
            return f"{down} alone"
        return f"{down} and {up}, alpha {self.policy.alpha:.3g}, {back}"

    def complete(self, features: LevelFeatures, record: npt.NDArray[np.float64]) -> None:
        """Predict as the device did: by the same policy, from the same state.

        Thresholds need no predictions. Then the model's are filled in.
        """
        policy = self.by_model if self.policy.rule == DIRECTION else self.policy
        count = len(self.candidates)
        predicted = record[schema.PREDICTED : schema.PREDICTED + count]
        if np.isnan(predicted).any():
            total = record[schema.PREDICTED + count :]
            n, m = features.num_vertices, features.num_edges
            scratch = np.empty_like(policy.work)  # another thread may be using this policy
            choose(policy._replace(work=scratch), n, m, record, predicted, total)

    def _reason(self, features: LevelFeatures, record: npt.NDArray[np.float64]) -> str:
        best = int(record[schema.STRATEGY])
        if self.policy.rule == DIRECTION:
            bottom_up = not self.policy.top_down[best]
            whole = _pair_name(self.candidates, self.policy.schedule)
            threshold = direction_reason(record, bottom_up, self.policy)
            rivals = "" if features.level else self._rivals(whole)
            return f"{threshold}; {whole} for the whole search, by the model{rivals}"
        total = record[schema.PREDICTED + len(self.candidates) :]
        second = next((int(i) for i in np.argsort(total) if i != best), best)
        if second == best:
            return "only candidate"
        margin, name = total[second] - total[best], self.candidates[second].name
        reason = f"{1e6 * margin:.0f} us before {name}"
        factors = self.factors[len(self.candidates) * schema.size_of(features.frontier_edges) :]
        if factors[best] != 1.0:
            reason += f", corrected x{factors[best]:.2g}"
        if factors[second] != 1.0:
            reason += f", {name} x{factors[second]:.2g}"
        if self._compared and not features.level:
            reason += f"; {_EACH_LEVEL}{self._rivals(_EACH_LEVEL)}"
        return reason

    def _rivals(self, chosen: str) -> str:
        """Return the model's predictions for a search by the chosen pair and by the next ones."""
        if not self._compared:
            return ""
        micros = {name: f"{1e6 * seconds:.0f} us" for name, seconds in self._compared.items()}
        ranked = sorted(self._compared, key=self._compared.__getitem__)
        rivals = [name for name in ranked if name != chosen][:_SHOWN_RIVALS]
        return f": {micros[chosen]}; " + ", ".join(f"{name} {micros[name]}" for name in rivals)


def _pair_name(candidates: Sequence[Strategy], pair: Iterable[int]) -> str:
    return " and ".join(candidates[number].name for number in pair)


def _pairs(candidates: Sequence[Strategy]) -> list[tuple[int, int]]:
    """Return the numbers of all pairs of a top-down and a bottom-up candidate on one device."""
    return [
        (down, up)
        for down, one in enumerate(candidates)
        for up, other in enumerate(candidates)
        if one.direction == "top-down"
        and other.direction == "bottom-up"
        and one.place == other.place
    ]


def model_selector(name: str, model: SpeedModel, candidates: Sequence[Strategy]) -> ModelSelector:
    """Make a selector that chooses by a model: "auto", "learned" or "thresholds"."""
    missing = model.lacking(candidates)
    if missing:
        raise ModelError(
            f"the speed model {model.name} lacks {', '.join(missing)}; "
            f"train again with `{TRAIN_COMMAND}`"
        )
    if name == "thresholds" and not _pairs(candidates):
        raise ModelError(
            "selector thresholds needs a top-down and a bottom-up strategy on one device; "
            f"there are {', '.join(s.name for s in candidates)}"
        )
    small, large = (
        [model.predictor(s.name, size) for s in candidates] for size in (schema.SMALL, schema.LARGE)
    )
    return ModelSelector(name, model, candidates, (small, large))


class ZhangSelector(Selector):
    """Chooses the candidate of least predicted seconds by the paper's model (`ZhangSpeeds`).

    All top-down candidates are predicted from the same edges, so the one with the highest speed is
    always the best of them, and so is the fastest bottom-up candidate. The levels decide between
    these two. It is never corrected. `origin` names the speeds in errors.

    Raises `ModelError` if a speed was not measured.
    """

    def __init__(
        self, speeds: ZhangSpeeds, candidates: Sequence[Strategy], origin: str = "the speed model"
    ) -> None:
        self.speeds = speeds
        speed = speeds.edges_per_second
        if missing := [s.name for s in candidates if s.name not in speed]:
            raise ModelError(
                f"{origin} lacks the speeds of selector zhang of {', '.join(missing)}; train again "
                f"with `{TRAIN_COMMAND}`"
            )
        best = [
            max((s for s in candidates if s.direction == way), key=lambda s: speed[s.name])
            for way in DIRECTIONS
        ]
        down, up = (speed[s.name] for s in best)
        policy = make_policy(
            SPEEDS,
            candidates,
            schedule=[candidates.index(s) for s in best],
            alpha=up / speeds.alpha / down,
        )
        super().__init__("zhang", candidates, policy)

    @property
    def rule(self) -> str:
        down, up = (self.candidates[i].name for i in self.policy.schedule)
        return f"{down} and {up}, alpha {self.policy.alpha:.3g} at every level"

    def complete(self, features: LevelFeatures, record: npt.NDArray[np.float64]) -> None:
        count = len(self.candidates)
        record[schema.PREDICTED : schema.PREDICTED + count] = self._seconds(features)

    def read_choice(self, features: LevelFeatures, record: npt.NDArray[np.float64]) -> Choice:
        self.complete(features, record)
        return super().read_choice(features, record)

    def _seconds(self, features: LevelFeatures) -> list[float]:
        return [self.speeds.seconds(features, s) for s in self.candidates]

    def _reason(self, features: LevelFeatures, record: npt.NDArray[np.float64]) -> str:
        seconds = self._seconds(features)
        down, up = self.policy.schedule
        best = int(record[schema.STRATEGY])
        other = down if best == up else up
        margin = seconds[other] - seconds[best]
        return f"{1e6 * margin:.0f} us before {self.candidates[other].name}"


def zhang_selector(model: SpeedModel, candidates: Sequence[Strategy]) -> ZhangSelector:
    speeds = model.zhang or ZhangSpeeds(1.0, {}, 0, 0)
    selector = ZhangSelector(speeds, candidates, f"the speed model {model.name}")
    selector.model = model
    return selector


def _migration_weights(model: SpeedModel, places: int) -> npt.NDArray[np.float64]:
    weights = np.zeros((3, places, NUM_MIGRATION_COLUMNS))
    for what, table in enumerate((model.start, model.switch, model.convert)):
        for place in range(places):
            if (linear := table.get(place_name(place))) is not None:
                weights[what, place] = linear.weights()[:NUM_MIGRATION_COLUMNS]
    return weights
