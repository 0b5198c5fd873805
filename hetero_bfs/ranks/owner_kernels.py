"""Compiled loops that sort by the ranks that own vertices: keys of neighbour lists, and messages.

A rank's neighbour lists are made from the edges that all ranks read.

A *key* is a uint64 for one entry of a neighbour list: the vertex in the upper half, the neighbour
in the lower half. In transfer the vertex is its position among the owner's old ids, the neighbour
an old id. Sorted keys are sorted neighbour lists.
"""

from __future__ import annotations

import numpy as np

from hetero_bfs.ranks.partition import LINE_SHIFT
from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.parallel import parallel_kernel, part_of

_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


@parallel_kernel("src dst both counts")
def count_keys(given, part, parts):
    """Set counts[part, owner], int64, to the number of keys of a part of the edges.

    Loops have no keys.
    """
    src, dst, both, ranks = given.src, given.dst, given.both != 0, np.uint32(given.counts.shape[1])
    counts = np.zeros(ranks, np.int64)  # private: the parts' rows share cache lines
    begin, end = part_of(src.size, part, parts)
    for i in range(begin, end):
        u, v = src[i], dst[i]
        if u != v:
            counts[u % ranks] += 1
            if both:
                counts[v % ranks] += 1
    given.counts[part] = counts


@parallel_kernel("src dst weights both places keys sent")
def make_keys(given, part, parts):
    """Write the keys of edges; part p's keys for owner r begin at places[p, r].

    A key's weight, if any, goes to the same position of `sent`.
    """
    src, dst, both, keys = given.src, given.dst, given.both != 0, given.keys
    weights, sent = given.weights, given.sent
    weighted, ranks = weights.size > 0, np.uint32(given.places.shape[1])
    places = given.places[part].copy()
    begin, end = part_of(src.size, part, parts)
    for i in range(begin, end):
        u, v = src[i], dst[i]
        if u == v:
            continue
        owner = u % ranks
        at = places[owner]
        places[owner] = at + 1
        keys[at] = np.uint64(u // ranks) << _HALF | np.uint64(v)
        if weighted:
            sent[at] = weights[i]
        if both:
            owner = v % ranks
            at = places[owner]
            places[owner] = at + 1
            keys[at] = np.uint64(v // ranks) << _HALF | np.uint64(u)
            if weighted:
                sent[at] = weights[i]


@kernel
def place_by_vertex(keys, weights, places, neighbours, placed):
    """Write the lower halves of keys, and weights, into the lists of the upper halves.

    `places` has the position of each vertex's list, and is advanced.
    """
    for i in range(keys.size):
        vertex = keys[i] >> _HALF
        at = places[vertex]
        places[vertex] = at + 1
        neighbours[at] = np.uint32(keys[i] & _LOW)
        placed[at] = weights[i]


@kernel
def combine_duplicates(degree, neighbours, weights, duplicates):
    """Combine the weights of equal neighbours in sorted lists.

    `duplicates` is an index into `weights.DUPLICATES`: min, max or sum. The lists are closed up
    in place, and `degree` gets their new lengths. Returns the total length, or -1 if a sum does not
    fit.
    """
    begin, written = np.int64(0), np.int64(-1)
    for v in range(degree.size):
        end, first = begin + np.int64(degree[v]), written + 1
        for i in range(begin, end):
            weight = weights[i]
            if written < first or neighbours[i] != neighbours[written]:
                written += 1
                neighbours[written], weights[written] = neighbours[i], weight
            elif duplicates == 0:
                weights[written] = min(weights[written], weight)
            elif duplicates == 1:
                weights[written] = max(weights[written], weight)
            else:
                total = weights[written] + weight
                weights[written] = total
                if weights[written] != total:
                    return np.int64(-1)
        degree[v] = written + 1 - first
        begin = end
    return written + 1


@kernel
def count_degrees(keys, degree):
    for i in range(keys.size):
        degree[keys[i] >> _HALF] += np.uint32(1)


@parallel_kernel("keys own all_numbers first", counted=False)
def renumber_keys(given, part, parts):
    """Replace vertices by their own numbers, and old neighbours by sorting numbers.

    A sorting number is number * ranks + owner, so that hubs of all ranks come first. `own` is the
    rank's part of `all_numbers` (uint32, by owner and position; `first` has each owner's begin).
    """
    keys, own, all_numbers, first = given.keys, given.own, given.all_numbers, given.first
    ranks = np.uint32(first.size)
    begin, end = part_of(keys.size, part, parts)
    for i in range(begin, end):
        vertex, old = keys[i] >> _HALF, np.uint32(keys[i] & _LOW)
        owner, place = old % ranks, np.int64(old // ranks)
        number = np.uint64(all_numbers[first[owner] + place])
        low = number * np.uint64(ranks) + np.uint64(owner)
        keys[i] = np.uint64(own[vertex]) << _HALF | low


@kernel
def lists_of_keys(keys, degree, indices):
    """Convert sorted keys to neighbour lists without duplicates; return their total length.

    `indices` is in the memory of `keys`: an entry overwrites keys that are already read.
    """
    written = 0
    before = np.uint64(0xFFFFFFFFFFFFFFFF)
    for i in range(keys.size):
        key = keys[i]
        if key != before:
            before = key
            degree[key >> _HALF] += np.uint32(1)
            indices[written] = np.uint32(key & _LOW)
            written += 1
    return written


@parallel_kernel("indices first_column", counted=False)
def columns_of_numbers(given, part, parts):
    """Replace sorting numbers by columns, in place."""
    indices, first_column = given.indices, given.first_column
    ranks = np.uint32(first_column.size)
    begin, end = part_of(indices.size, part, parts)
    for i in range(begin, end):
        number = indices[i]
        indices[i] = first_column[number % ranks] + np.int64(number // ranks)


_LINE_SHIFT = np.uint32(LINE_SHIFT)


@kernel(counted=False)
def count_by_owner(columns, owner_of_line, counts):
    counts[:] = 0
    for i in range(columns.size):
        counts[owner_of_line[columns[i] >> _LINE_SHIFT]] += 1


@kernel(counted=False)
def sort_by_owner(columns, messages, owner_of_line, first_column, places, numbers, sorted_messages):
    """Write messages, and vertices by their owners' numbers, each owner's starting at its position.

    `places`, the owners' positions, is advanced.
    """
    for i in range(columns.size):
        owner = owner_of_line[columns[i] >> _LINE_SHIFT]
        place = places[owner]
        numbers[place] = np.int64(columns[i]) - first_column[owner]
        sorted_messages[place] = messages[i]
        places[owner] = place + 1
