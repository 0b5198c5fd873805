"""Corrections of a model by measured searches.

Strategies that look faster than they are soon lose their searches to others. One that no search
ever ran, since the model predicts too long a time for it, is not found. Each strategy and each
transition (start, switch, convert, on each device) has a factor that multiplies its predicted
seconds.
correction_kernels.py computes the factors from the levels of the last searches and limits them.
Factors never change within a search, since a device runs all its levels in one launch. The next
search uses the corrected selector.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

import numpy as np
import numpy.typing as npt

from hetero_bfs.scheduling import correction_kernels as kernels
from hetero_bfs.scheduling import schema
from hetero_bfs.scheduling.model_selectors import CLEARLY, ModelSelector, migration_names
from hetero_bfs.scheduling.selectors import Recording, Selector, by_direction
from hetero_bfs.scheduling.strategies import Strategy

Pair = tuple[Strategy, Strategy]
"""A top-down and a bottom-up strategy."""


def warm_up_schedules(candidates: Sequence[Strategy]) -> list[tuple[Strategy, ...]]:
    """Return schedules that run every candidate, convert on each device and migrate both ways."""
    pairs = _plain_pairs(candidates)
    schedules: list[tuple[Strategy, ...]] = [(down, up, down) for down, up in pairs]
    schedules += [(strategy,) for strategy in _others(candidates, pairs)]
    for (down, up), (other_down, other_up) in pairwise(pairs):
        schedules += [(down, other_down, down), (other_up, up, other_up)]
    return schedules


def _plain_pairs(candidates: Sequence[Strategy]) -> list[Pair]:
    places = sorted({s.place for s in candidates})
    there = [[s for s in candidates if s.place == place] for place in places]
    found = [by_direction(each, each[0].device_kind, each[0].device_kind) for each in there]
    return [(one["top-down"], one["bottom-up"]) for one in found if len(one) == 2]


def _others(candidates: Sequence[Strategy], pairs: Sequence[Pair]) -> list[Strategy]:
    paired = {strategy for pair in pairs for strategy in pair}
    return [strategy for strategy in candidates if strategy not in paired]


_MOST_PATIENCE = 16
"""Most searches between two comparisons of policies. A comparison takes half a millisecond, after
which threads may sleep; each one that replaces no policy doubles the number."""

_LONGEST_PATIENCE = 1024
"""The same after replacements that were taken back, each of which doubles the number."""

_LATEST = 5
"""Searches by a selector that tell how slow it is."""

_FEWEST_JUDGED, _MOST_JUDGED = 2, 5
"""Searches by which a new selector is judged. It is taken back if their median is `_SLOWER`, or if
both of the first ones are `_CLEARLY_SLOWER`."""

_SLOWER, _CLEARLY_SLOWER = 1.1, 1.5

_LEAST_SECONDS = 1e-9


def _slowness(selector: ModelSelector, recording: Recording, seconds: float) -> float:
    """Return a search's seconds over the seconds that the selector expects."""
    return seconds / max(selector.expected_seconds(recording), _LEAST_SECONDS)


@dataclass
class _Probation:
    """A selector is in use, and its searches are compared with `before`, the one it replaced.

    slowness : seconds of the last searches by `before`, over those that it expected
    ratios : of searches by the new selector to their expected seconds by `before`
    """

    before: ModelSelector
    slowness: float
    ratios: list[float] = field(default_factory=list)

    def compare(self, recording: Recording, seconds: float) -> float:
        return _slowness(self.before, recording, seconds) / self.slowness

    @property
    def is_failed(self) -> bool:
        first = self.ratios[:_FEWEST_JUDGED]
        is_bad = len(first) == _FEWEST_JUDGED and min(first) > _CLEARLY_SLOWER
        return is_bad or (self.is_over and median(self.ratios) > _SLOWER)

    @property
    def is_over(self) -> bool:
        return len(self.ratios) == _MOST_JUDGED


class Correction:
    """Learns correction factors from searches, and makes corrected selectors.

    A factor is measured at the levels that ran, and may be wrong at others. So whole searches
    decide whether another selector stays in use.

    `base` is uncorrected.
    """

    selector: ModelSelector
    trial: ModelSelector | None = None
    """A selector for the next search that is learned from: it tries a place."""
    _was_tried = False
    """Whether a search by the trial has run."""

    def __init__(self, base: ModelSelector) -> None:
        self.base = base
        self.selector = base
        self._memory = kernels.new_memory(base.by_model)
        self._overhead = np.full(base.policy.migrations.shape[1], np.inf)  # by place
        self._patience, self._since, self._taken_back = 1, 0, 0
        self._probation: _Probation | None = None
        self._latest: deque[tuple[Recording, float]] = deque(maxlen=_LATEST)
        """The last searches by the selector."""

    def learn(self, recording: Recording, seconds: float) -> ModelSelector:
        """Learn from a search by the trial or the selector; return the selector from now on."""
        if self.trial is not None:
            self._end_trial(recording, seconds)
            return self.selector
        outcome = self._learn(recording, seconds)
        self._since += 1
        self._latest.append((recording, seconds))
        if self._probation is not None:
            self._judge(self._probation, recording, seconds)
        elif outcome == kernels.REPLACE or (
            outcome == kernels.CONSIDER and self._since >= self._patience
        ):
            self._consider(outcome == kernels.REPLACE, recording.decision_interval)
        elif (
            outcome != kernels.KEEP
            and self.base.is_on_graph
            and recording.decision_interval == 1
            and kernels.begins_trial(self.base.by_model, self._memory)
        ):
            hoped = kernels.hoped_factors(self.base.by_model, self._memory, self.selector.factors)
            other = self.base.corrected(hoped)
            if other.improves_on(self.selector):
                self.trial = other
            else:
                kernels.fail_trial(self.base.by_model, self._memory)
        return self.selector

    def _consider(self, in_any_case: bool, decision_interval: int) -> None:
        """Replace the selector by one with the factors just learned, if that is clearly better.

        It is on probation, unless searches do not choose at each level: `expected_seconds` does.
        """
        other = self._corrected()
        self._memory[:, kernels.CONSIDERED] = self._memory[:, kernels.FACTOR]
        self._since = 0
        if other.improves_on(self.selector):
            if self.base.is_on_graph and decision_interval == 1:
                self._probation = self._compared_with_now()
            else:
                self._patience = 1
            self._adopt(other)
        elif in_any_case:  # predictions change, but no choice
            self._adopt(other)
        else:
            self._patience = max(self._patience, min(2 * self._patience, _MOST_PATIENCE))

    def _compared_with_now(self) -> _Probation:
        return _Probation(
            self.selector, median(_slowness(self.selector, *one) for one in self._latest)
        )

    def _judge(self, probation: _Probation, recording: Recording, seconds: float) -> None:
        """Use the selector before again if most searches by the new one are slower."""
        probation.ratios.append(probation.compare(recording, seconds))
        if probation.is_failed:
            self._taken_back += 1
            self._patience = min(_MOST_PATIENCE << self._taken_back, _LONGEST_PATIENCE)
            self._use(probation.before)
            self._probation = None
        elif probation.is_over:
            self._patience, self._probation = 1, None

    def _end_trial(self, recording: Recording, seconds: float) -> None:
        """Learn from a search that tried a place if it was faster than by the selector.

        What the place alone took says less: predictions of single levels may be far off. Unless the
        first search is clearly slower, a second one follows: at first a place is asleep.
        """
        probation = self._compared_with_now()
        ratio = probation.compare(recording, seconds)
        if CLEARLY <= ratio < _CLEARLY_SLOWER and not self._was_tried:
            self._was_tried = True
            return
        self.trial, self._was_tried = None, False
        if ratio < CLEARLY:
            self._learn(recording, seconds)
            self._adopt(self._corrected())
            probation.ratios.append(ratio)
            self._probation = probation
        else:
            kernels.fail_trial(self.base.by_model, self._memory)

    def _corrected(self) -> ModelSelector:
        return self.base.corrected(kernels.factors_of(self.base.by_model, self._memory))

    def _adopt(self, other: ModelSelector) -> None:
        """Use this selector, which is corrected by the factors just learned."""
        for column in (kernels.IN_USE, kernels.CONSIDERED):
            self._memory[:, column] = self._memory[:, kernels.FACTOR]
        if (other.factors != self.selector.factors).any():
            self._use(other)

    def _use(self, selector: ModelSelector) -> None:
        self._memory[: selector.factors.size, kernels.USED] = selector.factors
        self.selector = selector
        self._latest.clear()

    def _learn(self, recording: Recording, seconds: float) -> int:
        outcome: int = kernels.learn(
            self.base.by_model,
            recording.num_vertices,
            self._by_own_numbers(recording),
            seconds,
            self._overhead,
            self._memory,
        )
        return outcome

    def _by_own_numbers(self, recording: Recording) -> npt.NDArray[np.float64]:
        """Return the records with the strategies' indices in `base`."""
        theirs = recording.selector.candidates
        if theirs == self.base.candidates:
            return recording.records
        numbers = np.array([self.base.candidates.index(s) for s in theirs], np.float64)
        records = recording.records.copy()
        records[:, schema.STRATEGY] = numbers[records[:, schema.STRATEGY].astype(np.int64)]
        return records

    def is_of(self, base: ModelSelector) -> bool:
        """Tell whether a selector predicts and decides by the same numbers as this one's."""
        mine, theirs = self.base, base
        if (mine.candidates, mine.rules) != (theirs.candidates, theirs.rules):
            return False
        numbers = (*mine.policy[:-1], *mine.by_model[:-1])  # all but the scratch
        others = (*theirs.policy[:-1], *theirs.by_model[:-1])
        return all(np.array_equal(a, b) for a, b in zip(numbers, others, strict=True))


def factors_of(selector: Selector) -> dict[str, float]:
    if not isinstance(selector, ModelSelector):
        return {}
    strategies = [s.name for s in selector.candidates]
    small = [f"{name} (small levels)" for name in strategies]
    names = [*small, *strategies, *migration_names(selector.candidates)]
    return {n: f for n, f in zip(names, selector.factors.tolist(), strict=True) if f != 1.0}
