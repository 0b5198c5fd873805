/* The phases of a sweep on a device; sweep.py is the twin.
 *
 * A launch is a turn through a part of the arranged graph, or all turns through a part of few
 * edges. The host knows the launches of a sweep beforehand; `end_sweep` decides whether there is
 * another one. A work-group takes a vertex with long lists, a work-item any other one.
 *
 *     outgoing, sent, dirty, gathered     as in sweep.py; `messages` is its `combined`
 *     sums            the groups' shares of the totals in the sweep so far
 *     loop, counters  as in state.cl; only some words are in use
 *
 * With -DSTREAMED a launch is for blocks whose lists are in some buffers (streamed_sweeps.py): a
 * vertex with long lists, up to GROUP other vertices in sequence, or a whole part of few edges.
 * Block b has the vertices from firsts[b] to firsts[b + 1]. `blocks` and `backward_blocks` have
 * rows: a block's number, and where its lists begin in the buffers of each direction. Of these rows
 * a launch takes those from rows.s0 to rows.s2; before rows.s1 they are of long lists. `run_part`
 * takes rows.s0 of `blocks` and rows.s1 of `backward_blocks`.
 */

enum { PENDING = NEXT_COUNT };

#define LISTS                                                                                      \
    __global const OFFSET *indptr, __global const uint *neighbours, __global const WEIGHT *weights, \
        const uint n
#define LISTS_NAMES indptr, neighbours, weights, n
#define SWEEP                                                                                      \
    __global MESSAGE *outgoing, __global uchar *sent, __global uchar *dirty,                       \
        __global MESSAGE *messages, __global int *gathered, volatile __global ulong *counters,     \
        __global TOTAL *sums, __global long *loop
#define SWEEP_NAMES outgoing, sent, dirty, messages, gathered, counters, sums, loop

#ifdef STREAMED
#define BLOCKS                                                                                     \
    __global const uint *firsts, __global const uint2 *blocks,                                     \
        __global const uint2 *backward_blocks, const uint4 rows,
#define LIST_SHIFT(row) (indptr[firsts[blocks[row].x]] - blocks[row].y)
#define BACKWARD_SHIFT(row)                                                                        \
    (backward_indptr[firsts[backward_blocks[row].x]] - backward_blocks[row].y)
#define FIRST_LONG rows.s0
#define END_LONG rows.s1
#define VERTEX_AT(row) firsts[blocks[row].x]
#else
#define BLOCKS
#define LIST_SHIFT(row) 0
#define BACKWARD_SHIFT(row) 0
#define FIRST_LONG turn.s0
#define END_LONG turn.s1
#define VERTEX_AT(row) (row)
#endif

/* A turn through a part: the vertices from s0 to s2, those before s1 by work-groups; s3 is 1 if no
 * two are adjacent; vertices before s4 have no further turn in this sweep; s5 is a number that no
 * other turn of the run has. Of a part that `run_part` takes there are s6 turns, from s5 on. */
typedef uint8 Turn;

/* What a work-item counts. */
typedef struct {
    ulong active, pending, edges, received;
} Counts;

/* Add the counts and the totals of a work-group. All work-items call it. */
static void add_all(const Counts *counts, const TOTAL *shares, __local ulong *shared,
                    __local TOTAL *shared_totals, volatile __global ulong *counters,
                    __global TOTAL *sums)
{
    const uint lid = get_local_id(0);
    add_counts(counts->active, counts->edges, ACTIVE, SCANNED, shared, counters);
    add_counts(counts->pending, counts->received, PENDING, RECEIVED, shared, counters);
    for (uint i = 0; i < NUM_TOTALS; i++) {
        barrier(CLK_LOCAL_MEM_FENCE);
        shared_totals[lid] = shares[i];
        for (uint half_size = GROUP / 2; half_size; half_size /= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            if (lid < half_size)
                shared_totals[lid] += shared_totals[lid + half_size];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lid == 0)
            sums[get_group_id(0) * NUM_TOTALS + i] += shared_totals[0];
    }
}

static MESSAGE message_along(uint u, OFFSET k, __global const WEIGHT *weights, SWEEP, STATE)
{
#if PREPARED
    return outgoing[u];
#elif WEIGHTED
    return send(u, loop[ITERATION], weights[k], STATE_NAMES);
#else
    return send(u, loop[ITERATION], 0, STATE_NAMES);
#endif
}

/* Mark every `stride`-th neighbour from k on, except those that would refuse the message. The
 * state of those that apply in this step is not read. The lists begin `shift` entries before where
 * `indptr` says. */
static void mark(uint v, OFFSET k, uint stride, OFFSET shift, uint settled, int step,
                 Counts *counts, LISTS, SWEEP, STATE)
{
    const OFFSET last = indptr[v + 1] - shift;
    for (k += indptr[v] - shift; k < last; k += stride) {
        const uint u = neighbours[k];
        counts->edges++;
        if (gathered[u] != step) {
            if (!receives(u, loop[ITERATION], STATE_NAMES))
                continue;
            const MESSAGE message = message_along(v, k, weights, SWEEP_NAMES, STATE_NAMES);
            if (!takes(u, message, loop[ITERATION], STATE_NAMES))
                continue;
        }
        dirty[u] = 1;
        counts->pending += u < settled;
    }
}

/* Apply; tell whether the vertex has to mark its neighbours. */
static bool change(uint v, MESSAGE total, Counts *counts, TOTAL *shares, SWEEP, STATE)
{
    const bool active = apply(v, total, loop[ITERATION], shares, STATE_NAMES);
#if !ALL_ACTIVE
    if (!active)
        return false;
    sent[v] = 1;
#endif
#if PREPARED
    outgoing[v] = send(v, loop[ITERATION], 0, STATE_NAMES);
#endif
    counts->active++;
    return !ALL_ACTIVE;
}

/* Apply gathered messages, or keep them, as the part requires; tell whether to mark the neighbours.
 */
static bool settle(uint v, MESSAGE total, bool found, bool exact, int step, Counts *counts,
                   TOTAL *shares, SWEEP, STATE)
{
#if !ALL_ACTIVE
    if (!found || (HAS_IDENTITY && total == IDENTITY))
        return false;
#endif
    if (exact)
        return change(v, total, counts, shares, SWEEP_NAMES, STATE_NAMES);
    messages[v] = total;
    gathered[v] = step;
    return false;
}

/* Combine the messages along every `stride`-th incoming edge from k on; tell whether there is one.
 */
static bool gather(uint v, OFFSET k, uint stride, OFFSET shift, MESSAGE *total, Counts *counts,
                   BACKWARD, SWEEP, STATE)
{
    const OFFSET last = backward_indptr[v + 1] - shift;
    bool found = false;
    for (k += backward_indptr[v] - shift; k < last && (HAS_IDENTITY || !found); k += stride) {
        const uint u = backward_neighbours[k];
        counts->edges++;
#if !PREPARED && !ALL_ACTIVE
        if (!sent[u])
            continue;
#endif
        const MESSAGE message = message_along(u, k, backward_weights, SWEEP_NAMES, STATE_NAMES);
        if (!takes(v, message, loop[ITERATION], STATE_NAMES))
            continue;
        *total = HAS_IDENTITY ? combine(*total, message) : message;
        found = true;
    }
    return found;
}

__kernel void begin_run(LISTS, SWEEP, STATE)
{
    __local ulong shared[2];
    __local TOTAL shared_totals[GROUP];
    TOTAL shares[NUM_TOTALS + 1] = {0};
    Counts counts = {0, 0, 0, 0};
    for (uint v = get_global_id(0); v < n; v += get_global_size(0)) {
        const bool active = start(v, shares, STATE_NAMES);
        counts.active += active;
        sent[v] = active;
        dirty[v] = 0;
        gathered[v] = -1;
#if PREPARED
        outgoing[v] = active ? send(v, 0, 0, STATE_NAMES) : IDENTITY;
#endif
    }
    add_all(&counts, shares, shared, shared_totals, counters, sums);
}

/* Mark the neighbours of the vertices that are active at the start; all vertices if all are. With
 * -DSTREAMED choose_in_sweep does the latter. */
__kernel void spread(BLOCKS LISTS, SWEEP, STATE)
{
    __local ulong shared[2];
    Counts counts = {0, 0, 0, 0};
#ifdef STREAMED
    for (uint i = rows.s0 + get_group_id(0); i < rows.s2; i += get_num_groups(0))
        for (uint v = VERTEX_AT(i) + get_local_id(0); v < firsts[blocks[i].x + 1]; v += GROUP)
            if (sent[v])
                mark(v, 0, 1, LIST_SHIFT(i), 0, 0, &counts, LISTS_NAMES, SWEEP_NAMES, STATE_NAMES);
#else
    const bool all = counters[ACTIVE] == n;
    for (uint v = get_global_id(0); v < n; v += get_global_size(0)) {
        if (all)
            dirty[v] = 1;
        else if (sent[v])
            mark(v, 0, 1, 0, 0, 0, &counts, LISTS_NAMES, SWEEP_NAMES, STATE_NAMES);
    }
#endif
    add_counts(counts.edges, 0, SCANNED, PENDING, shared, counters);
}

/* Gather for every `stride`-th vertex from v to `end`, if it is dirty; in an exact part it applies. */
static void gather_each(uint v, uint stride, uint end, OFFSET backward_shift, OFFSET shift,
                        Turn turn, Counts *counts, TOTAL *shares, LISTS, BACKWARD, SWEEP, STATE)
{
    for (; v < end; v += stride) {
        if (!ALL_ACTIVE && !dirty[v])
            continue;
        dirty[v] = 0;
        MESSAGE total = IDENTITY;
        bool found = false;
        if (receives(v, loop[ITERATION], STATE_NAMES)) {
            counts->received++;
            found = gather(v, 0, 1, backward_shift, &total, counts, BACKWARD_NAMES, SWEEP_NAMES,
                           STATE_NAMES);
        }
        if (settle(v, total, found, turn.s3, (int)turn.s5, counts, shares, SWEEP_NAMES,
                   STATE_NAMES))
            mark(v, 0, 1, shift, turn.s4, (int)turn.s5, counts, LISTS_NAMES, SWEEP_NAMES,
                 STATE_NAMES);
    }
}

/* Apply for every `stride`-th vertex from v to `end`, if it gathered in this turn. */
static void apply_each(uint v, uint stride, uint end, OFFSET shift, Turn turn, Counts *counts,
                       TOTAL *shares, LISTS, SWEEP, STATE)
{
    for (; v < end; v += stride)
        if (gathered[v] == (int)turn.s5 &&
            change(v, messages[v], counts, shares, SWEEP_NAMES, STATE_NAMES))
            mark(v, 0, 1, shift, turn.s4, (int)turn.s5, counts, LISTS_NAMES, SWEEP_NAMES,
                 STATE_NAMES);
}

/* Go through a part of few edges s6 times, by one work-group. */
__kernel void run_part(Turn turn, BLOCKS LISTS, BACKWARD, SWEEP, STATE)
{
    __local ulong shared[2];
    __local TOTAL shared_totals[GROUP];
    TOTAL shares[NUM_TOTALS + 1] = {0};
    Counts counts = {0, 0, 0, 0};
    const uint lid = get_local_id(0), begin = turn.s0;
    if (loop[MODE] == DONE)
        return;
    const OFFSET shift = LIST_SHIFT(rows.s0), backward_shift = BACKWARD_SHIFT(rows.s1);
    for (uint i = 0; i < turn.s6; i++) {
        turn.s4 = i + 1 < turn.s6 ? begin : turn.s2;
        gather_each(begin + lid, GROUP, turn.s2, backward_shift, shift, turn, &counts, shares,
                    LISTS_NAMES, BACKWARD_NAMES, SWEEP_NAMES, STATE_NAMES);
        barrier(CLK_GLOBAL_MEM_FENCE);
        apply_each(begin + lid, GROUP, turn.s2, shift, turn, &counts, shares, LISTS_NAMES,
                   SWEEP_NAMES, STATE_NAMES);
        barrier(CLK_GLOBAL_MEM_FENCE);
        turn.s5++;
    }
    add_all(&counts, shares, shared, shared_totals, counters, sums);
}

/* Gather for the dirty vertices of a part; in an exact part each applies at once. */
__kernel void gather_part(const Turn turn, BLOCKS LISTS, BACKWARD, SWEEP, STATE)
{
    __local ulong shared[2];
    __local TOTAL shared_totals[GROUP];
    __local MESSAGE parts[GROUP];
    __local uchar has_part[GROUP];
    __local int changed;
    TOTAL shares[NUM_TOTALS + 1] = {0};
    Counts counts = {0, 0, 0, 0};
    const uint lid = get_local_id(0);
    const int step = (int)turn.s5;
    if (loop[MODE] == DONE)
        return;
    for (uint i = FIRST_LONG + get_group_id(0); i < END_LONG; i += get_num_groups(0)) {
        const uint v = VERTEX_AT(i);
        const bool due = ALL_ACTIVE || dirty[v];
        const bool open = due && receives(v, loop[ITERATION], STATE_NAMES);
        MESSAGE total = IDENTITY;
        bool found = false;
        if (open)
            found = gather(v, lid, GROUP, BACKWARD_SHIFT(i), &total, &counts, BACKWARD_NAMES,
                           SWEEP_NAMES, STATE_NAMES);
        barrier(CLK_LOCAL_MEM_FENCE);
        parts[lid] = total;
        has_part[lid] = found;
        for (uint half_size = GROUP / 2; half_size; half_size /= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            if (lid < half_size && has_part[lid + half_size]) {
                const MESSAGE other = parts[lid + half_size];
                parts[lid] = HAS_IDENTITY ? combine(parts[lid], other) : other;
                has_part[lid] = 1;
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        if (lid == 0) {
            changed = false;
            counts.received += open;
            if (due) {
                dirty[v] = 0;
                changed = settle(v, parts[0], has_part[0], turn.s3, step, &counts, shares,
                                 SWEEP_NAMES, STATE_NAMES);
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        if (changed)
            mark(v, lid, GROUP, LIST_SHIFT(i), turn.s4, step, &counts, LISTS_NAMES, SWEEP_NAMES,
                 STATE_NAMES);
    }
#ifdef STREAMED
    for (uint i = rows.s1 + get_group_id(0); i < rows.s2; i += get_num_groups(0))
        gather_each(VERTEX_AT(i) + lid, GROUP, firsts[blocks[i].x + 1], BACKWARD_SHIFT(i),
                    LIST_SHIFT(i), turn, &counts, shares, LISTS_NAMES, BACKWARD_NAMES, SWEEP_NAMES,
                    STATE_NAMES);
#else
    gather_each(turn.s1 + get_global_id(0), get_global_size(0), turn.s2, 0, 0, turn, &counts,
                shares, LISTS_NAMES, BACKWARD_NAMES, SWEEP_NAMES, STATE_NAMES);
#endif
    add_all(&counts, shares, shared, shared_totals, counters, sums);
}

/* Apply what the vertices of a part gathered in this turn. If all are active, no list is read. */
__kernel void apply_part(const Turn turn, BLOCKS LISTS, SWEEP, STATE)
{
    __local ulong shared[2];
    __local TOTAL shared_totals[GROUP];
    __local int changed;
    TOTAL shares[NUM_TOTALS + 1] = {0};
    Counts counts = {0, 0, 0, 0};
    if (loop[MODE] == DONE)
        return;
#if ALL_ACTIVE
    apply_each(turn.s0 + get_global_id(0), get_global_size(0), turn.s2, 0, turn, &counts, shares,
               LISTS_NAMES, SWEEP_NAMES, STATE_NAMES);
#else
    const uint lid = get_local_id(0);
    const int step = (int)turn.s5;
    for (uint i = FIRST_LONG + get_group_id(0); i < END_LONG; i += get_num_groups(0)) {
        const uint v = VERTEX_AT(i);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lid == 0)
            changed = gathered[v] == step && change(v, messages[v], &counts, shares, SWEEP_NAMES,
                                                    STATE_NAMES);
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        if (changed)
            mark(v, lid, GROUP, LIST_SHIFT(i), turn.s4, step, &counts, LISTS_NAMES, SWEEP_NAMES,
                 STATE_NAMES);
    }
#ifdef STREAMED
    for (uint i = rows.s1 + get_group_id(0); i < rows.s2; i += get_num_groups(0))
        apply_each(VERTEX_AT(i) + lid, GROUP, firsts[blocks[i].x + 1], LIST_SHIFT(i), turn,
                   &counts, shares, LISTS_NAMES, SWEEP_NAMES, STATE_NAMES);
#else
    apply_each(turn.s1 + get_global_id(0), get_global_size(0), turn.s2, 0, turn, &counts, shares,
               LISTS_NAMES, SWEEP_NAMES, STATE_NAMES);
#endif
#endif
    add_all(&counts, shares, shared, shared_totals, counters, sums);
}

/* End a sweep, or the start if `began`, in one work-group: decide whether there is another sweep.
 */
__kernel void end_sweep(const int began, const uint groups, __global long *records,
                        const uint most_records, LISTS, SWEEP, STATE)
{
    __local TOTAL shared[GROUP];
    const uint lid = get_local_id(0);
    if (loop[MODE] == DONE && !began)
        return;
    for (uint i = 0; i < NUM_TOTALS; i++) {
        TOTAL share = 0;
        for (uint g = lid; g < groups; g += GROUP) {
            share += sums[g * NUM_TOTALS + i];
            sums[g * NUM_TOTALS + i] = 0;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        shared[lid] = share;
        for (uint half_size = GROUP / 2; half_size; half_size /= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            if (lid < half_size)
                shared[lid] += shared[lid + half_size];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lid == 0)
            totals[i] = shared[0];
    }
    barrier(CLK_GLOBAL_MEM_FENCE);
    if (lid)
        return;
    const ulong active = ALL_ACTIVE ? n : counters[ACTIVE];
    bool ends = n == 0 || (began ? active == 0 : !ALL_ACTIVE && counters[PENDING] == 0);
    loop[NUM_ACTIVE] = active;
    if (!began) {
        if (loop[ITERATION] < most_records) {
            __global long *record = records + loop[ITERATION] * RECORD_WIDTH;
            record[1] = counters[RECEIVED];
            record[2] = counters[SCANNED];
        }
        counters[SCANNED] = 0; /* those of the start count for the first sweep */
        loop[ITERATION]++;
        ends = ends || finished(loop[ITERATION], loop[NUM_ACTIVE], STATE_NAMES);
    }
    counters[ACTIVE] = 0;
    counters[PENDING] = 0;
    counters[RECEIVED] = 0;
    loop[CONVERGED] = ends;
    loop[MODE] = ends || loop[ITERATION] >= loop[LIMIT] ? DONE : PULL;
}
