/* The phases of a monotone program that differ from other programs' on a device, as in monotone.py.
 *
 * Neighbour lists are sorted by weight, so messages do not fall along a list. A vertex sends the
 * messages below the bucket's end. If messages remain, it waits in FAR for the bucket of the first
 * of them. Once the begun lists have more unread edges than all other lists have edges, the
 * receivers pull along the begun lists. Each stops where even the sender of the lowest priority
 * could not send less than the receiver has. After that pull, vertices send to their whole lists,
 * and buckets are wider.
 *
 *     position    uint (n,)   how many messages of its list a vertex sent last
 *     begun       uchar (n,)  bits: BEGUN to send; CHANGED since then
 *     order       uint (edges,)   in directed graphs: a list's entries by rising weight
 *     heavy       has a second half: where in a long list a push begins
 */
#if MONOTONE

/* Return how many messages of a list are below the bucket's end, including those before `from`. */
static uint below_end(uint u, uint from, uint length, int iteration, COMMON)
{
    const float end = limits[END];
    uint low = from, high = length;
    if (loop[SENDS_ALL] || !(end < INFINITY))
        return length;
    while (low < high) {
        const uint middle = low + (high - low) / 2;
        const MESSAGE message = message_along(u, indptr[u] + middle, iteration, weights, outgoing,
                                              STATE_NAMES);
        if ((float)message < end)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Take the messages that a vertex sends now: return the first one, and write their end to
 * `position`. The vertex waits with the rest. Add the change in unread edges of begun lists to
 * `left`, and the edges of newly begun lists to `fresh`. */
static uint take_prefix(uint u, uint length, int iteration, Counts *counts, COMMON)
{
    const uint before = position[u], from = begun[u] & CHANGED ? 0 : before;
    const uint to = below_end(u, from, length, iteration, COMMON_NAMES);
    if (begun[u] & BEGUN)
        counts->left -= length - before;
    else
        counts->fresh += length;
    counts->left += length - to;
    begun[u] = BEGUN;
    position[u] = to;
    if (to < length) {
        const MESSAGE message =
            message_along(u, indptr[u] + to, iteration, weights, outgoing, STATE_NAMES);
        wait_for(u, (float)message, n, ARRAY_NAMES);
    }
    return from;
}

/* List vertices of FAR that are in the bucket, or sent a part if IS_LAST; keep the others. */
static void select_waiting(Counts *counts, COMMON)
{
    const int iteration = (int)loop[ITERATION];
    const bool is_last = loop[IS_LAST];
    const uint count = (uint)loop[FAR_LISTED];
    __global const uint *items = far + (loop[SIDES] & FAR_BIT ? n : 0);
    __global uint *listed = next + (loop[SIDES] & NEXT_BIT ? 0 : n);
    ulong sender = ~0ul;
    for (uint i = get_global_id(0); i < count; i += get_global_size(0)) {
        const uint v = items[i], length = (uint)(indptr[v + 1] - indptr[v]);
        const bool waits = waiting[v] == WAITING;
        waiting[v] = NOT_LISTED;
        if (!waits)
            continue;
        const float own = (float)priority(v, STATE_NAMES);
        float due = own;
        if (!(begun[v] & CHANGED))
            due = (float)message_along(v, indptr[v] + position[v], iteration, weights, outgoing,
                                       STATE_NAMES);
        if (is_last ? begun[v] != BEGUN : due >= limits[END] && limits[END] < INFINITY) {
            wait_for(v, due, n, ARRAY_NAMES);
            continue;
        }
        if (is_last) {
            const uint bits = (uint)ordered(own) ^ 0x80000000u;
            sender = min(sender, (ulong)bits << 32 | v);
            position[v] = length;
        }
        active_in[v] = iteration;
        listed[take_place(counters, NEXT_COUNT)] = v;
        counts->active++;
        counts->edges += length;
    }
    if (sender != ~0ul)
        lower_long(counters + LOWEST_SENDER, sender);
}

/* A work-item scans a list until nothing less can follow; work-groups take over long scans. */
static void pull_in_order(Counts *counts, BACKWARD, COMMON)
{
    const int iteration = (int)loop[ITERATION];
    const uint sender = (uint)counters[LOWEST_SENDER];
    const float floor = fmax(limits[END], (float)priority(sender, STATE_NAMES));
    for (uint v = get_global_id(0); v < searched; v += get_global_size(0)) {
        const float own = (float)priority(v, STATE_NAMES);
        if (own < floor || !receives(v, iteration, STATE_NAMES))
            continue;
        counts->received++;
        MESSAGE total = IDENTITY;
        const OFFSET first = backward_indptr[v], last = backward_indptr[v + 1];
        const OFFSET stop = last - first > HEAVY_EDGES ? first + HEAVY_EDGES : last;
        OFFSET k = first;
        for (; k < stop; k++) {
#if WEIGHTED && DIRECTED
            const OFFSET at = first + order[k]; /* incoming lists are not sorted by weight */
#else
            const OFFSET at = k;
#endif
            const MESSAGE least =
                message_along(sender, at, iteration, backward_weights, outgoing, STATE_NAMES);
            if (least >= total || (float)least > own)
                break;
            const uint u = backward_neighbours[at];
            if (active_in[u] != iteration)
                continue;
            const MESSAGE message =
                message_along(u, at, iteration, backward_weights, outgoing, STATE_NAMES);
            if (takes(v, message, iteration, STATE_NAMES))
                total = combine(total, message);
        }
        counts->scanned += k - first;
        if (k == stop && k < last) {
            counts->scanned += last - first;
            list_pieces(v, (uint)(last - first), heavy, counters);
        } else {
            store(v, total, ARRAY_NAMES);
        }
    }
}
#endif
