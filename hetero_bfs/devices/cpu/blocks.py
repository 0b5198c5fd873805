"""Lists of vertices in blocks; one thread writes each block.

`arrays` is a struct with these arrays, where `which` is the number of a list:

    counters    int64 (lists, 8)        number of a list's blocks that threads have taken
    owners      int32 (lists, blocks)   the threads that took them
    cursor      int64 (threads, 8)      a thread's next position in each list; 0 before the first
    place       int64 (threads,)        scratch of `close_list`

Threads number the blocks of a list as they take them. Before a list is read, the master orders its
blocks: position p gets, if possible, a block of thread p % threads, which takes that position first
(thread_pool.py).

Readers of a list get its blocks as int32 (2, blocks): the SIZE of each in items, and the ORDER.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.intrinsics import fetch_add

BLOCK = 256
"""Items per block; smaller blocks cost more to hand out (benchmarks/notes/algorithms.md)."""

SIZE, ORDER = range(2)


def most_blocks(items: int, threads: int) -> int:
    return items // BLOCK + threads + 1


@njit(inline="always")
def block_of(blocks, position):
    block = np.int64(blocks[ORDER, position])
    return block * BLOCK, block * BLOCK + blocks[SIZE, block]


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
    blocks[SIZE, :count] = BLOCK
    for thread in range(threads):
        at = arrays.cursor[thread, which]
        arrays.cursor[thread, which] = 0
        if at % BLOCK:
            blocks[SIZE, at // BLOCK] = at % BLOCK
            items -= BLOCK - at % BLOCK
        arrays.place[thread] = thread
    others = 0
    for block in range(count):
        owner = owners[block]
        position = arrays.place[owner]
        if position < count:
            blocks[ORDER, position] = block
            arrays.place[owner] = position + threads
        else:
            owners[others] = block  # this entry was read already
            others += 1
    for thread in range(threads):
        for position in range(arrays.place[thread], count, threads):
            others -= 1
            blocks[ORDER, position] = owners[others]
    arrays.counters[which, 0] = 0
    return count, items
