"""The phases of a colouring on the host; colour_blocks.py has the loop that runs them.

Vertices are coloured in the order of their ranks (colour_order.py). Each gets the first colour that
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

import numpy as np
import numpy.typing as npt
from numba import int64, njit, types

from hetero_bfs.devices.cpu.sharing import ITEMS, chunk_of
from hetero_bfs.devices.cpu.thread_pool import OWN
from hetero_bfs.support.by_address import Struct, chunk_address
from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.intrinsics import prefetch, trailing_zeros

FIRST, STRIDE = ITEMS + 1, ITEMS + 2
"""Words of a job: the first rank of the block, and the room for the notes of a vertex."""

LIMIT = OWN
"""Word that phases keep: the largest number of a vertex up to the end of the block."""

CLEAR, MARK, PUBLISH = range(3)
NUM_TASKS = 3

UNCOLOURED = -1

NOTE_WORDS = 5
"""Entries of a vertex's notes in addition to the neighbours."""

_WORD = 64
_PREFETCH_DISTANCE = 8
_ZERO = np.int64(0)
_NO_BIT, _ONE = np.uint64(0), np.uint64(1)
_HALF, _LOW_HALF = np.uint64(32), np.uint64(0xFFFFFFFF)


@kernel(counted=False, inner=True)
def _clear(control, arrays, chunk, me):
    begin, end = chunk_of(control, chunk)
    arrays.colour[begin:end] = UNCOLOURED
    return _ZERO, _ZERO, _ZERO


@njit(inline="always")
def _prefetch(order, indptr, indices, i, end):
    """Prefetch the data of later vertices: offsets of their neighbour lists, then the entries."""
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
def colour_in_turn(indptr, indices, order, colour, begin, end, limit):
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


def link_work(arrays: Struct, work: npt.NDArray[np.int64]) -> None:
    """Compile the phases for these arrays, and store their addresses in `work`."""
    control: Any = types.Array(int64, 1, "C")
    for task, function in enumerate((_clear, _mark, _publish)):
        work[task] = chunk_address(function, control, arrays.numba_type)
