"""Settings of a vertex program's run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy.typing as npt

from hetero_bfs.errors import ArgumentError
from hetero_bfs.scheduling.strategies import DeviceKind
from hetero_bfs.support.checks import check_choice, check_integer, check_real, check_type
from hetero_bfs.support.messages import setting

DIRECTIONS = ("auto", "push", "pull")
STRATEGIES: dict[str, tuple[DeviceKind, bool]] = {
    "push": ("cpu", False),
    "pull": ("cpu", True),
    "device push": ("device", False),
    "device pull": ("device", True),
}
"""Place and direction (True: pull) of each strategy of mode "synchronous", by trace name."""

Where = Literal["cpu", "device", "both"]
"""Place of a run, or "both" if it may migrate."""

ModeName = Literal["synchronous", "asynchronous", "layered"]
MODES: tuple[ModeName, ...] = ("synchronous", "asynchronous", "layered")
_NO_LIMIT = 1 << 40


class Limits(NamedTuple):
    """The options as numbers for kernels.

    `pulls` has a direction per iteration; the last one is for all later iterations. If it is empty,
    the run chooses. `places` are the places of a schedule, one per item of `pulls`, or empty. A
    clocked run on a device waits for each iteration to time it; on the host it times its choices.
    `num_classes` is 0 if the run chooses it.
    """

    pulls: tuple[bool, ...]
    max_iterations: int
    bucket_width: float
    places: tuple[DeviceKind, ...] = ()
    clocked: bool = False
    num_classes: int = 0


@dataclass(frozen=True)
class RunOptions:
    """Settings of one run of a program, which are checked when they are made.

    Parameters
    ----------
    max_iterations : int, optional
        The run ends after this number, with `converged` False. By default there is no limit.
    direction : {"auto", "push", "pull"}
        "push": active vertices send along their edges. "pull": each receiver reads its incoming
        edges. "auto": each iteration uses the direction that is predicted to be faster.
    bucket_width : float, optional
        For programs with a priority. Vertices run together if their priority is less than this
        above the lowest one. By default it is chosen by the weights and the degrees. `math.inf`
        runs all. Buckets of a monotone program are narrower at first and wider in the end.
    place : {"auto", "cpu", "device", "both"}
        Where to run. "both": the run migrates between iterations if predicted costs say that this
        is faster. It needs mode "synchronous" and a program that is not `monotone`. "auto": the
        place that is fastest so far; without predictions each is tried twice, and "both" if it may
        be faster.
    mode : {"synchronous", "asynchronous", "layered", "auto"}
        "synchronous": messages are computed from the states before the iteration. "asynchronous"
        and "layered": each iteration processes the vertices part by part, and a part sees the
        changes of the parts before it. Parts are colours ("asynchronous") or levels of a
        breadth-first search ("layered"). These modes reach the same fixed point in fewer
        iterations, and support fewer programs (docs/concepts/modes.md). "auto": for a program with
        `any_order` and without `max_iterations`, each mode that supports it is tried twice on each
        place, then the fastest one runs. For other programs it is "synchronous".
    root : int, optional
        The vertex where the levels of mode "layered" begin, for several runs from one vertex.
        "auto" tries that mode only with a root.
    num_classes : int, optional
        For mode "asynchronous": one thread, or one work-group, goes through the last class, which
        has the colours from number num_classes - 1 on. Each earlier colour is a class, which
        all threads or work-groups share. Results are the same for any number, except for the
        rounding of float totals. By default, all threads share every colour, and one work-group
        goes through successive colours that have no work for more. Streamed lists ignore it.
    colour : integer array, shape (num_vertices,), optional
        For mode "asynchronous": a colouring, such as a saved one. By default the engine colours the
        graph. An iteration goes through the colours from 0 on.
    schedule : sequence of str, optional
        For tests and studies: a strategy for each iteration, "push", "pull", "device push" or
        "device pull", as traces name them. The last one is for all later iterations. The schedule
        sets direction and place: a run migrates only if strategies of both places are in it. Not
        for programs that are `monotone`.

    Raises
    ------
    ArgumentError
        A setting has the wrong type or is out of range.
    """

    max_iterations: int | None = None
    direction: Literal["auto", "push", "pull"] = "auto"
    bucket_width: float | None = None
    place: Literal["auto", "cpu", "device", "both"] = "auto"
    mode: ModeName | Literal["auto"] = "synchronous"
    root: int | None = None
    num_classes: int | None = None
    colour: npt.ArrayLike | None = field(default=None, repr=False, compare=False)
    schedule: Sequence[str] | None = None

    def __post_init__(self) -> None:
        check_choice("direction", self.direction, DIRECTIONS)
        check_choice("place", self.place, ("auto", "cpu", "device", "both"))
        self._check_schedule()
        for name, least in (("max_iterations", 0), ("root", 0), ("num_classes", 1)):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, check_integer(name, getattr(self, name), least))
        self._check_mode()
        if self.bucket_width is not None:
            width = check_real("bucket_width", self.bucket_width)
            if not width > 0:
                raise ArgumentError(
                    f"{setting('bucket_width')} is {width}; give a number above 0, or math.inf"
                )
            object.__setattr__(self, "bucket_width", width)

    def _check_mode(self) -> None:
        check_choice("mode", self.mode, (*MODES, "auto"))
        if (self.root is None) == (self.mode == "layered") and self.mode != "auto":
            raise ArgumentError(
                f"{setting('mode')} is {self.mode!r} and {setting('root')} is {self.root}; give a "
                'root with mode "layered", and only with it or "auto"'
            )
        for name in ("num_classes", "colour"):
            if getattr(self, name) is not None and self.mode != "asynchronous":
                raise ArgumentError(
                    f"{setting(name)} is given, which mode {self.mode!r} has no use for; leave it "
                    'out, or take mode "asynchronous"'
                )
        if self.mode == "synchronous":
            return
        for name, given in (("direction", self.direction != "auto"),
                            ("bucket_width", self.bucket_width is not None),
                            ("schedule", self.schedule is not None),
                            ("place", self.place == "both")):  # fmt: skip
            if given:
                raise ArgumentError(
                    f"{setting(name)} is {getattr(self, name)!r}, which mode {self.mode!r} has no "
                    'use for; leave it out, or take mode "synchronous"'
                )

    def _check_schedule(self) -> None:
        if self.schedule is None:
            return
        check_type("schedule", self.schedule, (list, tuple), "a list of strategies' names")
        object.__setattr__(self, "schedule", tuple(self.schedule))
        wrong = [one for one in self.schedule if one not in STRATEGIES]
        if wrong or not self.schedule:
            found = f"has {wrong[0]!r}" if wrong else "is empty"
            raise ArgumentError(
                f"{setting('schedule')} {found}; give one or more of {', '.join(STRATEGIES)}"
            )
        for name in ("place", "direction"):
            if getattr(self, name) != "auto":
                raise ArgumentError(
                    f"{setting(name)} is {getattr(self, name)!r}, and a schedule decides on it; "
                    "leave one of them out"
                )

    @property
    def where(self) -> Where | Literal["auto"]:
        """The place that the schedule or `place` sets."""
        places = {STRATEGIES[name][0] for name in self.schedule or ()}
        return ("both" if len(places) == 2 else places.pop()) if places else self.place

    def limits(self, usual_width: float) -> Limits:
        width = usual_width if self.bucket_width is None else self.bucket_width
        limit = min(_NO_LIMIT if self.max_iterations is None else self.max_iterations, _NO_LIMIT)
        steps = [STRATEGIES[name] for name in self.schedule or ()]
        pulls = [pulls for _, pulls in steps]
        if self.direction != "auto":
            pulls = [self.direction == "pull"]
        places = tuple(place for place, _ in steps)
        return Limits(tuple(pulls), limit, width, places, num_classes=self.num_classes or 0)
