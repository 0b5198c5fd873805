/* The phases of a sweep on a device, as in sweep.py; sweep_vertex.cl has the steps for one vertex.
 *
 * A launch is a visit: one pass through a part of the arranged graph, or all passes through a part
 * of few edges. The host knows the launches of a sweep beforehand. `end_sweep` decides whether
 * another sweep follows. A work-group takes a vertex with a long list, a work-item any other
 * vertex.
 *
 * With -DSTREAMED a launch is for blocks in some buffers (device_sweeps.py). A block is a vertex
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
#else
#define BLOCKS
#define LIST_SHIFT(row) 0
#define BACKWARD_SHIFT(row) 0
#define FIRST_LONG visit.s0
#define END_LONG visit.s1
#define END_OTHERS visit.s2
#define VERTEX_AT(row) (row)
#endif

__kernel void begin_run(LISTS, SWEEP, STATE)
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
__kernel void spread(BLOCKS LISTS, SWEEP, STATE)
{
    __local ulong shared[2];
    Counts counts = {0, 0, 0, 0};
#ifdef STREAMED
    for (uint i = rows.s0 + get_group_id(0); i < rows.s2; i += get_num_groups(0))
        for (uint v = VERTEX_AT(i) + get_local_id(0); v < END_OF(i); v += GROUP)
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

/* Go through a part of few edges s6 times, in one work-group. */
__kernel void run_part(Visit visit, BLOCKS LISTS, BACKWARD, SWEEP, STATE)
{
    COUNTING
    const uint lid = get_local_id(0), begin = visit.s0;
    const uint times = loop[MODE] == DONE ? 0 : visit.s6;
    const OFFSET shift = LIST_SHIFT(rows.s0), backward_shift = BACKWARD_SHIFT(rows.s1);
    for (uint i = 0; i < times; i++) {
        visit.s4 = i + 1 < times ? begin : visit.s2;
        gather_each(begin + lid, GROUP, visit.s2, backward_shift, shift, visit, &counts, shares,
                   LISTS_NAMES, BACKWARD_NAMES, SWEEP_NAMES, STATE_NAMES);
        barrier(CLK_GLOBAL_MEM_FENCE);
        apply_each(begin + lid, GROUP, visit.s2, shift, visit, &counts, shares, LISTS_NAMES,
                   SWEEP_NAMES, STATE_NAMES);
        barrier(CLK_GLOBAL_MEM_FENCE);
        visit.s5++;
    }
    ADD_ALL
}

/* Gather for the dirty vertices of a part; in an exact part each applies at once. */
__kernel void gather_part(const Visit visit, BLOCKS LISTS, BACKWARD, SWEEP, STATE)
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
                changed = settle(v, parts[0], has_part[0], visit.s3, step, &counts, shares,
                                 SWEEP_NAMES, STATE_NAMES);
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        if (changed)
            mark(v, lid, GROUP, LIST_SHIFT(i), visit.s4, step, &counts, LISTS_NAMES, SWEEP_NAMES,
                 STATE_NAMES);
    }
#ifdef STREAMED
    for (uint i = rows.s1 + get_group_id(0); i < end; i += get_num_groups(0))
        gather_each(VERTEX_AT(i) + lid, GROUP, END_OF(i), BACKWARD_SHIFT(i),
                    LIST_SHIFT(i), visit, &counts, shares, LISTS_NAMES, BACKWARD_NAMES, SWEEP_NAMES,
                    STATE_NAMES);
#else
    gather_each(visit.s1 + get_global_id(0), get_global_size(0), end, 0, 0, visit, &counts, shares,
                LISTS_NAMES, BACKWARD_NAMES, SWEEP_NAMES, STATE_NAMES);
#endif
    ADD_ALL
}

/* Apply the messages gathered in this visit. If all vertices are active, no edges are read. */
__kernel void apply_part(const Visit visit, BLOCKS LISTS, SWEEP, STATE)
{
    COUNTING
    const bool goes_on = loop[MODE] != DONE;
#if ALL_ACTIVE
    apply_each(visit.s0 + get_global_id(0), get_global_size(0), goes_on ? visit.s2 : 0, 0, visit,
               &counts, shares, LISTS_NAMES, SWEEP_NAMES, STATE_NAMES);
#else
    __local int changed;
    const uint lid = get_local_id(0);
    const int step = (int)visit.s5;
    const uint end_long = goes_on ? END_LONG : 0, end = goes_on ? END_OTHERS : 0;
    for (uint i = FIRST_LONG + get_group_id(0); i < end_long; i += get_num_groups(0)) {
        const uint v = VERTEX_AT(i);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lid == 0)
            changed = gathered[v] == step && change(v, messages[v], &counts, shares, SWEEP_NAMES,
                                                    STATE_NAMES);
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        if (changed)
            mark(v, lid, GROUP, LIST_SHIFT(i), visit.s4, step, &counts, LISTS_NAMES, SWEEP_NAMES,
                 STATE_NAMES);
    }
#ifdef STREAMED
    for (uint i = rows.s1 + get_group_id(0); i < end; i += get_num_groups(0))
        apply_each(VERTEX_AT(i) + lid, GROUP, END_OF(i), LIST_SHIFT(i), visit,
                   &counts, shares, LISTS_NAMES, SWEEP_NAMES, STATE_NAMES);
#else
    apply_each(visit.s1 + get_global_id(0), get_global_size(0), end, 0, visit, &counts, shares,
               LISTS_NAMES, SWEEP_NAMES, STATE_NAMES);
#endif
#endif
    ADD_ALL
}

/* End a sweep, or the start if `began`, in one work-group: decide whether another sweep follows. */
__kernel void end_sweep(const int began, const uint groups, __global long *records,
                        const uint most_records, LISTS, SWEEP, STATE)
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
        const TOTAL total = group_total(share, shared);
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
