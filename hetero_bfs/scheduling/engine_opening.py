"""Whether one thread answers a call on a graph, or an engine that opens and stays open.

One thread answers until its seconds exceed those of opening (the rule of ski rental: at most twice
the seconds of the best choice). An engine that turns out slower than one thread answers only now
and then.
"""

from __future__ import annotations

from collections import deque
from statistics import median
from typing import Any, ClassVar

from hetero_bfs.support.code_cache import was_compiled
from hetero_bfs.support.cold import compiles_beside, is_cold

Kind = type[Any]
"""`Engine`, or the class of an `Analysis`."""

_COMPILING_SECONDS = 20.0
"""For an engine or algorithm whose code is not stored; 5 to 45 s on 2 cores (2026-11-26)."""

_LOADING_SECONDS = 0.25
"""To load stored code when something first opens in a process; 0.03 to 0.28 s (2026-11-26)."""

_JUDGED = 8
"""An engine is compared with one thread by the medians of this number of last answers. Some of its
first ones compile, or try a place or a mode."""

_AGAIN = 100.0
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
    """What this process has measured of openings."""

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
        compiles_beside(kind.__name__)
        return False

    def chooses_open_engine(self, kind: Kind) -> bool:
        """Tell whether an open engine should answer; a slow one does so now and then."""
        last, serial = self._engine.get(kind, ()), self._serial.get(kind, ())
        if len(last) == _JUDGED and serial:
            seconds = median(last)
            if seconds > median(serial) and self.spent.get(kind, 0.0) <= _AGAIN * seconds:
                return False
        self.spent[kind] = 0.0
        return True

    def learn_engine(self, kind: Kind, seconds: float, searches: int) -> None:
        _note(self._engine, kind, seconds / max(searches, 1))

    def learn_serial(
        self, kind: Kind, seconds: float, searches: int, num_entries: int, has_read: bool
    ) -> None:
        """Learn from an answer of one thread; if it `has_read` the graph, only what was spent."""
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
