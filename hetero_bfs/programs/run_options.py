"""How a vertex program is to run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from hetero_bfs.errors import ArgumentError
from hetero_bfs.support.checks import check_choice, check_integer, check_real
from hetero_bfs.support.wording import setting

DIRECTIONS = ("auto", "push", "pull")
Direction = Literal["auto", "push", "pull"]
ModeName = Literal["synchronous", "asynchronous", "layered"]
MODES: tuple[ModeName, ...] = ("synchronous", "asynchronous", "layered")
_NO_LIMIT = 1 << 40


class Limits(NamedTuple):
    """The options as numbers for kernels: whether iterations pull, iterations, a bucket's width.

    The last of `pulls` is for all later iterations. If it is empty, the run chooses. A clocked run
    on a device waits for each iteration, to have its seconds; on the host it clocks its choices.
    """

    pulls: tuple[bool, ...]
    max_iterations: int
    bucket_width: float
    clocked: bool = False


@dataclass(frozen=True)
class RunOptions:
    """Settings of one run of a program, checked when they are made.

    Parameters
    ----------
    max_iterations : int, optional
        The run ends after so many, with `converged` False; by default there is no limit.
    direction : {"auto", "push", "pull"} or a list of "push" and "pull"
        "push": active vertices send along their edges. "pull": each receiver looks at its incoming
        edges. By default each iteration does what is expected to be faster. A list has the
        direction of each iteration, the last one for all later ones; a monotone program takes none.
    bucket_width : float, optional
        For programs with a priority: vertices run that are less than this beyond the lowest
        priority. By default it is chosen by the weights and the degrees. `math.inf` runs all.
        Buckets of a monotone program are narrower at first and wider in the end.
    place : {"auto", "cpu", "device"}
        Where to run. By default each place is tried twice, then the faster one runs.
    mode : {"synchronous", "asynchronous", "layered", "auto"}
        "synchronous": messages of an iteration come of the states before it. "asynchronous" and
        "layered" go through the vertices part by part in each iteration, and a part sees what
        those before it changed: parts are colours, or levels of a breadth-first search. They need
        fewer iterations to the same fixed point, and serve fewer programs (docs/concepts/modes.md).
        "auto": for a program with `any_order` and without `max_iterations`, each mode that serves
        it is tried twice on each place, then the fastest one runs. For others: "synchronous".
    root : int, optional
        The vertex where the levels of mode "layered" begin, for several runs from one vertex.
        "auto" tries that mode only with a root.

    Raises
    ------
    ArgumentError
        A setting of the wrong type or out of range.
    """

    max_iterations: int | None = None
    direction: Direction | Sequence[Direction] = "auto"
    bucket_width: float | None = None
    place: Literal["auto", "cpu", "device"] = "auto"
    mode: ModeName | Literal["auto"] = "synchronous"
    root: int | None = None

    def __post_init__(self) -> None:
        """Check all settings."""
        self._check_direction()
        check_choice("place", self.place, ("auto", "cpu", "device"))
        self._check_mode()
        if self.max_iterations is not None:
            limit = check_integer("max_iterations", self.max_iterations, 0)
            object.__setattr__(self, "max_iterations", limit)
        if self.bucket_width is not None:
            width = check_real("bucket_width", self.bucket_width)
            if not width > 0:
                raise ArgumentError(
                    f"{setting('bucket_width')} is {width}; give a number above 0, or math.inf"
                )
            object.__setattr__(self, "bucket_width", width)

    def _check_direction(self) -> None:
        """Check the direction, or those of a list."""
        if not isinstance(self.direction, list | tuple):
            check_choice("direction", self.direction, DIRECTIONS)
            return
        directions = tuple(self.direction)
        if not directions:
            raise ArgumentError(f'{setting("direction")} is empty; give "push" or "pull" at least')
        for one in directions:
            check_choice("direction", one, DIRECTIONS[1:])
        object.__setattr__(self, "direction", directions)

    def _check_mode(self) -> None:
        """Check the mode, and the settings that only some modes have."""
        check_choice("mode", self.mode, (*MODES, "auto"))
        if self.root is not None:
            object.__setattr__(self, "root", check_integer("root", self.root, 0))
        if (self.root is None) == (self.mode == "layered") and self.mode != "auto":
            raise ArgumentError(
                f"{setting('mode')} is {self.mode!r} and {setting('root')} is {self.root}; give a "
                'root with mode "layered", and only with it or "auto"'
            )
        if self.mode == "synchronous":
            return
        for name, given in (("direction", self.direction != "auto"),
                            ("bucket_width", self.bucket_width is not None)):  # fmt: skip
            if given:
                raise ArgumentError(
                    f"{setting(name)} is {getattr(self, name)!r}, which mode {self.mode!r} has no "
                    'use for; leave it out, or take mode "synchronous"'
                )

    def limits(self, usual_width: float) -> Limits:
        """Return the numbers for kernels."""
        width = usual_width if self.bucket_width is None else self.bucket_width
        limit = min(_NO_LIMIT if self.max_iterations is None else self.max_iterations, _NO_LIMIT)
        one = isinstance(self.direction, str)
        directions = [] if self.direction == "auto" else [self.direction] if one else self.direction
        return Limits(tuple(direction == "pull" for direction in directions), limit, width)
