"""Levels of a rank in both directions, and the blank arrays of its search.

A top-down level claims the rank's own vertices, and collects messages for other ranks.

level.py describes the arrays, partition.py the columns. `visited` covers all columns, `parent` and
`degree` the rank's own vertices. The bit of another rank's vertex is set if the vertex is visited
or a message about it was sent. A message is one 64-bit word to the owner of a vertex: the vertex's
own number in the upper half, the parent's own number in the lower half.

Fields of a rank that follow its `HostArrays`:

    sent            uint64 (columns,)   messages for other ranks, from each rank's first column on
    sent_counts     int64 (COUNT_STRIDE * ranks,)   the number of messages for each rank
    sent_positions  int64 (threads, ranks or more)  scratch: position of a thread's next message for
                                                    each rank; rows are cache lines
    owner_of_line   uint32 (columns / 512,)     the rank of each cache line of a bitmap
    first_column    int64 (ranks,)
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hetero_bfs.algorithms.bfs.kernels import job, level
from hetero_bfs.algorithms.bfs.kernels.level import claim_chunk, queue_found, reserve
from hetero_bfs.algorithms.bfs.kernels.level_loop import convert, list_found
from hetero_bfs.algorithms.bfs.kernels.phases import CHUNKS_PER_THREAD, counted, share
from hetero_bfs.devices.cpu.thread_pool import CHUNKS
from hetero_bfs.ranks.partition import LINE_SHIFT
from hetero_bfs.scheduling import schema
from hetero_bfs.scheduling.schema import advance, has_queue
from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.intrinsics import atomic_add, prefetch
from hetero_bfs.support.parallel import call_level, part_of

COUNT_STRIDE = 8
"""Items between the counts of two ranks in `sent_counts`: a cache line."""

_PREFETCH_DISTANCE = 8
_LINE_SHIFT = np.uint32(LINE_SHIFT)
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)

_has_queue = kernel(has_queue, counted=False, inner=True)


@njit(inline="always")
def _word_for(arrays, v, u):
    owner = np.int64(arrays.owner_of_line[v >> _LINE_SHIFT])
    number = np.uint64(np.int64(v) - arrays.first_column[owner])
    return owner, number << _HALF | np.uint64(u)


@kernel(counted=False, inner=True)
def push_alone(control, arrays, chunk, me):
    this, that = control[job.QUEUE], 1 - control[job.QUEUE]
    queue, next_queue, next_offsets = arrays.queue[this], arrays.queue[that], arrays.offsets[that]
    indptr, indices, degree = arrays.indptr, arrays.indices, arrays.degree
    visited, parent = arrays.visited[control[job.VISITED]], arrays.parent
    sent, sent_counts, first_column = arrays.sent, arrays.sent_counts, arrays.first_column
    rows = np.uint32(parent.size)
    count, found, edges = np.uint64(control[job.VERTICES]), np.uint64(0), np.uint64(0)
    for entry in range(count):
        if entry + _PREFETCH_DISTANCE < count:
            prefetch(indices, np.uint64(indptr[queue[entry + _PREFETCH_DISTANCE]]))
        u = queue[entry]
        for k in range(np.uint64(indptr[u]), np.uint64(indptr[u + 1])):
            v = indices[k]
            word = v >> level.WORD_SHIFT
            seen, bit = visited[word], level.ONE << (v & level.WORD_MASK)
            if seen & bit:
                continue
            visited[word] = seen | bit
            if v < rows:
                parent[v] = u
                prefetch(degree, v)
                next_queue[found] = v
                found += np.uint64(1)
            else:
                owner, message = _word_for(arrays, v, u)
                place = owner * COUNT_STRIDE
                sent[first_column[owner] + sent_counts[place]] = message
                sent_counts[place] += 1
    for i in range(found):
        next_offsets[i] = edges
        edges += np.uint64(degree[next_queue[i]])
    reserve(arrays, found, edges)
    return job.NONE, job.NONE, job.NONE


@kernel(counted=False, inner=True)
def push_chunk(control, arrays, chunk, me):
    """Expand a chunk of the frontier's edges, while the rank's other threads expand others."""
    that, rows = 1 - control[job.QUEUE], np.uint32(arrays.parent.size)
    found, source, parent = arrays.found[me], arrays.source[me], arrays.parent
    next_queue, next_offsets, degree = arrays.queue[that], arrays.offsets[that], arrays.degree
    sent, places, first_column = arrays.sent, arrays.sent_positions[me], arrays.first_column
    claimed = claim_chunk(control, arrays, chunk, me)
    places[:] = 0
    for i in range(claimed):  # count first: an atomic for each message would stall the threads
        if found[i] >= rows:
            places[np.int64(arrays.owner_of_line[found[i] >> _LINE_SHIFT])] += 1
    for owner in range(first_column.size):
        count = places[owner]
        if count:
            begin = atomic_add(arrays.sent_counts, owner * COUNT_STRIDE, count)
            places[owner] = first_column[owner] + begin
    kept, edges = 0, np.uint64(0)
    for i in range(claimed):
        v, u = found[i], source[i]
        if v < rows:
            parent[v] = u
            found[kept] = v
            kept += 1
            edges += np.uint64(degree[v])
        else:
            owner, message = _word_for(arrays, v, u)
            sent[places[owner]] = message
            places[owner] += 1
    if kept == 0:
        return job.NONE, job.NONE, job.NONE
    queue_found(arrays, next_queue, next_offsets, found, kept, edges)
    return job.NONE, job.NONE, job.NONE


@kernel(counted=False)
def push(control, arrays, state, sent_counts, counts):
    """Run a top-down level; return the number of own vertices found, and of their edges.

    `arrays` are the `HostArrays`. Fills `counts`, int64 (ranks,), with the number of messages for
    each rank.
    """
    if not _has_queue(state):
        convert(control, arrays, state)
    sent_counts[:] = 0
    edges = np.int64(state[schema.FRONTIER_EDGES])
    vertices, more = np.int64(0), np.int64(0)
    if edges:
        threads = arrays.threads
        size = edges
        if threads > 1:
            size = edges // (threads * CHUNKS_PER_THREAD) + 1
            size = min(max(size, np.int64(schema.LEAST_SHARED_EDGES)), level.CHUNK_EDGES)
        share(control, arrays, state, job.TOP_DOWN, size, (edges + size - 1) // size)
        vertices, more = counted(arrays)
    for rank in range(counts.size):
        counts[rank] = sent_counts[rank * COUNT_STRIDE]
    return vertices, more


@kernel(counted=False)
def receive(arrays, state, words, base, found, edges):
    """Visit the vertices in another rank's messages; return the level's vertices and edges so far.

    `arrays` are this rank's, `base` is the sender's first column. `found` and `edges` are the
    level's vertices and edges before.
    """
    visited = arrays.visited[np.int64(state[schema.VISITED_INDEX])]
    that = 1 - np.int64(state[schema.QUEUE_INDEX])
    queue, offsets, degree = arrays.queue[that], arrays.offsets[that], arrays.degree
    parent, end = arrays.parent, words.size
    for i in range(end):
        if i + _PREFETCH_DISTANCE < end:
            ahead = np.int64(words[i + _PREFETCH_DISTANCE] >> _HALF)
            prefetch(parent, ahead)
            prefetch(degree, ahead)
        v = np.uint32(words[i] >> _HALF)
        word, bit = v >> level.WORD_SHIFT, level.ONE << (v & level.WORD_MASK)
        seen = visited[word]
        if seen & bit:
            continue
        visited[word] = seen | bit
        parent[v] = base + np.int64(words[i] & _LOW)
        queue[found] = v
        offsets[found] = edges
        found += 1
        edges += np.int64(degree[v])
    return found, edges


@kernel(counted=False)
def list_level(arrays, state, found):
    """Append all vertices that a level found to the found list."""
    list_found(arrays, state, 1 - np.int64(state[schema.QUEUE_INDEX]), 0, found)


_advance = kernel(advance, counted=False, inner=True)


@kernel(counted=False)
def pull(control, arrays, row, state, records):
    """Run a level by the strategy in a row of the table; return the edges scanned."""
    address = arrays.levels[row]
    representation, found, edges, scanned = call_level(address, control, arrays, state, records)
    _advance(state, representation, found, edges)
    return scanned


@kernel(counted=False)
def copy_words(source, target, first):
    for i in range(first, source.size):
        target[i] = source[i]


@kernel(counted=False, inner=True)
def blank_chunk(control, arrays, chunk, me):
    low, high = part_of(arrays.visited[0].size, chunk, control[CHUNKS])
    for bitmap in arrays.visited:
        bitmap[low:high] = 0
    return job.NONE, job.NONE, job.NONE
