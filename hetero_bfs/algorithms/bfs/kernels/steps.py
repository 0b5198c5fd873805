"""The data between the host and the level loop on an OpenCL device (steps.cl), compiled.

A search's state goes to the device as uint64 words; schema.py names the first ones. The state comes
back at the head of the report. A row for each level that ran follows it.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hetero_bfs.scheduling import schema
from hetero_bfs.scheduling.schema import advance, has_queue, row_of
from hetero_bfs.support.compiling import kernel

SOURCE = schema.PLACE  # a state on the device needs no place
(
    STEP,
    STATUS,
    LIMIT,  # levels
    FLAGS,
    BEGAN,  # clock when the level began
    DONE,  # number of the last step, which selects its counter
    PENDING,  # STEP is decided and not run yet
    DECIDED,  # clock when the level's strategy was chosen, before a conversion to a queue
    MODELLED_VERTICES,  # the state of the last level for which a model was evaluated
    MODELLED_EDGES,
    MODELLED_UNVISITED,  # edges
    MODELLED_REPRESENTATION,  # plus 2 times `steps_of` (policy.py)
    MODELLED_WITHIN,  # the ratio between levels up to which that choice holds, as a REAL's bits
    HELD,  # finds of a bottom-up level before PULL_REST, packed; 0 otherwise
) = range(schema.CHOSEN + 1, schema.CHOSEN + 15)
STATE_WORDS = HELD + 1
"""The first words of a state on the device are as in schema.py, up to CHOSEN."""

DECIDE, BEGIN, TO_QUEUE, PUSH, ALONE, PULL, INVALIDATE, COOPERATE, PULL_REST = range(9)
"""Values of STEP: the next step, or the last one. PULL_REST: all work-groups read the lists that a
bottom-up level left (bottom_up.cl)."""

RUNNING, ENDED, LEAVES, FAILED = range(4)
"""Values of STATUS. ENDED: nothing is left to find, or LIMIT levels are done. LEAVES: the host must
run CHOSEN. FAILED: not all work-groups made progress."""

INVALIDATES, CONVERTS, PROBES = 1, 2, 4
"""Bits of FLAGS. INVALIDATES: leave no stale parents at the end. CONVERTS: only convert the bitmap
to a queue. PROBES: only find out whether all work-groups make progress at the same time."""

ROWS = 2 * STATE_WORDS
ROW_WORDS = 5
"""The position of the levels' rows in `report`, and the words of each row."""

NUM_COUNTERS, COUNTER_WORDS = 3, 2

OPENCL = {n: int(v) for n, v in globals().items() if n.isupper() and isinstance(v, int)}
"""Numbers for steps.cl and the files after it (built_programs.py)."""

_NANOSECOND = 1e-9
_FOUND, _CANDIDATE, _DECIDED, _BEGAN, _ENDED = range(ROW_WORDS)
_advance = kernel(advance, counted=False, inner=True)
_has_queue = kernel(has_queue, counted=False, inner=True)
_row_of = kernel(row_of, counted=False, inner=True)


@kernel(counted=False)
def write_state(state, source, limit, flags, words):
    """Fill `words`, uint64 (STATE_WORDS,), with a search's state (schema.py) for the device.

    words[DONE] stays.
    """
    done = words[DONE]
    words[:] = 0
    words[DONE] = done
    for i in range(schema.CHOSEN + 1):
        words[i] = np.uint64(max(state[i], 0.0))
    words[schema.REPRESENTATION] = 0 if _has_queue(state) else schema.BITMAP
    words[SOURCE] = source
    words[LIMIT] = limit
    words[FLAGS] = flags


@njit(inline="always")
def _begin_record(state, record):
    """Begin the record of a level that the device has chosen; predictions are filled in later."""
    for column in range(schema.RECORD_STATE):
        record[column] = state[column]
    for column in range(schema.PREDICTED, record.size):
        record[column] = np.nan
    record[schema.SELECT_SECONDS] = record[schema.TRANSFER_SECONDS] = 0.0
    record[schema.FURTHER_LEVELS] = 0.0
    record[schema.CHOSEN_AT] = _row_of(state)
    record[schema.WITHIN] = 1.0  # the host has a choice of its own


@kernel(counted=False)
def begin_next(state, words, records):
    """Begin the record of the level for which the device leaves the search to the host.

    `words` is the state on the device. If it converted a bitmap to a queue, the frontier is that
    queue; the record has the bitmap, as other converted levels do, and the seconds of the
    conversion.
    """
    record = records[_row_of(state)]
    _begin_record(state, record)
    if words[schema.REPRESENTATION] == schema.QUEUE and not _has_queue(state):
        state[schema.REPRESENTATION] = schema.QUEUE
        state[schema.FRONTIER_VERTICES], state[schema.FRONTIER_EDGES] = (
            np.float64(words[schema.FRONTIER_VERTICES]),
            np.float64(words[schema.FRONTIER_EDGES]),
        )
    record[schema.STRATEGY] = state[schema.CHOSEN] = np.float64(words[schema.CHOSEN])
    record[schema.TRANSFER_SECONDS] = np.int64(words[BEGAN] - words[DECIDED]) * _NANOSECOND


@kernel(counted=False)
def read_rows(rows, edge_bits, top_down, seconds, state, records):
    """Replay levels that the device ran: fill one record each, and advance the state.

    `rows` is uint64 (levels, ROW_WORDS), `edge_bits` the packed counter's, `top_down` bool
    (candidates,), `state` float64 (STATE_SIZE,). The host measured the whole launch to take
    `seconds`. Time that belongs to no level counts as the first level's transfer. If the device has
    no clock, all levels get equal times. Rows of `records`, float64 (rows, record_width), are
    written from that of the next level on; the first one has its choice already. If a bitmap of a
    directed graph was converted to a queue, they count its vertices without edges too.
    """
    bits = np.uint64(edge_bits)
    first = _row_of(state)
    clocked = rows[0, _BEGAN] > 0
    rest = seconds
    for i in range(rows.shape[0]):
        record = records[first + i]
        if i:
            _begin_record(state, record)
        if clocked:
            turning = np.int64(rows[i, _BEGAN] - rows[i, _DECIDED]) * _NANOSECOND
            record[schema.TRANSFER_SECONDS] += turning
            rest -= turning
        chosen = np.int64(rows[i, _CANDIDATE])
        record[schema.STRATEGY] = chosen
        record[schema.SECONDS] = seconds / rows.shape[0]
        if clocked:
            record[schema.SECONDS] = np.int64(rows[i, _ENDED] - rows[i, _BEGAN]) * _NANOSECOND
        rest -= record[schema.SECONDS]
        record[schema.EDGES_SCANNED] = -1
        found = np.int64(rows[i, _FOUND] >> bits)
        edges = np.int64(rows[i, _FOUND] & ((np.uint64(1) << bits) - np.uint64(1)))
        record[schema.FOUND_VERTICES] = found
        state[schema.PLACE] = schema.DEVICE
        _advance(state, schema.QUEUE if top_down[chosen] else schema.BITMAP, found, edges)
    records[first, schema.TRANSFER_SECONDS] += max(rest, 0.0)
