/* PageRank on a device: steps of the power method, and Chebyshev's acceleration of them.
 *
 * kernels.py explains portions, `given` and `restart`. A step reads all portions in one array and
 * writes to the other. Let x' be the last scores, x'' those before, and t the result of a step of
 * the power method from x'. An undirected graph has a real spectrum. Once changes fall more slowly
 * than by the factor RATE, the new scores x are x'' + r (t - x'') (Golub and Varga, 1961). At first
 * r = 2 / (2 - alpha^2). Then r follows from the last one, r', as 1 / (1 - alpha^2 r' / 4).
 *
 * The bound of kernels.py is here
 *
 *     alpha |x - x'| + (r - 1) / r |x - x''| + (1 - alpha) |change of the sum|
 *
 * A launch is a step. Each work-group adds up the totals of all groups from the last step, in the
 * same order, and from them decides what to do. So the host reads nothing between steps. If the
 * last step was good enough, a launch only passes this on to the next launch.
 *
 * `Total`, `State` and `Setting` of device.py number the items of `totals`, `state` and `settings`.
 *
 * Built with -DGROUP, -DLANES (work-items for a vertex of medium degree), -DOFFSET=uint or ulong,
 * -DREAL=float or double for portions, -DSUM=float or double for sums, -DGIVEN=uint or SUM, and
 * -DWEIGHT=int, float or double for weighted graphs.
 *
 *     totals      SUM (2, NUM_TOTALS, groups)     of the last two steps, by work-group
 *     state       SUM (2, NUM_STATES)     of the last two steps, written by the first work-group
 *     settings    SUM (any,)
 *     rows        uint (n,)       vertices of high degree, then of medium, then of low degree
 *     segments    OFFSET (any, 2)     begin and end of each segment of a vertex of high degree
 *     segment_sums    SUM (any,)
 *     first_segment   uint (high + 1,)    of each vertex of high degree
 */

#ifdef HAS_DOUBLE
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

/* Groups of kernel parameters: entries of neighbour lists, the graph, and the record of steps. */
#ifdef WEIGHT
#define ENTRIES __global const uint *neighbours, __global const WEIGHT *weights
#define ALONG(k) ((SUM)portions[neighbours[k]] * (SUM)weights[k])
#else
#define ENTRIES __global const uint *neighbours
#define ALONG(k) ((SUM)portions[neighbours[k]])
#endif
#define GRAPH                                                                                      \
    const uint n, const uint high, const uint medium, __global const uint *rows,                   \
        __global const OFFSET *indptr, ENTRIES, __global const GIVEN *given
#define RECORD __global const SUM *settings, __global SUM *state, __global SUM *totals

/* Return the sum over the work-group, to all work-items.
 *
 * Mesa's rusticl 25.0 ends the process if a helper with a barrier is not inlined in kernels with
 * private arrays. */
#define INLINED static __attribute__((always_inline))
INLINED SUM group_sum(SUM value, __local SUM *scratch)
{
    const uint lid = get_local_id(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    scratch[lid] = value;
    for (uint half_size = GROUP / 2; half_size > 0; half_size /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lid < half_size)
            scratch[lid] += scratch[lid + half_size];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    return scratch[0];
}

INLINED SUM total_of(__global const SUM *row, uint which, uint groups, __local SUM *scratch)
{
    SUM sum = 0;
    for (uint i = get_local_id(0); i < groups; i += GROUP)
        sum += row[which * groups + i];
    return group_sum(sum, scratch);
}

/* Read the totals of the last step, summed in a fixed order. There are `due` of them, 0 if the last
 * step was good enough. All work-items call it, and no barrier is inside a condition. */
#define TOTALS_OF(step, name, due)                                                                 \
    const uint due = state[((step - 1) & 1) * NUM_STATES + DONE] > 0 ? 0 : NUM_TOTALS;             \
    SUM name[NUM_TOTALS];                                                                          \
    for (uint which = 0; which < due; which++) {                                                   \
        __global const SUM *row = totals + (ulong)((step - 1) & 1) * NUM_TOTALS * groups;          \
        name[which] = total_of(row, which, groups, scratch);                                       \
    }

/* Set `now` to the state for step number `step`, from the totals of the last step. */
static void advance(SUM *now, uint step, const SUM *sums, __global const SUM *settings,
                    __global const SUM *state)
{
    __global const SUM *last = state + ((step - 1) & 1) * NUM_STATES;
    for (uint i = 0; i < NUM_STATES; i++)
        now[i] = last[i];
    if (now[DONE] > 0)
        return;
    const SUM alpha = settings[ALPHA], mass = sums[MASS], moved = sums[MOVED];
    const SUM change = sums[STEP] + (1 - alpha) * fabs(mass - last[SUM_BEFORE]);
    now[LAST_BASE] = last[BASE];
    now[WHOLE] = mass + settings[OUTSIDE] * last[BASE];
    now[SUM_BEFORE] = mass;
    now[BASE] = ((1 - alpha) * mass + alpha * sums[DANGLING]) / settings[WITHIN];
    now[LAST_MOVED] = moved;
    if (step == 1)
        return;
    now[STEPS] = step - 1;
    now[CHANGE] = (change / now[WHOLE] + settings[ROUNDING]) / alpha;
    now[DONE] = now[CHANGE] < settings[GOAL];
    if (last[RELAXATION] > 1) {
        now[RELAXATION] = 1 / (1 - alpha * alpha * last[RELAXATION] / 4);
    } else if (settings[SYMMETRIC] > 0 && step > 2 && moved > settings[RATE] * last[LAST_MOVED] &&
               now[CHANGE] * moved >= settings[GOAL] * last[LAST_MOVED]) {
        now[RELAXATION] = 2 / (2 - alpha * alpha);
        now[FIRST_FAST] = step;
    }
}

static SUM parts_of(GIVEN given) { return given > 0 ? (SUM)given : (SUM)1; }

/* Give all vertices the same score, and write the state for the first step. */
__kernel void start(const uint n, const SUM equal, __global const GIVEN *given,
                    __global REAL *first, __global REAL *second, __global SUM *totals,
                    __global SUM *state)
{
    __local SUM scratch[GROUP];
    SUM mass = 0, dangling = 0;
    for (uint v = get_global_id(0); v < n; v += get_global_size(0)) {
        first[v] = second[v] = (REAL)(equal / parts_of(given[v]));
        mass += equal;
        dangling += given[v] > 0 ? (SUM)0 : equal;
    }
    mass = group_sum(mass, scratch);
    dangling = group_sum(dangling, scratch);
    const uint group = get_group_id(0), groups = get_num_groups(0);
    if (get_local_id(0) == 0) {
        totals[STEP * groups + group] = totals[MOVED * groups + group] = 0;
        totals[MASS * groups + group] = mass;
        totals[DANGLING * groups + group] = dangling;
    }
    if (get_global_id(0) == 0) {
        for (uint i = 0; i < NUM_STATES; i++)
            state[i] = 0;
        state[RELAXATION] = 1;
    }
}

/* Sum up the segments of the vertices of high degree, a work-group each. */
__kernel void sum_segments(const uint step, const uint count, __global const OFFSET *segments,
                           ENTRIES, __global const REAL *portions, __global const SUM *state,
                           __global SUM *segment_sums)
{
    __local SUM scratch[GROUP];
    const uint due = state[((step - 1) & 1) * NUM_STATES + DONE] > 0 ? 0 : count;
    for (uint i = get_group_id(0); i < due; i += get_num_groups(0)) {
        SUM sum = 0;
        for (OFFSET k = segments[2 * i] + get_local_id(0); k < segments[2 * i + 1]; k += GROUP)
            sum += ALONG(k);
        sum = group_sum(sum, scratch);
        if (get_local_id(0) == 0)
            segment_sums[i] = sum;
    }
}

/* A work-item's sums so far, and the settings that it needs. */
typedef struct {
    SUM alpha, base, relaxation, totals[NUM_TOTALS];
    uint restart_step;
} Work;

/* Compute a vertex's new score from the sum of its incoming portions. */
static void settle(Work *work, uint v, SUM sum, __global const GIVEN *given,
                   __global const SUM *restart, __global const REAL *portions,
                   __global REAL *next)
{
    const SUM parts = parts_of(given[v]), relaxation = work->relaxation;
    const SUM last = (SUM)portions[v] * parts, earlier = (SUM)next[v] * parts;
    SUM rank = work->alpha * sum + work->base * restart[v * work->restart_step];
    if (relaxation > 1)
        rank = earlier + relaxation * (rank - earlier);
    const REAL portion = (REAL)(rank / parts);
    next[v] = portion;
    rank = (SUM)portion * parts; /* the rounded value */
    const SUM moved = fabs(rank - last);
    work->totals[STEP] += work->alpha * moved;
    if (relaxation > 1)
        work->totals[STEP] += (relaxation - 1) / relaxation * fabs(rank - earlier);
    work->totals[MOVED] += moved;
    work->totals[MASS] += rank;
    work->totals[DANGLING] += given[v] > 0 ? (SUM)0 : rank;
}

/* Do step number `step`; the first one is 1. */
__kernel void power_step(const uint step, GRAPH, __global const uint *first_segment,
                         __global const SUM *segment_sums, __global const SUM *restart,
                         __global const REAL *portions, __global REAL *next, RECORD)
{
    __local SUM scratch[GROUP];
    const uint lid = get_local_id(0), group = get_group_id(0), groups = get_num_groups(0);
    SUM now[NUM_STATES];
    TOTALS_OF(step, sums, due)
    advance(now, step, sums, settings, state);
    if (get_global_id(0) == 0) /* no work-group reads this row now */
        for (uint i = 0; i < NUM_STATES; i++)
            state[(step & 1) * NUM_STATES + i] = now[i];
    const bool goes_on = !(now[DONE] > 0);
    const uint end_high = goes_on ? high : 0, end_medium = goes_on ? high + medium : 0;
    const uint end_low = goes_on ? n : 0;
    Work work = {settings[ALPHA], now[BASE], now[RELAXATION], {0, 0, 0, 0},
                 (uint)settings[RESTART_STEP]};
    for (uint i = get_global_id(0); i < end_high; i += get_global_size(0)) {
        SUM sum = 0;
        for (uint s = first_segment[i]; s < first_segment[i + 1]; s++)
            sum += segment_sums[s];
        settle(&work, rows[i], sum, given, restart, portions, next);
    }
    const uint lane = lid % LANES, place = lid / LANES, together = GROUP / LANES;
    for (uint tile = high + group * together; tile < end_medium; tile += groups * together) {
        const uint i = tile + place;
        const uint v = i < end_medium ? rows[i] : 0;
        SUM sum = 0;
        if (i < end_medium)
            for (OFFSET k = indptr[v] + lane; k < indptr[v + 1]; k += LANES)
                sum += ALONG(k);
        barrier(CLK_LOCAL_MEM_FENCE);
        scratch[lid] = sum;
        for (uint half_size = LANES / 2; half_size > 0; half_size /= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            if (lane < half_size)
                scratch[lid] += scratch[lid + half_size];
        }
        if (lane == 0 && i < end_medium)
            settle(&work, v, scratch[lid], given, restart, portions, next);
    }
    for (uint i = high + medium + get_global_id(0); i < end_low; i += get_global_size(0)) {
        const uint v = rows[i];
        SUM sum = 0;
        for (OFFSET k = indptr[v]; k < indptr[v + 1]; k++)
            sum += ALONG(k);
        settle(&work, v, sum, given, restart, portions, next);
    }
    for (uint which = 0; which < due; which++) {
        const SUM sum = group_sum(work.totals[which], scratch);
        if (lid == 0)
            totals[((step & 1) * NUM_TOTALS + which) * groups + group] = sum;
    }
}

/* Write the state before step `step` for the host, by one work-group. */
__kernel void report(const uint step, const uint groups, RECORD, __global SUM *said)
{
    __local SUM scratch[GROUP];
    SUM now[NUM_STATES];
    TOTALS_OF(step, sums, due)
    advance(now, step, sums, settings, state);
    if (get_local_id(0) == 0)
        for (uint i = 0; i < NUM_STATES; i++)
            said[i] = now[i];
}

/* Write the scores of the caller's vertices. Those outside the searched range get `outside`. */
__kernel void write_ranks(const uint count, const SUM scale, const SUM outside,
                          __global const uint *new_of_old, __global const GIVEN *given,
                          __global const REAL *portions, __global SUM *rank)
{
    for (uint v = get_global_id(0); v < count; v += get_global_size(0)) {
        const uint new_id = new_of_old[v];
        rank[v] = new_id == NO_VERTEX ? outside
                                        : (SUM)portions[new_id] * parts_of(given[new_id]) * scale;
    }
}
