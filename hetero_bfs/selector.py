"""Selectors: which strategy computes the next level, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from hetero_bfs.devices.opencl import DeviceInfo
from hetero_bfs.errors import ModelError
from hetero_bfs.machine import machine_slug
from hetero_bfs.speed_model import TRAIN_COMMAND, SpeedModel, default_model, find_model
from hetero_bfs.strategy import STRATEGIES, DeviceKind, Direction, Strategy
from hetero_bfs.trace import LevelFeatures

SELECTORS = ("auto", "learned", "average", "alpha-beta", "daga", "fixed:NAME[,NAME...]")
ALPHA = 15
BETA = 18


@dataclass(frozen=True)
class Choice:
    """A chosen strategy, what each candidate was expected to take (seconds), and the reason."""

    strategy: Strategy
    predicted_seconds: Mapping[str, float] = field(default_factory=dict)
    reason: str = ""


class Selector(Protocol):
    """Chooses the strategy of one level among the candidates that can run."""

    name: str

    def reset(self) -> None:
        """Forget the last search."""
        ...

    def choose(self, features: LevelFeatures, candidates: Sequence[Strategy]) -> Choice:
        """Return the strategy for the level that these features describe."""
        ...


class FixedSelector:
    """Given strategies, one per level in turn; the last one serves all further levels."""

    def __init__(self, *strategies: Strategy) -> None:
        self.name = f"fixed:{','.join(s.name for s in strategies)}"
        self._strategies = strategies

    def reset(self) -> None:
        """Nothing is remembered."""

    def choose(self, features: LevelFeatures, candidates: Sequence[Strategy]) -> Choice:
        """Return the strategy of this level's number."""
        return Choice(
            self._strategies[min(features.level, len(self._strategies) - 1)], reason="fixed"
        )


class DirectionSelector:
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
        self.name = name
        self._strategies = strategies
        self._alpha, self._beta = alpha, beta
        self._direction: Direction = "top-down"

    def reset(self) -> None:
        """Start top-down again."""
        self._direction = "top-down"

    def choose(self, features: LevelFeatures, candidates: Sequence[Strategy]) -> Choice:
        """Apply the rule to the level."""
        if self._direction == "top-down":
            if features.frontier_edges * self._alpha > features.unvisited_edges:
                self._direction = "bottom-up"
                reason = f"frontier edges > unvisited / {self._alpha:g}"
            else:
                reason = f"frontier edges <= unvisited / {self._alpha:g}"
        elif features.frontier_vertices * self._beta < features.num_vertices:
            self._direction = "top-down"
            reason = f"frontier < vertices / {self._beta:g}"
        else:
            reason = f"frontier >= vertices / {self._beta:g}"
        return Choice(self._strategies[self._direction], reason=reason)


class ModelSelector:
    """The candidate with the least predicted seconds, moving the frontier included.

    With `looks_ahead` each candidate also bears what the rest of the search would cost from its
    device, as if one more level settled everything that is left, there or after one more move.
    Else a cheap first level on the host is chosen although the next level leaves it again.
    """

    def __init__(
        self,
        name: str,
        model: SpeedModel,
        seconds: Callable[[LevelFeatures, Strategy], float],
        looks_ahead: bool,
    ) -> None:
        self.name = name
        self.model = model
        self._seconds = seconds
        self._looks_ahead = looks_ahead

    def reset(self) -> None:
        """Nothing is remembered."""

    def choose(self, features: LevelFeatures, candidates: Sequence[Strategy]) -> Choice:
        """Predict every candidate and take the cheapest."""
        predicted = {
            s.name: self._seconds(features, s) + self.model.move_seconds(features, s)
            for s in candidates
        }
        total = dict(predicted)
        if self._looks_ahead:
            rest = self._rest_seconds(features, candidates)
            total = {s.name: predicted[s.name] + rest[s.device_kind] for s in candidates}
        ranked = sorted(total, key=total.__getitem__)
        best = ranked[0]
        reason = "only candidate"
        if len(ranked) > 1:
            margin = 1e6 * (total[ranked[1]] - total[best])
            reason = f"{margin:.0f} us before {ranked[1]}"
        return Choice(STRATEGIES[best], predicted, reason)

    def _rest_seconds(
        self, features: LevelFeatures, candidates: Sequence[Strategy]
    ) -> dict[DeviceKind, float]:
        """Predict the rest of the search after this level, for either place it may stand at."""
        found = int(features.expected_found)
        left = features.unvisited_vertices - found
        kinds = {s.device_kind for s in candidates}
        if left <= 0:
            return dict.fromkeys(kinds, 0.0)
        edges = int(features.unvisited_edges * left / features.unvisited_vertices)
        after = replace(
            features,
            level=features.level + 1,
            frontier_vertices=max(found, 1),
            frontier_edges=max(features.unvisited_edges - edges, 1),
            unvisited_vertices=left,
            unvisited_edges=edges,
            form="queue",
        )
        rest: dict[DeviceKind, float] = {}
        for kind in kinds:
            here = replace(after, device_kind=kind)
            rest[kind] = min(
                self._seconds(here, s) + self.model.move_seconds(here, s) for s in candidates
            )
        return rest


def make_selector(
    wanted: str, device: DeviceInfo | None, candidates: Sequence[Strategy]
) -> tuple[Selector, list[str]]:
    """Make a selector by name; also return notes for the user, one line each.

    Raises
    ------
    ModelError
        An unknown selector, or a strategy that needs a device there is none of.
    """
    names = [s.name for s in candidates]
    if wanted.startswith("fixed:"):
        chosen = wanted.removeprefix("fixed:").upper().split(",")
        if not set(chosen) <= set(names):
            raise ModelError(f"--selector {wanted}: strategies that can run are {', '.join(names)}")
        return FixedSelector(*(STRATEGIES[name] for name in chosen)), []
    if wanted == "alpha-beta":
        kind: DeviceKind = "cpu" if device is None else "device"
        return DirectionSelector("alpha-beta", _pair(candidates, kind, kind)), []
    if wanted == "daga":
        if device is None:
            raise ModelError("--selector daga runs bottom-up on an OpenCL device; there is none")
        return DirectionSelector("daga", _pair(candidates, "cpu", "device")), []
    if wanted in ("auto", "learned", "average"):
        return _model_selector(wanted, device, names)
    raise ModelError(f"unknown selector {wanted!r}; choose one of {', '.join(SELECTORS)}")


def _pair(
    candidates: Sequence[Strategy], top_down: DeviceKind, bottom_up: DeviceKind
) -> dict[Direction, Strategy]:
    wanted = {("top-down", top_down), ("bottom-up", bottom_up)}
    return {
        s.direction: s
        for s in candidates
        if (s.direction, s.device_kind) in wanted and s.variant == "plain"
    }


def _model_selector(
    wanted: str, device: DeviceInfo | None, names: Sequence[str]
) -> tuple[Selector, list[str]]:
    machine = machine_slug(device)
    notes = []
    model = find_model(machine)
    kind = "average" if wanted == "average" else "learned"
    if model is None:
        model = default_model(None if device is None else device.type)
        kind = "average"
        notes.append(
            f"no speed model for this machine ({machine}); using average speeds measured on "
            f"{model.name}; train one with `{TRAIN_COMMAND} --quick` (about two minutes)"
        )
    missing = [name for name in names if name not in model.learned]
    if missing:
        raise ModelError(
            f"the speed model {model.name} lacks {', '.join(missing)}; "
            f"train again with `{TRAIN_COMMAND}`"
        )
    if kind == "average":
        return ModelSelector(kind, model, model.average_seconds, looks_ahead=False), notes
    return ModelSelector(kind, model, model.learned_seconds, looks_ahead=True), notes
