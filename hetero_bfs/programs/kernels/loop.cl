/* The loop of iterations on a device; loop.py is the twin.
 *
 * Each work-item of one work-group runs `decide` after an iteration. If the work-groups are known to
 * make progress together, one launch of `run_iterations` runs many iterations, with a barrier across
 * the work-groups after each phase. Else each phase is a launch. */

static float expected_scans(float receivers, float edges, float stored, float searched)
{
    const float degree = stored / max(searched, 1.0f);
#if HAS_IDENTITY
    return receivers * degree;
#else
    const float hit = clamp(edges / max(stored, 1.0f), 1e-9f, 1.0f);
    return receivers * min(degree, (1.0f - pow(1.0f - hit, degree)) / hit);
#endif
}

/* Decide what comes next, by one work-group. `began` is 1 right after the initial states. */
static void decide(const int began, const uint groups, __local TOTAL *shared,
                   __global long *records, const uint most_records, GRAPH, SHARED, STATE)
{
    const uint lid = get_local_id(0);
    const long mode = loop[MODE];
    if (mode == DONE && !began)
        return;
    if (mode != SELECT) {
        for (uint i = 0; i < NUM_TOTALS; i++) {
            TOTAL share = 0;
            for (uint g = lid; g < groups; g += GROUP)
                share += sums[g * NUM_TOTALS + i];
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
    }
    barrier(CLK_GLOBAL_MEM_FENCE);
    if (lid)
        return;
    if (!began && mode != SELECT) {
        const long iteration = loop[ITERATION];
        if (iteration < most_records) {
            __global long *record = records + iteration * RECORD_WIDTH;
            record[0] = mode;
            record[1] = loop[NUM_ACTIVE];
            record[2] = counters[SCANNED];
            record[3] = counters[RECEIVED];
        }
        if (mode == PULL)
            loop[RECEIVERS] = counters[RECEIVED];
        limits[CHANGES_PER_EDGE] =
            min((float)counters[ACTIVE] / max((float)loop[EDGES], 1.0f), 1.0f);
        loop[ITERATION] = iteration + 1;
    }
    const ulong active = ALL_ACTIVE ? n : counters[ACTIVE];
#if !HAS_IDENTITY
    if (mode != SELECT) /* who took a message hardly takes another one */
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
        const float low = from_ordered(lowest);
        limits[END] = low + limits[WIDTH] > low ? low + limits[WIDTH] : INFINITY;
        loop[FAR_LISTED] = far_count;
        loop[SIDES] ^= FAR_BIT; /* read what was written */
        counters[FAR_COUNT] = 0;
        *(volatile __global int *)(counters + LOWEST) = 0x7fffffff;
        then = SELECT;
    } else {
        const float stored = (float)indptr[searched], edges = (float)loop[EDGES];
        const float scans =
            expected_scans((float)loop[RECEIVERS], edges, stored, (float)searched);
        const float share = clamp(edges / max(stored, 1.0f), 0.0f, 1.0f);
        const float misses = scans * share * (1.0f - share);
        const float push_edge =
            limits[PUSH_EDGE] + limits[CHANGES_PER_EDGE] * limits[PUSH_CHANGE];
        const float push_cost = (float)loop[LISTED] * limits[PUSH_VERTEX] + edges * push_edge;
        const float pull_cost = searched * limits[PULL_VERTEX] + scans * limits[PULL_EDGE] +
                                misses * limits[PULL_MISS];
        const long planned = loop[PLANNED];
        if (planned)
            then = records[min(loop[ITERATION], planned - 1) * RECORD_WIDTH];
        else if (pull_cost < push_cost)
            then = PULL;
        if (ALL_ACTIVE)
            then = PULL;
    }
    loop[MODE] = then;
}

#ifdef ONE_LAUNCH
/* Run at most `most` iterations, after the initial states if `begins`; or find out whether the
 * grid's work-groups make progress together, if `probes`. A run that stalls has CONVERGED -1. */
__kernel void run_iterations(GRAPH, BACKWARD, SHARED, STATE, __global long *records,
                             const uint most_records, volatile __global uint *sync,
                             __global uint *cells, const uint patience, const uint probes,
                             const uint begins, const uint most)
{
    __local Mine mine;
    __local uint alright;
    __local uint num_heavy;
    const uint lid = get_local_id(0), group = get_group_id(0), groups = get_num_groups(0);
    volatile __global ulong *heavy_count = counters + HEAVY_COUNT;
    ulong turn = poll_long(end_word(sync, group)) & TURN, found;
    bool goes_on = true;
#define GRID_BARRIER                                                                               \
    (goes_on = goes_on && grid_barrier(sync, group, groups, patience, heavy_count, &turn, &found,  \
                                       &alright))
    if (probes) {
        goes_on = probe(cells, sync, group, groups, patience, heavy_count, &turn, &alright);
        if (group == 0 && lid == 0)
            loop[CONVERGED] = goes_on ? 0 : -1;
        return;
    }
    if (begins) {
        begin_states(&mine, GRAPH_NAMES, SHARED_NAMES, STATE_NAMES);
        GRID_BARRIER;
        if (group == 0)
            decide(1, groups, mine.totals, records, most_records, GRAPH_NAMES, SHARED_NAMES,
                   STATE_NAMES);
        GRID_BARRIER;
    }
    for (uint done = 0; goes_on && done < most && loop[MODE] != DONE; done++) {
        expand_lists(&mine, GRAPH_NAMES, BACKWARD_NAMES, SHARED_NAMES, STATE_NAMES);
        GRID_BARRIER;
        if (lid == 0)
            num_heavy = (uint)found;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (goes_on && num_heavy) {
            expand_heavy(&mine, GRAPH_NAMES, BACKWARD_NAMES, SHARED_NAMES, STATE_NAMES);
            GRID_BARRIER;
        }
        if (goes_on)
            apply_all(&mine, GRAPH_NAMES, SHARED_NAMES, STATE_NAMES);
        GRID_BARRIER;
        if (group == 0 && goes_on)
            decide(0, groups, mine.totals, records, most_records, GRAPH_NAMES, SHARED_NAMES,
                   STATE_NAMES);
        GRID_BARRIER;
    }
    if (group == 0 && lid == 0 && (!goes_on || poll(sync + GAVE_UP))) {
        loop[MODE] = DONE;
        loop[CONVERGED] = -1;
    }
}
#else
__kernel void advance(const int began, const uint groups, __global long *records,
                      const uint most_records, GRAPH, SHARED, STATE)
{
    __local TOTAL shared[GROUP];
    decide(began, groups, shared, records, most_records, GRAPH_NAMES, SHARED_NAMES, STATE_NAMES);
}
#endif
