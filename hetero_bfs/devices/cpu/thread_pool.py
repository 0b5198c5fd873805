"""A thread pool for levels that take microseconds: a master and its workers.

The master runs the search. Each piece of work worth sharing is a phase: the master writes down what
to do and begins it, does a share, and ends it when all shares are done. A worker takes part if it
comes before that; a worker that sleeps holds nobody up. There are two kinds of phases. One is cut
into chunks, which whoever is there takes until none is left. In the other each thread's share is
its own; the master alone does the shares of those who do not come, after a moment.

Chunk number c belongs to thread c % threads, who takes its own first and then others': so a thread
meets the same part of the graph in search after search, and has it in its own cache.

Workers spin for a short while after the last phase, then let others run, then sleep.

The control block is an int64 array; what different threads write often is on different cache lines
(8 words):

    JOB         what to do, its number of chunks first; written before the phase begins, and but for
                PHASE read only by who has taken its share of it
    PHASE       last word of JOB: number of the present phase << PARTICIPANT_BITS | threads that may
                take part in it
    SHUTDOWN    not 0: workers return
    SLEEPERS    workers that sleep on CONDITION, or more
    OWN         words that stay from phase to phase, for the job's own use
    MUTEX, CONDITION    of pthreads, for sleeping
    SHARES      two lines per thread. The first: the last phase (as in PHASE) in which its share is
                taken; as second word, in which it is done; and what it reports of it. The second: a
                phase's number << CHUNK_BITS | how many of its chunks are taken in that
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.intrinsics import (
    clock_seconds,
    compare_and_swap,
    condition_init,
    condition_wait,
    fetch_add,
    load,
    mutex_init,
    mutex_lock,
    mutex_unlock,
    relax,
    store,
    wake_all,
    yield_processor,
)

LINE = 8
JOB, OWN, SHUTDOWN, SLEEPERS, MUTEX, CONDITION, SHARES = 0, 8, 16, 24, 32, 40, 64
CHUNKS, PHASE = JOB, JOB + 7
PARTICIPANT_BITS = 11
CHUNK_BITS = 24

_LINES = 2 * LINE  # of a thread, in SHARES
_DONE, _REPORT = 1, 2  # words of its first line
_PARTICIPANTS = (np.int64(1) << PARTICIPANT_BITS) - 1
_TAKEN = (np.int64(1) << CHUNK_BITS) - 1
_TAGS = (np.int64(1) << (63 - CHUNK_BITS)) - 1
_PATIENCE = 64  # looks at a share that nobody has taken yet: a microsecond or two
_SPINS_PER_LOOK = 64
_SPINS_BEFORE_YIELD = 4096
_SPIN_SECONDS = 100e-6
_AWAKE_SECONDS = 2e-3


def control_words(threads: int) -> int:
    """Return the size of the control block of a thread pool, in words."""
    return SHARES + _LINES * threads


@kernel(counted=False)
def initialise(control):
    """Prepare a control block of zeros."""
    mutex_init(control, MUTEX)
    condition_init(control, CONDITION)


@kernel(counted=False, inner=True)
def begin_phase(control, participants, threads):
    """Begin a phase, whose words are already written, for threads below `participants`.

    Those are woken if more sleep than there are others. Returns the phase.
    """
    word = control[PHASE]
    fetch_add(control, PHASE, (word | _PARTICIPANTS) + 1 - word + participants)
    if load(control, SLEEPERS) > threads - participants:
        mutex_lock(control, MUTEX)
        wake_all(control, CONDITION)
        store(control, SLEEPERS, 0)  # not by who wakes, which takes until it gets the mutex
        mutex_unlock(control, MUTEX)
    return control[PHASE]


@njit(inline="always")
def take_share(control, thread, phase):
    """Tell whether a thread's share of a phase is now the caller's."""
    word = SHARES + _LINES * thread
    taken = load(control, word)
    return taken < phase and compare_and_swap(control, word, taken, phase)


@njit(inline="always")
def end_share(control, thread, phase):
    """Note that a thread's share of a phase is done."""
    store(control, SHARES + _LINES * thread + _DONE, phase)


@njit(inline="always")
def report_of(control, thread):
    """Return what a thread reports of its share of a phase: LINE - 2 words, for the job's own use.

    They arrive with the word that says that the share is done.
    """
    line = SHARES + _LINES * thread
    return control[line + _REPORT : line + LINE]


@kernel(counted=False, inner=True)
def await_share(control, thread, phase, patience=_PATIENCE):
    """Wait until a thread's share of a phase is done; True if it has not come and now is too late.

    Its share is the caller's then.
    """
    word = SHARES + _LINES * thread
    looks = 0
    while load(control, word + _DONE) < phase:
        looks += 1
        if looks > patience and load(control, word) < phase and take_share(control, thread, phase):
            return True
        _pause(looks)
    return False


@njit(inline="always")
def end_chunks(control, phase):
    """End a phase whose chunks are all taken: wait for those who came, let in nobody else.

    Returns the sums of the first three words that those report of their chunks, as each must that
    took its share, also if no chunk was left.
    """
    first, second, third = np.int64(0), np.int64(0), np.int64(0)
    for thread in range(1, phase & _PARTICIPANTS):
        if not await_share(control, thread, phase, 0):
            report = report_of(control, thread)
            first += report[0]
            second += report[1]
            third += report[2]
    return first, second, third


@njit(inline="always")
def take_chunk(control, me, threads):
    """Return the number of a chunk that is now the caller's, -1 if none is left to it.

    The master may take everybody's chunks, a worker those of the threads 1, 2, 4 ... after it: if
    all looked at all others' lines in the end, that would take longer than a short phase.
    """
    number = control[PHASE] >> PARTICIPANT_BITS & _TAGS
    chunks = control[CHUNKS]
    owners = min(threads, chunks)  # whoever takes part has a number below this
    distance = 0
    while distance < owners:
        owner = me + distance
        if owner >= owners:
            owner -= owners
        distance += max(distance, 1) if me else 1
        share = (chunks - owner + threads - 1) // threads
        taken = _take_next(control, SHARES + _LINES * owner + LINE, number, share)
        if taken >= 0:
            return taken * threads + owner
    return -1


@njit(inline="always")
def _take_next(control, word, tag, share):
    """Take the next of a thread's chunks; return which of them it is, -1 if all are taken."""
    while True:
        taken = load(control, word)
        if taken >> CHUNK_BITS == tag:
            which = share
            if taken & _TAKEN < share:
                which = fetch_add(control, word, 1) & _TAKEN
            return which if which < share else np.int64(-1)
        if compare_and_swap(control, word, taken, tag << CHUNK_BITS | 1):
            return np.int64(0)


@njit(inline="always")
def _pause(looks):
    """Wait a little: the processor may be needed by whom a thread waits for."""
    if looks < _SPINS_BEFORE_YIELD:
        relax()
    else:
        yield_processor()


@kernel(counted=False, inner=True)
def await_phase(control, me, last):
    """Wait, spinning, yielding, then asleep, for another phase than `last` that thread `me` is in.

    Returns it (0 is before the first), -1 on shutdown.
    """
    began = clock_seconds()
    while True:
        for _ in range(_SPINS_PER_LOOK):
            phase = load(control, PHASE)
            if phase != last and me < phase & _PARTICIPANTS:
                return phase
            relax()
        if load(control, SHUTDOWN):
            return np.int64(-1)
        waited = clock_seconds() - began
        if waited > _AWAKE_SECONDS:
            _sleep(control, me, last)
            began = clock_seconds()
        elif waited > _SPIN_SECONDS:
            yield_processor()


@njit(inline="always")
def _sleep(control, me, last):
    mutex_lock(control, MUTEX)
    fetch_add(control, SLEEPERS, 1)
    phase = load(control, PHASE)
    if (phase == last or me >= phase & _PARTICIPANTS) and not load(control, SHUTDOWN):
        condition_wait(control, CONDITION, MUTEX)
    else:
        fetch_add(control, SLEEPERS, -1)
    mutex_unlock(control, MUTEX)


@kernel(counted=False)
def shut_down(control):
    """Make all workers return."""
    store(control, SHUTDOWN, 1)
    mutex_lock(control, MUTEX)
    wake_all(control, CONDITION)
    mutex_unlock(control, MUTEX)
