/* A sweep on a device, as in sweep.py: the steps for one vertex, then the kernels.
 *
 *     outgoing, sent, dirty, gathered     as in sweep.py; `messages` is `combined` there
 *     sums            the groups' shares of the totals in the sweep so far
 *     loop, counters  as in state.cl; only some words are used
 */

enum { PENDING = NEXT_COUNT };

#define SWEEP                                                                                      \
   __global const OFFSET *indptr, __global const uint *neighbours, __global const WEIGHT *weights, \
        const uint n, __global MESSAGE *outgoing, __global uchar *sent, __global uchar *dirty,     \
        __global MESSAGE *messages, __global int *gathered, volatile __global ulong *counters,     \
        __global TOTAL *sums, __global long *loop, STATE
#define SWEEP_NAMES                                                                                \
    indptr, neighbours, weights, n, outgoing, sent, dirty, messages, gathered, counters, sums,     \
        loop, STATE_NAMES

/* One pass through a part: the vertices from s0 to s2; work-groups take the vertices before s1. s3
 * is 1 if no two are adjacent. This sweep will not visit vertices before s4 again. s5 is the unique
 * number of the visit. `run_part` makes s6 passes, numbered from s5. If s3 is 1, pass i is through
 * part s7 + i. */
typedef uint8 Visit;

/* Variables of a kernel that counts: shared memory, and a work-item's counts and shares. */
#define COUNTING                                                                                   \
    __local ulong shared[2];                                                                       \
    TOTALS_MEMORY(shared_totals)                                                                   \
    TOTAL shares[NUM_TOTALS + 1] = {0};                                                            \
    Counts counts = {0};

/* Add up counts and shares of a work-group. All work-items do this. A macro, since drivers fail on
 * a function with a barrier that takes a private array. */
#define ADD_ALL                                                                                    \
    add_counts(counts.active, counts.scanned, ACTIVE, SCANNED, shared, counters);                  \
    add_counts(counts.pending, counts.received, PENDING, RECEIVED, shared, counters);              \
    for (uint i = 0; i < NUM_TOTALS; i++) {                                                        \
        const TOTAL total = group_total(i, shares[i], shared_totals);                              \
        if (get_local_id(0) == 0)                                                                  \
            sums[get_group_id(0) * NUM_TOTALS + i] += total;                                       \
    }

/* Mark every `stride`-th neighbour from k, except neighbours that would refuse the message. The
 * state of vertices that apply in this step is not read. Buffers begin `shift` entries after the
 * start of the whole graph's array. */
static void mark(uint v, OFFSET k, uint stride, OFFSET shift, uint settled, int step,
                 Counts *counts, SWEEP)
{
    const OFFSET last = indptr[v + 1] - shift;
    for (k += indptr[v] - shift; k < last; k += stride) {
        const uint u = neighbours[k];
        counts->scanned++;
        if (gathered[u] != step) {
            if (!receives(u, loop[ITERATION], STATE_NAMES))
                continue;
            const MESSAGE message = message_along(v, k, loop[ITERATION], weights, outgoing,
                                                  STATE_NAMES);
            if (!takes(u, message, loop[ITERATION], STATE_NAMES))
                continue;
        }
        dirty[u] = 1;
        counts->pending += u < settled;
    }
}

/* Apply; return whether the vertex must mark its neighbours. */
static bool change(uint v, MESSAGE total, Counts *counts, TOTAL *shares, SWEEP)
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

/* Apply gathered messages, or keep them if the part is not exact; return whether to mark. */
static bool settle(uint v, MESSAGE total, bool found, bool exact, int step, Counts *counts,
                   TOTAL *shares, SWEEP)
{
#if !ALL_ACTIVE
    if (!found || (HAS_IDENTITY && total == IDENTITY))
        return false;
#endif
    if (exact)
        return change(v, total, counts, shares, SWEEP_NAMES);
    messages[v] = total;
    gathered[v] = step;
    return false;
}

/* Combine the messages along every `stride`-th incoming edge; return whether there are any. */
static bool gather(uint v, OFFSET k, uint stride, OFFSET shift, MESSAGE *total, Counts *counts,
                   BACKWARD, SWEEP)
{
    const OFFSET last = backward_indptr[v + 1] - shift;
    bool found = false;
    for (k += backward_indptr[v] - shift; (HAS_IDENTITY || !found) && k < last; k += stride) {
        const uint u = backward_neighbours[k];
        counts->scanned++;
#if !PREPARED && !ALL_ACTIVE
        if (!sent[u])
            continue;
#endif
        const MESSAGE message = message_along(u, k, loop[ITERATION], backward_weights, outgoing,
                                              STATE_NAMES);
        if (!takes(v, message, loop[ITERATION], STATE_NAMES))
            continue;
        *total = HAS_IDENTITY ? combine(*total, message) : message;
        found = true;
    }
    return found;
}

/* Gather for every `stride`-th dirty vertex from v to `end`; in exact parts it applies at once. */
static void gather_each(uint v, uint stride, uint end, OFFSET backward_shift, OFFSET shift,
                        Visit visit, Counts *counts, TOTAL *shares, BACKWARD, SWEEP)
{
    for (; v < end; v += stride) {
        if (!ALL_ACTIVE && !dirty[v])
            continue;
        dirty[v] = 0;
        MESSAGE total = IDENTITY;
        bool found = false;
        if (receives(v, loop[ITERATION], STATE_NAMES)) {
            counts->received++;
            found = gather(v, 0, 1, backward_shift, &total, counts, BACKWARD_NAMES, SWEEP_NAMES);
        }
        if (settle(v, total, found, visit.s3, (int)visit.s5, counts, shares, SWEEP_NAMES))
            mark(v, 0, 1, shift, visit.s4, (int)visit.s5, counts, SWEEP_NAMES);
    }
}

/* Apply for every `stride`-th vertex from v to `end` that gathered in this visit. */
static void apply_each(uint v, uint stride, uint end, OFFSET shift, Visit visit, Counts *counts,
                       TOTAL *shares, SWEEP)
{
    for (; v < end; v += stride)
        if (gathered[v] == (int)visit.s5 && change(v, messages[v], counts, shares, SWEEP_NAMES))
            mark(v, 0, 1, shift, visit.s4, (int)visit.s5, counts, SWEEP_NAMES);
}

/* The phases of a sweep.
 *
 * A launch is a visit: one pass through a part of the arranged graph, all passes through a part of
 * few edges, or one pass through each of some successive colours. The host knows the launches of a
 * sweep beforehand. `end_sweep` decides whether another sweep follows. A work-group takes a vertex
 * with a long list, a work-item any other vertex.
 *
 * With -DSTREAMED a launch is for blocks in some buffers (device_forms.py). A block is a vertex
 * with a long list, up to GROUP other consecutive vertices, or a whole part of few edges. Block b
 * has the vertices from firsts[b] to firsts[b + 1]. `blocks` and `backward_blocks` have rows: a
 * block's number, and its first entry in the buffers of that direction. A launch takes the rows
 * from rows.s0 to rows.s2; rows before rows.s1 are of long lists. `run_part` takes row rows.s0 of
 * `blocks` and row rows.s1 of `backward_blocks`. The graph has rows.s3 blocks.
 */

#ifdef STREAMED
#define BLOCKS                                                                                     \
    __global const uint *firsts, __global const uint2 *blocks,                                     \
        __global const uint2 *backward_blocks, const uint4 rows,
#define BLOCK_AT(list, row) IN_RANGE(list[row].x, rows.s3)
#define LIST_SHIFT(row) (indptr[firsts[BLOCK_AT(blocks, row)]] - blocks[row].y)
#define BACKWARD_SHIFT(row)                                                                        \
    (backward_indptr[firsts[BLOCK_AT(backward_blocks, row)]] - backward_blocks[row].y)
#define FIRST_LONG rows.s0
#define END_LONG rows.s1
#define END_OTHERS rows.s2
#define VERTEX_AT(row) firsts[BLOCK_AT(blocks, row)]
#define END_OF(row) firsts[BLOCK_AT(blocks, row) + 1]
#define BEGINS
#define BEGIN_OF(part) 0
#else
#define BLOCKS
#define BEGINS __global const uint *begins,
#define BEGIN_OF(part) begins[part]
#define LIST_SHIFT(row) 0
#define BACKWARD_SHIFT(row) 0
#define FIRST_LONG visit.s0
#define END_LONG visit.s1
#define END_OTHERS visit.s2
#define VERTEX_AT(row) (row)
#endif

__kernel void begin(SWEEP)
{
    COUNTING
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
    ADD_ALL
}

/* Mark the neighbours of initially active vertices, or all vertices if all are active. With
 * -DSTREAMED choose_in_sweep marks all vertices. */
__kernel void spread(BLOCKS SWEEP)
{
    __local ulong shared[2];
    Counts counts = {0};
#ifdef STREAMED
    for (uint i = rows.s0 + get_group_id(0); i < rows.s2; i += get_num_groups(0))
        for (uint v = VERTEX_AT(i) + get_local_id(0); v < END_OF(i); v += GROUP)
            if (sent[v])
                mark(v, 0, 1, LIST_SHIFT(i), 0, 0, &counts, SWEEP_NAMES);
#else
    const bool all = counters[ACTIVE] == n;
    for (uint v = get_global_id(0); v < n; v += get_global_size(0)) {
        if (all)
            dirty[v] = 1;
        else if (sent[v])
            mark(v, 0, 1, 0, 0, 0, &counts, SWEEP_NAMES);
    }
#endif
    add_counts(counts.scanned, 0, SCANNED, PENDING, shared, counters);
}

/* Go through a part of few edges s6 times, or through s6 colours, in one work-group. Part p has the
 * vertices from begins[p] to begins[p + 1]. A streamed launch has no colours. */
__kernel void run_part(Visit visit, BEGINS BLOCKS BACKWARD, SWEEP)
{
    COUNTING
    const uint lid = get_local_id(0);
    const uint times = loop[MODE] == DONE ? 0 : visit.s6;
    const OFFSET shift = LIST_SHIFT(rows.s0), backward_shift = BACKWARD_SHIFT(rows.s1);
    for (uint i = 0; i < times; i++) {
        if (visit.s3) {
            visit.s0 = BEGIN_OF(visit.s7 + i);
            visit.s2 = BEGIN_OF(visit.s7 + i + 1);
        }
        visit.s4 = visit.s3 || i + 1 == times ? visit.s2 : visit.s0;
        gather_each(visit.s0 + lid, GROUP, visit.s2, backward_shift, shift, visit, &counts, shares,
                    BACKWARD_NAMES, SWEEP_NAMES);
        barrier(CLK_GLOBAL_MEM_FENCE);
        if (!visit.s3)
            apply_each(visit.s0 + lid, GROUP, visit.s2, shift, visit, &counts, shares, SWEEP_NAMES);
        barrier(CLK_GLOBAL_MEM_FENCE);
        visit.s5++;
    }
    ADD_ALL
}

/* Gather for the dirty vertices of a part; in an exact part each applies at once. */
__kernel void gather_part(const Visit visit, BLOCKS BACKWARD, SWEEP)
{
    COUNTING
    __local MESSAGE parts[GROUP];
    __local uchar has_part[GROUP];
    __local int changed;
    const uint lid = get_local_id(0);
    const int step = (int)visit.s5;
    const bool goes_on = loop[MODE] != DONE;
    const uint end_long = goes_on ? END_LONG : 0, end = goes_on ? END_OTHERS : 0;
    for (uint i = FIRST_LONG + get_group_id(0); i < end_long; i += get_num_groups(0)) {
        const uint v = VERTEX_AT(i);
        const bool due = ALL_ACTIVE || dirty[v];
        const bool open = due && receives(v, loop[ITERATION], STATE_NAMES);
        MESSAGE total = IDENTITY;
        bool found = false;
        if (open)
            found = gather(v, lid, GROUP, BACKWARD_SHIFT(i), &total, &counts, BACKWARD_NAMES,
                           SWEEP_NAMES);
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
                changed = settle(v, parts[0], has_part[0], visit.s3, step, &counts, shares,
                                 SWEEP_NAMES);
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        if (changed)
            mark(v, lid, GROUP, LIST_SHIFT(i), visit.s4, step, &counts, SWEEP_NAMES);
    }
#ifdef STREAMED
    for (uint i = rows.s1 + get_group_id(0); i < end; i += get_num_groups(0))
        gather_each(VERTEX_AT(i) + lid, GROUP, END_OF(i), BACKWARD_SHIFT(i), LIST_SHIFT(i), visit,
                    &counts, shares, BACKWARD_NAMES, SWEEP_NAMES);
#else
    gather_each(visit.s1 + get_global_id(0), get_global_size(0), end, 0, 0, visit, &counts, shares,
                BACKWARD_NAMES, SWEEP_NAMES);
#endif
    ADD_ALL
}

/* Apply the messages gathered in this visit. If all vertices are active, no edges are read. */
__kernel void apply_part(const Visit visit, BLOCKS SWEEP)
{
    COUNTING
    const bool goes_on = loop[MODE] != DONE;
#if ALL_ACTIVE
    apply_each(visit.s0 + get_global_id(0), get_global_size(0), goes_on ? visit.s2 : 0, 0, visit,
               &counts, shares, SWEEP_NAMES);
#else
    __local int changed;
    const uint lid = get_local_id(0);
    const int step = (int)visit.s5;
    const uint end_long = goes_on ? END_LONG : 0, end = goes_on ? END_OTHERS : 0;
    for (uint i = FIRST_LONG + get_group_id(0); i < end_long; i += get_num_groups(0)) {
        const uint v = VERTEX_AT(i);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lid == 0)
            changed = gathered[v] == step && change(v, messages[v], &counts, shares, SWEEP_NAMES);
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        if (changed)
            mark(v, lid, GROUP, LIST_SHIFT(i), visit.s4, step, &counts, SWEEP_NAMES);
    }
#ifdef STREAMED
    for (uint i = rows.s1 + get_group_id(0); i < end; i += get_num_groups(0))
        apply_each(VERTEX_AT(i) + lid, GROUP, END_OF(i), LIST_SHIFT(i), visit, &counts, shares,
                   SWEEP_NAMES);
#else
    apply_each(visit.s1 + get_global_id(0), get_global_size(0), end, 0, visit, &counts, shares,
               SWEEP_NAMES);
#endif
#endif
    ADD_ALL
}

/* End a sweep, or the start if `began`, in one work-group: decide whether another sweep follows. */
__kernel void end_sweep(const int began, const uint groups, __global long *records,
                        const uint most_records, SWEEP)
{
    TOTALS_MEMORY(shared)
    const uint lid = get_local_id(0);
    const bool is_due = began || loop[MODE] != DONE;
    for (uint i = 0; i < NUM_TOTALS; i++) {
        TOTAL share = 0;
        for (uint g = lid; g < groups; g += GROUP) {
            share += sums[g * NUM_TOTALS + i];
            sums[g * NUM_TOTALS + i] = 0;
        }
        const TOTAL total = group_total(i, share, shared);
        if (lid == 0 && is_due)
            totals[i] = total;
    }
    barrier(CLK_GLOBAL_MEM_FENCE);
    if (lid || !is_due)
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
        counters[SCANNED] = 0; /* edges of the start count for the first sweep */
        loop[ITERATION]++;
        ends = ends || finished(loop[ITERATION], loop[NUM_ACTIVE], STATE_NAMES);
    }
    counters[ACTIVE] = 0;
    counters[PENDING] = 0;
    counters[RECEIVED] = 0;
    loop[CONVERGED] = ends;
    loop[MODE] = ends || loop[ITERATION] >= loop[LIMIT] ? DONE : PULL;
}

#ifdef STREAMED
/* Mark the blocks from s1 to s2 whose neighbour lists a phase, s0, reads. These have vertices that
 * are initially active (STARTS), dirty and receiving (GATHERS), or gathered in visit s3 (APPLIES).
 * If all vertices are initially active, mark them all as dirty, and no block. */
__kernel void choose_in_sweep(const uint4 phase, __global const uint *firsts,
                              __global uchar *chosen, SWEEP)
{
    __local uint marked;
    const bool all = phase.s0 == STARTS && counters[ACTIVE] == n;
    for (uint block = phase.s1 + get_group_id(0); block < phase.s2; block += get_num_groups(0)) {
        bool wanted = false;
        for (uint v = firsts[block] + get_local_id(0); v < firsts[block + 1]; v += GROUP) {
            if (all)
                dirty[v] = 1;
            else if (phase.s0 == STARTS)
                wanted |= sent[v];
            else if (phase.s0 == GATHERS && !receives(v, loop[ITERATION], STATE_NAMES))
                dirty[v] = 0;
            else if (phase.s0 == GATHERS)
                wanted |= dirty[v];
            else
                wanted |= gathered[v] == (int)phase.s3;
        }
        mark_block(wanted, &marked, chosen + block);
    }
}
#endif
