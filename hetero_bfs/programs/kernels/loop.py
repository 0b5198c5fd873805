"""The loop of a vertex program on the host; host.py has its phases.

`arrays` is the head of a run's struct (parallel.py): the fields below, which all programs share.
So the loop and the phases that read only these are compiled once. The loop calls a program's own
phases by address.

    threads, searched, num_vertices, num_edges, num_totals
    all_active, has_identity, has_priority, collects        flags
    prepares                                    flag: pulls read `outgoing`
    applies_in_pulls, applies_in_pushes         flags: whether they apply messages at once
    active      pair of uint64 (n / 64,)    bitmaps of active vertices, in pulls
    next        pair of lists       active vertices; one list is read, the other one written
    activated   int64 (threads, 8)  vertices that these pulls made active, and their edges
    touched     int32 (searched,)   the last push in which a vertex was listed; at first 0
    sums        float64 (chunks, totals)    each chunk's part of the program's totals
    totals      float64 (totals,)
    total_kinds int64 (totals,)     how shares combine to each total: an index of TOTALS
    loop        int64 (16,)         the words from ITERATION to IS_MARKED
    limits      float64 (8,)        the bucket's END and WIDTH
    lowest      float64 (threads, 8)    lowest priority that waits, by thread
    costs       float64 (NUM_COSTS,)    seconds (program_decision.py); each iteration may correct
                                    the costs of directions
    work        int64 (NUM_TASKS,)  addresses of the phases; 0 if the program lacks one
    *_blocks, owners, cursor, counters, place   for the lists NEXT, FAR and TOUCHED (thread_pool.py)
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hetero_bfs.devices.cpu.thread_pool import (
    ITEMS,
    OWN,
    block_of,
    chunk_of,
    close_list,
    even_size,
    push_item,
    share,
)
from hetero_bfs.programs.schema import TOTALS, Limit, Waiting
from hetero_bfs.scheduling.program_decision import (
    CHANGES_PER_EDGE,
    MIGRATION,
    choose,
    learn,
    migrates,
    touches,
)
from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.intrinsics import atomic_or, clock_seconds, trailing_zeros
from hetero_bfs.support.parallel import call_at

NEXT, FAR, TOUCHED = range(3)
"""Numbers of the lists."""

ACTIVE = 3
"""The pair of bitmaps, in SIDES."""

SIDES = ITEMS + 1
"""Word of a job: bit `list` says which array of that pair is read."""

ROUND = OWN
"""Word that is kept from run to run: the number of the push."""

NOT_LISTED, WAITING, RUN = (np.int8(value) for value in Waiting)
"""Values of `waiting` in host.py."""

START, PUSH, MARK, LIST, PREPARE, GATHER, APPLY, APPLY_ALL, SELECT, FINISHED = range(10)
NUM_TASKS = 10

ITERATION, NUM_ACTIVE, CLOCKED, TRACKS, RESUMES = range(5)
"""The words from CLOCKED on are flags. CLOCKED: records have the seconds of choosing. TRACKS:
vertices whose state is written are marked in `changed`. RESUMES: the run continues from the words
below."""

BLOCKS, LISTED, LISTED_EDGES, EXPECTED_RECEIVERS, IS_MARKED, TOUCHES = range(5, 11)
"""Number of blocks of the list of active vertices, if they are listed. Number of vertices listed
or marked, and of their edges. Expected number of receivers. Flag: the bitmap has the active
vertices. Flag: a pull that collects messages goes only to receivers that are touched."""

END, WIDTH = int(Limit.END), int(Limit.WIDTH)

STRATEGY, VERTICES, EDGES, SECONDS, CHOOSING = range(5)
"""Columns of a record. VERTICES counts senders. CHOOSING is the part of SECONDS that the choice of
a direction took."""

SENDERS, SENDERS_EDGES, RECEIVERS, CHANGES = range(5, 9)
"""Known before the iteration: number of senders and of their edges, expected number of receivers,
and CHANGES_PER_EDGE of the costs."""

RECORD_WIDTH = 9

SUM_CHUNK = 1 << 12
"""Vertices per chunk with sums: fixed, so that sums do not depend on the number of threads."""

_LEAST_VERTICES = 1 << 12
_LEAST_WORDS = 1 << 8
_LAST_ROUND = np.iinfo(np.int32).max
_ZERO = np.int64(0)
_NO_TOTAL = tuple(TOTALS.values())


@njit(inline="always")
def add_sums(arrays, chunks):
    for i in range(arrays.num_totals):
        kind = arrays.total_kinds[i]
        total = _NO_TOTAL[kind]
        for chunk in range(chunks):
            share = arrays.sums[chunk, i]
            if kind == 0:
                total += share
            elif share < total if kind == 1 else share > total:
                total = share
        arrays.totals[i] = total


@njit(inline="always")
def flip(control, which):
    """Swap a pair: read the array that was written."""
    control[SIDES] ^= 1 << which


@njit(inline="always")
def written(control, which):
    """Return which array of a pair is written."""
    return 1 - (control[SIDES] >> which & 1)


@kernel(counted=False, inlined=True, inner=True)
def take_lowest(bits):
    """Return the bits without the lowest one, and its position."""
    return bits & (bits - np.uint64(1)), np.int64(trailing_zeros(bits))


@kernel(counted=False, inner=True)
def mark_listed(control, arrays, chunk, me):
    """Set the bits of the vertices that are listed: the phase MARK."""
    begin, end = block_of(arrays.next_blocks, chunk)
    items = arrays.next[control[SIDES] >> NEXT & 1]
    active = arrays.active[control[SIDES] >> ACTIVE & 1]
    for i in range(begin, end):
        u = np.int64(items[i])
        atomic_or(active, u >> 6, np.uint64(1) << np.uint64(u & 63))
    return _ZERO, _ZERO, _ZERO


@kernel(counted=False, inner=True)
def list_marked(control, arrays, chunk, me):
    """List the vertices whose bits are set: the phase LIST. A chunk has words of the bitmap."""
    begin, end = chunk_of(control, chunk)
    items = arrays.next[written(control, NEXT)]
    at = arrays.cursor[me, NEXT]
    active = arrays.active[control[SIDES] >> ACTIVE & 1]
    for i in range(begin, end):
        word = active[i]
        while word != 0:
            word, place = take_lowest(word)
            at = push_item(arrays, NEXT, items, at, (i << 6) + place, me)
    arrays.cursor[me, NEXT] = at
    return _ZERO, _ZERO, _ZERO


@njit(inline="always")
def _pull(control, arrays, blocks, is_marked):
    """Gather along incoming edges; return edges scanned, receivers, and bits set."""
    searched = arrays.searched
    if arrays.all_active == 0 and not is_marked:
        arrays.active[control[SIDES] >> ACTIVE & 1][:] = 0
        share(control, arrays, MARK, blocks, 1)
    if arrays.prepares:
        share(control, arrays, PREPARE, searched, even_size(arrays, searched, _LEAST_VERTICES))
    size = (even_size(arrays, searched, 1 << 9) + 63) & ~63  # whole words of the bitmap
    return share(control, arrays, GATHER, searched, size)


@njit(inline="always")
def _activated(arrays):
    """Return and clear the number of vertices that a pull made active, and of their edges."""
    active, edges = _ZERO, _ZERO
    for thread in range(arrays.threads):
        active += arrays.activated[thread, 0]
        edges += arrays.activated[thread, 1]
        arrays.activated[thread, :2] = 0
    return active, edges


@njit(inline="always")
def _next_bucket(control, arrays):
    """Move the bucket to the lowest priority that waits; return the same as `begin_run`.

    The vertex of the lowest priority may have run since. Then the bucket may be empty, and the next
    one begins at the lowest priority of vertices that still wait.
    """
    while True:
        far, _ = close_list(arrays, FAR, arrays.far_blocks)
        flip(control, FAR)
        lowest = np.inf
        for thread in range(arrays.threads):
            lowest = min(lowest, arrays.lowest[thread, 0])
            arrays.lowest[thread, 0] = np.inf
        arrays.limits[END] = lowest + arrays.limits[WIDTH]
        if not arrays.limits[END] > lowest:  # the width is lost in rounding
            arrays.limits[END] = np.inf
        active, edges, _ = share(control, arrays, SELECT, far, 1)
        blocks, listed = close_list(arrays, NEXT, arrays.next_blocks)
        flip(control, NEXT)
        if blocks != 0 or active == 0:
            return blocks, listed, active, edges


@njit(inline="always")
def next_round(control, arrays):
    """Return a push number that no earlier push had, in any run."""
    if control[ROUND] == _LAST_ROUND:
        arrays.touched[:] = 0
        return 1
    return control[ROUND] + 1


@njit(inline="always")
def is_finished(control, arrays):
    address = arrays.work[FINISHED]
    return address != 0 and call_at(address, control, arrays, 0, 0)[0] != 0


@njit(inline="always")
def begin_run(control, arrays, bucket_end):
    """Write the initial states.

    Returns the numbers of listed blocks, listed vertices, active vertices, and listed vertices'
    edges.
    """
    control[SIDES], arrays.loop[ITERATION] = 0, 0
    for which in range(3):
        arrays.counters[which, 0] = 0
        for thread in range(arrays.threads):
            arrays.cursor[thread, which] = 0
    for thread in range(arrays.threads):
        arrays.lowest[thread, 0] = np.inf
    arrays.limits[END] = bucket_end
    n = arrays.num_vertices
    active, edges, _ = share(control, arrays, START, n, SUM_CHUNK)
    add_sums(arrays, -(-n // SUM_CHUNK))
    blocks, listed = close_list(arrays, NEXT, arrays.next_blocks)
    flip(control, NEXT)
    return blocks, listed, active, edges


@njit(inline="always")
def _decide(arrays, direction, listed, edges, receivers):
    if arrays.all_active != 0 or direction != 0:
        return arrays.all_active != 0 or direction == 2, 0.0
    if arrays.collects != 0:
        return not touches(edges, arrays.searched, arrays.num_edges), 0.0
    return choose(arrays, listed, edges, receivers)


@njit(inline="always")
def _keep(loop, blocks, listed, active, edges, receivers, is_marked):
    """Write the state from which a run can continue."""
    loop[BLOCKS], loop[LISTED], loop[LISTED_EDGES] = blocks, listed, edges
    loop[NUM_ACTIVE], loop[IS_MARKED] = active, is_marked
    loop[EXPECTED_RECEIVERS] = np.int64(receivers)


@njit(inline="always")
def _send(control, arrays, pulls, blocks, is_marked):
    """Pull or push; return edges scanned, and two more numbers.

    After a pull these are receivers and listed vertices (if the pull applies). After a push that
    applies they are active vertices and their edges.
    """
    if pulls:
        return _pull(control, arrays, blocks, is_marked)
    if is_marked:  # list the vertices of the bitmap
        words = -(-arrays.searched // 64)
        share(control, arrays, LIST, words, even_size(arrays, words, _LEAST_WORDS))
        blocks, _ = close_list(arrays, NEXT, arrays.next_blocks)
        flip(control, NEXT)
    control[ROUND] = next_round(control, arrays)
    counts = share(control, arrays, PUSH, blocks, 1)
    if arrays.collects != 0:
        arrays.loop[TOUCHES] = 1
        scanned, _, _ = _pull(control, arrays, blocks, False)
        arrays.loop[TOUCHES] = 0
        return counts[0] + scanned, _ZERO, _ZERO
    return counts


@njit(inline="always")
def _apply(control, arrays, pulls, blocks, listed, active, edges):
    """Apply the messages, unless the pull or the push has, and list the active vertices.

    Returns blocks and vertices of that list, active vertices, and their edges.
    """
    if arrays.all_active != 0:
        active = np.int64(arrays.num_vertices)
        share(control, arrays, APPLY_ALL, active, SUM_CHUNK)
        add_sums(arrays, -(-active // SUM_CHUNK))
    elif pulls and arrays.applies_in_pulls != 0:
        active, edges = _activated(arrays)
        flip(control, ACTIVE)
    else:
        if pulls or arrays.applies_in_pushes == 0:
            touched, _ = close_list(arrays, TOUCHED, arrays.touched_blocks)
            active, edges, _ = share(control, arrays, APPLY, touched, 1)
            add_sums(arrays, touched)
        blocks, listed = close_list(arrays, NEXT, arrays.next_blocks)
        flip(control, NEXT)
    return blocks, listed, active, edges


@kernel(counted=False)
def run(control, arrays, planned, max_iterations, records):
    """Run the program, or continue a run (RESUMES).

    `planned` is the number of planned iterations, 0 to choose. The rows of `records` say in
    STRATEGY whether they pull; the last one is for all later iterations. If all vertices are
    active, all iterations pull. `max_iterations` is of the whole run. `records`, float64 (any,
    RECORD_WIDTH), gets a row for each iteration; later ones that do not fit are not recorded.

    Returns the iterations, and whether the run converged: False if max_iterations ended it, or if
    it will migrate.
    """
    n = arrays.num_vertices
    all_active, has_priority = arrays.all_active != 0, arrays.has_priority != 0
    takes_one, loop, costs = arrays.has_identity == 0, arrays.loop, arrays.costs
    is_clocked, may_migrate = loop[CLOCKED] != 0, costs[MIGRATION] < np.inf
    if loop[RESUMES] == 0:
        bucket_end = -np.inf if has_priority else np.inf
        blocks, listed, active, edges = begin_run(control, arrays, bucket_end)
        receivers = np.float64(arrays.searched - active if takes_one else arrays.searched)
        costs[CHANGES_PER_EDGE] = 1.0
        _keep(loop, blocks, listed, active, edges, receivers, False)
    iteration, active, blocks = loop[ITERATION], loop[NUM_ACTIVE], loop[BLOCKS]
    listed, edges = loop[LISTED], loop[LISTED_EDGES]
    receivers = np.float64(loop[EXPECTED_RECEIVERS])
    is_marked = loop[IS_MARKED] != 0  # the bitmap, not the list, has the active vertices
    while iteration < max_iterations:
        if has_priority and listed == 0:
            blocks, listed, active, edges = _next_bucket(control, arrays)
            is_marked = False
        if (n if all_active else listed) == 0:
            return iteration, True
        began = clock_seconds()
        direction = 0  # chosen below
        if planned != 0:
            direction = 2 if records[min(iteration, planned - 1), STRATEGY] != 0.0 else 1
        if may_migrate and migrates(arrays, direction, active, listed, edges, receivers):
            _keep(loop, blocks, listed, active, edges, receivers, is_marked)
            return iteration, False
        pulls, expected = _decide(arrays, direction, listed, edges, receivers)
        choosing = clock_seconds() - began if is_clocked else 0.0
        sent, sent_along = active, edges
        known = listed, edges, receivers, costs[CHANGES_PER_EDGE]
        scanned, first, second = _send(control, arrays, pulls, blocks, is_marked)
        if pulls:
            receivers, listed = np.float64(first), second
        else:
            active, edges = first, second
        loop[ITERATION] = iteration
        is_marked = pulls and arrays.applies_in_pulls != 0
        blocks, listed, active, edges = _apply(
            control, arrays, pulls, blocks, listed, active, edges
        )
        if takes_one:  # a vertex rarely takes a second message
            receivers = max(receivers - active, 0.0)
        costs[CHANGES_PER_EDGE] = min(active / max(sent_along, 1), 1.0)
        seconds = clock_seconds() - began
        learn(arrays, pulls, expected, seconds)
        if iteration < records.shape[0]:
            record = records[iteration]
            record[STRATEGY], record[VERTICES], record[EDGES] = pulls, sent, scanned
            record[SECONDS], record[CHOOSING] = seconds, choosing
            record[SENDERS], record[SENDERS_EDGES], record[RECEIVERS], record[CHANGES] = known
        iteration += 1
        loop[ITERATION], loop[NUM_ACTIVE] = iteration, active
        if is_finished(control, arrays):
            return iteration, True
    if has_priority and listed == 0:
        blocks, listed, active, edges = _next_bucket(control, arrays)
        is_marked = False
    _keep(loop, blocks, listed, active, edges, receivers, is_marked)
    return iteration, not all_active and listed == 0
