/* What comes after an iteration, decided on the device; loop.py is the twin. */

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

/* Decide what comes next, by one work-group. `began` is 1 right after `begin`. */
__kernel void advance(const int began, const uint groups, __global long *records,
                      const uint most_records, GRAPH, SHARED, STATE)
{
    __local TOTAL shared[GROUP];
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
        loop[ITERATION] = iteration + 1;
    }
    const ulong active = ALL_ACTIVE ? n : counters[ACTIVE];
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
        const float pull_cost = searched * limits[PULL_VERTEX] + scans * limits[PULL_EDGE];
        if (ALL_ACTIVE || loop[DIRECTION] == 2 ||
            (loop[DIRECTION] == 0 && pull_cost < edges * limits[PUSH_EDGE]))
            then = PULL;
    }
    loop[MODE] = then;
}
