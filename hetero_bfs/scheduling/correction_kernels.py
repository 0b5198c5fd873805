"""Correction factors of a model, compiled: one factor for each item that the model predicts.

An item, here called a *thing*, is a candidate at small levels, a candidate at large levels, or a
migration. Things are numbered in this order: the candidates at SMALL levels and at LARGE ones, both
in the selector's order, then the migrations as in `Policy.migrations`: START, SWITCH and CONVERT at
each place. So lessons from a core of high degrees say nothing about its long tails.

A factor is the median of the last searches' ratios of measured to predicted seconds. Both are sums
over the search's levels, so big levels count most. A search is evidence of a thing only if the
thing took, or was expected to take, a certain share of the search. So neither a single disturbed
search nor a tiny level changes a factor.

All things share a common factor, the median of the candidates' factors. It covers causes that slow
all strategies equally, such as other work on the machine. A candidate counts once, by its large
levels if they are known. One that no search has run counts as 1: so if those that looked cheap are
slow, the others are tried. A thing has its own factor only if that is far from the common one.

Each place has two factors, too, for SMALL and for LARGE levels. All strategies there share them.
They are measured at those without a factor of their own. They keep the order of a place's
strategies, so they may be used when they are small: they decide between places that are nearly
equal. A place that no search has run may be faster than predicted. So now and then a search tries
it (`begins_trial`), in the hope that it is `OPTIMISM` times as fast. If that search, or a second
one, was faster than it would have been without the trial, the measurement counts for all
remembered ratios. Otherwise nothing is learned from it.

The remembered ratios are 1 at first, so that most of them must say that the model is wrong.

A thing that no search runs any more cannot be measured. After a while its factor returns to 1, a
place's to the common factor. So a search may measure it again: a busy machine may have made it look
slow.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from numba import njit

from hetero_bfs.scheduling import schema
from hetero_bfs.scheduling.columns import (
    CONVERT,
    START,
    SWITCH,
    dot,
    fill_columns,
    migration_seconds,
    migrations_between,
    size_of_level,
)
from hetero_bfs.scheduling.policy import Policy
from hetero_bfs.scheduling.schema import has_queue
from hetero_bfs.support.compiling import kernel

_has_queue = kernel(has_queue, counted=False, inner=True)

WINDOW = 6
"""Number of searches whose ratios are remembered. It is even, and the lower median counts. So
factors do not change if every second search is slow, as after pauses."""

BOUND = 32.0
"""Factors stay within 1 / BOUND to BOUND."""

DEAD_BAND = 4.0
"""Factors within this ratio count as equal. A model's errors depend on the level, and a factor is
measured at the levels that ran. Factors of 1.7 and 3 for bottom-up moved levels to top-down that
took longer."""

PLACE_BAND = 1.15
"""A place's factor within this ratio counts as 1."""

RELEASE = 1.2
"""A thing keeps its own factor while that differs from the common one by more than this ratio."""

HYSTERESIS = 1.5
"""A new policy is considered if a factor has changed by more than this relative to the others."""

PLACE_HYSTERESIS = 1.1
"""The same for a change of a place's factor."""

COMMON_HYSTERESIS = 2.0
"""Factors in use are replaced if all together have changed by more than this. That changes the
predictions but no choice."""

KEEP, TRY, CONSIDER, REPLACE = range(4)
"""Return values of `learn`: keep the factors in use, try a place, replace the factors if a policy
by the new ones is clearly better, or replace them in any case."""

EVIDENCE_SHARE = 0.05
"""A search is evidence of a thing from this share of its seconds, measured or expected."""

FIRST_SHARE = 0.03
"""The same of a thing of which there is no evidence yet."""

PLACE_SHARE = 0.25
"""A search is evidence of a place from this share of its measured seconds."""

OPTIMISM = 1.4
"""A search that tries a place hopes that it is this many times as fast as predicted."""

PLACE_PATIENCE = 3
"""Searches before the first one tries a place. Each trial that fails doubles the number."""

PATIENCE = 32
"""Searches without evidence before a retry: the remembered ratios become the assumed one. A failed
retry doubles the number, so slow things are tried ever more rarely."""

# Columns of the memory, which has a row for each thing, then for each place at SMALL levels and at
# LARGE ones; the first WINDOW columns are ratios.
(
    KNOWN,
    NEXT,  # index of the oldest ratio
    IDLE,  # searches since the last evidence
    WAIT,  # searches without evidence before a retry, or a place's trial
    TRIAL,  # NONE; RETRIED: as assumed; HOPED: of a place, in a trial
    ASSUMED,  # the ratio before any is known: 1, or of a place the common factor
    RATIO,  # median of the remembered ratios
    FACTOR,  # of a strategy: without its place's
    OWN,  # whether FACTOR is not the common factor
    POOL,  # of a place: which strategies its ratios are of
    IN_USE,  # FACTOR when selectors got it
    USED,  # the factor that selectors use, with the place's
    CONSIDERED,  # FACTOR when a new policy was considered last
    EXPECTED,
    MEASURED,
) = range(WINDOW, WINDOW + 15)
MEMORY_COLUMNS = WINDOW + 15

NONE, RETRIED, HOPED = range(3)
"""Values of TRIAL."""

_LEAST_SECONDS = 1e-9
_ROUNDING = 1e-9
_SAME = 0.01  # levels with a smaller relative difference share one prediction


@njit(inline="always")
def _num_strategies(policy):
    """Return the number of things that are strategies, which come before migrations."""
    return 2 * policy.places.size


@njit(inline="always")
def _num_things(policy):
    return 2 * policy.places.size + 3 * policy.migrations.shape[1]


@njit(inline="always")
def _thing_of(policy, record):
    size = size_of_level(record[schema.FRONTIER_EDGES])
    return size * policy.places.size + int(record[schema.STRATEGY])


@kernel(counted=False, inner=True)
def _expected(policy, num_vertices, record, columns):
    """Return the expected seconds of a record's levels; `columns` are the first one's.

    Each further level is like the one before it. Afterwards `columns` are a further level's.
    Migrations use only numbers that are the same in both.
    """
    size = size_of_level(record[schema.FRONTIER_EDGES])
    weights = policy.weights[size, int(record[schema.STRATEGY])]
    seconds = dot(weights, columns)
    if record[schema.FURTHER_LEVELS] > 0.0:
        before = record[schema.PREVIOUS_EDGES]
        record[schema.PREVIOUS_EDGES] = record[schema.FRONTIER_EDGES]
        fill_columns(columns, num_vertices, record)
        record[schema.PREVIOUS_EDGES] = before
        seconds += record[schema.FURTHER_LEVELS] * dot(weights, columns)
    return seconds


@kernel(counted=False, inner=True)
def _migrations(policy, record, columns):
    """Return two migrations before a level, and the expected seconds of each; -1 for none.

    From one device to another, the migration to the host counts as part of the switch.
    """
    first, places = _num_strategies(policy), policy.migrations.shape[1]
    chosen = int(record[schema.STRATEGY])
    start, convert, switch, through = migrations_between(
        int(record[schema.PLACE]),
        _has_queue(record),
        policy.places[chosen],
        policy.top_down[chosen],
    )
    one, one_seconds, two, two_seconds = -1, 0.0, -1, 0.0
    if start >= 0:
        one = first + places * START + start
        one_seconds = migration_seconds(policy, START, start, columns)
    if convert >= 0:
        one = first + places * CONVERT + convert
        one_seconds = migration_seconds(policy, CONVERT, convert, columns)
    if switch >= 0:
        two = first + places * SWITCH + switch
        two_seconds = migration_seconds(policy, SWITCH, switch, columns)
    if through >= 0:
        two_seconds += migration_seconds(policy, SWITCH, through, columns)
    return one, one_seconds, two, two_seconds


@kernel(counted=False, inner=True)
def _group_end(policy, records, begin):
    """Return the end of the levels that share one measured time.

    Without a clock on the device only the whole launch is timed. All its levels then have the same
    seconds, to the last bit.
    """
    end = begin + 1
    place = policy.places[int(records[begin, schema.STRATEGY])]
    if place != schema.HOST:
        while (
            end < records.shape[0]
            and records[end, schema.SECONDS] == records[begin, schema.SECONDS]
            and records[end, schema.PLACE] == place
            and policy.places[int(records[end, schema.STRATEGY])] == place
        ):
            end += 1
    return end


@kernel(counted=False, inner=True)
def _note(memory, thing, expected, scale):
    if thing >= 0 and expected > 0.0:
        memory[thing, EXPECTED] += expected
        memory[thing, MEASURED] += expected * memory[thing, USED] * scale


@kernel(counted=False, inner=True)
def _corrected(memory, thing, expected):
    return expected * memory[thing, USED] if thing >= 0 else 0.0


@njit(inline="always")
def _is_like(record, other):
    """Tell whether one prediction serves two levels."""
    for column in (
        schema.FRONTIER_VERTICES,
        schema.FRONTIER_EDGES,
        schema.PREVIOUS_EDGES,
        schema.UNVISITED_VERTICES,
        schema.UNVISITED_EDGES,
    ):
        if abs(record[column] - other[column]) > _SAME * other[column]:
            return False
    return True


@kernel(counted=False, inner=True)
def add_up(policy, num_vertices, records, memory):
    """Fill EXPECTED and MEASURED of all things from a search's levels; return their seconds.

    If several things were measured together, their seconds are divided in proportion to the
    predictions with the factors in use. A migration that was not timed belongs to its level.
    `_charge_beyond` handles the start, except if one launch of several levels is timed as a whole:
    that time includes the start.

    `policy` is uncorrected. `records` is float64 (levels, record_width).
    """
    columns = policy.work
    memory[:, EXPECTED] = 0.0
    memory[:, MEASURED] = 0.0
    total = 0.0
    filled = -1  # level whose columns are filled; high-diameter graphs have many similar levels
    begin = 0
    while begin < records.shape[0]:
        end = _group_end(policy, records, begin)
        group_seconds, group_expected = 0.0, 0.0
        for i in range(begin, end):
            record = records[i]
            if filled < 0 or not _is_like(record, records[filled]):
                fill_columns(columns, num_vertices, record)
                filled = i
            group_seconds += record[schema.SECONDS]
            if i == 0 and end > 1:
                group_seconds += record[schema.TRANSFER_SECONDS]
            expected = _expected(policy, num_vertices, record, columns)
            if record[schema.FURTHER_LEVELS] > 0.0:
                filled = -1
            group_expected += _corrected(memory, _thing_of(policy, record), expected)
            total += record[schema.SECONDS] + record[schema.SELECT_SECONDS]
            if i == 0 and end == 1:
                continue
            one, one_seconds, two, two_seconds = _migrations(policy, record, columns)
            migrating = _corrected(memory, one, one_seconds) + _corrected(memory, two, two_seconds)
            total += record[schema.TRANSFER_SECONDS]
            if i == 0 or record[schema.TRANSFER_SECONDS] == 0.0:
                group_expected += migrating
            elif migrating > 0.0:
                _note(memory, one, one_seconds, record[schema.TRANSFER_SECONDS] / migrating)
                _note(memory, two, two_seconds, record[schema.TRANSFER_SECONDS] / migrating)
        scale = group_seconds / group_expected if group_expected > 0.0 else 0.0
        for i in range(begin, end):
            record = records[i]
            if filled < 0 or (end > begin + 1 and filled != i):
                fill_columns(columns, num_vertices, record)
                filled = i
            expected = _expected(policy, num_vertices, record, columns)
            if record[schema.FURTHER_LEVELS] > 0.0:
                filled = -1
            _note(memory, _thing_of(policy, record), expected, scale)
            if (i == 0 and end > 1) or (i > 0 and record[schema.TRANSFER_SECONDS] == 0.0):
                one, one_seconds, two, two_seconds = _migrations(policy, record, columns)
                _note(memory, one, one_seconds, scale)
                _note(memory, two, two_seconds, scale)
        begin = end
    return total


@kernel(counted=False, inner=True)
def _charge_beyond(policy, num_vertices, records, memory, seconds, total, overhead):
    """Charge a search's time beyond its levels to its start, or to its switches if it has any.

    If a search stays on one device, the time beyond its levels is the start, as in training
    (training/measure.py). If several places found parents, the search merges them at the end. So
    the switches bear the time that exceeds `overhead`, float64 (places,): the least overhead of
    searches that stayed at a place. Until one has, that is the expected start.
    """
    first, places = _num_strategies(policy), policy.migrations.shape[1]
    switches = first + places * SWITCH
    switching = 0.0
    for place in range(places):
        switching += memory[switches + place, MEASURED]
    beyond = seconds - total
    there = policy.places[int(records[0, schema.STRATEGY])]
    fill_columns(policy.work, num_vertices, records[0])
    start = first + places * START + there
    starting = migration_seconds(policy, START, there, policy.work)
    if switching == 0.0:
        overhead[there] = min(overhead[there], beyond)
        if records[0, schema.PLACE] < 0 and _group_end(policy, records, 0) == 1:
            memory[start, EXPECTED] = starting
            memory[start, MEASURED] = max(beyond, 0.0)
        return
    least = overhead[there] if overhead[there] < np.inf else starting * memory[start, USED]
    if beyond > least:
        scale = 1.0 + (beyond - least) / switching
        for place in range(places):
            memory[switches + place, MEASURED] *= scale


@kernel(counted=False, inner=True)
def _middle(values):
    """Return the median, or the lower of the two middle values."""
    for i in range(values.size):
        before = 0
        for j in range(values.size):
            before += values[j] < values[i] or (values[j] == values[i] and j < i)
        if before == (values.size - 1) // 2:
            return values[i]
    return 1.0


@kernel(counted=False, inner=True)
def _common(memory, strategies, column):
    count = strategies // 2
    values = memory[:count, FACTOR]  # scratch
    for s in range(count):
        large = memory[count + s]
        values[s] = large[column] if large[KNOWN] != 0.0 else memory[s, column]
    return _middle(values)


@kernel(counted=False, inner=True)
def _remember(row, ratio, band):
    """Replace the oldest ratio. A retry fails if it exceeds the assumed one by more than `band`."""
    if row[TRIAL] != NONE:
        row[WAIT] = PATIENCE if ratio < band * row[ASSUMED] else 2.0 * row[WAIT]
    row[int(row[NEXT])] = ratio
    row[NEXT] = (row[NEXT] + 1) % WINDOW
    row[KNOWN], row[TRIAL], row[IDLE] = 1.0, NONE, 0.0


@kernel(counted=False, inner=True)
def _remember_place(row, ratio):
    """Remember a place's ratio; that of a successful trial replaces all."""
    if row[TRIAL] == HOPED:
        row[:WINDOW] = ratio
    row[WAIT] = max(row[WAIT], PATIENCE) if row[KNOWN] != 0.0 else PATIENCE
    _remember(row, ratio, PLACE_BAND)


@kernel(counted=False, inner=True)
def _wait(row):
    """Count a search without evidence; after WAIT of them, retry strategies that look slow."""
    row[IDLE] += 1.0
    if row[TRIAL] == HOPED:
        _fail_trial(row)
    elif row[KNOWN] != 0.0 and row[IDLE] >= row[WAIT] and row[ASSUMED] < row[RATIO]:
        row[:WINDOW] = row[ASSUMED]
        row[TRIAL] = RETRIED


@kernel(counted=False, inner=True)
def _fail_trial(row):
    row[TRIAL], row[IDLE], row[WAIT] = NONE, 0.0, 2.0 * row[WAIT]


@njit(inline="always")
def _row_of_place(policy, thing):
    """Return the row of a strategy's place and of the thing's size, among the places' rows."""
    candidates = policy.places.size
    return policy.migrations.shape[1] * (thing // candidates) + policy.places[thing % candidates]


@kernel(counted=False, inner=True)
def _learn_places(policy, memory, common, total):
    """Learn the places' factors from strategies that have none of their own.

    Fill FACTOR of the places' rows, relative to the common factor. Return the largest change since
    they were considered. If other strategies have factors of their own than before, a place begins
    anew.
    """
    rows = memory[_num_things(policy) :]
    change = 1.0
    for i in range(rows.shape[0]):
        row = rows[i]
        expected, measured, pool = 0.0, 0.0, 0.0
        for thing in range(_num_strategies(policy)):
            if _row_of_place(policy, thing) == i and memory[thing, OWN] == 0.0:
                expected += memory[thing, EXPECTED]
                measured += memory[thing, MEASURED]
                pool += 2.0**thing
        if pool != row[POOL]:
            row[POOL], row[KNOWN], row[IDLE] = pool, 0.0, 0.0
            row[:WINDOW] = row[ASSUMED]
        for k in range(WINDOW):  # ratios that no search measured follow the common factor
            if row[k] == row[ASSUMED]:
                row[k] = common
        row[ASSUMED] = common
        if expected > 0.0 and measured >= PLACE_SHARE * total:
            _remember_place(row, measured / expected)
        else:
            _wait(row)
        row[RATIO] = _middle(row[:WINDOW])
        relative = min(max(row[RATIO] / common, 1.0 / DEAD_BAND), DEAD_BAND)
        row[FACTOR] = 1.0 if 1.0 / PLACE_BAND < relative < PLACE_BAND else relative
        since = row[FACTOR] / row[CONSIDERED]
        change = max(change, since, 1.0 / since)
    return change


@kernel(counted=False, inner=True)
def _find_factors(policy, memory, total):
    """Fill FACTOR and OWN from RATIO; return KEEP, CONSIDER or REPLACE."""
    strategies, things = _num_strategies(policy), _num_things(policy)
    common = _common(memory, strategies, RATIO)
    common_in_use = _common(memory, strategies, IN_USE)
    band = DEAD_BAND if abs(common_in_use - 1.0) < _ROUNDING else RELEASE
    if 1.0 / band < common < band:
        common = 1.0
    together = common / common_in_use
    since = common / _common(memory, strategies, CONSIDERED)
    change = 1.0
    for thing in range(things):
        row = memory[thing]
        far = abs(math.log(row[RATIO] / common))
        limit = RELEASE if row[OWN] != 0.0 else DEAD_BAND
        row[OWN] = 1.0 if row[KNOWN] != 0.0 and far > math.log(limit) else 0.0
        row[FACTOR] = row[RATIO] if row[OWN] != 0.0 else common
        relative = row[FACTOR] / row[CONSIDERED] / since
        change = max(change, relative, 1.0 / relative)
    changed = _learn_places(policy, memory, common, total) > PLACE_HYSTERESIS
    if max(together, 1.0 / together) > COMMON_HYSTERESIS:
        return REPLACE
    return CONSIDER if changed or change > HYSTERESIS else KEEP


@kernel(counted=False, inner=True)
def _may_try(policy, memory):
    """Tell whether the time has come to try one of several places."""
    if policy.migrations.shape[1] > 1:
        for i in range(_num_things(policy), memory.shape[0]):
            if _is_due(memory[i]):
                return True
    return False


@njit(inline="always")
def _is_due(row):
    """Tell whether nothing is known of a place, and the time of its trial has come."""
    return row[POOL] != 0.0 and row[KNOWN] == 0.0 and row[IDLE] >= row[WAIT]


def begins_trial(policy: Policy, memory: npt.NDArray[np.float64]) -> bool:
    """Begin the trial of a place if its time has come; tell whether.

    The next search is the trial. `learn` from it if it succeeds, else call `fail_trial`.
    """
    rows, places = memory[_num_things.py_func(policy) :], policy.migrations.shape[1]
    due = [i for i, row in enumerate(rows) if _is_due.py_func(row)]
    if places == 1 or not due:
        return False
    place = min(i % places for i in due)
    for i in due:
        if i % places == place:
            rows[i, TRIAL] = HOPED
    return True


def fail_trial(policy: Policy, memory: npt.NDArray[np.float64]) -> None:
    """End the trial of a place without success: the next one comes after twice as many searches."""
    for row in memory[_num_things.py_func(policy) :]:
        if row[TRIAL] == HOPED:
            _fail_trial.py_func(row)


def new_memory(policy: Policy) -> npt.NDArray[np.float64]:
    """Return the memory of a model that counts as exact, float64 (rows, MEMORY_COLUMNS)."""
    things = _num_things.py_func(policy)
    memory = np.zeros((things + 2 * policy.migrations.shape[1], MEMORY_COLUMNS))
    memory[:, :WINDOW] = 1.0
    memory[:, (ASSUMED, RATIO, FACTOR, IN_USE, USED, CONSIDERED)] = 1.0
    memory[:things, WAIT] = PATIENCE
    memory[things:, WAIT] = PLACE_PATIENCE
    return memory


def factors_of(policy: Policy, memory: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the factors of all things: a strategy's own, or the common one times its place's."""
    things, strategies = _num_things.py_func(policy), _num_strategies.py_func(policy)
    factors = memory[:things, FACTOR].copy()
    of_places = _of_places(policy, memory[things:, FACTOR])
    factors[:strategies] *= np.where(memory[:strategies, OWN] != 0.0, 1.0, of_places)
    return np.clip(factors, 1.0 / BOUND, BOUND)


def hoped_factors(
    policy: Policy, memory: npt.NDArray[np.float64], used: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return the factors `used`; of a place that is tried they are `OPTIMISM` times smaller."""
    things, strategies = _num_things.py_func(policy), _num_strategies.py_func(policy)
    factors = used.copy()
    factors[:strategies][_of_places(policy, memory[things:, TRIAL]) == HOPED] /= OPTIMISM
    return factors


def _of_places(policy: Policy, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the values of strategies, given places' values at SMALL and at LARGE levels."""
    return values.reshape(2, -1)[:, policy.places].ravel()


@kernel(counted=False)
def learn(policy, num_vertices, records, seconds, overhead, memory):
    """Learn from one search's times; return KEEP, TRY, CONSIDER or REPLACE.

    `policy` is uncorrected; the search itself may have used another one. STRATEGY of `records`,
    float64 (levels, record_width), numbers this policy's candidates. `seconds` are of the whole
    search. Updated are `overhead`, float64 (places,), the least seconds beyond the levels of
    searches that stayed at each place, inf at first, and `memory` (`new_memory`), FACTOR included.
    """
    total = add_up(policy, num_vertices, records, memory)
    if total <= 0.0:
        return KEEP
    _charge_beyond(policy, num_vertices, records, memory, seconds, total, overhead)
    for thing in range(_num_things(policy)):
        row = memory[thing]
        expected, measured = row[EXPECTED], max(row[MEASURED], _LEAST_SECONDS)
        share = max(measured, expected * row[USED]) / total
        least = EVIDENCE_SHARE if row[KNOWN] != 0.0 else FIRST_SHARE
        if expected > 0.0 and share >= least:
            _remember(row, min(max(measured / expected, 1.0 / BOUND), BOUND), DEAD_BAND)
        else:
            _wait(row)
        row[RATIO] = _middle(row[:WINDOW])
    outcome = _find_factors(policy, memory, total)
    if outcome == KEEP and _may_try(policy, memory):
        return TRY
    return outcome
