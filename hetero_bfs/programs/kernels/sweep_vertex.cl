/* The steps of a sweep for one vertex on a device, as in sweep.py; sweep.cl has the kernels.
 *
 *     outgoing, sent, dirty, gathered     as in sweep.py; `messages` is `combined` there
 *     sums            the groups' shares of the totals in the sweep so far
 *     loop, counters  as in state.cl; only some words are used
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

/* One pass through a part: the vertices from s0 to s2; work-groups take the vertices before s1. s3
 * is 1 if no two are adjacent. This sweep will not visit vertices before s4 again. s5 is the unique
 * number of the visit. `run_part` makes s6 passes, numbered from s5. */
typedef uint8 Visit;

/* Counts of a work-item. */
typedef struct {
    ulong active, pending, edges, received;
} Counts;

/* Variables of a kernel that counts: shared memory, and a work-item's counts and shares. */
#define COUNTING                                                                                   \
    __local ulong shared[2];                                                                       \
    TOTALS_MEMORY(shared_totals)                                                                   \
    TOTAL shares[NUM_TOTALS + 1] = {0};                                                            \
    Counts counts = {0, 0, 0, 0};

/* Add up counts and shares of a work-group. All work-items do this. A macro, since drivers fail on
 * a function with a barrier that takes a private array. */
#define ADD_ALL                                                                                    \
    add_counts(counts.active, counts.edges, ACTIVE, SCANNED, shared, counters);                    \
    add_counts(counts.pending, counts.received, PENDING, RECEIVED, shared, counters);              \
    for (uint i = 0; i < NUM_TOTALS; i++) {                                                        \
        const TOTAL total = group_total(shares[i], shared_totals);                                 \
        if (get_local_id(0) == 0)                                                                  \
            sums[get_group_id(0) * NUM_TOTALS + i] += total;                                       \
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

/* Mark every `stride`-th neighbour from k, except neighbours that would refuse the message. The
 * state of vertices that apply in this step is not read. Buffers begin `shift` entries after the
 * start of the whole graph's array. */
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

/* Apply; return whether the vertex must mark its neighbours. */
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

/* Apply gathered messages, or keep them if the part is not exact; return whether to mark. */
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

/* Combine the messages along every `stride`-th incoming edge; return whether there are any. */
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

/* Gather for every `stride`-th dirty vertex from v to `end`; in exact parts it applies at once. */
static void gather_each(uint v, uint stride, uint end, OFFSET backward_shift, OFFSET shift,
                        Visit visit, Counts *counts, TOTAL *shares, LISTS, BACKWARD, SWEEP, STATE)
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
        if (settle(v, total, found, visit.s3, (int)visit.s5, counts, shares, SWEEP_NAMES,
                   STATE_NAMES))
            mark(v, 0, 1, shift, visit.s4, (int)visit.s5, counts, LISTS_NAMES, SWEEP_NAMES,
                 STATE_NAMES);
    }
}

/* Apply for every `stride`-th vertex from v to `end` that gathered in this visit. */
static void apply_each(uint v, uint stride, uint end, OFFSET shift, Visit visit, Counts *counts,
                       TOTAL *shares, LISTS, SWEEP, STATE)
{
    for (; v < end; v += stride)
        if (gathered[v] == (int)visit.s5 &&
            change(v, messages[v], counts, shares, SWEEP_NAMES, STATE_NAMES))
            mark(v, 0, 1, shift, visit.s4, (int)visit.s5, counts, LISTS_NAMES, SWEEP_NAMES,
                 STATE_NAMES);
}
