"""Selectors: which strategy computes the next level, and why.

What their names mean on this machine is in named_selector.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from hetero_bfs.devices.opencl import DeviceInfo
from hetero_bfs.errors import ModelError
from hetero_bfs.kernels import level as layout
from hetero_bfs.kernels.policy import DIRECTION, MODEL, Policy, fixed_policy, make_policy
from hetero_bfs.power import Objective
from hetero_bfs.speed_model import ALL_COLUMNS, TRAIN_COMMAND, Linear, SpeedModel
from hetero_bfs.strategy import DEVICE_KINDS, DeviceKind, Direction, Strategy
from hetero_bfs.trace import LevelFeatures

ALPHA = 15
BETA = 18
_STREAMING_BETA = 256

MOVES = tuple(
    f"{what} {k}" for what in ("start on", "switch to", "convert on") for k in DEVICE_KINDS
)
"""What a search is predicted to do besides its levels, in the order of `Policy.moves`."""


@dataclass(frozen=True)
class Choice:
    """A chosen strategy, what each candidate was expected to take (seconds), and the reason."""

    strategy: Strategy
    predicted_seconds: Mapping[str, float] = field(default_factory=dict)
    reason: str = ""


class Selector:
    """Chooses the strategy of each level among its candidates.

    Parameters
    ----------
    name : str
    candidates : sequence of Strategy
    policy : Policy
        The rule as data (kernels/policy.py), evaluated by compiled code on host and device.
    """

    objective: Objective | None = None
    """What it was made for (power.py), if not for the least time."""

    def __init__(self, name: str, candidates: Sequence[Strategy], policy: Policy) -> None:
        self.name = name
        self.candidates = tuple(candidates)
        self.policy = policy
        self.uncorrected: Selector = self
        """The selector that this one is a correction of: itself, if it is none."""

    def choose(self, features: LevelFeatures) -> Choice:
        """Return the strategy for the level that these features describe."""
        from hetero_bfs.kernels.policy import choose

        count = len(self.candidates)
        record = np.full(layout.record_width(count), np.nan)
        features.write_state(record)
        record[layout.STRATEGY] = choose(
            self.policy,
            features.num_vertices,
            features.num_edges,
            record,
            record[layout.PREDICTED : layout.PREDICTED + count],
            record[layout.PREDICTED + count :],
        )
        return self.read_choice(features, record)

    def read_choice(self, features: LevelFeatures, record: npt.NDArray[np.float64]) -> Choice:
        """Return what a level's record (kernels/level.py) says of its choice."""
        strategy = self.candidates[int(record[layout.STRATEGY])]
        predicted = record[layout.PREDICTED :][: len(self.candidates)]
        if np.isnan(predicted).any():
            return Choice(strategy, {}, self._reason(features, record))
        named = dict(zip((s.name for s in self.candidates), predicted.tolist(), strict=True))
        return Choice(strategy, named, self._reason(features, record))

    def complete(self, features: LevelFeatures, record: npt.NDArray[np.float64]) -> None:
        """Fill in what was predicted where the device chose, which keeps only its choice."""

    def _reason(self, features: LevelFeatures, record: npt.NDArray[np.float64]) -> str:
        """Say in a few words why this strategy."""
        raise NotImplementedError


class FixedSelector(Selector):
    """Given strategies, one per level in turn; the last one serves all further levels."""

    def __init__(self, *strategies: Strategy) -> None:
        name = f"fixed:{','.join(s.name for s in strategies)}"
        candidates = list(dict.fromkeys(strategies))
        schedule = [candidates.index(s) for s in strategies]
        super().__init__(name, candidates, fixed_policy(schedule, candidates))

    def _reason(self, features: LevelFeatures, record: npt.NDArray[np.float64]) -> str:
        return "fixed"


class DirectionSelector(Selector):
    """Beamer's rule (2012) for the direction; each direction always runs on the same device.

    Bottom-up once the frontier's edges exceed 1 / alpha of the unvisited ones, top-down again
    once the frontier has fewer than 1 / beta of the vertices.
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
        bottom_up = record[layout.STRATEGY] == 1
        if features.form == "queue":
            return f"frontier edges {'>' if bottom_up else '<='} unvisited / {self.policy.alpha:g}"
        return f"frontier {'>=' if bottom_up else '<'} vertices / {self.policy.beta:g}"


class ModelSelector(Selector):
    """The candidate with the least predicted seconds, moving the frontier included.

    With `looks_ahead` each candidate also bears what the rest of the search is expected to cost
    after it, once it is told a graph's profile (`on_graph`); else a cheap first level on the host
    is chosen although the next one must leave it again.

    With an `objective` the policy's numbers are costs under it instead of seconds. What is shown
    as predicted remains seconds, from the same features by `in_seconds`, the policy without it.
    """

    def __init__(
        self,
        name: str,
        model: SpeedModel,
        candidates: Sequence[Strategy],
        predictors: Sequence[Linear],
        looks_ahead: bool,
        corrects: bool = True,
        objective: Objective | None = None,
        deep_predictors: Sequence[Linear] | None = None,
    ) -> None:
        self.model = model
        self._predictors = predictors, deep_predictors or predictors
        self.corrects = corrects
        self.objective = objective
        self.factors = np.ones(len(candidates) + len(MOVES))
        self.looks_ahead = looks_ahead
        self._graph: tuple[int, int, npt.NDArray[np.float64]] | None = None
        self.in_seconds, policy = self._policies(candidates, deep=False)
        super().__init__(name, candidates, policy)

    def _policies(self, candidates: Sequence[Strategy], deep: bool) -> tuple[Policy, Policy]:
        """Return the policy that counts seconds, and the one that counts the objective."""
        weights = np.array([linear.weights() for linear in self._predictors[deep]])
        moves = _move_weights(self.model)
        in_seconds = make_policy(MODEL, candidates, weights=weights, moves=moves)
        if self.objective is None:
            return in_seconds, in_seconds
        weights = weights * [[self.objective.per_second(s)] for s in candidates]
        moves = moves * [[self.objective.per_second_of_moving(kind)] for kind in DEVICE_KINDS]
        return in_seconds, make_policy(MODEL, candidates, weights=weights, moves=moves)

    def read_choice(self, features: LevelFeatures, record: npt.NDArray[np.float64]) -> Choice:
        """Return what a level's record says of its choice; predictions are seconds."""
        choice = super().read_choice(features, record)
        if self.objective is None or not choice.predicted_seconds:
            return choice
        seconds = record.copy()
        seconds[layout.PREDICTED :] = np.nan
        self._predict(self.in_seconds, features, seconds)
        values = seconds[layout.PREDICTED :][: len(self.candidates)].tolist()
        named = {s.name: value for s, value in zip(self.candidates, values, strict=True)}
        return replace(choice, predicted_seconds=named)

    def on_graph(
        self, num_vertices: int, num_edges: int, profile: npt.NDArray[np.float64], deep: bool
    ) -> ModelSelector:
        """Return this selector for a graph, a usual search of which is told (look_ahead.py).

        On a `deep` graph it predicts by `deep_predictors`, if it was given any.
        """
        if not self.looks_ahead or (self._graph is not None and self._graph[2] is profile):
            return self
        other = copy(self.uncorrected)
        assert isinstance(other, ModelSelector)
        other.in_seconds, other.policy = other._policies(other.candidates, deep)
        other.uncorrected = other
        other._graph = (num_vertices, num_edges, profile)
        other._look_ahead()
        return other

    def _look_ahead(self) -> None:
        from hetero_bfs.kernels.look_ahead import look_ahead

        if self._graph is not None:
            self.policy = look_ahead(self.policy, *self._graph)

    def corrected(self, factors: npt.NDArray[np.float64]) -> ModelSelector:
        """Return this selector, itself uncorrected, with all predicted seconds times factors."""
        other = copy(self)
        count = len(self.candidates)
        other.factors = factors

        def scaled(policy: Policy) -> Policy:
            return policy._replace(
                weights=policy.weights * factors[:count, None],
                moves=policy.moves * factors[count:].reshape(3, 2, 1),
            )

        other.policy, other.in_seconds = scaled(self.policy), scaled(self.in_seconds)
        other._look_ahead()
        return other

    def complete(self, features: LevelFeatures, record: npt.NDArray[np.float64]) -> None:
        """Predict as the device did: by the same policy, from the same state."""
        self._predict(self.policy, features, record)

    def _predict(
        self, policy: Policy, features: LevelFeatures, record: npt.NDArray[np.float64]
    ) -> None:
        """Fill in the predictions that a record lacks."""
        from hetero_bfs.kernels.policy import choose

        count = len(self.candidates)
        predicted = record[layout.PREDICTED : layout.PREDICTED + count]
        if np.isnan(predicted).any():
            total = record[layout.PREDICTED + count :]
            n, m = features.num_vertices, features.num_edges
            choose(policy, n, m, record, predicted, total)

    def _reason(self, features: LevelFeatures, record: npt.NDArray[np.float64]) -> str:
        """Say which candidate came next and by how much, the look ahead included."""
        total = record[layout.PREDICTED + len(self.candidates) :]
        best = int(record[layout.STRATEGY])
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


def alpha_beta(
    device: DeviceInfo | None,
    candidates: Sequence[Strategy],
    alpha: float = ALPHA,
    beta: float = BETA,
    where: DeviceKind | None = None,
) -> Selector:
    """Make the selector of Beamer's rule; by default on the device if there is one."""
    usual: DeviceKind = "cpu" if device is None else "device"
    kind = where or usual
    name = "alpha-beta"
    if (alpha, beta, kind) != (ALPHA, BETA, usual):
        name = f"alpha-beta({alpha:g},{beta:g},{kind})"
    return DirectionSelector(name, by_direction(candidates, kind, kind), alpha, beta)


def streaming_rule(device: DeviceInfo | None, candidates: Sequence[Strategy]) -> Selector:
    """Make what "auto" is where edges stream through the device: Beamer's rule.

    Models are of levels whose edges lie on the device. The late return to top-down spares pages.
    """
    return alpha_beta(device, candidates, ALPHA, _STREAMING_BETA)


def by_direction(
    candidates: Sequence[Strategy], top_down: DeviceKind, bottom_up: DeviceKind
) -> dict[Direction, Strategy]:
    """Return the plain strategies for top-down and bottom-up that run on these devices."""
    wanted = {("top-down", top_down), ("bottom-up", bottom_up)}
    return {
        s.direction: s
        for s in candidates
        if (s.direction, s.device_kind) in wanted and s.variant == "plain"
    }


def model_selector(
    kind: str,
    model: SpeedModel,
    candidates: Sequence[Strategy],
    corrects: bool = True,
    objective: Objective | None = None,
) -> ModelSelector:
    """Make the selector that chooses by a model's "learned" or "average" predictions.

    Raises
    ------
    ModelError
        The model lacks a strategy, or a move between them.
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
    shallow, deep = ([model.predictor(s.name, deep) for s in candidates] for deep in (False, True))
    return ModelSelector(kind, model, candidates, shallow, True, corrects, objective, deep)


def _move_weights(model: SpeedModel) -> npt.NDArray[np.float64]:
    """Return starting, switching and converting as kernels/policy.py has them."""
    weights = np.zeros((3, len(DEVICE_KINDS), len(ALL_COLUMNS)))
    for what, table in enumerate((model.start, model.switch, model.convert)):
        for kind, linear in table.items():
            weights[what, DEVICE_KINDS.index(kind)] = linear.weights()
    return weights
