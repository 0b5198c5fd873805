/* A vertex program's run on a device; host.py is its twin, and explains the phases and the lists.
 *
 * What a program brings comes first (device_code.py): types, adapters, and the macros
 *
 *     MESSAGE, BITS       type of messages, and the integer of its size
 *     OFFSET, WEIGHT      types of `indptr` and of weights
 *     TOTAL               type of sums: double where the device has it
 *     STATE               parameters of each kernel for the program's own arrays
 *     STATE_NAMES         the same as arguments
 *
 * An iteration is four launches: expand, expand_long, apply_messages, advance. None of them asks the
 * host: `advance` decides what comes next, and writes it to `loop`. The host queues many iterations
 * at once and then reads `loop`; launches after the end of the run do nothing.
 *
 *     combined    MESSAGE (n,)    messages combined so far; IDENTITY between iterations
 *     outgoing    MESSAGE (n,)    the message of an active vertex, if it does not depend on weights
 *     active_in   int (n,)        the last iteration in which a vertex was active
 *     touched     int (n,)        the last iteration in which a vertex was listed
 *     waiting     uchar (n,)      as in host.py
 *     next, far   uint (2 n,)     pairs of lists; `touched_items` uint (n,); `heavy` uint (n,)
 *     counters    ulong (9,)      what a launch counts, below
 *     sums        TOTAL (groups, NUM_TOTALS)
 *     loop        long (12,)      below
 *     limits      float (8,)      END and WIDTH of the bucket, costs as in host.py
 *     records     long (any, 4)   a row for each iteration: mode, vertices, edges, receivers
 */

#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable

enum { ITERATION, NUM_ACTIVE, MODE, LISTED, EDGES, SIDES, FAR_LISTED, CONVERGED, LIMIT, DIRECTION,
       RECEIVERS };
enum { DONE, PUSH, PULL, SELECT };
enum { NEXT_COUNT, FAR_COUNT, TOUCHED_COUNT, HEAVY_COUNT, ACTIVE, ACTIVE_EDGES, SCANNED, RECEIVED,
       LOWEST, COUNTERS };
enum { END, WIDTH, PUSH_EDGE, PULL_VERTEX, PULL_EDGE };
enum { NEXT_BIT = 1, FAR_BIT = 2 };
enum { NOT_LISTED, WAITING, RUN };
#define RECORD_WIDTH 4

#define GRAPH                                                                                      \
    __global const OFFSET *indptr, __global const uint *neighbours, __global const WEIGHT *weights, \
        const uint searched, const uint n
#define SHARED                                                                                     \
    volatile __global BITS *combined, __global MESSAGE *outgoing, __global int *active_in,         \
        volatile __global int *touched, __global uchar *waiting, __global uint *next,              \
        __global uint *far, __global uint *touched_items, __global uint *heavy,                    \
        volatile __global ulong *counters, __global TOTAL *sums, __global long *loop,              \
        __global float *limits
#define BACKWARD                                                                                   \
    __global const OFFSET *backward_indptr, __global const uint *backward_neighbours,              \
        __global const WEIGHT *backward_weights
#define BACKWARD_NAMES backward_indptr, backward_neighbours, backward_weights
#define GRAPH_NAMES indptr, neighbours, weights, searched, n
#define SHARED_NAMES                                                                               \
    combined, outgoing, active_in, touched, waiting, next, far, touched_items, heavy, counters,    \
        sums, loop, limits

static uint take_place(volatile __global ulong *counters, uint which)
{
    return atomic_inc((volatile __global uint *)(counters + which));
}

/* A look at a message that others may replace meanwhile: a stale one costs another turn. With
 * -DATOMIC_PEEK, for a checker of races, it is atomic. */
#ifdef ATOMIC_PEEK
#define PEEK(address) COMPARE_EXCHANGE(address, 0, 0)
#else
#define PEEK(address) (*(address))
#endif

/* Floats as integers in the same order, for an atomic minimum. */
static int ordered(float value)
{
    const int bits = as_int(value);
    return bits < 0 ? bits ^ 0x7fffffff : bits;
}

static float from_ordered(int bits)
{
    return as_float(bits < 0 ? bits ^ 0x7fffffff : bits);
}

/* Combine a message with those of others; tell whether that changed them. */
static bool merge(uint v, MESSAGE message, volatile __global BITS *combined)
{
#if !HAS_IDENTITY
    EXCHANGE(combined + v, TO_BITS(message));
    return true;
#else
    BITS before = PEEK(combined + v);
    while (true) {
        const BITS new = TO_BITS(combine(FROM_BITS(before), message));
        if (new == before)
            return false;
        const BITS seen = COMPARE_EXCHANGE(combined + v, before, new);
        if (seen == before)
            return true;
        before = seen;
    }
#endif
}

static void touch(uint v, int iteration, SHARED)
{
    if (atomic_xchg(touched + v, iteration + 1) != iteration + 1)
        touched_items[take_place(counters, TOUCHED_COUNT)] = v;
}

/* Add a work-item's counts to three counters, by one atomic a work-group. All work-items call it. */
static void add_counts(ulong first, ulong second, uint which_first, uint which_second,
                       __local ulong *shared, volatile __global ulong *counters)
{
    const uint lid = get_local_id(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lid < 2)
        shared[lid] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (first)
        atom_add(shared, first);
    if (second)
        atom_add(shared + 1, second);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lid == 0) {
        if (shared[0])
            atom_add(counters + which_first, shared[0]);
        if (shared[1])
            atom_add(counters + which_second, shared[1]);
    }
}

/* Write the sums of a work-group's shares, in a fixed order. All work-items call it. */
static void add_totals(const TOTAL *shares, __local TOTAL *shared, __global TOTAL *sums)
{
    const uint lid = get_local_id(0);
    for (uint i = 0; i < NUM_TOTALS; i++) {
        barrier(CLK_LOCAL_MEM_FENCE);
        shared[lid] = shares[i];
        for (uint half_size = GROUP / 2; half_size; half_size /= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            if (lid < half_size)
                shared[lid] += shared[lid + half_size];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lid == 0)
            sums[get_group_id(0) * NUM_TOTALS + i] = shared[0];
    }
}

/* List a vertex that is active in an iteration to come; return its edges if the bucket has it. */
static ulong activate(uint v, int iteration, GRAPH, SHARED, STATE)
{
#if PREPARED
    outgoing[v] = send(v, iteration, 0, STATE_NAMES);
#endif
    if (v >= searched)
        return 0;
    const long sides = loop[SIDES];
#if HAS_PRIORITY
    const float due = (float)priority(v, STATE_NAMES);
    if (due >= limits[END] && limits[END] < INFINITY) {
        atomic_min((volatile __global int *)(counters + LOWEST), ordered(due));
        if (waiting[v] == NOT_LISTED)
            far[(sides & FAR_BIT ? 0 : n) + take_place(counters, FAR_COUNT)] = v;
        waiting[v] = WAITING;
        return 0;
    }
    if (waiting[v] == WAITING)
        waiting[v] = RUN;
#endif
    active_in[v] = iteration;
    next[(sides & NEXT_BIT ? 0 : n) + take_place(counters, NEXT_COUNT)] = v;
    return indptr[v + 1] - indptr[v];
}

__kernel void begin(GRAPH, SHARED, STATE)
{
    __local ulong counts[2];
    __local TOTAL shared[GROUP];
    TOTAL shares[NUM_TOTALS + 1] = {0};
    ulong active = 0, edges = 0;
    for (uint v = get_global_id(0); v < n; v += get_global_size(0)) {
        combined[v] = TO_BITS(IDENTITY);
        touched[v] = 0;
        waiting[v] = NOT_LISTED;
        active_in[v] = -1;
        if (start(v, shares, STATE_NAMES)) {
            active++;
#if ALL_ACTIVE && PREPARED
            outgoing[v] = send(v, 0, 0, STATE_NAMES);
#elif !ALL_ACTIVE
            edges += activate(v, 0, GRAPH_NAMES, SHARED_NAMES, STATE_NAMES);
#endif
        }
    }
    add_counts(active, edges, ACTIVE, ACTIVE_EDGES, counts, counters);
    add_totals(shares, shared, sums);
}

/* Send along one edge of an active vertex. */
static void push_edge(uint u, OFFSET k, MESSAGE message, int iteration, GRAPH, SHARED, STATE)
{
    const uint v = neighbours[k];
    if (!receives(v, iteration, STATE_NAMES))
        return;
#if WEIGHTED
    message = send(u, iteration, weights[k], STATE_NAMES);
#endif
    if (takes(v, message, iteration, STATE_NAMES) && merge(v, message, combined))
        touch(v, iteration, SHARED_NAMES);
}

static MESSAGE message_of(uint u, int iteration, __global const MESSAGE *outgoing, STATE)
{
#if WEIGHTED
    return IDENTITY;
#elif PREPARED
    return outgoing[u];
#else
    return send(u, iteration, 0, STATE_NAMES);
#endif
}

/* A work-group takes GROUP active vertices, and its work-items share all their edges; lists of over
 * HEAVY_EDGES wait for the whole grid. */
static void push(__local uint *ends, __local OFFSET *firsts, __local uint *vertices,
                 __local MESSAGE *messages, ulong *scanned, GRAPH, SHARED, STATE)
{
    const uint lid = get_local_id(0), count = (uint)loop[LISTED];
    __global const uint *items = next + (loop[SIDES] & NEXT_BIT ? n : 0);
    const int iteration = (int)loop[ITERATION];
    for (uint tile = get_group_id(0) * GROUP; tile < count; tile += get_num_groups(0) * GROUP) {
        uint length = 0;
        if (tile + lid < count) {
            const uint u = items[tile + lid];
            vertices[lid] = u;
            messages[lid] = message_of(u, iteration, outgoing, STATE_NAMES);
            firsts[lid] = indptr[u];
            length = (uint)(indptr[u + 1] - indptr[u]);
            if (length > HEAVY_EDGES) {
                heavy[take_place(counters, HEAVY_COUNT)] = u;
                length = 0;
            }
        }
        ends[lid] = length;
        const uint total = running_sums(ends);
        if (lid == 0)
            *scanned += total;
        for (uint e = lid; e < total; e += GROUP) {
            const uint at = owner_of(ends, e);
            const OFFSET k = firsts[at] + place_in_list(ends, at, e);
            push_edge(vertices[at], k, messages[at], iteration, GRAPH_NAMES, SHARED_NAMES,
                      STATE_NAMES);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

/* Combine the message along one incoming edge with `total`; tell whether there was one. */
static bool gather_edge(uint v, OFFSET k, int iteration, MESSAGE *total, bool found,
                        __global const uint *neighbours, __global const WEIGHT *weights,
                        __global const MESSAGE *outgoing, __global const int *active_in, STATE)
{
    const uint u = neighbours[k];
#if !ALL_ACTIVE
    if (active_in[u] != iteration)
        return found;
#endif
#if WEIGHTED
    const MESSAGE message = send(u, iteration, weights[k], STATE_NAMES);
#else
    const MESSAGE message = message_of(u, iteration, outgoing, STATE_NAMES);
#endif
    if (!takes(v, message, iteration, STATE_NAMES))
        return found;
    *total = HAS_IDENTITY || found ? combine(*total, message) : message;
    return true;
}

#if !HAS_IDENTITY
/* A work-item looks through a list until it finds a message. */
static void pull(ulong *scanned, ulong *received, BACKWARD, GRAPH, SHARED, STATE)
{
    const int iteration = (int)loop[ITERATION];
    for (uint v = get_global_id(0); v < searched; v += get_global_size(0)) {
        if (!receives(v, iteration, STATE_NAMES))
            continue;
        (*received)++;
        MESSAGE total = IDENTITY;
        bool found = false;
        OFFSET k = backward_indptr[v];
        const OFFSET first = k, last = backward_indptr[v + 1];
        while (k < last && !found)
            found = gather_edge(v, k++, iteration, &total, found, backward_neighbours,
                                backward_weights, outgoing, active_in, STATE_NAMES);
        *scanned += k - first;
        if (found) {
            combined[v] = TO_BITS(total);
            touched_items[take_place(counters, TOUCHED_COUNT)] = v;
        }
    }
}
#else
/* A work-group takes GROUP receivers. Each work-item combines an even run of their edges. A list's
 * total is combined from its runs in their order, so that sums of floats are always the same. */
static void pull(__local uint *ends, __local OFFSET *firsts, __local MESSAGE *starts,
                 __local MESSAGE *continued, __local MESSAGE *totals_of_lists,
                 ulong *scanned, ulong *received, BACKWARD, GRAPH, SHARED, STATE)
{
    const uint lid = get_local_id(0);
    const int iteration = (int)loop[ITERATION];
    for (uint tile = get_group_id(0) * GROUP; tile < searched;
         tile += get_num_groups(0) * GROUP) {
        const uint v = tile + lid;
        uint length = 0;
#if ALL_ACTIVE
        if (v < searched)
            combined[v] = TO_BITS(IDENTITY);
#endif
        if (v < searched && receives(v, iteration, STATE_NAMES)) {
            (*received)++;
            firsts[lid] = backward_indptr[v];
            length = (uint)(backward_indptr[v + 1] - backward_indptr[v]);
            *scanned += length;
            if (length > HEAVY_EDGES) {
                heavy[take_place(counters, HEAVY_COUNT)] = v;
                length = 0;
            }
        }
        ends[lid] = length;
        const uint sum = running_sums(ends);
        const uint run = (sum + GROUP - 1) / GROUP;
        const uint from = min(lid * run, sum), to = min(from + run, sum);
        totals_of_lists[lid] = IDENTITY;
        starts[lid] = IDENTITY;
        continued[lid] = IDENTITY;
        barrier(CLK_LOCAL_MEM_FENCE);
        uint edge = from;
        uint at = from < to ? owner_of(ends, from) : 0;
        while (edge < to) {
            while (ends[at] <= edge) /* lists without edges */
                at++;
            const uint list_begin = at ? ends[at - 1] : 0, stop = min(ends[at], to);
            MESSAGE total = IDENTITY;
            const OFFSET shift = firsts[at] - list_begin;
            for (uint e = edge; e < stop; e++)
                gather_edge(tile + at, shift + e, iteration, &total, true, backward_neighbours,
                            backward_weights, outgoing, active_in, STATE_NAMES);
            if (list_begin < from)
                continued[lid] = total;
            else if (ends[at] > to)
                starts[lid] = total;
            else
                totals_of_lists[at] = total;
            edge = stop;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (length) {
            const uint list_begin = lid ? ends[lid - 1] : 0;
            const uint first_run = list_begin / run, last_run = (ends[lid] - 1) / run;
            MESSAGE total = totals_of_lists[lid];
            if (first_run != last_run)
                total = starts[first_run];
            for (uint i = first_run + 1; i <= last_run; i++)
                total = combine(total, continued[i]);
#if ALL_ACTIVE
            combined[v] = TO_BITS(total);
#else
            if (total != IDENTITY) {
                combined[v] = TO_BITS(total);
                touched_items[take_place(counters, TOUCHED_COUNT)] = v;
            }
#endif
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
#endif

/* Send the messages of an iteration, but for long lists. */
__kernel void expand(GRAPH, BACKWARD, SHARED, STATE)
{
    __local uint ends[GROUP];
    __local OFFSET firsts[GROUP];
    __local uint vertices[GROUP];
    __local MESSAGE messages[GROUP];
    __local ulong counts[2];
#if HAS_IDENTITY
    __local MESSAGE continued[GROUP];
    __local MESSAGE totals_of_lists[GROUP];
#endif
    ulong scanned = 0, received = 0;
    if (loop[MODE] == PUSH)
        push(ends, firsts, vertices, messages, &scanned, GRAPH_NAMES, SHARED_NAMES, STATE_NAMES);
#if HAS_IDENTITY
    if (loop[MODE] == PULL)
        pull(ends, firsts, messages, continued, totals_of_lists, &scanned, &received,
             BACKWARD_NAMES, GRAPH_NAMES, SHARED_NAMES, STATE_NAMES);
#else
    if (loop[MODE] == PULL)
        pull(&scanned, &received, BACKWARD_NAMES, GRAPH_NAMES, SHARED_NAMES, STATE_NAMES);
#endif
    /* Not within a branch: PoCL 3.1 then lets every work-item do what the first one does. */
    add_counts(scanned, received, SCANNED, RECEIVED, counts, counters);
}

/* Send along the long lists: a push by the whole grid, a pull by a work-group for each list. */
__kernel void expand_long(GRAPH, BACKWARD, SHARED, STATE)
{
    const uint count = loop[MODE] == PUSH || loop[MODE] == PULL ? (uint)counters[HEAVY_COUNT] : 0;
    const int iteration = (int)loop[ITERATION];
#if HAS_IDENTITY
    __local MESSAGE parts[GROUP];
    const uint lid = get_local_id(0);
#endif
    if (loop[MODE] == PUSH) {
        for (uint i = 0; i < count; i++) {
            const uint u = heavy[i];
            const MESSAGE message = message_of(u, iteration, outgoing, STATE_NAMES);
            const OFFSET first = indptr[u], last = indptr[u + 1];
            if (get_global_id(0) == 0)
                atom_add(counters + SCANNED, (ulong)(last - first));
            for (OFFSET k = first + get_global_id(0); k < last; k += get_global_size(0))
                push_edge(u, k, message, iteration, GRAPH_NAMES, SHARED_NAMES, STATE_NAMES);
        }
        return;
    }
#if HAS_IDENTITY
    for (uint i = get_group_id(0); i < count; i += get_num_groups(0)) {
        const uint v = heavy[i];
        MESSAGE total = IDENTITY;
        const OFFSET last = backward_indptr[v + 1];
        for (OFFSET k = backward_indptr[v] + lid; k < last; k += GROUP)
            gather_edge(v, k, iteration, &total, true, backward_neighbours, backward_weights,
                        outgoing, active_in, STATE_NAMES);
        barrier(CLK_LOCAL_MEM_FENCE);
        parts[lid] = total;
        for (uint half_size = GROUP / 2; half_size; half_size /= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            if (lid < half_size)
                parts[lid] = combine(parts[lid], parts[lid + half_size]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lid == 0) {
#if ALL_ACTIVE
            combined[v] = TO_BITS(parts[0]);
#else
            if (parts[0] != IDENTITY) {
                combined[v] = TO_BITS(parts[0]);
                touched_items[take_place(counters, TOUCHED_COUNT)] = v;
            }
#endif
        }
    }
#endif
}

/* Apply the messages, or move vertices of FAR to the bucket. */
__kernel void apply_messages(GRAPH, SHARED, STATE)
{
    __local ulong counts[2];
    __local TOTAL shared[GROUP];
    TOTAL shares[NUM_TOTALS + 1] = {0};
    ulong active = 0, edges = 0;
    const int iteration = (int)loop[ITERATION];
    const long mode = loop[MODE];
    if (mode == DONE)
        return;
#if HAS_PRIORITY
    if (mode == SELECT) {
        __global const uint *items = far + (loop[SIDES] & FAR_BIT ? n : 0);
        const uint count = (uint)loop[FAR_LISTED];
        for (uint i = get_global_id(0); i < count; i += get_global_size(0)) {
            const uint v = items[i];
            const bool waits = waiting[v] == WAITING;
            waiting[v] = NOT_LISTED;
            if (waits) {
                active++;
                edges += activate(v, iteration, GRAPH_NAMES, SHARED_NAMES, STATE_NAMES);
            }
        }
        add_counts(active, edges, ACTIVE, ACTIVE_EDGES, counts, counters);
        return;
    }
#endif
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
        if (apply(v, total, iteration, shares, STATE_NAMES)) {
            active++;
            edges += activate(v, iteration + 1, GRAPH_NAMES, SHARED_NAMES, STATE_NAMES);
        }
    }
#endif
    add_counts(active, edges, ACTIVE, ACTIVE_EDGES, counts, counters);
    add_totals(shares, shared, sums);
}

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
