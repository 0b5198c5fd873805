/* Finds the most frequent message to a vertex, or the least of several; counting.py does the same.
 *
 * There are SLOTS slots for each incoming edge, so the slots of a vertex's messages are contiguous.
 * A slot holds a message and its count. IDENTITY, which is never a message, marks an empty slot.
 * With LOCKS_MESSAGES another work-item holds a slot whose count is LOCKED. These kernels replace
 * `expand` and `expand_long`. All vertices are active. */

#define SLOTS_OF_GRAPH volatile __global BITS *slot_messages, volatile __global uint *slot_counts
#define SLOT_NAMES slot_messages, slot_counts

static void clear_slots(OFFSET k, SLOTS_OF_GRAPH)
{
    for (size_t slot = SLOTS * (size_t)k; slot < SLOTS * ((size_t)k + 1); slot++) {
        slot_messages[slot] = TO_BITS(IDENTITY);
        slot_counts[slot] = 0;
    }
}

/* Count the message along entry k; `most` becomes the highest count of the receiver's list. */
static void count_edge(uint v, OFFSET k, OFFSET first, uint length, volatile __local uint *most,
                       BACKWARD, SLOTS_OF_GRAPH, SHARED, STATE)
{
    const int iteration = (int)loop[ITERATION];
    MESSAGE message = IDENTITY;
    if (!gather_edge(v, k, iteration, &message, false, backward_neighbours, backward_weights,
                     outgoing, active_in, STATE_NAMES) || message == IDENTITY)
        return;
    const ulong mixed = (ulong)message * HASH_FACTOR >> 32, size = SLOTS * (ulong)length;
    ulong slot = mixed * size >> 32;
    const BITS bits = TO_BITS(message), empty = TO_BITS(IDENTITY);
    bool is_counted = false;
    while (!is_counted) {
        const size_t at = SLOTS * (size_t)first + slot;
#ifdef LOCKS_MESSAGES
        const uint before = atomic_xchg(slot_counts + at, LOCKED);
        const bool waits = before == LOCKED;
        if (!waits) {
            volatile __global ulong *held = (volatile __global ulong *)(slot_messages + at);
            mem_fence(CLK_GLOBAL_MEM_FENCE);
            const BITS seen = (BITS)read_protected(held);
            is_counted = seen == empty || seen == bits;
            if (seen == empty)
                write_protected(held, (ulong)bits);
            mem_fence(CLK_GLOBAL_MEM_FENCE);
            atomic_xchg(slot_counts + at, before + is_counted);
            if (is_counted)
                atomic_max(most, before + 1);
        }
#else
        const bool waits = false;
        const BITS seen = COMPARE_EXCHANGE(slot_messages + at, empty, bits);
        is_counted = seen == empty || seen == bits;
        if (is_counted)
            atomic_max(most, atomic_inc(slot_counts + at) + 1);
#endif
        if (!waits)
            slot = slot + 1 == size ? 0 : slot + 1;
    }
}

/* Deliver each message that came `most` times; `deliver` keeps the least one. */
static void choose_slots(uint v, OFFSET k, uint most, SLOTS_OF_GRAPH, SHARED)
{
    const int iteration = (int)loop[ITERATION];
    for (size_t slot = SLOTS * (size_t)k; most && slot < SLOTS * ((size_t)k + 1); slot++)
        if (slot_counts[slot] == most)
            deliver(v, FROM_BITS(slot_messages[slot]), iteration, SHARED_NAMES);
}

/* A work-group takes GROUP receivers, and its work-items share all their edges. Lists of over
 * HEAVY_EDGES entries wait for a work-group of their own. */
__kernel void count(GRAPH, BACKWARD, PART SLOTS_OF_GRAPH, SHARED, STATE)
{
    __local uint ends[GROUP];
    __local OFFSET firsts[GROUP];
    __local uint most[GROUP];
    __local ulong counts[2];
    const uint lid = get_local_id(0), end = loop[MODE] == PULL ? searched : 0;
    ulong scanned = 0, received = 0;
    for (uint tile = get_group_id(0) * GROUP; tile < ROWS(end);
         tile += get_num_groups(0) * GROUP) {
        const uint base = VERTEX_OF(tile), v = base + lid;
        uint length = 0;
        if (v < end) {
            combined[v] = TO_BITS(IDENTITY);
            if (receives(v, loop[ITERATION], STATE_NAMES)) {
                received++;
                firsts[lid] = backward_indptr[v] - SHIFT(tile, backward_indptr);
                length = (uint)(backward_indptr[v + 1] - backward_indptr[v]);
                scanned += length;
                if (length > HEAVY_EDGES) {
                    heavy[take_place(counters, HEAVY_COUNT)] = ROW_OF(tile + lid, v);
                    length = 0;
                }
            }
        }
        ends[lid] = length;
        most[lid] = 0;
        const uint total = running_sums(ends);
        for (uint e = lid; e < total; e += GROUP) {
            const uint at = owner_of(ends, e);
            clear_slots(firsts[at] + place_in_list(ends, at, e), SLOT_NAMES);
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        for (uint e = lid; e < total; e += GROUP) {
            const uint at = owner_of(ends, e), place = place_in_list(ends, at, e);
            const uint of_list = ends[at] - e + place;
            count_edge(base + at, firsts[at] + place, firsts[at], of_list, most + at,
                       BACKWARD_NAMES, SLOT_NAMES, SHARED_NAMES, STATE_NAMES);
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        for (uint e = lid; e < total; e += GROUP) {
            const uint at = owner_of(ends, e);
            const OFFSET k = firsts[at] + place_in_list(ends, at, e);
            choose_slots(base + at, k, most[at], SLOT_NAMES, SHARED_NAMES);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
#ifdef STREAMED
    received = 0; /* choose_blocks counts receivers */
#endif
    add_counts(scanned, received, SCANNED, RECEIVED, counts, counters);
}

__kernel void count_long(GRAPH, BACKWARD, PART SLOTS_OF_GRAPH, SHARED, STATE)
{
    __local uint most;
    const uint lid = get_local_id(0);
    const uint lists = loop[MODE] == PULL ? (uint)counters[HEAVY_COUNT] : 0;
    for (uint i = get_group_id(0); i < lists; i += get_num_groups(0)) {
        const uint row = IN_RANGE(heavy[i], ROWS(n)), v = VERTEX_OF(row);
        const OFFSET shift = SHIFT(row, backward_indptr);
        const OFFSET first = backward_indptr[v] - shift, last = backward_indptr[v + 1] - shift;
        for (OFFSET k = first + lid; k < last; k += GROUP)
            clear_slots(k, SLOT_NAMES);
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        if (lid == 0)
            most = 0;
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        for (OFFSET k = first + lid; k < last; k += GROUP)
            count_edge(v, k, first, (uint)(last - first), &most, BACKWARD_NAMES, SLOT_NAMES,
                       SHARED_NAMES, STATE_NAMES);
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        for (OFFSET k = first + lid; k < last; k += GROUP)
            choose_slots(v, k, most, SLOT_NAMES, SHARED_NAMES);
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    }
}
