"""A thread pool for levels that take microseconds: a master and its workers.

The master runs the search. A piece of work that is worth sharing is a phase. The master writes the
job, begins the phase, does a share of it, and ends it when all shares are done. A worker takes part
if it arrives before the end; the master does not wait for a sleeping worker. There are two kinds of
phases. In the first kind the work is cut into chunks, and each thread takes chunks until none is
left. In the second kind each thread has its own share. If a worker does not arrive, the master does
its share after a moment.

Chunk number c belongs to thread c % threads. A thread takes its own chunks first, then chunks of
other threads. So it reads the same part of the graph in every search, which stays in its cache.

After a phase workers spin for a short time, then let other programs run, then sleep.

The control block is an int64 array. Words that different threads write often are in different cache
lines of 8 words:

    JOB         the job; its first word is the number of chunks. It is written before the phase
                begins. Apart from PHASE, a thread reads it only after it has taken its share
    PHASE       the last word of JOB: number of the present phase << PARTICIPANT_BITS | threads that
                may take part in it
    SHUTDOWN    if not 0, workers return
    SLEEPERS    an upper bound of the workers that sleep on CONDITION
    OWN         words that phases leave unchanged, for the job's own use
    MUTEX, CONDITION    of pthreads, for sleeping
    SHARES      two lines for each thread. The first line has the last phase (as in PHASE) in which
                the thread's share was taken, the last in which it was done, and the thread's
                report. The second line has a phase's number << CHUNK_BITS | number of the
                thread's chunks that are taken in that phase
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
from hetero_bfs.support.parallel import call_at

LINE = 8
JOB, OWN, SHUTDOWN, SLEEPERS, MUTEX, CONDITION, SHARES = 0, 8, 16, 24, 32, 40, 64
CHUNKS, PHASE = JOB, JOB + 7
PARTICIPANT_BITS = 11
CHUNK_BITS = 24

_LINES = 2 * LINE  # words of a thread in SHARES
_DONE, _REPORT = 1, 2  # words of a thread's first line
_PARTICIPANTS = (np.int64(1) << PARTICIPANT_BITS) - 1
_TAKEN = (np.int64(1) << CHUNK_BITS) - 1
_TAGS = (np.int64(1) << (63 - CHUNK_BITS)) - 1
_PATIENCE = 64  # polls of a share before the master takes it itself: a microsecond or two
_SPINS_PER_LOOK = 64
_SPINS_BEFORE_YIELD = 4096
_SPIN_SECONDS = 100e-6
_AWAKE_SECONDS = 2e-3


def control_words(threads: int) -> int:
    return SHARES + _LINES * threads


@kernel(counted=False)
def initialise(control):
    mutex_init(control, MUTEX)
    condition_init(control, CONDITION)


@kernel(counted=False, inner=True)
def begin_phase(control, participants, threads):
    """Begin a phase for the threads numbered below `participants`; return it.

    The job must be written before. If more threads sleep than are left out of the phase, at least
    one participant sleeps, so all are woken.
    """
    word = control[PHASE]
    fetch_add(control, PHASE, (word | _PARTICIPANTS) + 1 - word + participants)
    if load(control, SLEEPERS) > threads - participants:
        mutex_lock(control, MUTEX)
        wake_all(control, CONDITION)
        store(control, SLEEPERS, 0)  # a worker that wakes gets the mutex too late to do it
        mutex_unlock(control, MUTEX)
    return control[PHASE]


@njit(inline="always")
def take_share(control, thread, phase):
    """Try to take a thread's share of a phase; return whether the caller has it now."""
    word = SHARES + _LINES * thread
    taken = load(control, word)
    return taken < phase and compare_and_swap(control, word, taken, phase)


@njit(inline="always")
def end_share(control, thread, phase):
    store(control, SHARES + _LINES * thread + _DONE, phase)


@njit(inline="always")
def report_of(control, thread):
    """Return a thread's report on its share of a phase: LINE - 2 words, for the job's own use.

    It is valid once the share is marked as done.
    """
    line = SHARES + _LINES * thread
    return control[line + _REPORT : line + LINE]


@kernel(counted=False, inner=True)
def await_share(control, thread, phase, patience=_PATIENCE):
    """Wait until a thread's share of a phase is done, or take the share if the thread is late.

    Returns True if the caller has taken the share and must do it.
    """
    word = SHARES + _LINES * thread
    looks = 0
    while load(control, word + _DONE) < phase:
        looks += 1
        if looks > patience and load(control, word) < phase and take_share(control, thread, phase):
            return True
        pause(looks)
    return False


@njit(inline="always")
def end_chunks(control, phase):
    """End a phase whose chunks are all taken: wait for participants, and admit no others.

    Returns the sums of the first three words of their reports. A thread that took its share must
    report even if no chunk was left for it.
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
    """Take a chunk; return its number, or -1 if none is left for the caller.

    The master may take chunks of all threads. A worker may take its own chunks, and chunks of the
    threads 1, 2, 4 ... after it. Reading the lines of all other threads would take longer than a
    short phase.
    """
    number = control[PHASE] >> PARTICIPANT_BITS & _TAGS
    chunks = control[CHUNKS]
    owners = min(threads, chunks)  # all threads that take part have numbers below this
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
    """Take the next of a thread's chunks; return its number within the thread, -1 if none."""
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
def pause(looks):
    """Wait a little; after many polls, yield the processor."""
    if looks < _SPINS_BEFORE_YIELD:
        relax()
    else:
        yield_processor()


@kernel(counted=False, inner=True)
def await_phase(control, me, last):
    """Wait for a phase after `last` that thread `me` takes part in: spin, then yield, then sleep.

    Returns that phase, or -1 on shutdown. `last` is 0 at first.
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
    store(control, SHUTDOWN, 1)
    mutex_lock(control, MUTEX)
    wake_all(control, CONDITION)
    mutex_unlock(control, MUTEX)


# Phases cut into chunks, for any algorithm whose arrays name their work by address.
#
# `arrays` is a struct (parallel.py) with `threads`, an integer, and `work`, int64 (tasks,), the
# addresses of kernels. A kernel takes (control, arrays, chunk, me) and returns three int64, which
# are summed over the chunks. The master calls `share`; each worker runs `run_worker` until the pool
# is shut down.

TASK, SIZE, ITEMS = JOB + 1, JOB + 2, JOB + 3
"""Words of a job after its number of chunks: the task, items per chunk, items in total."""

CHUNKS_PER_THREAD = 8


@njit(inline="always")
def even_size(arrays, items, least):
    """Return the items per chunk, at least `least`, so that each thread gets several chunks."""
    return max(least, -(-items // (CHUNKS_PER_THREAD * arrays.threads)))


@njit(inline="always")
def chunk_of(control, chunk):
    begin = chunk * control[SIZE]
    return begin, min(begin + control[SIZE], control[ITEMS])


@kernel(counted=False, inner=True)
def take_part(control, arrays, me):
    address = arrays.work[control[TASK]]
    first, second, third = np.int64(0), np.int64(0), np.int64(0)
    while True:
        chunk = take_chunk(control, me, arrays.threads)
        if chunk < 0:
            return first, second, third
        more = call_at(address, control, arrays, chunk, me)
        first += more[0]
        second += more[1]
        third += more[2]


@kernel(counted=False)
def run_worker(control, arrays, me):
    phase = np.int64(0)
    while True:
        phase = await_phase(control, me, phase)
        if phase < 0:
            return
        if take_share(control, me, phase):
            report = report_of(control, me)
            report[0], report[1], report[2] = take_part(control, arrays, me)
            end_share(control, me, phase)


@kernel(counted=False, inner=True)
def share(control, arrays, task, items, size):
    """Run a task on `items` items with the thread pool, in chunks of `size` items.

    The job's other words must be written before. Returns the sums of the chunks' results.
    """
    control[SIZE], control[ITEMS] = size, items
    return run_chunks(control, arrays, task, -(-items // size))


@kernel(counted=False, inner=True)
def run_chunks(control, arrays, task, chunks):
    """Run a task whose other words are written; return the sums of the chunks' results."""
    control[CHUNKS], control[TASK] = chunks, task
    if chunks <= 1 or arrays.threads == 1:
        address = arrays.work[task]
        first, second, third = np.int64(0), np.int64(0), np.int64(0)
        for chunk in range(chunks):
            more = call_at(address, control, arrays, chunk, 0)
            first += more[0]
            second += more[1]
            third += more[2]
        return first, second, third
    phase = begin_phase(control, min(chunks, arrays.threads), arrays.threads)
    first, second, third = take_part(control, arrays, 0)
    more = end_chunks(control, phase)
    return first + more[0], second + more[1], third + more[2]


# Lists of vertices in blocks; one thread writes each block.
#
# `arrays` is a struct with these arrays, where `which` is the number of a list:
#
#     counters    int64 (lists, 8)        number of a list's blocks that threads have taken
#     owners      int32 (lists, blocks)   the threads that took them
#     cursor      int64 (threads, 8)      a thread's next position in each list; 0 before the first
#     place       int64 (threads,)        scratch of `close_list`
#
# Threads number the blocks of a list as they take them. Before a list is read, the master orders
# its blocks: position p gets, if possible, a block of thread p % threads, which takes that position
# first.
#
# Readers of a list get its blocks as int32 (2, blocks): their sizes in items, and their order.

BLOCK = 256
"""Items per block; smaller blocks cost more to hand out (benchmarks/notes/algorithms.md)."""

BLOCK_SIZES, BLOCK_ORDER = range(2)


def most_blocks(items: int, threads: int) -> int:
    return items // BLOCK + threads + 1


@njit(inline="always")
def block_of(blocks, position):
    block = np.int64(blocks[BLOCK_ORDER, position])
    return block * BLOCK, block * BLOCK + blocks[BLOCK_SIZES, block]


@njit(inline="always")
def push_item(arrays, which, items, at, item, me):
    """Write an item at a thread's cursor in a list; return the new cursor.

    If the cursor is 0 or after a full block, the thread takes a new block.
    """
    if at % BLOCK == 0:
        block = fetch_add(arrays.counters[which], 0, 1)
        arrays.owners[which, block] = me
        at = block * BLOCK
    items[at] = item
    return at + 1


@kernel(counted=False, inner=True)
def close_list(arrays, which, blocks):
    """Prepare a written list for reading; return its numbers of blocks and items."""
    owners, threads = arrays.owners[which], arrays.threads
    count = arrays.counters[which, 0]
    items = count * BLOCK
    blocks[BLOCK_SIZES, :count] = BLOCK
    for thread in range(threads):
        at = arrays.cursor[thread, which]
        arrays.cursor[thread, which] = 0
        if at % BLOCK:
            blocks[BLOCK_SIZES, at // BLOCK] = at % BLOCK
            items -= BLOCK - at % BLOCK
        arrays.place[thread] = thread
    others = 0
    for block in range(count):
        owner = owners[block]
        position = arrays.place[owner]
        if position < count:
            blocks[BLOCK_ORDER, position] = block
            arrays.place[owner] = position + threads
        else:
            owners[others] = block  # this entry was read already
            others += 1
    for thread in range(threads):
        for position in range(arrays.place[thread], count, threads):
            others -= 1
            blocks[BLOCK_ORDER, position] = owners[others]
    arrays.counters[which, 0] = 0
    return count, items
