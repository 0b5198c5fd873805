"""Selectors: which strategy computes the next level, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from hetero_bfs.devices.opencl import DeviceInfo
from hetero_bfs.errors import ModelError
from hetero_bfs.machine import cpu_slug, device_slug, machine_slug
from hetero_bfs.speed_model import (
    ALL_COLUMNS,
    TRAIN_COMMAND,
    Linear,
    SpeedModel,
    default_model,
    find_model,
)
from hetero_bfs.strategy import STRATEGIES, DeviceKind, Direction, Strategy
from hetero_bfs.trace import LevelFeatures

SELECTORS = ("auto", "learned", "average", "alpha-beta", "daga", "fixed:NAME[,NAME...]")
_KINDS: tuple[DeviceKind, ...] = ("cpu", "device")
ALPHA = 15
BETA = 18


@dataclass(frozen=True)
class Choice:
    """A chosen strategy, what each candidate was expected to take (seconds), and the reason."""

    strategy: Strategy
    predicted_seconds: Mapping[str, float] = field(default_factory=dict)
    reason: str = ""


class Selector(Protocol):
    """Chooses the strategy of one level among those it was made for."""

    name: str

    def reset(self) -> None:
        """Forget the last search."""
        ...

    def choose(self, features: LevelFeatures) -> Choice:
        """Return the strategy for the level that these features describe."""
        ...


class FixedSelector:
    """Given strategies, one per level in turn; the last one serves all further levels."""

    def __init__(self, *strategies: Strategy) -> None:
        self.name = f"fixed:{','.join(s.name for s in strategies)}"
        self._strategies = strategies

    def reset(self) -> None:
        """Nothing is remembered."""

    def choose(self, features: LevelFeatures) -> Choice:
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

    def choose(self, features: LevelFeatures) -> Choice:
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

    The prediction is compiled (kernels/policy.py). With `looks_ahead` each candidate also bears
    what the rest of the search is expected to cost from its device; else a cheap first level on
    the host is chosen although the next one must leave it again.
    """

    def __init__(
        self,
        name: str,
        model: SpeedModel,
        candidates: Sequence[Strategy],
        predictors: Sequence[Linear],
        looks_ahead: bool,
    ) -> None:
        self.name = name
        self.model = model
        self._candidates = list(candidates)
        self._looks_ahead = looks_ahead
        self._weights = np.array([p.weights() for p in predictors])
        self._moves = _move_weights(model)
        self._kinds = np.array([_KINDS.index(s.device_kind) for s in candidates])
        self._top_down = np.array([s.direction == "top-down" for s in candidates])
        self._predicted = np.empty(len(self._candidates))
        self._total = np.empty(len(self._candidates))

    def reset(self) -> None:
        """Nothing is remembered."""

    def choose(self, features: LevelFeatures) -> Choice:
        """Predict every candidate and take the cheapest."""
        from hetero_bfs.kernels.policy import choose

        kind = -1 if features.device_kind is None else _KINDS.index(features.device_kind)
        best = choose(
            self._weights,
            self._moves,
            self._kinds,
            self._top_down,
            self._looks_ahead,
            features.num_vertices,
            features.num_edges,
            (features.frontier_vertices, features.frontier_edges),
            (features.unvisited_vertices, features.unvisited_edges),
            features.growth,
            kind,
            features.form == "bitmap",
            self._predicted,
            self._total,
        )
        predicted = dict(zip(self._names(), self._predicted.tolist(), strict=True))
        return Choice(self._candidates[best], predicted, self._reason(best))

    def _names(self) -> list[str]:
        return [s.name for s in self._candidates]

    def _reason(self, best: int) -> str:
        """Say which candidate came next and by how much, the look ahead included."""
        ranked = np.argsort(self._total)
        second = next((int(i) for i in ranked if i != best), best)
        if second == best:
            return "only candidate"
        margin = 1e6 * (self._total[second] - self._total[best])
        return f"{margin:.0f} us before {self._candidates[second].name}"


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
        return _alpha_beta(device, candidates), []
    if wanted == "daga":
        if device is None:
            raise ModelError("--selector daga runs bottom-up on an OpenCL device; there is none")
        return DirectionSelector("daga", _pair(candidates, "cpu", "device")), []
    if wanted in ("auto", "learned", "average"):
        return _model_selector(wanted, device, candidates)
    raise ModelError(f"unknown selector {wanted!r}; choose one of {', '.join(SELECTORS)}")


def _alpha_beta(device: DeviceInfo | None, candidates: Sequence[Strategy]) -> Selector:
    kind: DeviceKind = "cpu" if device is None else "device"
    return DirectionSelector("alpha-beta", _pair(candidates, kind, kind))


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
    wanted: str, device: DeviceInfo | None, candidates: Sequence[Strategy]
) -> tuple[Selector, list[str]]:
    notes = []
    model = find_model(cpu_slug(), device_slug(device))
    kind = "average" if wanted == "average" else "learned"
    if model is None:
        model = default_model(None if device is None else device.type)
        kind = "average"
        if model is None:
            notes.append(f"no speed model is installed; train one with `{TRAIN_COMMAND} --quick`")
            return _alpha_beta(device, candidates), notes
        notes.append(
            f"no speed model for this machine ({machine_slug(device)}); using average speeds "
            f"measured on {model.name}; train one with `{TRAIN_COMMAND} --quick` "
            "(about two minutes)"
        )
    known = model.learned.keys() & model.edges_per_second.keys()
    missing = [s.name for s in candidates if s.name not in known]
    if missing:
        raise ModelError(
            f"the speed model {model.name} lacks {', '.join(missing)}; "
            f"train again with `{TRAIN_COMMAND}`"
        )
    if kind == "average":
        predictors = [model.average(s) for s in candidates]
    else:
        predictors = [model.learned[s.name] for s in candidates]
    return ModelSelector(kind, model, candidates, predictors, kind == "learned"), notes


def _move_weights(model: SpeedModel) -> npt.NDArray[np.float64]:
    """Return starting, switching and converting as kernels/policy.py has them."""
    weights = np.zeros((3, len(_KINDS), len(ALL_COLUMNS)))
    for what, table in enumerate((model.start, model.switch, model.convert)):
        for kind, linear in table.items():
            weights[what, _KINDS.index(kind)] = linear.weights()
    return weights
