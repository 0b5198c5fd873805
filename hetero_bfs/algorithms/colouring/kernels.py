"""A colouring on the host: its phases, and the loop that runs them.

Vertices are coloured in the order of their ranks (below). Each gets the first colour that
none of its neighbours of lower rank has. There are two strategies for a block of successive ranks:

    GREEDY  One thread colours vertex after vertex. All coloured neighbours have a lower rank.
    SHARED  It has three steps. MARK: threads share the vertices, and read the colours of neighbours
            in earlier blocks. A vertex waits for its neighbours of lower rank in its own block. It
            notes them, and the colours that the others take. PUBLISH: threads write the colours of
            the vertices that need not wait. Then one thread colours those that wait, by their notes
            (`colour_waiting`).

Both strategies give the same colours. Neighbour lists are sorted by number. If vertices are
numbered by falling degree, neighbours of lower rank come first. No vertex of lower rank has a
number beyond LIMIT, so scans end there.

The taken colours of a vertex are the bits of one word, which stands for 64 successive colours. If
all of them are taken, the neighbours are read again for the next 64 colours. That is faster than
storing every colour.

State (n vertices; ids are new ids):

    order, rank uint32 (n,)     vertices by rank, and the inverse
    colour      int32 (n,)      UNCOLOURED where not known yet
    by_rank     int32 (n,)      SHARED: colour by rank, UNCOLOURED for waiting vertices
    notes       uint32 (any,)   for each waiting vertex: its rank, the number of neighbours that it
                                waits for, the first colour of a word of taken colours, the two
                                halves of this word, the neighbours
    noted       int64 (chunks,) entries of `notes` that each chunk has filled
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from numba import njit

from hetero_bfs.devices.cpu.thread_pool import ITEMS, OWN, chunk_of, even_size, share
from hetero_bfs.graph.edge_source import NO_ID
from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.intrinsics import clock_seconds, prefetch, trailing_zeros
from hetero_bfs.support.memory import aligned_empty
from hetero_bfs.support.parallel import parallel_kernel, part_of

FIRST, STRIDE = ITEMS + 1, ITEMS + 2
"""Words of a job: the first rank of the block, and the room for the notes of a vertex."""

LIMIT = OWN
"""Word that phases keep: the largest number of a vertex up to the end of the block."""

MARK, PUBLISH = range(2)
NUM_TASKS = 2

UNCOLOURED = -1

NOTE_WORDS = 5
"""Entries of a vertex's notes in addition to the neighbours."""

_WORD = 64
_PREFETCH_DISTANCE = 8
_ZERO = np.int64(0)
_NO_BIT, _ONE = np.uint64(0), np.uint64(1)
_HALF, _LOW_HALF = np.uint64(32), np.uint64(0xFFFFFFFF)


@njit(inline="always")
def _prefetch(order, indptr, indices, i, end):
    if i + 2 * _PREFETCH_DISTANCE < end:
        prefetch(indptr, order[i + 2 * _PREFETCH_DISTANCE])
    if i + _PREFETCH_DISTANCE < end:
        prefetch(indices, indptr[order[i + _PREFETCH_DISTANCE]])


@njit(inline="always")
def _bit_of(colour, base):
    """Return a colour's bit in the word that begins with colour `base`, or 0 if it is outside.

    UNCOLOURED is outside of every word.
    """
    place = np.uint64(np.uint32(colour - base))
    return _ONE << (place & np.uint64(_WORD - 1)) if place < np.uint64(_WORD) else _NO_BIT


@njit(inline="always")
def _taken(indices, colour, first, last, base):
    """Return the colours of some neighbours in the word that begins with colour `base`."""
    taken = _NO_BIT
    for k in range(first, last):
        taken |= _bit_of(colour[indices[k]], base)
    return taken


@kernel(counted=False)
def colour_serially(indptr, indices, order, colour, begin, end, limit):
    """Colour the vertices of ranks `begin` to `end`; all of lower rank must have colours.

    Coloured vertices are skipped. `limit` is at least the largest number of a vertex of lower rank.
    Returns entries read, and the new limit.
    """
    scanned = _ZERO
    for i in range(begin, end):
        _prefetch(order, indptr, indices, i, end)
        u = np.int64(order[i])
        limit = max(limit, u)
        if colour[u] != UNCOLOURED:
            continue
        first, last = np.uint64(indptr[u]), np.uint64(indptr[u + 1])
        k, base, taken = first, 0, _NO_BIT
        while k < last and indices[k] <= limit:
            taken |= _bit_of(colour[indices[k]], base)
            k += _ONE
        scanned += np.int64(k - first)
        while ~taken == _NO_BIT:
            base += _WORD
            taken = _taken(indices, colour, first, k, base)
            scanned += np.int64(k - first)
        colour[u] = base + np.int64(trailing_zeros(~taken))
    return scanned, limit


@kernel(counted=False)
def remove_conflicts(indptr, indices, order, rank, colour):
    """Take the colour of each vertex that has one with a neighbour of lower rank; count them."""
    removed = _ZERO
    for i in range(order.size):
        _prefetch(order, indptr, indices, i, order.size)
        u = np.int64(order[i])
        for k in range(indptr[u], indptr[u + 1]):
            v = np.int64(indices[k])
            if colour[v] == colour[u] and rank[v] < i and colour[u] != UNCOLOURED:
                colour[u] = UNCOLOURED
                removed += 1
    return removed


@kernel(counted=False, inner=True)
def _mark(control, arrays, chunk, me):
    """Colour the vertices that need not wait; return entries read, neighbours waited for, and 0."""
    begin, end = chunk_of(control, chunk)
    at = begin * control[STRIDE]
    started_at = at
    begin += control[FIRST]
    end += control[FIRST]
    limit = control[LIMIT]
    indptr, indices, order, rank = arrays.indptr, arrays.indices, arrays.order, arrays.rank
    colour, by_rank, notes = arrays.colour, arrays.by_rank, arrays.notes
    scanned, waited = _ZERO, _ZERO
    for i in range(begin, end):
        _prefetch(order, indptr, indices, i, end)
        u = order[i]
        first, last = np.uint64(indptr[u]), np.uint64(indptr[u + 1])
        k, base, taken = first, 0, _NO_BIT
        names = at + NOTE_WORDS
        while k < last and indices[k] <= limit:
            v = indices[k]
            c = colour[v]
            taken |= _bit_of(c, base)
            if c == UNCOLOURED and rank[v] < i:
                notes[names] = v
                names += 1
            k += _ONE
        scanned += np.int64(k - first)
        while ~taken == _NO_BIT:
            base += _WORD
            taken = _taken(indices, colour, first, k, base)
            scanned += np.int64(k - first)
        count = names - at - NOTE_WORDS
        if count == 0:
            by_rank[i] = base + np.int64(trailing_zeros(~taken))
            continue
        by_rank[i] = UNCOLOURED
        waited += count
        notes[at], notes[at + 1], notes[at + 2] = i, count, base
        notes[at + 3] = taken & _LOW_HALF
        notes[at + 4] = taken >> _HALF
        at = names
    arrays.noted[chunk] = at - started_at
    return scanned, waited, _ZERO


@kernel(counted=False, inner=True)
def _publish(control, arrays, chunk, me):
    begin, end = chunk_of(control, chunk)
    order, colour, by_rank = arrays.order, arrays.colour, arrays.by_rank
    for i in range(begin + control[FIRST], end + control[FIRST]):
        colour[order[i]] = by_rank[i]
    return _ZERO, _ZERO, _ZERO


@kernel(counted=False, inner=True)
def _next_free(arrays, i, base):
    """Return the first free colour, at least `base`, for the vertex of rank `i`.

    It reads all neighbours, since some of higher rank may have colours.
    """
    indices, colour, rank = arrays.indices, arrays.colour, arrays.rank
    u = arrays.order[i]
    while True:
        taken = _NO_BIT
        for k in range(arrays.indptr[u], arrays.indptr[u + 1]):
            v = indices[k]
            if rank[v] < i:
                taken |= _bit_of(colour[v], base)
        if ~taken:
            return base + np.int64(trailing_zeros(~taken))
        base += _WORD


@kernel(counted=False, inner=True)
def colour_waiting(arrays, at, end):
    """Colour the waiting vertices whose notes are in entries `at` to `end`."""
    order, colour, notes = arrays.order, arrays.colour, arrays.notes
    while at < end:
        i, base = np.int64(notes[at]), np.int64(notes[at + 2])
        taken = np.uint64(notes[at + 3]) | np.uint64(notes[at + 4]) << _HALF
        first = at + NOTE_WORDS
        at = first + np.int64(notes[at + 1])
        taken |= _taken(notes, colour, first, at, base)
        if ~taken:
            colour[order[i]] = base + np.int64(trailing_zeros(~taken))
        else:
            colour[order[i]] = _next_free(arrays, i, base + _WORD)


PHASES = dict(enumerate((_mark, _publish)))


STRATEGY, VERTICES, EDGES, SECONDS = range(4)
"""Columns of a record; each block has a row."""

RECORD_WIDTH = 4
GREEDY, SHARED = range(2)

_LEAST_PUBLISHED = 1 << 15
_LEAST_MARKED = 16  # vertices of a chunk that read neighbours

_FIRST_BLOCK = 512
_GROWTH = 8  # a shared block has at most 1 / 8 of the number of vertices before it
_MOST_WAITED = 4  # a block is shared if the last one waited for at most 1 / 4 of its edges
_NOTED_VERTICES = 1000  # vertices whose notes always fit, whatever their degrees are

MOST_NOTES = _NOTED_VERTICES * (_NOTED_VERTICES + NOTE_WORDS)


@njit(inline="always")
def _next_block(arrays, begin, n):
    """Return the size of the next shared block, and the room for the notes of one vertex.

    A vertex waits for at most as many vertices as it has neighbours. Later degrees are smaller.
    """
    u = arrays.order[begin]
    degree = arrays.indptr[u + 1] - arrays.indptr[u]
    room = max(MOST_NOTES // (degree + NOTE_WORDS), np.int64(_NOTED_VERTICES))
    size = min(max(begin // _GROWTH, 1), room, n - begin)
    return size, min(degree, size) + NOTE_WORDS


@njit(inline="always")
def _colour_shared(control, arrays, begin, size, stride, limit):
    """Colour a block; return entries read, the neighbours waited for, and the new limit."""
    for i in range(begin, begin + size):
        limit = max(limit, np.int64(arrays.order[i]))
    control[LIMIT], control[FIRST], control[STRIDE] = limit, begin, stride
    chunk = even_size(arrays, size, np.int64(_LEAST_MARKED))
    scanned, waited, _ = share(control, arrays, MARK, size, chunk)
    share(control, arrays, PUBLISH, size, max(chunk, _LEAST_PUBLISHED))
    if waited:
        for number in range(-(-size // chunk)):
            at = number * chunk * stride
            colour_waiting(arrays, at, at + arrays.noted[number])
    return scanned, waited, limit


@kernel(counted=False)
def colour_all(control, arrays, records):
    """Colour all vertices; return the number of records filled.

    `control` and `arrays` are the thread pool's words; see above. `records` is float64 (any,
    RECORD_WIDTH); the last row sums up all that do not fit.
    """
    n = np.int64(arrays.order.size)
    began = clock_seconds()
    arrays.colour[:] = UNCOLOURED
    begin, limit, rows = np.int64(0), np.int64(0), 0
    is_pool, is_shared = arrays.threads > 1, False
    size = min(n, np.int64(_FIRST_BLOCK)) if is_pool else n
    while begin < n:
        if is_shared:
            size, stride = _next_block(arrays, begin, n)
            scanned, waited, limit = _colour_shared(control, arrays, begin, size, stride, limit)
        else:
            end, waited = begin + size, np.int64(0)
            scanned, limit = colour_serially(
                arrays.indptr, arrays.indices, arrays.order, arrays.colour, begin, end, limit
            )
        ended = clock_seconds()
        strategy = SHARED if is_shared else GREEDY
        rows = _record(records, rows, strategy, size, scanned, ended - began)
        began = ended
        begin += size
        is_shared = is_pool and _MOST_WAITED * waited <= scanned
        size = n - begin
    return rows


@njit(inline="always")
def _record(records, rows, strategy, vertices, edges, seconds):
    """Fill the next record, or add to the last one if all are full; return the number filled."""
    row = min(rows, records.shape[0] - 1)
    record = records[row]
    if row == rows:
        record[:] = 0.0
        record[STRATEGY] = strategy
    record[VERTICES] += vertices
    record[EDGES] += edges
    record[SECONDS] += seconds
    return row + 1


# Neighbour lists for colouring: the order of the vertices, and the lists of both directions.
#
# Vertices are coloured by falling degree, then by the caller's id.


@kernel
def rank_vertices(degree, new_of_old, order, rank):
    """Fill order and rank by a counting sort.

    `degree`, uint32 (n,), is by new id, and `new_of_old` is uint32 (num_vertices,). `order`, uint32
    (n,), gets the vertices (new ids) by rank, and `rank`, uint32 (n,), the rank of each vertex.
    """
    largest = np.int64(0)
    for v in range(degree.size):
        largest = max(largest, np.int64(degree[v]))
    slot = np.zeros(largest + 1, np.int64)
    for v in range(degree.size):
        slot[degree[v]] += 1
    place = np.int64(0)
    for d in range(largest, -1, -1):
        count = slot[d]
        slot[d] = place
        place += count
    for old in range(new_of_old.size):
        v = new_of_old[old]
        if v != NO_ID:
            d = degree[v]
            place = slot[d]
            slot[d] = place + 1
            order[place] = v
            rank[v] = place


@parallel_kernel("indptr indices order rank new_indptr new_indices", counted=False)
def renumber_lists(given, part, parts):
    """Write a part of the adjacency by rank: row r has the neighbours of order[r], as ranks."""
    indptr, indices, rank = given.indptr, given.indices, given.rank
    begin, end = part_of(given.order.size, part, parts)
    for r in range(begin, end):
        v, at = given.order[r], given.new_indptr[r]
        for k in range(indptr[v], indptr[v + 1]):
            given.new_indices[at] = rank[indices[k]]
            at += 1


_PARTS_PER_THREAD = 16


def unite_lists(there: Any, back: Any) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint32]]:
    """Return indptr and indices of the union of a CSR graph and its transpose, sorted."""
    n = there.num_vertices
    parts = _PARTS_PER_THREAD * numba.get_num_threads()
    entries = there.indptr + back.indptr
    bounds = np.searchsorted(entries, np.linspace(0, entries[-1], parts + 1)).astype(np.int64)
    bounds[0], bounds[-1] = 0, n
    lists = bounds, there.indptr, there.indices, back.indptr, back.indices
    united = aligned_empty(n + 1, np.int64)
    united[0] = 0
    _count(*lists, united, parts=parts)
    np.cumsum(united, out=united)
    found = aligned_empty(int(united[-1]), np.uint32)
    _fill(*lists, united, found, parts=parts)
    return united, found


@njit(inline="always")
def _next(a, i, i_end, b, j, j_end):
    """Return the smaller of the next entries of two sorted lists, and the positions after it."""
    if j == j_end or (i < i_end and a[i] < b[j]):
        return a[i], i + 1, j
    if i == i_end or b[j] < a[i]:
        return b[j], i, j + 1
    return a[i], i + 1, j + 1


@parallel_kernel("bounds indptr indices back_indptr back_indices united", counted=False)
def _count(given, part, parts):
    a, b = given.indices, given.back_indices
    for v in range(given.bounds[part], given.bounds[part + 1]):
        i, i_end = given.indptr[v], given.indptr[v + 1]
        j, j_end = given.back_indptr[v], given.back_indptr[v + 1]
        count = 0
        while i < i_end or j < j_end:
            _, i, j = _next(a, i, i_end, b, j, j_end)
            count += 1
        given.united[v + 1] = count


@parallel_kernel("bounds indptr indices back_indptr back_indices united found", counted=False)
def _fill(given, part, parts):
    a, b, found = given.indices, given.back_indices, given.found
    for v in range(given.bounds[part], given.bounds[part + 1]):
        i, i_end = given.indptr[v], given.indptr[v + 1]
        j, j_end = given.back_indptr[v], given.back_indptr[v + 1]
        at = given.united[v]
        while i < i_end or j < j_end:
            found[at], i, j = _next(a, i, i_end, b, j, j_end)
            at += 1
