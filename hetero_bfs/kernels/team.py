"""A team of threads for levels that take microseconds: a leader and its helpers.

The leader runs the search. For each piece of work worth sharing it writes down a job, cut into
chunks, and opens it; it and whichever helpers are awake work on it, and when no chunk is left the
leader closes the job and waits for those who still work. A helper that sleeps holds nobody up: the
chunks that it has not taken go to the others. Helpers spin for a short while after the last job,
then let others run, then sleep.

Chunk number c belongs to thread c % threads, who takes its own first and then others': so a thread
meets the same part of the graph in search after search, and has it in its own cache.

A job of stages is one that the helpers do not leave in between: the leader names one stage after
another, of which each thread does a share of its own. The leader alone does the shares of those who
do not come, after a moment.

The control block is an int64 array; what different threads write often is on different cache lines
(8 words):

    DOOR        generation << 32 | open << 31 | helpers inside. A helper adds itself, and is in if
                the door was open before that; else it takes itself off again. All updates are
                additions, so that none is lost and none has to be repeated
    JOB         what to do, its number of chunks first; written before the door opens, or before a
                stage begins
    STAGE       last word of JOB: number of the present stage, from 1 on; 0 before the first,
                NO_STAGES for a job of chunks, NO_MORE_STAGES after the last
    SHUTDOWN    not 0: helpers return
    SLEEPERS    helpers that sleep on CONDITION
    SUMS        what the chunks of a job add up to, for the job's own use
    MUTEX, CONDITION    of pthreads, for sleeping
    TAKEN       one line per thread: how many of its chunks are taken, or stages in which its share
                is; as second word, how many of these are done; and what it reports of its share
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hetero_bfs.kernels.compile import kernel
from hetero_bfs.kernels.intrinsics import (
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
DOOR, JOB, SUMS, SHUTDOWN, SLEEPERS, MUTEX, CONDITION, TAKEN = 0, 8, 16, 24, 32, 40, 48, 64
CHUNKS, STAGE = JOB, JOB + 7
NO_STAGES, NO_MORE_STAGES = -1, -2

_DOOR_OPEN = np.int64(1) << 31
_INSIDE = _DOOR_OPEN - 1
_NEXT_GENERATION = np.int64(1) << 32
_DONE, _REPORT = 1, 2  # words of a thread's line
_PATIENCE = 64  # looks at a share that nobody has taken yet: a microsecond or two
_SPINS_PER_LOOK = 64
_SPINS_BEFORE_YIELD = 4096
_SPIN_SECONDS = 100e-6
_AWAKE_SECONDS = 2e-3


def control_words(threads: int) -> int:
    """Return the size of the control block of a team, in words."""
    return TAKEN + LINE * threads


@kernel(counted=False)
def initialise(control):
    """Prepare a control block of zeros."""
    control[STAGE] = NO_STAGES
    mutex_init(control, MUTEX)
    condition_init(control, CONDITION)


@kernel(counted=False)
def open_job(control, chunks, threads):
    """Offer a job, whose other words are already written, in `chunks` >= 1 chunks."""
    control[STAGE] = NO_STAGES
    _open(control, chunks, threads)


@kernel(counted=False)
def open_stages(control, threads):
    """Offer a job of stages to helpers below `threads`; `begin_stage` follows."""
    control[STAGE] = 0
    _open(control, threads, threads)


@kernel(counted=False)
def _open(control, chunks, threads):
    store(control, CHUNKS, chunks)
    for thread in range(threads):
        control[TAKEN + LINE * thread] = control[TAKEN + LINE * thread + _DONE] = 0
    fetch_add(control, DOOR, _NEXT_GENERATION + _DOOR_OPEN)
    if chunks > 1 and load(control, SLEEPERS) > 0:
        mutex_lock(control, MUTEX)
        wake_all(control, CONDITION)
        mutex_unlock(control, MUTEX)


@kernel(counted=False)
def close_job(control):
    """Let nobody in any more, and wait until all helpers have left: the job is done."""
    fetch_add(control, DOOR, -_DOOR_OPEN)
    looks = 0
    while load(control, DOOR) & _INSIDE:
        looks += 1
        _pause(looks)


@kernel(counted=False)
def take_chunk(control, me, threads):
    """Return the number of a chunk that is now the caller's, -1 if none is left."""
    chunks = control[CHUNKS]
    owners = min(threads, chunks)  # whoever is inside has a number below this
    for k in range(owners):
        owner = me + k
        if owner >= owners:
            owner -= owners
        share = (chunks - owner + threads - 1) // threads
        word = TAKEN + LINE * owner
        if load(control, word) < share:
            number = fetch_add(control, word, 1)
            if number < share:
                return number * threads + owner
    return -1


@kernel(counted=False)
def begin_stage(control):
    """Begin the next stage, whose words are already written; returns its number."""
    stage = control[STAGE] + 1
    store(control, STAGE, stage)
    return stage


@kernel(counted=False)
def take_share(control, thread, stage):
    """Tell whether a thread's share of a stage is now the caller's."""
    word = TAKEN + LINE * thread
    return load(control, word) < stage and compare_and_swap(control, word, stage - 1, stage)


@njit(inline="always")
def end_share(control, thread, stage):
    """Note that a thread's share of a stage is done."""
    store(control, TAKEN + LINE * thread + _DONE, stage)


@njit(inline="always")
def report_of(control, thread):
    """Return what a thread reports of its share of a stage: LINE - 2 words, for the job's own use.

    They arrive with the word that says that the share is done.
    """
    line = TAKEN + LINE * thread
    return control[line + _REPORT : line + LINE]


@kernel(counted=False)
def await_share(control, thread, stage):
    """Wait until a thread's share of a stage is done; True if the leader had better do it."""
    word = TAKEN + LINE * thread
    looks = 0
    while load(control, word + _DONE) < stage:
        looks += 1
        if (
            looks >= _PATIENCE
            and load(control, word) < stage
            and take_share(control, thread, stage)
        ):
            return True
        _pause(looks)
    return False


@kernel(counted=False)
def await_stage(control, last):
    """Wait until there is another stage than `last`; returns it, NO_MORE_STAGES after all."""
    looks = 0
    while load(control, STAGE) == last:
        looks += 1
        _pause(looks)
    return load(control, STAGE)


@kernel(counted=False)
def close_stages(control):
    """End a job of stages, if there is one, and wait until all helpers have left."""
    if control[STAGE] >= 0:
        store(control, STAGE, NO_MORE_STAGES)
        close_job(control)


@njit(inline="always")
def _pause(looks):
    """Wait a little: the processor may be needed by whom a thread waits for."""
    if looks < _SPINS_BEFORE_YIELD:
        relax()
    else:
        yield_processor()


@njit(inline="always")
def _generation(door):
    return (door >> 32) & 0x7FFFFFFF


@njit(inline="always")
def _is_news(door, last):
    """Tell whether an open door leads to another job than the generation `last`."""
    return (door & _DOOR_OPEN) != 0 and _generation(door) != last


@kernel(counted=False)
def enter_job(control, me, last):
    """Wait, spinning, yielding, then asleep, for a job with work for helper `me`.

    `last` is the generation of the job that the helper left last, which has no work any more.
    Returns the new job's once the helper is let in (see `leave_job`), -1 on shutdown.
    """
    began = clock_seconds()
    while True:
        for _ in range(_SPINS_PER_LOOK):
            if _is_news(load(control, DOOR), last) and load(control, CHUNKS) > me:
                door = fetch_add(control, DOOR, 1)
                if _is_news(door, last) and load(control, CHUNKS) > me:
                    return _generation(door)
                fetch_add(control, DOOR, -1)
            relax()
        if load(control, SHUTDOWN):
            return np.int64(-1)
        waited = clock_seconds() - began
        if waited > _AWAKE_SECONDS:
            _sleep(control, last)
            began = clock_seconds()
        elif waited > _SPIN_SECONDS:
            yield_processor()


@kernel(counted=False)
def leave_job(control):
    """Leave a job; what was written for it can then be read by the leader."""
    fetch_add(control, DOOR, -1)


@kernel(counted=False)
def _sleep(control, last):
    mutex_lock(control, MUTEX)
    fetch_add(control, SLEEPERS, 1)
    if not _is_news(load(control, DOOR), last) and not load(control, SHUTDOWN):
        condition_wait(control, CONDITION, MUTEX)
    fetch_add(control, SLEEPERS, -1)
    mutex_unlock(control, MUTEX)


@kernel(counted=False)
def shut_down(control):
    """Make all helpers return."""
    store(control, SHUTDOWN, 1)
    mutex_lock(control, MUTEX)
    wake_all(control, CONDITION)
    mutex_unlock(control, MUTEX)
