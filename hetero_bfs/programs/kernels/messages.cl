/* Delivers the messages of an iteration: functions that device.cl calls. */

/* A work-group's local memory. */
typedef struct {
    uint ends[GROUP];
    OFFSET firsts[GROUP];
    uint vertices[GROUP];
    MESSAGE messages[GROUP];
#if HAS_IDENTITY
    MESSAGE continued[GROUP];
    MESSAGE totals_of_lists[GROUP];
#endif
    TOTAL totals[GROUP];
    ulong counts[2];
} Mine;

#if COLLECTS
/* Receivers go through their messages one by one, as in collected.py. A work-item takes a whole
 * list, so long lists do not wait. */

/* Collect the messages to all receivers in a pull; in a push, to those that are touched. */
static void pull(bool due, __local Mine *mine, Counts *counts, BACKWARD, COMMON)
{
    const long iteration = loop[ITERATION];
    const bool touches = loop[MODE] == PUSH;
    const uint end = due ? searched : 0;
    for (uint v = get_global_id(0); v < end; v += get_global_size(0)) {
        if (touches && touched[v] != iteration + 1)
            continue;
        const OFFSET begin = backward_indptr[v], back_begin = indptr[v];
        OFFSET count = 0, back_count = 0;
        if (receives(v, iteration, STATE_NAMES)) {
            counts->received++;
            count = backward_indptr[v + 1] - begin;
            if (SENDS_BACK)
                back_count = indptr[v + 1] - back_begin;
            counts->scanned += count + back_count;
        }
        const int flag = collect(MESSAGES_NAMES);
        combined[v] = flag;
#if !ALL_ACTIVE
        if (flag)
            touched_items[take_place(counters, TOUCHED_COUNT)] = v;
#endif
    }
}

/* Mark the receivers of active vertices in `touched`. */
static void push(bool due, __local Mine *mine, Counts *counts, BACKWARD, COMMON)
{
    const int mark = (int)loop[ITERATION] + 1;
    const uint count = due ? (uint)loop[LISTED] : 0;
    __global const uint *items = next + (loop[SIDES] & NEXT_BIT ? n : 0);
    for (uint i = get_global_id(0); i < count; i += get_global_size(0)) {
        const uint u = items[i];
        if (ACTIVE_APPLY)
            atomic_xchg(touched + u, mark);
        for (OFFSET k = indptr[u]; k < indptr[u + 1]; k++)
            atomic_xchg(touched + neighbours[k], mark);
        counts->scanned += indptr[u + 1] - indptr[u];
#if SENDS_BACK
        for (OFFSET k = backward_indptr[u]; k < backward_indptr[u + 1]; k++)
            atomic_xchg(touched + backward_neighbours[k], mark);
        counts->scanned += backward_indptr[u + 1] - backward_indptr[u];
#endif
    }
}

/* After `push`, collect the messages. */
static void finish_push(BACKWARD, COMMON)
{
    Counts counts = {0};
    pull(loop[MODE] == PUSH, 0, &counts, BACKWARD_NAMES, COMMON_NAMES);
    if (counts.scanned)
        add_long(counters + SCANNED, counts.scanned);
}
#else

/* Send along one edge of an active vertex. */
static void push_edge(uint u, OFFSET k, MESSAGE message, int iteration, COMMON)
{
    const uint v = neighbours[k];
    if (!receives(v, iteration, STATE_NAMES))
        return;
#if WEIGHTED
    message = message_along(u, k, iteration, weights, outgoing, STATE_NAMES);
#endif
    if (takes(v, message, iteration, STATE_NAMES))
        deliver(v, message, iteration, ARRAY_NAMES);
}

/* Return the message to all neighbours of a vertex, or any value if it depends on the edge. */
#define MESSAGE_TO_ALL(u)                                                                          \
    (WEIGHTED ? IDENTITY : message_along(u, 0, iteration, weights, outgoing, STATE_NAMES))

/* A work-group takes up to GROUP active vertices, and its work-items share all their edges. Lists
 * of over HEAVY_EDGES entries wait for the whole grid. If it is not `due`, it returns at once. */
static void push(bool due, __local Mine *mine, Counts *counts, BACKWARD, PART COMMON)
{
    __local uint *ends = mine->ends;
    const uint lid = get_local_id(0), rows = due ? ROWS((uint)loop[LISTED]) : 0;
    const uint each = TILE_ROWS(rows);
    __global const uint *items = next + (loop[SIDES] & NEXT_BIT ? n : 0);
    const int iteration = (int)loop[ITERATION];
    for (uint tile = get_group_id(0) * each; tile < rows; tile += get_num_groups(0) * each) {
        uint length = 0;
        if (lid < each && IS_SENDER(tile + lid)) {
            const uint u = SENDER(tile + lid);
            mine->vertices[lid] = u;
            mine->messages[lid] = MESSAGE_TO_ALL(u);
            mine->firsts[lid] = indptr[u] - SHIFT(tile, indptr);
            length = (uint)(indptr[u + 1] - indptr[u]);
#if MONOTONE
            const uint from = take_prefix(u, length, iteration, counts, COMMON_NAMES);
            mine->firsts[lid] += from;
            length = position[u] - from;
#endif
            if (length > HEAVY_EDGES) {
                const uint place = take_place(counters, HEAVY_COUNT);
                heavy[place] = ROW_OF(tile + lid, u);
#if MONOTONE
                heavy[n + place] = from;
#endif
                length = 0;
            }
        }
        ends[lid] = length;
        const uint total = running_sums(ends);
        if (lid == 0)
            counts->scanned += total;
        for (uint e = lid; e < total; e += GROUP) {
            const uint at = owner_of(ends, e);
            const OFFSET k = mine->firsts[at] + place_in_list(ends, at, e);
            push_edge(mine->vertices[at], k, mine->messages[at], iteration, COMMON_NAMES);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

#if ALL_ACTIVE
#define SENDS(u) true
#else
#define SENDS(u) (active_in[u] == iteration)
#endif

/* Combine the message of `u` along edge `k` with `total`; return whether any message was found. */
static bool gather_from(uint u, uint v, OFFSET k, int iteration, MESSAGE *total, bool found,
                        BACKWARD, ARRAYS)
{
    const MESSAGE message =
        message_along(u, k, iteration, backward_weights, outgoing, STATE_NAMES);
    if (!takes(v, message, iteration, STATE_NAMES))
        return found;
    *total = HAS_IDENTITY || found ? combine(*total, message) : message;
    return true;
}

/* Gather along an incoming edge, if its other end sends. */
static bool gather_edge(uint v, OFFSET k, int iteration, MESSAGE *total, bool found,
                        BACKWARD, ARRAYS)
{
    const uint u = backward_neighbours[k];
    if (!SENDS(u))
        return found;
    return gather_from(u, v, k, iteration, total, found, BACKWARD_NAMES, ARRAY_NAMES);
}

#if HAS_IDENTITY
/* Gather along every `stride`-th edge. A work-item loads several senders before it uses the first,
 * to hide memory latency. */
#define AT_ONCE 4
static void gather_edges(uint v, OFFSET k, OFFSET last, uint stride, int iteration, MESSAGE *total,
                         BACKWARD, ARRAYS)
{
    for (; k < last && last - k > (AT_ONCE - 1) * stride; k += AT_ONCE * stride) {
        uint senders[AT_ONCE];
        bool sends[AT_ONCE];
#pragma unroll
        for (uint i = 0; i < AT_ONCE; i++)
            senders[i] = backward_neighbours[k + i * stride];
#pragma unroll
        for (uint i = 0; i < AT_ONCE; i++)
            sends[i] = SENDS(senders[i]);
#pragma unroll
        for (uint i = 0; i < AT_ONCE; i++)
            if (sends[i])
                gather_from(senders[i], v, k + i * stride, iteration, total, true, BACKWARD_NAMES,
                            ARRAY_NAMES);
    }
    for (; k < last; k += stride)
        gather_edge(v, k, iteration, total, true, BACKWARD_NAMES, ARRAY_NAMES);
}
#endif

#if !HAS_IDENTITY
/* A work-item scans a list until it finds a message. */
static void pull(bool due, __local Mine *mine, Counts *counts, BACKWARD, PART COMMON)
{
    const int iteration = (int)loop[ITERATION];
    const uint rows = due ? ROWS(searched) : 0;
    for (uint row = get_global_id(0); row < rows; row += get_global_size(0)) {
        const uint v = VERTEX_OF(row);
        if (v >= searched || !receives(v, iteration, STATE_NAMES))
            continue;
        counts->received++;
        MESSAGE total = IDENTITY;
        bool found = false;
        OFFSET k = backward_indptr[v] - SHIFT(row, backward_indptr);
        const OFFSET first = k, last = backward_indptr[v + 1] - SHIFT(row, backward_indptr);
        while (k < last && !found)
            found = gather_edge(v, k++, iteration, &total, found, BACKWARD_NAMES, ARRAY_NAMES);
        counts->scanned += k - first;
        if (found)
            store(v, total, ARRAY_NAMES);
    }
}
#else
/* A work-group takes up to GROUP receivers. Their edges are divided into equal runs, one for each
 * work-item. A list's total is combined from its runs in order, so that sums of floats are
 * reproducible. Lists of over LONG_PULL edges wait for work-groups of their own (`pull_heavy`). If
 * it is not `due`, it returns at once. */
static void pull(bool due, __local Mine *mine, Counts *counts, BACKWARD, PART COMMON)
{
    __local uint *ends = mine->ends;
    __local MESSAGE *starts = mine->messages;
    const uint lid = get_local_id(0), rows = due ? ROWS(searched) : 0, each = TILE_ROWS(rows);
    const int iteration = (int)loop[ITERATION];
    for (uint tile = get_group_id(0) * each; tile < rows; tile += get_num_groups(0) * each) {
        const uint base = VERTEX_OF(tile), v = base + lid;
        uint length = 0;
#if ALL_ACTIVE
        if (lid < each && v < searched)
            combined[v] = TO_BITS(IDENTITY);
#endif
        if (lid < each && v < searched && receives(v, iteration, STATE_NAMES)) {
            counts->received++;
            mine->firsts[lid] = backward_indptr[v] - SHIFT(tile, backward_indptr);
            length = (uint)(backward_indptr[v + 1] - backward_indptr[v]);
            counts->scanned += length;
            if (length > LONG_PULL) {
                list_pieces(ROW_OF(tile + lid, v), length, heavy, counters);
                length = 0;
            }
        }
        ends[lid] = length;
        const uint sum = running_sums(ends);
        const uint run = (sum + GROUP - 1) / GROUP;
        const uint from = min(lid * run, sum), to = min(from + run, sum);
        mine->totals_of_lists[lid] = IDENTITY;
        starts[lid] = IDENTITY;
        mine->continued[lid] = IDENTITY;
        barrier(CLK_LOCAL_MEM_FENCE);
        uint edge = from;
        uint at = from < to ? owner_of(ends, from) : 0;
        while (edge < to) {
            while (ends[at] <= edge) /* skip empty lists */
                at++;
            const uint list_begin = at ? ends[at - 1] : 0, stop = min(ends[at], to);
            MESSAGE total = IDENTITY;
            const OFFSET shift = mine->firsts[at] - list_begin;
            gather_edges(base + at, shift + edge, shift + stop, 1, iteration, &total,
                         BACKWARD_NAMES, ARRAY_NAMES);
            if (list_begin < from)
                mine->continued[lid] = total;
            else if (ends[at] > to)
                starts[lid] = total;
            else
                mine->totals_of_lists[at] = total;
            edge = stop;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (length) {
            const uint list_begin = lid ? ends[lid - 1] : 0;
            const uint first_run = list_begin / run, last_run = (ends[lid] - 1) / run;
            MESSAGE total = mine->totals_of_lists[lid];
            if (first_run != last_run)
                total = starts[first_run];
            for (uint i = first_run + 1; i <= last_run; i++)
                total = combine(total, mine->continued[i]);
            store(v, total, ARRAY_NAMES);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
#endif

#if COUNTS
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
                       BACKWARD, SLOTS_OF_GRAPH, ARRAYS)
{
    const int iteration = (int)loop[ITERATION];
    MESSAGE message = IDENTITY;
    if (!gather_edge(v, k, iteration, &message, false, BACKWARD_NAMES, ARRAY_NAMES) ||
        message == IDENTITY)
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
static void choose_slots(uint v, OFFSET k, uint most, SLOTS_OF_GRAPH, ARRAYS)
{
    const int iteration = (int)loop[ITERATION];
    for (size_t slot = SLOTS * (size_t)k; most && slot < SLOTS * ((size_t)k + 1); slot++)
        if (slot_counts[slot] == most)
            deliver(v, FROM_BITS(slot_messages[slot]), iteration, ARRAY_NAMES);
}

/* A work-group takes GROUP receivers, and its work-items share all their edges. Lists of over
 * HEAVY_EDGES entries wait for a work-group of their own. */
__kernel void count(SLOTS_OF_GRAPH, BACKWARD, PART COMMON)
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
                       BACKWARD_NAMES, SLOT_NAMES, ARRAY_NAMES);
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        for (uint e = lid; e < total; e += GROUP) {
            const uint at = owner_of(ends, e);
            const OFFSET k = firsts[at] + place_in_list(ends, at, e);
            choose_slots(base + at, k, most[at], SLOT_NAMES, ARRAY_NAMES);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
#ifdef STREAMED
    received = 0; /* choose_blocks counts receivers */
#endif
    add_counts(scanned, received, SCANNED, RECEIVED, counts, counters);
}

__kernel void count_long(SLOTS_OF_GRAPH, BACKWARD, PART COMMON)
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
                       ARRAY_NAMES);
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        for (OFFSET k = first + lid; k < last; k += GROUP)
            choose_slots(v, k, most, SLOT_NAMES, ARRAY_NAMES);
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    }
}
#endif
#endif
