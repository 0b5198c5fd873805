"""A team of threads for levels that take microseconds: a leader and its helpers.

The leader runs the search. For each piece of work worth sharing it writes down a job, cut into
chunks, and publishes the number of chunks; then it and whichever helpers are awake take chunks
until none is left, and the leader waits for those still being worked on. A helper that sleeps, or
that the system has taken off its processor, holds nobody up: its chunks go to the others.
Helpers spin for a short while after the last job, then let others run, then sleep.

The control block is an int64 array, one cache line (8 words) for what is written together:

    TICKET      generation << 32 | chunks not yet taken; taking one is a compare-and-swap, which
                fails if a new job was published meanwhile
    DONE        chunks finished
    JOB         what to do; written before the ticket, read after taking a chunk
    SHUTDOWN    not 0: helpers return
    SLEEPERS    helpers that sleep on CONDITION
"""

from __future__ import annotations

import numpy as np
from numba import njit

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

TICKET, DONE, JOB, SHUTDOWN, SLEEPERS, MUTEX, CONDITION = 0, 8, 16, 32, 40, 48, 64
CONTROL_WORDS = 80
CHUNKS = JOB
"""Word of the job that holds its number of chunks."""

_LEFT = np.int64(0xFFFFFFFF)
_SPINS_PER_LOOK = 64
_SPIN_SECONDS = 100e-6
_AWAKE_SECONDS = 2e-3


@njit(cache=True, nogil=True)
def initialise(control):
    """Prepare a control block of zeros."""
    mutex_init(control, MUTEX)
    condition_init(control, CONDITION)


@njit(cache=True, nogil=True)
def publish(control, chunks):
    """Offer a job, whose other words are already written, in `chunks` >= 1 chunks."""
    control[CHUNKS] = chunks
    control[DONE] = 0
    generation = (load(control, TICKET) >> 32) + 1
    store(control, TICKET, ((generation & 0x7FFFFFFF) << 32) | chunks)
    if load(control, SLEEPERS) > 0:
        mutex_lock(control, MUTEX)
        wake_all(control, CONDITION)
        mutex_unlock(control, MUTEX)


@njit(cache=True, nogil=True)
def take_chunk(control):
    """Return the number of a chunk that is now the caller's, -1 if none is left."""
    while True:
        ticket = load(control, TICKET)
        left = ticket & _LEFT
        if left == 0:
            return -1
        if compare_and_swap(control, TICKET, ticket, ticket - 1):
            return control[CHUNKS] - left


@njit(cache=True, nogil=True)
def finish_chunks(control, count):
    """Report chunks as finished, and what was written for them as readable."""
    if count:
        fetch_add(control, DONE, count)


@njit(cache=True, nogil=True)
def wait_for_chunks(control):
    """Wait until all chunks of the job are finished."""
    spins = 0
    while load(control, DONE) < control[CHUNKS]:
        spins += 1
        if spins < 4096:
            relax()
        else:
            yield_processor()


@njit(cache=True, nogil=True)
def wait_for_job(control):
    """Wait, spinning, yielding, then asleep, until there may be a chunk; false on shutdown."""
    began = clock_seconds()
    while True:
        for _ in range(_SPINS_PER_LOOK):
            if load(control, TICKET) & _LEFT:
                return True
            relax()
        if load(control, SHUTDOWN):
            return False
        waited = clock_seconds() - began
        if waited > _AWAKE_SECONDS:
            _sleep(control)
            began = clock_seconds()
        elif waited > _SPIN_SECONDS:
            yield_processor()


@njit(cache=True, nogil=True)
def _sleep(control):
    mutex_lock(control, MUTEX)
    fetch_add(control, SLEEPERS, 1)
    if not load(control, TICKET) & _LEFT and not load(control, SHUTDOWN):
        condition_wait(control, CONDITION, MUTEX)
    fetch_add(control, SLEEPERS, -1)
    mutex_unlock(control, MUTEX)


@njit(cache=True, nogil=True)
def shut_down(control):
    """Make all helpers return."""
    store(control, SHUTDOWN, 1)
    mutex_lock(control, MUTEX)
    wake_all(control, CONDITION)
    mutex_unlock(control, MUTEX)
