/* The phases of a vertex program on a device, as in host.py. loop.cl chooses among them. */

/* Write the group's `shares` of the totals. A macro, since drivers fail on a function with a
 * barrier that takes a private array. */
#define WRITE_TOTALS                                                                               \
    for (uint i = 0; i < NUM_TOTALS; i++) {                                                        \
        const TOTAL total = group_total(i, shares[i], mine->totals);                               \
        if (get_local_id(0) == 0)                                                                  \
            sums[get_group_id(0) * NUM_TOTALS + i] = total;                                        \
    }

__kernel void begin(COMMON)
{
    __local Mine local_memory;
    __local Mine *mine = &local_memory;
    TOTAL shares[NUM_TOTALS + 1] = NO_TOTALS;
    ulong active = 0, edges = 0;
    for (uint v = get_global_id(0); v < n; v += get_global_size(0)) {
        combined[v] = TO_BITS(IDENTITY);
        touched[v] = 0;
        waiting[v] = NOT_LISTED;
#if MONOTONE
        begun[v] = 0;
        position[v] = 0;
#endif
        active_in[v] = -1;
        if (start(v, shares, STATE_NAMES)) {
            active++;
#if ALL_ACTIVE && PREPARED
            outgoing[v] = send(v, 0, 0, STATE_NAMES);
#elif !ALL_ACTIVE
            edges += activate(v, 0, COMMON_NAMES);
#endif
        }
    }
    add_counts(active, edges, ACTIVE, ACTIVE_EDGES, mine->counts, counters);
    WRITE_TOTALS
}

/* Send the messages of an iteration, except along long lists. */
static void expand_lists(__local Mine *mine, BACKWARD, PART COMMON)
{
    Counts counts = {0};
    const long mode = loop[MODE];
    push(mode == PUSH, mine, &counts, BACKWARD_NAMES, PART_NAMES COMMON_NAMES);
#if MONOTONE
    if (mode == PULL_IN_ORDER)
        pull_in_order(&counts, BACKWARD_NAMES, COMMON_NAMES);
#endif
    pull(mode == PULL, mine, &counts, BACKWARD_NAMES, PART_NAMES COMMON_NAMES);
#ifdef STREAMED
    counts.received = 0; /* choose_blocks counts receivers */
#endif
    add_counts(counts.scanned, counts.received, SCANNED, RECEIVED, mine->counts, counters);
#if MONOTONE
    add_counts(counts.left, counts.fresh, MORE_LEFT, FRESH, mine->counts, counters);
#endif
}

#if HAS_IDENTITY
/* Return the number of a piece within its list; pieces of a list are adjacent in `heavy`. */
static uint piece_of(__global const uint *heavy, uint at)
{
    uint before = 0;
    while (before < at && heavy[max(at - before, 1u) - 1] == heavy[at])
        before++;
    return before;
}
#endif

/* The row of long list i. */
#define HEAVY_ROW(i) IN_RANGE(heavy[i], ROWS(n))

#if !COLLECTS
/* Push along the long lists, with the whole grid. */
static void finish_push(BACKWARD, PART COMMON)
{
    const uint count = loop[MODE] == PUSH ? (uint)counters[HEAVY_COUNT] : 0;
    const int iteration = (int)loop[ITERATION];
    for (uint i = 0; i < count; i++) {
        const uint row = HEAVY_ROW(i), u = VERTEX_OF(row);
        const MESSAGE message = MESSAGE_TO_ALL(u);
        const OFFSET shift = SHIFT(row, indptr);
#if MONOTONE
        const OFFSET first = indptr[u] + heavy[n + i], last = indptr[u] + position[u];
#else
        const OFFSET first = indptr[u] - shift, last = indptr[u + 1] - shift;
#endif
        if (get_global_id(0) == 0)
            add_long(counters + SCANNED, (ulong)(last - first));
        for (OFFSET k = first + get_global_id(0); k < last; k += get_global_size(0))
            push_edge(u, k, message, iteration, COMMON_NAMES);
    }
}
#endif

#if HAS_IDENTITY
/* Pull along the long lists, with a work-group for each list, or for each piece of PIECE_EDGES if
 * SPLITS. Pieces are combined in any order, so lists are not split for sums of floats. */
static void pull_heavy(__local MESSAGE *parts, BACKWARD, PART COMMON)
{
    const bool sends = loop[MODE] == PULL || loop[MODE] == PULL_IN_ORDER;
    const uint count = sends ? (uint)counters[HEAVY_COUNT] : 0;
    const int iteration = (int)loop[ITERATION];
    const uint lid = get_local_id(0);
    for (uint i = get_group_id(0); i < count; i += get_num_groups(0)) {
        const uint row = HEAVY_ROW(i), v = VERTEX_OF(row);
        MESSAGE total = IDENTITY;
        const OFFSET shift = SHIFT(row, backward_indptr);
        OFFSET first = backward_indptr[v] - shift, last = backward_indptr[v + 1] - shift;
        if (SPLITS) {
            first += (OFFSET)piece_of(heavy, i) * PIECE_EDGES;
            last = min(last, first + PIECE_EDGES);
        }
        gather_edges(v, first + lid, last, GROUP, iteration, &total, BACKWARD_NAMES, ARRAY_NAMES);
        barrier(CLK_LOCAL_MEM_FENCE);
        parts[lid] = total;
        for (uint half_size = GROUP / 2; half_size; half_size /= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            if (lid < half_size)
                parts[lid] = combine(parts[lid], parts[lid + half_size]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lid == 0) {
#if SPLITS
            if (ALL_ACTIVE || parts[0] != IDENTITY)
                deliver(v, parts[0], iteration, ARRAY_NAMES);
#else
            store(v, parts[0], ARRAY_NAMES);
#endif
        }
    }
}
#endif

#if HAS_PRIORITY && !MONOTONE
/* Move due vertices of FAR to the bucket; count them and their edges. */
static void select_waiting(Counts *counts, COMMON)
{
    const int iteration = (int)loop[ITERATION];
    __global const uint *items = far + (loop[SIDES] & FAR_BIT ? n : 0);
    const uint count = (uint)loop[FAR_LISTED];
    for (uint i = get_global_id(0); i < count; i += get_global_size(0)) {
        const uint v = items[i];
        const bool waits = waiting[v] == WAITING;
        waiting[v] = NOT_LISTED;
        if (waits) {
            counts->active++;
            counts->edges += activate(v, iteration, COMMON_NAMES);
        }
    }
}
#endif

/* Apply the messages; count the vertices that become active, and their edges. */
static void apply_messages_to(TOTAL *shares, Counts *counts, COMMON)
{
    const int iteration = (int)loop[ITERATION];
#if ALL_ACTIVE
    for (uint v = get_global_id(0); v < n; v += get_global_size(0)) {
        apply(v, FROM_BITS(combined[v]), iteration, shares, STATE_NAMES);
#if PREPARED
        outgoing[v] = send(v, iteration + 1, 0, STATE_NAMES);
#endif
    }
#else
    const uint count = (uint)counters[TOUCHED_COUNT];
    for (uint i = get_global_id(0); i < count; i += get_global_size(0)) {
        const uint v = touched_items[i];
        const MESSAGE total = FROM_BITS(combined[v]);
        combined[v] = TO_BITS(IDENTITY);
#if HAS_IDENTITY
        if (total == IDENTITY)
            continue;
#endif
        if (loop[TRACKS])
            changed[v] = 1;
        if (apply(v, total, iteration, shares, STATE_NAMES)) {
            counts->active++;
#if MONOTONE && !DIRECTED
            if (v < searched && indptr[v + 1] - indptr[v] == 1)
                continue; /* the only edge leads back to the sender of the message */
#endif
            counts->edges += activate(v, iteration + 1, COMMON_NAMES);
        }
    }
#endif
}

/* Apply the messages, or move due vertices of FAR to the bucket. */
static void apply_all(__local Mine *mine, COMMON)
{
    TOTAL shares[NUM_TOTALS + 1] = NO_TOTALS;
    Counts counts = {0};
    const long mode = loop[MODE];
#if HAS_PRIORITY
    if (mode == SELECT)
        select_waiting(&counts, COMMON_NAMES);
#endif
    if (mode != SELECT && mode != DONE)
        apply_messages_to(shares, &counts, COMMON_NAMES);
    add_counts(counts.active, counts.edges, ACTIVE, ACTIVE_EDGES, mine->counts, counters);
    WRITE_TOTALS /* `decide` ignores them after a selection */
}

/* Prepare an iteration whose active vertices came from another place. They are the first items of
 * the list of `next` that is written; those that wait are the first ones of `far`. */
__kernel void enter(COMMON)
{
    const int iteration = (int)loop[ITERATION];
#if HAS_PRIORITY
    for (uint i = get_global_id(0); i < (uint)counters[FAR_COUNT]; i += get_global_size(0))
        waiting[far[n + i]] = WAITING;
#endif
#if ALL_ACTIVE
#if PREPARED
    for (uint v = get_global_id(0); v < n; v += get_global_size(0))
        outgoing[v] = send(v, iteration, 0, STATE_NAMES);
#endif
#else
    const uint count = (uint)counters[NEXT_COUNT];
    for (uint i = get_global_id(0); i < count; i += get_global_size(0)) {
        const uint v = next[n + i];
        active_in[v] = iteration;
#if PREPARED
        outgoing[v] = send(v, iteration, 0, STATE_NAMES);
#endif
    }
#endif
}

#ifndef ONE_LAUNCH

__kernel void expand(BACKWARD, PART COMMON)
{
    __local Mine mine;
    expand_lists(&mine, BACKWARD_NAMES, PART_NAMES COMMON_NAMES);
}

__kernel void expand_long(BACKWARD, PART COMMON)
{
    finish_push(BACKWARD_NAMES, PART_NAMES COMMON_NAMES);
#if HAS_IDENTITY
    __local MESSAGE parts[GROUP];
    pull_heavy(parts, BACKWARD_NAMES, PART_NAMES COMMON_NAMES);
#endif
}

__kernel void apply_messages(COMMON)
{
    __local Mine mine;
    apply_all(&mine, COMMON_NAMES);
}
#endif

#ifdef STREAMED
/* Mark the blocks where a vertex with edges sends or receives. The mode follows the marks.
 * Receivers are counted here, since receivers without edges may be in blocks without marks. */
__kernel void choose_blocks(__global uchar *chosen, const uint total,
                            __global const OFFSET *backward_indptr, COMMON)
{
    __local uint marked;
    __local ulong counts[2];
    const uint lid = get_local_id(0);
    const int iteration = (int)loop[ITERATION];
    const long mode = loop[MODE];
    ulong received = 0;
    for (uint block = get_group_id(0); block < total; block += get_num_groups(0)) {
        const uint v = block * GROUP + lid;
        bool wanted = false;
        if (mode == PUSH && v < searched)
            wanted = active_in[v] == iteration && indptr[v] < indptr[v + 1];
        if (mode == PULL && v < searched) {
#if ALL_ACTIVE
            combined[v] = TO_BITS(IDENTITY);
#endif
            if (receives(v, iteration, STATE_NAMES)) {
                received++;
                wanted = backward_indptr[v] < backward_indptr[v + 1];
            }
        }
        mark_block(wanted, &marked, chosen + block);
    }
    if (get_global_id(0) == 0)
        chosen[total] = mode;
    add_counts(0, received, SCANNED, RECEIVED, counts, counters);
}

/* Clear the list of long neighbour lists for the next part. */
__kernel void end_part(const uint rows, volatile __global ulong *counters)
{
    counters[HEAVY_COUNT] = 0;
}
#endif
