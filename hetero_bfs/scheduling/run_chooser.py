"""Chooses how a whole run of an algorithm is executed: its place, its mode, and who answers.

A prediction counts until a run was measured. Predictions come from a speed model (`RunCosts`).

An option must be opened before its first run: lists are uploaded, kernels are built. Each run
elsewhere adds the seconds that it loses, by prediction, to a sum. The option is opened once the sum
exceeds the seconds of opening (the ski-rental rule of program_decision.py). So one long run opens a
device at once, and many short ones do so after a while.

`EngineChooser` decides whether one thread answers a call on a graph, or an engine that opens and
stays open. One thread answers until its seconds exceed the seconds of opening (ski rental again: at
most twice the seconds of the best choice). An engine that turns out slower than one thread answers
only now and then.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from statistics import median, median_low
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.errors import ModelError
from hetero_bfs.scheduling.model_files import similar_model
from hetero_bfs.scheduling.named_selectors import model_of
from hetero_bfs.scheduling.speed_model import GraphSize, RunCosts
from hetero_bfs.scheduling.strategies import DEVICE_KINDS, DeviceKind
from hetero_bfs.support.code_cache import was_compiled
from hetero_bfs.support.cold import compiles_in_background, is_cold
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
disturbed. A trial loses the seconds by which it exceeds the fastest option."""
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
    """The options of running an algorithm, and their known seconds.

    options : they may be named later, in `choose`
    expected : predicted seconds of a run, by option; options that are not in it are tried
    opening : predicted seconds of opening an option; 0 for options that are not in it
    alone : why there may be a single option
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
        f"no device is looked for: the model predicts {1e3 * host:.3g} ms for "
        f"{number_of(runs, 'run')} on the CPU, and {1e3 * device:.3g} ms on a device after "
        f"{1e3 * opening:.3g} ms to find and open it; name a device to use one"
    )


def run_costs(what: str, device: DeviceInfo | None) -> dict[DeviceKind, RunCosts]:
    """Return an algorithm's costs on both places, empty if unknown.

    They are from this machine's model, or else from the shipped models of the most similar ones.
    If `device` is None and this machine has no model, the device's costs are a GPU's, since
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


Kind = type[Any]
"""`Engine`, or the class of an `Analysis`."""

_COMPILING_SECONDS = 20.0
"""For an engine or algorithm whose code is not stored; 5 to 45 s on 2 cores (2026-11-26)."""

_LOADING_SECONDS = 0.25
"""To load stored code when something first opens in a process; 0.03 to 0.28 s (2026-11-26)."""

_JUDGED = 8
"""An engine is compared with one thread by the medians of this number of last answers. Some of its
first ones compile, or try a place or a mode."""

_ANSWERS_BETWEEN = 100.0
"""If one thread is faster, it answers for as long as this many answers of the engine would take.
Then the engine answers once more."""

_OPENING_SECONDS = 0.03
_BUILDING_SECONDS_PER_ENTRY = {False: 5e-8, True: 2.5e-7}
_SERIAL_SECONDS_PER_ENTRY = {False: 3e-9, True: 1e-8}
"""By whether there are weights. They are the first guesses: later ones follow from what this
process has measured.

Measured on 2 cores with compiled kernels, on soc-Slashdot0902, cnr-2000 and Kronecker 18, whose
neighbour lists have 1.0, 5.5 and 7.6 million entries. An engine opened in 0.09, 0.3 to 0.4 and 0.3
s; a search took 2.5, 17 and 35 ms (commit 649b7ee, 2026-11-24). With weights the first and last
graph opened in 0.2 and 2.4 s of CPU time (commit dc404ab); a search takes 9 and 63 ms (2026-11-25).
"""


class _Measured:
    """This process's measurements of openings."""

    factor = 1.0
    """Seconds of the last opening over those expected."""

    opened: ClassVar[set[Kind]] = set()
    answered: ClassVar[set[Kind]] = set()  # by one thread


def opening_seconds(num_entries: int = 0, is_weighted: bool = False) -> float:
    """Estimate the seconds of an engine that builds neighbour lists with this many entries."""
    building = _BUILDING_SECONDS_PER_ENTRY[is_weighted] * num_entries
    return _Measured.factor * (_OPENING_SECONDS + building)


def learn_opening(kind: Kind, expected: float, seconds: float, has_built: bool) -> None:
    """Learn from an opening; not from the first one of a kind, which may have compiled."""
    if has_built and kind in _Measured.opened:
        _Measured.factor = min(max(_Measured.factor * seconds / expected, 0.1), 10.0)
    _Measured.opened.add(kind)


class EngineChooser:
    """The seconds of answers on one graph, by kind of engine."""

    def __init__(self) -> None:
        self.spent: dict[Kind, float] = {}
        """Seconds of one thread since an engine answered last."""
        self._serial: dict[Kind, deque[float]] = {}
        self._engine: dict[Kind, deque[float]] = {}

    def forget_engines(self) -> None:
        self.spent, self._engine = {}, {}

    def opens(
        self, kind: Kind, searches: int, num_entries: int, opening: float, counts_past: bool
    ) -> bool:
        """Tell whether to open an engine for a number of searches.

        `opening` is the estimate of its seconds. Past answers count, unless what they opened could
        not be kept.
        """
        known = self._serial.get(kind)
        saved = searches * (median(known) if known else _serial_seconds(kind, num_entries))
        if counts_past:
            saved += self.spent.get(kind, 0.0)
        saved -= opening
        if kind in _Measured.opened or saved <= 0:
            return saved > 0
        if saved <= _LOADING_SECONDS:
            is_cold(kind.__name__)  # another process compiles it, unless it is compiled
            return False
        if was_compiled(kind.__name__) or saved > _COMPILING_SECONDS:
            return True
        compiles_in_background(kind.__name__)
        return False

    def chooses_open_engine(self, kind: Kind) -> bool:
        """Tell whether an open engine should answer; a slow one does so now and then."""
        last, serial = self._engine.get(kind, ()), self._serial.get(kind, ())
        if len(last) == _JUDGED and serial:
            seconds = median(last)
            if seconds > median(serial) and self.spent.get(kind, 0.0) <= _ANSWERS_BETWEEN * seconds:
                return False
        self.spent[kind] = 0.0
        return True

    def learn_engine(self, kind: Kind, seconds: float, searches: int) -> None:
        _note(self._engine, kind, seconds / max(searches, 1))

    def learn_serial(
        self, kind: Kind, seconds: float, searches: int, num_entries: int, has_read: bool
    ) -> None:
        """Learn from an answer of one thread; if it `has_read` the graph, only its seconds."""
        if kind not in _Measured.answered:  # the first answer may have compiled
            _Measured.answered.add(kind)
            seconds = min(seconds, searches * _serial_seconds(kind, num_entries))
        elif not has_read:
            _note(self._serial, kind, seconds / max(searches, 1))
        self.spent[kind] = self.spent.get(kind, 0.0) + seconds


def _note(answers: dict[Kind, deque[float]], kind: Kind, seconds: float) -> None:
    answers.setdefault(kind, deque(maxlen=_JUDGED)).append(seconds)


def _serial_seconds(kind: Kind, num_entries: int) -> float:
    return _SERIAL_SECONDS_PER_ENTRY[getattr(kind, "needs_weights", False)] * num_entries
