/* The loop of iterations on a device, as in loop.py. program_decision.py has the costs' formulas.
 *
 * All work-items of one work-group run `decide` after an iteration. If the work-groups make
 * progress at the same time, one launch of `run_iterations` runs many iterations, with a barrier
 * across the work-groups after each phase. Otherwise each phase is a launch. */

/* Decide the next step, in one work-group. `began` is 1 right after the initial states. */
static void decide(const int began, const uint groups, __local TOTAL *shared,
                   __global long *records, const uint most_records, COMMON)
{
    const uint lid = get_local_id(0);
    const long mode = loop[MODE];
    const bool is_due = began || mode != DONE;
    const TOTAL none[NUM_TOTALS + 1] = NO_TOTALS;
    for (uint i = 0; i < NUM_TOTALS; i++) {
        TOTAL share = none[i];
        for (uint g = lid; g < groups; g += GROUP)
            share = add_share(i, share, sums[g * NUM_TOTALS + i]);
        const TOTAL total = group_total(i, share, shared);
        if (lid == 0 && is_due && mode != SELECT)
            totals[i] = total;
    }
    barrier(CLK_GLOBAL_MEM_FENCE);
    if (lid || !is_due)
        return;
    if (!began && mode != SELECT) {
        const long iteration = loop[ITERATION];
        if (iteration < most_records) {
            __global long *record = records + iteration * RECORD_WIDTH;
            record[0] = mode == PULL_IN_ORDER ? PULL : mode;
            record[1] = loop[NUM_ACTIVE];
            record[2] = counters[SCANNED];
            record[3] = counters[RECEIVED];
        }
        if (mode == PULL)
            loop[RECEIVERS] = counters[RECEIVED];
        limits[FIRST_COST + CHANGES_PER_EDGE] =
            min((float)counters[ACTIVE] / max((float)loop[EDGES], 1.0f), 1.0f);
        loop[ITERATION] = iteration + 1;
    }
    const ulong active = ALL_ACTIVE ? n : counters[ACTIVE];
#if !HAS_IDENTITY
    if (mode != SELECT) /* a vertex rarely takes a second message */
        loop[RECEIVERS] = max(loop[RECEIVERS] - (long)active, 0L);
#endif
    loop[NUM_ACTIVE] = active;
#if !ALL_ACTIVE
    loop[LISTED] = counters[NEXT_COUNT];
    loop[EDGES] = counters[ACTIVE_EDGES];
    loop[SIDES] ^= NEXT_BIT;
    const bool empty = loop[LISTED] == 0;
#else
    const bool empty = n == 0;
#endif
#if MONOTONE
    loop[LEFT] += (long)counters[MORE_LEFT];
    loop[UNMET] -= (long)counters[FRESH];
#endif
    const uint far_count = (uint)counters[FAR_COUNT];
    const int lowest = *(volatile __global int *)(counters + LOWEST);
    for (uint i = 0; i < LOWEST; i++)
        if (i != FAR_COUNT)
            counters[i] = 0;
    long then = PUSH;
    if (!began && mode != SELECT && finished(loop[ITERATION], loop[NUM_ACTIVE], STATE_NAMES)) {
        loop[CONVERGED] = 1;
        then = DONE;
    } else if (empty && (!HAS_PRIORITY || far_count == 0)) {
        loop[CONVERGED] = 1;
        then = DONE;
    } else if (loop[ITERATION] >= loop[LIMIT]) {
        then = DONE;
    } else if (HAS_PRIORITY && empty) {
#if MONOTONE
        loop[IS_LAST] = !loop[SENDS_ALL] && loop[LEFT] > loop[UNMET];
        if (loop[IS_LAST]) {
            loop[SENDS_ALL] = 1;
            limits[WIDTH] *= WIDER;
            counters[LOWEST_SENDER] = ~0ul;
        }
#endif
        const float low = from_ordered(lowest);
        if (!MONOTONE || !loop[IS_LAST])
            limits[END] = low + limits[WIDTH] > low ? low + limits[WIDTH] : INFINITY;
        loop[FAR_LISTED] = far_count;
        loop[SIDES] ^= FAR_BIT; /* read the list that was written */
        counters[FAR_COUNT] = 0;
        *(volatile __global int *)(counters + LOWEST) = 0x7fffffff;
        then = SELECT;
#if MONOTONE
    } else if (mode == SELECT && loop[IS_LAST]) {
        then = PULL_IN_ORDER;
    } else {
        if (loop[PLANNED] && records[0] == PULL)
            then = PULL;
    }
#else
    } else {
        __global float *costs = limits + FIRST_COST;
        const float stored = indptr[searched], edges = loop[EDGES], senders = loop[LISTED];
        const float receivers = loop[RECEIVERS];
        const long planned = loop[PLANNED];
        long given = DONE; /* choose */
        if (ALL_ACTIVE)
            given = PULL;
        else if (planned)
            given = records[min(loop[ITERATION], planned - 1) * RECORD_WIDTH];
        const float pushed = push_seconds(costs, 0, senders, edges);
        const float pulled =
            pull_seconds(costs, 0, edges, receivers, searched, stored, HAS_IDENTITY);
        const bool pulls = COLLECTS ? !touches(edges, searched, stored) : pulled < pushed;
        if (given == PULL || (given == DONE && pulls))
            then = PULL;
        if (costs[MIGRATION] < INFINITY && leaves(costs, given, active, senders, edges, receivers,
                                                  searched, stored, HAS_IDENTITY))
            then = DONE;
    }
#endif
    loop[MODE] = then;
}

#ifdef ONE_LAUNCH
/* Run at most `most` iterations. If `begins`, `begin` or `enter` came before, and the first step is
 * not decided. If `probes`, only find out whether the grid's work-groups make progress together. A
 * run that stalls has CONVERGED -1. */
__kernel void run_iterations(__global long *records, const uint most_records,
                             volatile __global uint *sync, __global uint *cells,
                             const uint patience, const uint probes, const uint begins,
                             const uint most, BACKWARD, COMMON)
{
    __local Mine mine;
    __local uint alright;
    __local uint num_heavy;
    const uint lid = get_local_id(0), group = get_group_id(0), groups = get_num_groups(0);
    volatile __global ulong *heavy_count = counters + HEAVY_COUNT;
    ulong generation = poll_long(end_word(sync, group)) & GENERATION, found;
    bool goes_on = true;
#define GRID_BARRIER                                                                               \
    (goes_on = goes_on && grid_barrier(sync, group, groups, patience, heavy_count, &generation,    \
                                       &found, &alright))
    if (probes) {
        goes_on = probe(cells, sync, group, groups, patience, heavy_count, &generation, &alright);
        if (group == 0 && lid == 0)
            loop[CONVERGED] = goes_on ? 0 : -1;
        return;
    }
    if (begins) {
        if (group == 0)
            decide(1, groups, mine.totals, records, most_records, COMMON_NAMES);
        GRID_BARRIER;
    }
    for (uint done = 0; goes_on && done < most && loop[MODE] != DONE; done++) {
        expand_lists(&mine, BACKWARD_NAMES, COMMON_NAMES);
        GRID_BARRIER;
        if (lid == 0)
            num_heavy = (uint)found;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (goes_on && (num_heavy || COLLECTS)) {
            finish_push(BACKWARD_NAMES, COMMON_NAMES);
#if HAS_IDENTITY
            pull_heavy(mine.messages, BACKWARD_NAMES, COMMON_NAMES);
#endif
            GRID_BARRIER;
        }
        if (goes_on)
            apply_all(&mine, COMMON_NAMES);
        GRID_BARRIER;
        if (group == 0 && goes_on)
            decide(0, groups, mine.totals, records, most_records, COMMON_NAMES);
        GRID_BARRIER;
    }
    if (group == 0 && lid == 0 && (!goes_on || poll(sync + GAVE_UP))) {
        loop[MODE] = DONE;
        loop[CONVERGED] = -1;
    }
}
#else
__kernel void advance(const int began, const uint groups, __global long *records,
                      const uint most_records, COMMON)
{
    TOTALS_MEMORY(shared)
    decide(began, groups, shared, records, most_records, COMMON_NAMES);
}
#endif
