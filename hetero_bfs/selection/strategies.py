"""The strategies: every way in which one level can be computed (Zhang et al. 2018, section 3).

And what choosing among them may aim at.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

from hetero_bfs.errors import ModelError
from hetero_bfs.support.wording import setting

Direction = Literal["top-down", "bottom-up"]
DeviceKind = Literal["cpu", "device"]
"""Where a strategy runs: the host's cores (Numba), or the OpenCL device."""

Form = Literal["queue", "bitmap", "wide", "listed"]
"""How the frontier is stored: top-down reads a queue, bottom-up leaves a bitmap; "wide" is a bitmap
that top-down on the host left, having found very many vertices; "listed" is a queue that bottom-up
on the host left, having looked through a list of the few unvisited vertices."""

Aim = Literal["time", "energy", "edp"]
"""What a selector makes least: seconds, joules, or the energy-delay product (objective.py)."""

AIMS: tuple[Aim, ...] = get_args(Aim)
MODEL_SELECTORS = ("learned", "thresholds", "average")
"""Selectors that ask a speed model."""

NAMED_SELECTORS = ("auto", *MODEL_SELECTORS, "alpha-beta", "daga")
"""Selectors but schedules of given strategies ("fixed:TC,BC")."""

AIM_SELECTORS = ("auto", *MODEL_SELECTORS)
"""Selectors that know aims other than time: those that compare what candidates cost."""

DEVICE_KINDS: tuple[DeviceKind, ...] = ("cpu", "device")
FORMS: tuple[Form, ...] = ("queue", "bitmap", "wide", "listed")
"""Kinds and forms in the order of their numbers in schema.py."""


def check_aim(selector: str, aim: Aim) -> None:
    """Raise `ModelError` for a selector that knows no aim, given one other than time."""
    if aim != "time" and selector not in AIM_SELECTORS:
        raise ModelError(
            f"{setting('optimize', aim)} goes with {setting('selector')} "
            f"{', '.join(AIM_SELECTORS)}; {selector} knows no aim"
        )


@dataclass(frozen=True)
class Strategy:
    """One row of the table: the direction, where it runs, and which variant of the kernel.

    `columns` are those of a level by which a speed model predicts it (schema.py).
    """

    name: str
    direction: Direction
    device_kind: DeviceKind
    variant: Literal["plain", "cached"]
    columns: tuple[str, ...]
    description: str
    device: int = 1
    """Which device it runs on, of several beside the host; see `on`."""

    @property
    def place(self) -> int:
        """Number of what runs it, as the state's KIND has it: the host is 0, devices follow."""
        return 0 if self.device_kind == "cpu" else self.device

    def on(self, device: int) -> Strategy:
        """Return this strategy for another device: of the second one TG is called TG@2."""
        name = self.name.partition("@")[0]
        return replace(self, name=name if device == 1 else f"{name}@{device}", device=device)


_TOP_DOWN = ("constant", "frontier_vertices", "frontier_edges")
_HOST_TOP_DOWN = (*_TOP_DOWN, "expected_claims", "wide_vertices", "shared_level")
_DEVICE_TOP_DOWN = (*_TOP_DOWN, "expected_found")
_BOTTOM_UP = (
    "constant",
    "num_vertices",
    "unvisited_vertices",
    "expected_examined",
    "expected_found",
    "expected_length",
)


STRATEGIES: dict[str, Strategy] = {
    strategy.name: strategy
    for strategy in (
        Strategy(
            name="TC",
            direction="top-down",
            device_kind="cpu",
            variant="plain",
            columns=_HOST_TOP_DOWN,
            description="top-down on the CPU, queue frontier",
        ),
        Strategy(
            name="TG",
            direction="top-down",
            device_kind="device",
            variant="plain",
            columns=_DEVICE_TOP_DOWN,
            description="top-down on the OpenCL device, queue",
        ),
        Strategy(
            name="BC",
            direction="bottom-up",
            device_kind="cpu",
            variant="plain",
            columns=_BOTTOM_UP,
            description="bottom-up on the CPU, bitmap or list",
        ),
        Strategy(
            name="BG",
            direction="bottom-up",
            device_kind="device",
            variant="plain",
            columns=_BOTTOM_UP,
            description="bottom-up on the OpenCL device, bitmap",
        ),
        Strategy(
            name="BGC",
            direction="bottom-up",
            device_kind="device",
            variant="cached",
            columns=_BOTTOM_UP,
            description="BG with the hubs' bits in local memory",
        ),
    )
}


def schedule_names(selector: str) -> list[str]:
    """Return the strategies that a selector "fixed:TC,BG" names, one for each level.

    Raises
    ------
    ValueError
        It names one that there is none of, or none at all; the message lists all.
    """
    names = selector.removeprefix("fixed:").upper().split(",")
    unknown = next((name for name in names if name not in STRATEGIES), None)
    if unknown is not None:
        raise ValueError(
            f"{selector!r} names strategy {unknown!r}; those there are: {', '.join(STRATEGIES)}, "
            "such as fixed:TC or, one for each level, fixed:TC,BC"
        )
    return names


def available(has_device: bool) -> list[Strategy]:
    """List the strategies that can run with or without an OpenCL device."""
    return [s for s in STRATEGIES.values() if has_device or s.device_kind == "cpu"]
