"""Selectors that choose by a speed model: at each level, or once for a graph.

`ModelSelector` predicts every candidate at every level. `ThresholdSelector` asks the model when an
engine opens and when corrections change. It finds the device and the two thresholds of Beamer's
rule that take the least time on a reference search of the graph. So a search itself spends no time
on predictions.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.errors import ModelError
from hetero_bfs.scheduling import schema
from hetero_bfs.scheduling.objective import Objective
from hetero_bfs.scheduling.policy import (
    CAUTION,
    DIRECTION,
    MODEL,
    Policy,
    make_policy,
    num_places,
)
from hetero_bfs.scheduling.selectors import (
    ALPHA,
    BETA,
    NEVER_BACK,
    Choice,
    Selector,
    direction_reason,
)
from hetero_bfs.scheduling.speed_model import TRAIN_COMMAND, Linear, SpeedModel
from hetero_bfs.scheduling.strategies import DEVICE_KINDS, Strategy, place_name
from hetero_bfs.scheduling.trace import LevelFeatures
from hetero_bfs.scheduling.transitions import NUM_MIGRATION_COLUMNS


def migration_names(candidates: Sequence[Strategy]) -> list[str]:
    """Return names of the predicted migrations, in the order of `Policy.migrations`."""
    places = range(num_places(candidates))
    whats = ("start on", "switch to", "convert on")
    return [f"{what} {place_name(place)}" for what in whats for place in places]


class ModelSelector(Selector):
    """Chooses the candidate with the least predicted seconds, migration included.

    On the host, bottom-up must be clearly faster early in a search (CAUTION in policy.py).

    With `uses_cost_to_go`, once `on_graph` has given a graph's reference search, each candidate's
    cost includes the expected cost of the remaining levels. Otherwise the selector might choose a
    cheap first level on the host although the next level must leave it again.

    With an `objective` the policy `in_costs` counts costs under it instead of seconds. Traces still
    show predicted seconds, from the policy `in_seconds` and the same features.
    """

    def __init__(
        self,
        name: str,
        model: SpeedModel,
        candidates: Sequence[Strategy],
        predictors: Sequence[Linear],
        uses_cost_to_go: bool,
        corrects: bool = True,
        objective: Objective | None = None,
        high_diameter_predictors: Sequence[Linear] | None = None,
    ) -> None:
        self.model = model
        self._predictors = predictors, high_diameter_predictors or predictors
        self.corrects = corrects
        self.objective = objective
        self.factors = np.ones(len(candidates) + len(migration_names(candidates)))
        self.uses_cost_to_go = uses_cost_to_go
        self._graph: tuple[int, int, npt.NDArray[np.float64]] | None = None
        self.in_seconds, self.in_costs = self._policies(candidates, high_diameter=False)
        super().__init__(name, candidates, self._rule(candidates))

    def _policies(
        self, candidates: Sequence[Strategy], high_diameter: bool
    ) -> tuple[Policy, Policy]:
        """Return the policies that count seconds, and costs under the objective."""
        weights = np.array([linear.weights() for linear in self._predictors[high_diameter]])
        migrations = _migration_weights(self.model, num_places(candidates))
        caution = CAUTION if self.uses_cost_to_go else 1.0  # the paper's model is unchanged
        in_seconds = make_policy(
            MODEL, candidates, weights=weights, migrations=migrations, caution=caution
        )
        if self.objective is None:
            return in_seconds, in_seconds
        weights = weights * [[self.objective.per_second(s)] for s in candidates]
        migrations = migrations * [
            [self.objective.per_second_of_migration(kind)] for kind in DEVICE_KINDS
        ]
        costs = make_policy(
            MODEL, candidates, weights=weights, migrations=migrations, caution=caution
        )
        return in_seconds, costs

    def read_choice(self, features: LevelFeatures, record: npt.NDArray[np.float64]) -> Choice:
        """Return the choice in a level's record; predictions are in seconds."""
        choice = super().read_choice(features, record)
        if self.objective is None or not choice.predicted_seconds:
            return choice
        seconds = record.copy()
        seconds[schema.PREDICTED :] = np.nan
        self._predict(self.in_seconds, features, seconds)
        values = seconds[schema.PREDICTED :][: len(self.candidates)].tolist()
        named = {s.name: value for s, value in zip(self.candidates, values, strict=True)}
        return replace(choice, predicted_seconds=named)

    def on_graph(
        self,
        num_vertices: int,
        num_edges: int,
        reference: npt.NDArray[np.float64],
        high_diameter: bool,
    ) -> ModelSelector:
        """Return this selector for a graph, given a reference search of it (cost_to_go.py).

        On a `high_diameter` graph it predicts by `high_diameter_predictors` if it has any.
        """
        if not self.uses_cost_to_go or (self._graph is not None and self._graph[2] is reference):
            return self
        other = copy(self.uncorrected)
        assert isinstance(other, ModelSelector)
        other.in_seconds, other.in_costs = other._policies(other.candidates, high_diameter)
        other.uncorrected = other
        other._graph = (num_vertices, num_edges, reference)
        other.policy = other._rule(other.candidates)
        return other

    def _rule(self, candidates: Sequence[Strategy]) -> Policy:
        """Return the deciding policy: `in_costs`, with the graph's cost-to-go table if known."""
        from hetero_bfs.scheduling.cost_to_go import with_cost_to_go

        return (
            self.in_costs if self._graph is None else with_cost_to_go(self.in_costs, *self._graph)
        )

    def corrected(self, factors: npt.NDArray[np.float64]) -> ModelSelector:
        """Return a copy of this uncorrected selector with its predictions times `factors`."""
        other = copy(self)
        count = len(self.candidates)
        other.factors = factors

        def scaled(policy: Policy) -> Policy:
            return policy._replace(
                weights=policy.weights * factors[:count, None],
                migrations=policy.migrations * factors[count:].reshape(3, -1, 1),
            )

        other.in_costs, other.in_seconds = scaled(self.in_costs), scaled(self.in_seconds)
        other.policy = other._rule(self.candidates)
        return other

    def complete(self, features: LevelFeatures, record: npt.NDArray[np.float64]) -> None:
        """Predict as the device did: by the same policy, from the same state."""
        self._predict(self.policy, features, record)

    def _predict(
        self, policy: Policy, features: LevelFeatures, record: npt.NDArray[np.float64]
    ) -> None:
        from hetero_bfs.scheduling.policy import choose

        count = len(self.candidates)
        predicted = record[schema.PREDICTED : schema.PREDICTED + count]
        if np.isnan(predicted).any():
            total = record[schema.PREDICTED + count :]
            n, m = features.num_vertices, features.num_edges
            scratch = np.empty_like(policy.work)  # another thread may be using this policy
            choose(policy._replace(work=scratch), n, m, record, predicted, total)

    def _reason(self, features: LevelFeatures, record: npt.NDArray[np.float64]) -> str:
        """Name the next best candidate and its margin, the cost-to-go included."""
        total = record[schema.PREDICTED + len(self.candidates) :]
        best = int(record[schema.STRATEGY])
        second = next((int(i) for i in np.argsort(total) if i != best), best)
        if second == best:
            return "only candidate"
        margin, name = total[second] - total[best], self.candidates[second].name
        if self.objective is not None:
            reason = f"{self.objective.margin(margin)} before {name}"
        else:
            reason = f"{1e6 * margin:.0f} us before {name}"
        if self.factors[best] != 1.0:
            reason += f", corrected x{self.factors[best]:.2g}"
        if self.factors[second] != 1.0:
            reason += f", {name} x{self.factors[second]:.2g}"
        return reason


class ThresholdSelector(ModelSelector):
    """Beamer's rule; a model finds the best thresholds and the best device for a graph.

    Before `on_graph` the thresholds are Beamer's own, on the first device that has candidates.
    """

    _made: tuple[tuple[Any, ...], Policy] | None = None  # the last rule and its policy

    def _rule(self, candidates: Sequence[Strategy]) -> Policy:
        from hetero_bfs.scheduling.thresholds import Rule, find_rule

        pairs = _pairs(candidates)
        if self._graph is None:
            rule = Rule(*pairs[0], float(ALPHA), float(BETA))
        else:
            num_vertices, _, reference = self._graph
            rule = find_rule(self.in_costs, num_vertices, reference, pairs)
        if self._made is not None and self._made[0] == rule:
            return self._made[1]  # the same object, of which the device already has a copy
        schedule = [rule.top_down, rule.bottom_up]
        policy = make_policy(
            DIRECTION, candidates, schedule=schedule, alpha=rule.alpha, beta=rule.beta
        )
        self._made = rule, policy
        return policy

    @property
    def rule(self) -> str:
        down, up = (self.candidates[i].name for i in self.policy.schedule)
        back = "never back" if self.policy.beta > NEVER_BACK else f"beta {self.policy.beta:g}"
        if self.policy.alpha == 0:
            return f"{down} alone"
        return f"{down} and {up}, alpha {self.policy.alpha:.3g}, {back}"

    def complete(self, features: LevelFeatures, record: npt.NDArray[np.float64]) -> None:
        """Fill in the model's predictions, which the search did not need."""
        self._predict(self.in_seconds, features, record)

    def _reason(self, features: LevelFeatures, record: npt.NDArray[np.float64]) -> str:
        bottom_up = not self.policy.top_down[int(record[schema.STRATEGY])]
        return direction_reason(features, bottom_up, self.policy) + " (by the model)"


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


def model_selector(
    kind: str,
    model: SpeedModel,
    candidates: Sequence[Strategy],
    corrects: bool = True,
    objective: Objective | None = None,
) -> ModelSelector:
    """Make a selector that chooses by a model: "learned", "thresholds" or "average".

    Raises `ModelError` if the model lacks a strategy, or a migration between them.
    """
    missing = model.lacking(candidates)
    if missing:
        raise ModelError(
            f"the speed model {model.name} lacks {', '.join(missing)}; "
            f"train again with `{TRAIN_COMMAND}`"
        )
    if kind == "average":
        predictors = [model.average(s) for s in candidates]
        return ModelSelector(kind, model, candidates, predictors, False, corrects, objective)
    if kind == "thresholds" and not _pairs(candidates):
        raise ModelError(
            "selector thresholds needs a top-down and a bottom-up strategy on one device; "
            f"there are {', '.join(s.name for s in candidates)}"
        )
    low_diameter, high_diameter = (
        [model.predictor(s.name, high_diameter) for s in candidates]
        for high_diameter in (False, True)
    )
    make = ThresholdSelector if kind == "thresholds" else ModelSelector
    return make(kind, model, candidates, low_diameter, True, corrects, objective, high_diameter)


def _migration_weights(model: SpeedModel, places: int) -> npt.NDArray[np.float64]:
    weights = np.zeros((3, places, NUM_MIGRATION_COLUMNS))
    for what, table in enumerate((model.start, model.switch, model.convert)):
        for place in range(places):
            if (linear := table.get(place_name(place))) is not None:
                weights[what, place] = linear.weights()[:NUM_MIGRATION_COLUMNS]
    return weights
