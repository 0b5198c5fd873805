"""The table of strategies, the methods to compute one level (Zhang et al. 2018, section 3).

This file also names the selectors.

A strategy is one row of `STRATEGIES` and one kernel; no other module knows any by name. A row on
the host names its kernel, which the level loop calls by address once a level:

    kernel(control, arrays, state, records) -> (representation, found, edges, scanned), all int64

`control` has the thread pool's words, `arrays` the graph and the search (kernels/phases.py).
schema.py describes `state` and `records`. The kernel reads a top-down frontier from the queue,
which `phases.join` makes contiguous, and all visited vertices from the bitmap. It writes the new
frontier to the other queue or the other bitmap, and the parents. It returns the new frontier's
representation (QUEUE, BITMAP or DENSE_PUSH_BITMAP), the vertices found, their edges, and the
edges scanned (-1 if not counted). A row on the device has the number of a variant of the kernels
of bottom_up.cl.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Direction = Literal["top-down", "bottom-up"]
DIRECTIONS: tuple[Direction, Direction] = ("top-down", "bottom-up")
DeviceKind = Literal["cpu", "device"]
"""Where a strategy runs: the host's cores (Numba), or the OpenCL device."""

Representation = Literal["queue", "bitmap", "wide", "listed"]
"""Representation of the frontier. Top-down reads a queue, bottom-up leaves a bitmap. "wide" is a
bitmap that a dense push left. "listed" is a queue that bottom-up on the host left after it scanned
the list of the few unvisited vertices. Reports have these names."""

MODEL_SELECTORS = ("learned", "thresholds", "zhang")
"""Selectors that use a speed model."""

NAMED_SELECTORS = ("auto", *MODEL_SELECTORS, "alpha-beta", "daga", "yasui")
"""All selectors except schedules of given strategies ("fixed:TC,BC")."""

SELECTORS_ORDERS = {"daga": "given", "yasui": "degree"}
"""Orders of the vertices that belong to a selector, where the user names none."""

MOST_DEVICES = 2
"""Most OpenCL devices of an engine. With three there would be more strategies than
`policy.MOST_CANDIDATES`."""

DEVICE_KINDS: tuple[DeviceKind, ...] = ("cpu", "device")
REPRESENTATIONS: tuple[Representation, ...] = ("queue", "bitmap", "wide", "listed")
"""Both are in the order of their numbers in schema.py."""


@dataclass(frozen=True)
class Strategy:
    """One row of the table; `plain` returns the first row of a direction and device.

    `columns` of a level are those by which a speed model predicts it (schema.py). `color` and
    `marker` are Matplotlib's. On the host `kernel` names the compiled level, see the head of this
    file, and `dense_pushes` says whether a dense-push level (`schema.is_dense_push`) leaves a
    bitmap. On the device `variant` is 0, or 1 for the hubs' bits in local memory, and `device` is
    its number, from 1 (`on`).
    """

    name: str
    direction: Direction
    device_kind: DeviceKind
    columns: tuple[str, ...]
    description: str
    color: str
    marker: str
    kernel: str = ""
    variant: int = 0
    dense_pushes: bool = False
    device: int = 1

    @property
    def place(self) -> int:
        """Value of the state's PLACE where it runs: the host is 0, devices follow."""
        return 0 if self.device_kind == "cpu" else self.device

    @property
    def row(self) -> str:
        """Its name in the table, without a device's number."""
        return self.name.partition("@")[0]

    def on(self, device: int) -> Strategy:
        """Return this strategy for another device; TG on the second device is called TG@2."""
        name = self.row if device == 1 else f"{self.row}@{device}"
        return replace(self, name=name, device=device)


_TOP_DOWN = ("constant", "frontier_vertices", "frontier_edges", "unsteadiness")
_HOST_TOP_DOWN = (*_TOP_DOWN, "expected_claims", "wide_vertices", "scattered_finds")
_DEVICE_TOP_DOWN = (*_TOP_DOWN, "expected_found")
_KERNELS = "hetero_bfs.algorithms.bfs.kernels.phases"
_HOST_BOTTOM_UP = (
    *("constant", "unvisited_vertices", "expected_examined"),
    *("unvisited_words", "opened_lists"),
)
_DEVICE_BOTTOM_UP = (
    *("constant", "num_vertices", "unvisited_vertices", "expected_examined"),
    *("expected_found", "expected_length"),
)


STRATEGIES: dict[str, Strategy] = {
    strategy.name: strategy
    for strategy in (
        Strategy(
            name="TC",
            direction="top-down",
            device_kind="cpu",
            columns=_HOST_TOP_DOWN,
            description="top-down on the CPU, queue frontier",
            color="#0072B2",
            marker="o",
            kernel=f"{_KERNELS}:top_down_level",
            dense_pushes=True,
        ),
        Strategy(
            name="TG",
            direction="top-down",
            device_kind="device",
            columns=_DEVICE_TOP_DOWN,
            description="top-down on the OpenCL device, queue",
            color="#E69F00",
            marker="s",
        ),
        Strategy(
            name="BC",
            direction="bottom-up",
            device_kind="cpu",
            columns=_HOST_BOTTOM_UP,
            description="bottom-up on the CPU, bitmap or list",
            color="#009E73",
            marker="^",
            kernel=f"{_KERNELS}:bottom_up_level",
        ),
        Strategy(
            name="BG",
            direction="bottom-up",
            device_kind="device",
            columns=_DEVICE_BOTTOM_UP,
            description="bottom-up on the OpenCL device, bitmap",
            color="#D55E00",
            marker="v",
        ),
        Strategy(
            name="BGC",
            direction="bottom-up",
            device_kind="device",
            columns=_DEVICE_BOTTOM_UP,
            description="BG with the hubs' bits in local memory",
            color="#CC79A7",
            marker="D",
            variant=1,
        ),
    )
}


def schedule_names(selector: str) -> list[str]:
    """Return the strategies that a selector "fixed:TC,BG" names, one for each level."""
    names = selector.removeprefix("fixed:").upper().split(",")
    unknown = next((name for name in names if not _is_known(name)), None)
    if unknown is not None:
        raise ValueError(
            f"{selector!r} names strategy {unknown!r}; those there are: {', '.join(STRATEGIES)}, "
            "such as fixed:TC or, one for each level, fixed:TC,BC; TG@2 is TG on a second device"
        )
    return names


def _is_known(name: str) -> bool:
    row, at, device = name.partition("@")
    if row not in STRATEGIES or not at:
        return row in STRATEGIES
    return STRATEGIES[row].device_kind == "device" and device.isdecimal() and int(device) > 1


def strategy_named(name: str) -> Strategy:
    row, at, device = name.partition("@")
    return STRATEGIES[row].on(int(device)) if at else STRATEGIES[row]


def plain(direction: Direction, device_kind: DeviceKind) -> Strategy:
    """Return the default strategy of a direction and device, for rules and measurements."""
    kind = direction, device_kind
    return next(s for s in STRATEGIES.values() if (s.direction, s.device_kind) == kind)


def host_only() -> str:
    return f"fixed:{plain('top-down', 'cpu').name}"


def place_name(place: int) -> str:
    """Return the name of a place: "cpu", "device" for the first device, then "device@2"."""
    return DEVICE_KINDS[place] if place < len(DEVICE_KINDS) else f"{DEVICE_KINDS[1]}@{place}"


def available(devices: int) -> list[Strategy]:
    found = [s for s in STRATEGIES.values() if devices or s.device_kind == "cpu"]
    for number in range(2, devices + 1):
        found += [s.on(number) for s in STRATEGIES.values() if s.device_kind == "device"]
    return found
