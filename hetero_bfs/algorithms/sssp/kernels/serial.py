"""Dijkstra's search (1959) by one thread, with a heap or with buckets.

The heap settles vertices in NetworkX's order.

Of vertices with equal distances, the one that was pushed first is settled first. So the paths are
unique.
"""

from __future__ import annotations

import numpy as np

from hetero_bfs.graph.edge_source import NO_ID
from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.intrinsics import bits_of


@kernel
def search_in_heap_order(indptr, indices, weights, source, target, limit, distance, parent, order):
    """Fill distance, parent and order, in which vertices are settled; return their number.

    At first distance (float64 (n,)) is infinite and parent (uint32 (n,)) is NO_VERTEX. The source
    becomes its own parent. Weights are float64, finite, at least 0. The search stops at distances
    above `limit`, and once `target` is settled; NO_VERTEX means no target. As in NetworkX, vertices
    whose distance exceeds float64 are also settled, last, at distance infinity.
    """
    vertex = np.empty(indices.size + 1, np.uint32)  # of each entry ever pushed
    heap = np.empty(indices.size + 1, np.int64)  # entries; `at` has their distances
    at = np.empty(indices.size + 1, np.float64)
    settled = np.zeros(parent.size, np.bool_)
    distance[source], parent[source] = 0.0, source
    vertex[0], heap[0], at[0] = source, 0, 0.0
    size, entries, found = 1, 1, 0
    while size > 0:
        v = vertex[_pop(heap, at, size)]
        size -= 1
        if settled[v]:
            continue
        settled[v] = True
        order[found] = v
        found += 1
        if v == target:
            break
        for k in range(indptr[v], indptr[v + 1]):
            u = indices[k]
            new = distance[v] + weights[k]
            is_first = new == np.inf and parent[u] == NO_ID
            if (new < distance[u] or is_first) and new <= limit:  # settled vertices are no farther
                distance[u], parent[u] = new, v
                vertex[entries] = u
                push(heap, at, size, entries, new)
                size += 1
                entries += 1
    return found


@kernel(inner=True)
def push(heap, at, size, entry, distance):
    """Push an entry, the newest, on a heap."""
    i = size
    while i > 0:
        up = (i - 1) >> 1
        if at[up] <= distance:  # of equal distances, the older entry comes first
            break
        heap[i], at[i] = heap[up], at[up]
        i = up
    heap[i], at[i] = entry, distance


@kernel(inner=True)
def _pop(heap, at, size):
    """Pop the smallest entry of a heap; of equal distances, the oldest."""
    least = heap[0]
    last, distance = heap[size - 1], at[size - 1]
    size -= 1
    i = 0
    while 2 * i + 1 < size:
        down = 2 * i + 1
        if down + 1 < size and _before(at[down + 1], heap[down + 1], at[down], heap[down]):
            down += 1
        if _before(distance, last, at[down], heap[down]):
            break
        heap[i], at[i] = heap[down], at[down]
        i = down
    heap[i], at[i] = last, distance
    return least


@kernel(inner=True)
def _before(distance, entry, other_distance, other):
    return distance < other_distance or (distance == other_distance and entry < other)


# Dijkstra's search (1959) by one thread with buckets whose width grows with the distance.
#
# A bucket has the distances that begin with the same bits: each octave (1 to 2, 2 to 4 and so on)
# is cut into equal parts. So weights of any spread fill many buckets. Vertices of the nearest
# bucket are on a heap, which is small. All other buckets are linked lists, where an operation costs
# O(1).

_APART = np.uint32(0xFFFFFFFE)  # predecessor of a vertex that is in no linked list
_OCTAVES = 32  # the first and last buckets also have all smaller and all larger distances
_OCTAVES_BELOW = 8  # octaves below a usual weight
_FRACTION_BITS = 52  # of a float64
_SAMPLE = 1024


@kernel
def search_in_log_buckets(indptr, indices, weights, sources, limit, distance, parent):
    """Fill distance, and the parents of reached vertices except the sources.

    distance, float64 or float32 (n,), is infinite at first; each sum is rounded to its type. parent
    is uint32 (n,), sources are int64. Weights are numbers of at least 0. Distances above `limit`
    stay infinite.
    """
    n = distance.size
    rounded = np.empty(1, distance.dtype)
    shift = _bucket_shift(n)
    base = (_usual_bits(weights) >> shift) - (_OCTAVES_BELOW << (_FRACTION_BITS - shift))
    first = np.full(_OCTAVES << (_FRACTION_BITS - shift), NO_ID, np.uint32)
    lists = first, np.empty(n, np.uint32), np.full(n, _APART, np.uint32)
    heap = np.empty(indices.size + sources.size, np.uint32)  # mostly untouched
    at = np.empty(indices.size + sources.size, np.float64)
    listed, bucket = 0, 0
    for v in sources:
        distance[v] = 0.0
        if lists[2][v] == _APART:
            _insert(lists, bucket, np.uint32(v))
            listed += 1
    while listed > 0:
        while first[bucket] == NO_ID:
            bucket += 1
        size = _move_to_heap(lists, bucket, distance, heap, at)
        listed -= size
        while size > 0:
            v, own = heap[0], at[0]
            _pop_bucket(heap, at, size)
            size -= 1
            if own != distance[v]:  # an outdated entry: v got nearer, and is settled
                continue
            for k in range(np.uint64(indptr[v]), np.uint64(indptr[v + 1])):
                u = indices[k]
                rounded[0] = own + weights[k]
                new = np.float64(rounded[0])
                old = np.float64(distance[u])
                if new < old and new <= limit:
                    distance[u], parent[u] = new, v
                    if lists[2][u] != _APART:
                        _remove(lists, _bucket_of(old, shift, base, first.size), u)
                        listed -= 1
                    to = _bucket_of(new, shift, base, first.size)
                    if to == bucket:
                        push(heap, at, size, u, new)
                        size += 1
                    else:
                        _insert(lists, to, u)
                        listed += 1


@kernel(inner=True)
def _bucket_shift(num_vertices):
    """Return how many low bits of a distance to ignore, for about as many buckets as vertices."""
    parts = 6
    while parts < 14 and _OCTAVES << parts < num_vertices:
        parts += 1
    return _FRACTION_BITS - parts


@kernel(inner=True)
def _usual_bits(weights):
    """Return the mean of the bits of a sample of positive weights, near their geometric mean."""
    total, count = 0, 0
    for k in range(0, weights.size, max(weights.size // _SAMPLE, 1)):
        if 0 < weights[k] < np.inf:
            total += bits_of(np.float64(weights[k])) >> 16  # so that the sum fits
            count += 1
    return (total // max(count, 1)) << 16


@kernel(inner=True)
def _bucket_of(distance, shift, base, num_buckets):
    return min(max((bits_of(distance) >> shift) - base, 0), num_buckets - 1)


@kernel(inner=True)
def _insert(lists, bucket, v):
    first, after, before = lists
    head = first[bucket]
    first[bucket], after[v], before[v] = v, head, NO_ID
    if head != NO_ID:
        before[head] = v


@kernel(inner=True)
def _remove(lists, bucket, v):
    first, after, before = lists
    up, down = before[v], after[v]
    before[v] = _APART
    if up == NO_ID:
        first[bucket] = down
    else:
        after[up] = down
    if down != NO_ID:
        before[down] = up


@kernel(inner=True)
def _move_to_heap(lists, bucket, distance, heap, at):
    first, after, before = lists
    v, size = first[bucket], 0
    first[bucket] = NO_ID
    while v != NO_ID:
        push(heap, at, size, v, np.float64(distance[v]))
        size += 1
        before[v] = _APART
        v = after[v]
    return size


@kernel(inner=True)
def _pop_bucket(heap, at, size):
    """Pop the smallest entry of a heap; of equal distances, any."""
    last, distance = heap[size - 1], at[size - 1]
    size -= 1
    i = 0
    while 2 * i + 1 < size:
        down = 2 * i + 1
        if down + 1 < size and at[down + 1] < at[down]:
            down += 1
        if distance <= at[down]:
            break
        heap[i], at[i] = heap[down], at[down]
        i = down
    heap[i], at[i] = last, distance
