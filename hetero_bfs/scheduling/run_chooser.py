"""Chooses how a whole run of an algorithm is executed: its place, and its mode.

A prediction counts until a run was measured. Predictions come from a speed model (`RunCosts`).

An option must be opened before its first run: lists are uploaded, kernels are built. Each run
elsewhere adds the seconds that it loses, by prediction, to a sum. The option is opened once the sum
exceeds the seconds of opening (the ski-rental rule of program_decision.py). So one long run opens a
device at once, and many short ones do so after a while.

`Leaving` decides when a run that began on a device ends on the host, since few vertices are left.
A window costs the device some steps. It costs the host a constant, and seconds for its edges. The
device adds the seconds by which each window was slower than on the host to a sum that never falls
below 0. The run leaves once the sum exceeds the seconds of leaving (ski rental again). The edges
that no vertex has relaxed yet count as work of the host, so a run does not leave before a second
large part of a graph. Runs correct all of these costs but that of an edge. The result's transfer to
the host does not count, since a run that stays needs it, too.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from statistics import median_low
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.errors import ModelError
from hetero_bfs.graph.relabel import HIGH_DIAMETER_LEVELS
from hetero_bfs.scheduling.model_files import similar_model
from hetero_bfs.scheduling.named_selectors import model_of
from hetero_bfs.scheduling.program_decision import LEARNING, MigrationCosts
from hetero_bfs.scheduling.speed_model import GraphSize, RunCosts
from hetero_bfs.scheduling.strategies import DEVICE_KINDS, DeviceKind
from hetero_bfs.support.messages import number_of

Option = TypeVar("Option")

USUAL_LEVELS = 8
"""Levels of a search, where they are not known."""

_FINDING_SECONDS = 0.3
"""To look for OpenCL devices and start a driver."""

_TRIALS = 2  # runs of an option before it is judged; the first one may compile, and does not count
_RECENT = 7
"""The lower median of this many latest runs is an option's expected time, so that neither a
disturbed nor a lucky run decides."""
_AGAIN = 0.01
"""Share of the total time that trying slower options again may lose, since their runs may have been
disturbed. A trial loses what it takes more than the fastest option."""
_DOUBTED = 0.1
"""The same for options that were never measured."""
_DOUBT = 3.0
"""A prediction may be wrong by this factor."""
_SHARED_ERROR, _MOST_SHARED = 0.5, 2.5
"""Part of a prediction's error, as a logarithm, that the predictions of other options share, and
the largest factor by which they are corrected."""


class RunChoice(NamedTuple, Generic[Option]):
    """A chosen option, the expected seconds of each option that has any, and the reason."""

    option: Option
    seconds: Mapping[Option, float]
    reason: str

    def __str__(self) -> str:
        """Options are places, or modes with places."""
        known = ", ".join(f"{_name(o)} {1e3 * value:.3g} ms" for o, value in self.seconds.items())
        return f"{_name(self.option)}: {self.reason}" + (f" ({known})" if known else "")


def _name(option: Any) -> str:
    return option if isinstance(option, str) else "{1} in mode {0}".format(*option)


class RunChooser(Generic[Option]):
    """The options of running an algorithm, and what is known of their seconds.

    Parameters
    ----------
    options : sequence
        They may be named later, in `choose`.
    expected : mapping from option to float, optional
        Predicted seconds of a run. Options that are not in it are tried.
    opening : mapping from option to float, optional
        Predicted seconds of opening an option; 0 for those that are not in it.
    alone : str
        Why there may be a single option.
    """

    def __init__(
        self,
        options: Sequence[Option] = (),
        expected: Mapping[Option, float] | None = None,
        opening: Mapping[Option, float] | None = None,
        alone: str = "no other place is in use",
    ) -> None:
        self._alone = alone
        self._runs = dict.fromkeys(options, 0)
        self._expected = dict(expected or {})
        self._unopened = dict(opening or {})
        self._recent: dict[Option, deque[float]] = {}
        self._total: dict[Option, float] = {}
        self._missed: dict[Option, float] = {}

    def __iter__(self) -> Iterator[Option]:
        return iter(self._runs)

    def opened(self, option: Option) -> None:
        self._unopened.pop(option, None)

    def expect(self, expected: Mapping[Option, float]) -> None:
        self._expected.update(expected)

    def drop(self, option: Option) -> None:
        self._runs.pop(option, None)

    def choose(self, among: Sequence[Option] = (), runs: int = 1) -> RunChoice[Option]:
        """Choose the option of the next run; `among` are the allowed ones, by default all.

        Options without predictions run twice. After that the fastest one runs. Others are tried
        while their trials lose a small share of the time. `runs` runs will follow, this one
        included, so that an opening may pay for all of them.
        """
        allowed = among or [*self._runs]
        if len(allowed) == 1:
            return RunChoice(allowed[0], self._known(allowed), self._alone)
        for option in allowed:
            if option not in self._expected and self._runs.get(option, 0) < _TRIALS:
                return RunChoice(option, self._known(allowed), "not measured yet")
        seconds = self._known(allowed)
        fastest = min(allowed, key=seconds.__getitem__)
        ready = [option for option in allowed if option not in self._unopened]
        if fastest in self._unopened and ready:
            opened = min(ready, key=seconds.__getitem__)
            saved = seconds[opened] - seconds[fastest]
            missed = self._missed.get(fastest, 0.0) + saved
            if missed + (runs - 1) * saved < self._unopened[fastest]:
                self._missed[fastest] = missed
                return RunChoice(opened, seconds, "opening the faster one does not pay yet")
        rival = self._rival(allowed, fastest, seconds)
        if rival is not None:
            tried = "tried again, in case it is faster now"
            return RunChoice(rival, seconds, tried if rival in self._recent else "not measured yet")
        measured = fastest in self._recent
        return RunChoice(
            fastest, seconds, "fastest so far" if measured else "fastest by prediction"
        )

    def learn(self, option: Option, seconds: float) -> None:
        """Note the seconds of a run. An option's first run does not count: it may compile."""
        runs = self._runs.get(option, 0)
        if runs:
            self._recent.setdefault(option, deque(maxlen=_RECENT)).append(seconds)
        self._total[option] = self._total.get(option, 0.0) + (seconds if runs else 0.0)
        self._runs[option] = runs + 1

    def _known(self, allowed: Sequence[Option]) -> dict[Option, float]:
        """Return the measured seconds of options, or else the predicted ones.

        The latter are corrected by a part of the error of the other options' predictions.
        """
        measured = {option: median_low(recent) for option, recent in self._recent.items()}
        errors = [
            math.log(seconds / self._expected[option])
            for option, seconds in measured.items()
            if seconds > 0.0 and self._expected.get(option, 0.0) > 0.0
        ]
        factor = math.exp(_SHARED_ERROR * sum(errors) / len(errors)) if errors else 1.0
        factor = min(max(factor, 1.0 / _MOST_SHARED), _MOST_SHARED)
        expected = {option: factor * seconds for option, seconds in self._expected.items()}
        both = expected | measured
        return {option: both[option] for option in allowed if option in both}

    def _rival(
        self, allowed: Sequence[Option], fastest: Option, seconds: Mapping[Option, float]
    ) -> Option | None:
        if fastest not in self._recent:
            return None
        others = [option for option in allowed if option != fastest]
        rival = min(others, key=lambda option: self._total.get(option, 0.0))
        total, least = sum(self._total.values()), seconds[fastest]
        lost = sum(
            max(self._total.get(option, 0.0) - max(self._runs.get(option, 0) - 1, 0) * least, 0.0)
            for option in others
        )
        excess = max(seconds[rival] - least, 0.0)
        if rival in self._recent:
            return rival if lost + excess <= _AGAIN * total else None
        trial = _TRIALS * excess + self._unopened.get(rival, 0.0)
        doubted = seconds[rival] < _DOUBT * least
        return rival if lost + trial <= (_DOUBTED if doubted else _AGAIN) * total else None


def is_searched_apart(levels: float) -> bool:
    """Tell whether many sources are searched one by one, and not 64 at once.

    On high-diameter graphs threads that share a search mostly wait for each other.
    """
    return levels >= HIGH_DIAMETER_LEVELS


def is_faster_by_thread(
    searches: int, threads: int, thread_seconds: float, engine_seconds: float
) -> bool:
    """Tell whether threads with a search each are faster than searches by the whole engine.

    With few searches, many threads or a fast device the engine may be faster. The seconds are those
    of a search by one thread, and of one by the engine.
    """
    return -(-searches // threads) * thread_seconds <= searches * engine_seconds


def choose_place(
    what: str, size: GraphSize, device: DeviceInfo, resident: float = 0.0
) -> RunChooser[DeviceKind]:
    """Return the chooser of an algorithm's places.

    `resident` is the share of the neighbour lists that the device already holds. Opening the
    algorithm does not upload it again. Seconds by largest degree count as upload, too: in most
    fitted graphs it grows with the lists.
    """
    costs, sent = run_costs(what, device), 1.0 - resident
    uploaded = size._replace(edges=sent * size.edges, largest_degree=sent * size.largest_degree)
    return RunChooser(
        DEVICE_KINDS,
        {place: one.run.seconds(size) for place, one in costs.items()},
        {place: one.opening.seconds(uploaded) for place, one in costs.items() if place == "device"},
    )


def why_no_device(what: str, num_vertices: int, num_input_edges: int, runs: int) -> str | None:
    """Return why a number of runs looks for no device; None if one is expected to pay."""
    costs = run_costs(what, None)
    if not costs:
        return f"no device is looked for, since no model predicts {what}; name a device"
    size = GraphSize(USUAL_LEVELS, num_vertices, 2 * num_input_edges)
    host, device = (runs * costs[place].run.seconds(size) for place in DEVICE_KINDS)
    opening = _FINDING_SECONDS + costs["device"].opening.seconds(size)
    if host - device > opening:
        return None
    return (
        f"no device is looked for: by the model {number_of(runs, 'run')} on the CPU: "
        f"{1e3 * host:.3g} ms, on a device: {1e3 * device:.3g} ms after {1e3 * opening:.3g} ms to "
        "find and open it; name a device to use one"
    )


def run_costs(what: str, device: DeviceInfo | None) -> dict[DeviceKind, RunCosts]:
    """Return an algorithm's costs on both places, empty if unknown.

    They are those of this machine's model, or else of the shipped models of the most similar ones.
    If `device` is None and this machine has no model, the device's costs are those of a GPU, since
    there may be one.
    """
    try:
        own = model_of(device)
    except ModelError:  # the searches report it
        own = None
    host = device_model = own
    if own is None or own.algorithms is None:
        host, device_model = similar_model(device), similar_model(device, "GPU")
    found: dict[DeviceKind, RunCosts] = {}
    for place, model in zip(DEVICE_KINDS, (host, device_model), strict=True):
        runs = (model and model.algorithms) or {}
        if what in runs.get(place, ()):
            found[place] = runs[place][what]
    return found if len(found) == len(DEVICE_KINDS) else {}


_STEP_SECONDS = {True: 4e-6, False: 4e-5}
"""First guess for a step of the device, by whether one launch runs all steps."""

_WINDOW_SECONDS = 2e-6  # first guess for a small window on the host
_EDGE_SECONDS = 2e-9  # of the host, if no model is known


class Leaving:
    """When runs of an algorithm leave a device."""

    def __init__(
        self, size: GraphSize, costs: Mapping[DeviceKind, RunCosts], one_launch: bool
    ) -> None:
        host, edges = costs.get("cpu"), max(size.edges, 1.0)
        self._step, self._window = _STEP_SECONDS[one_launch], _WINDOW_SECONDS
        self._edge = _EDGE_SECONDS if host is None else host.run.seconds(size) / edges
        self._leaving = MigrationCosts.to("cpu", None).seconds
        self._is_compiled = False

    def costs(self, may_leave: bool) -> npt.NDArray[np.float32]:
        """Return nanoseconds of a step, a window, an edge, and of leaving (inf: never)."""
        leaving = self._leaving if may_leave else np.inf
        return (1e9 * np.array([self._step, self._window, self._edge, leaving])).astype(np.float32)

    def learn_device(
        self, steps: npt.NDArray[np.float64], seconds: npt.NDArray[np.float64]
    ) -> None:
        """Learn from windows on the device: the least seconds of a step."""
        each = seconds[steps > 0] / steps[steps > 0]
        if each.size and each.min() > 0.0:
            self._step += LEARNING * (float(each.min()) - self._step)

    def learn_host(
        self, edges: npt.NDArray[np.float64], seconds: npt.NDArray[np.float64], leaving: float
    ) -> None:
        """Learn from windows that the host continued, and from the seconds of leaving.

        The first run is ignored, as it compiles kernels.
        """
        if not self._is_compiled:
            self._is_compiled = True
            return
        own = np.maximum(seconds - self._edge * edges, 0.0)
        if own.size:
            self._window += LEARNING * (float(own.mean()) - self._window)
        self._leaving += LEARNING * (leaving - self._leaving)
