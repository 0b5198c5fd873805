/* Delivers the messages of an iteration: functions that device.cl calls. */

/* Send along one edge of an active vertex. */
static void push_edge(uint u, OFFSET k, MESSAGE message, int iteration, GRAPH, SHARED, STATE)
{
    const uint v = neighbours[k];
    if (!receives(v, iteration, STATE_NAMES))
        return;
#if WEIGHTED
    message = send(u, iteration, weights[k], STATE_NAMES);
#endif
    if (takes(v, message, iteration, STATE_NAMES))
        deliver(v, message, iteration, SHARED_NAMES);
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

/* A work-group takes up to GROUP active vertices, and its work-items share all their edges. Lists
 * of over HEAVY_EDGES entries wait for the whole grid. If it is not `due`, it returns at once. */
static void push(bool due, __local uint *ends, __local OFFSET *firsts, __local uint *vertices,
                 __local MESSAGE *messages, ulong *scanned, ulong *left, ulong *fresh, GRAPH,
                 PART SHARED, STATE)
{
    const uint lid = get_local_id(0), rows = due ? ROWS((uint)loop[LISTED]) : 0;
    const uint each = TILE_ROWS(rows);
    __global const uint *items = next + (loop[SIDES] & NEXT_BIT ? n : 0);
    const int iteration = (int)loop[ITERATION];
    for (uint tile = get_group_id(0) * each; tile < rows; tile += get_num_groups(0) * each) {
        uint length = 0;
        if (lid < each && IS_SENDER(tile + lid)) {
            const uint u = SENDER(tile + lid);
            vertices[lid] = u;
            messages[lid] = message_of(u, iteration, outgoing, STATE_NAMES);
            firsts[lid] = indptr[u] - SHIFT(tile, indptr);
            length = (uint)(indptr[u + 1] - indptr[u]);
#if MONOTONE
            const uint from = take_prefix(u, length, iteration, left, fresh, GRAPH_NAMES,
                                          SHARED_NAMES, STATE_NAMES);
            firsts[lid] += from;
            length = position[u] - from;
#endif
            if (length > HEAVY_EDGES) {
                const uint place = take_place(counters, HEAVY_COUNT);
                heavy[place] = ROW_OF(tile + lid, u);
#if MONOTONE
                heavy[n + place] = from;
#endif
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

#if ALL_ACTIVE
#define SENDS(u) true
#else
#define SENDS(u) (active_in[u] == iteration)
#endif

/* Combine the message of `u` along edge `k` with `total`; return whether any message was found. */
static bool gather_from(uint u, uint v, OFFSET k, int iteration, MESSAGE *total, bool found,
                        __global const WEIGHT *weights, __global const MESSAGE *outgoing, STATE)
{
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

/* Gather along an incoming edge, if its other end sends. */
static bool gather_edge(uint v, OFFSET k, int iteration, MESSAGE *total, bool found,
                        __global const uint *neighbours, __global const WEIGHT *weights,
                        __global const MESSAGE *outgoing, __global const int *active_in, STATE)
{
    const uint u = neighbours[k];
    if (!SENDS(u))
        return found;
    return gather_from(u, v, k, iteration, total, found, weights, outgoing, STATE_NAMES);
}

#if HAS_IDENTITY
/* Gather along every `stride`-th edge. A work-item loads several senders before it uses the first,
 * to hide memory latency. */
#define AT_ONCE 4
static void gather_edges(uint v, OFFSET k, OFFSET last, uint stride, int iteration, MESSAGE *total,
                         __global const uint *neighbours, __global const WEIGHT *weights,
                         __global const MESSAGE *outgoing, __global const int *active_in, STATE)
{
    for (; k < last && last - k > (AT_ONCE - 1) * stride; k += AT_ONCE * stride) {
        uint senders[AT_ONCE];
        bool sends[AT_ONCE];
#pragma unroll
        for (uint i = 0; i < AT_ONCE; i++)
            senders[i] = neighbours[k + i * stride];
#pragma unroll
        for (uint i = 0; i < AT_ONCE; i++)
            sends[i] = SENDS(senders[i]);
#pragma unroll
        for (uint i = 0; i < AT_ONCE; i++)
            if (sends[i])
                gather_from(senders[i], v, k + i * stride, iteration, total, true, weights,
                            outgoing, STATE_NAMES);
    }
    for (; k < last; k += stride)
        gather_edge(v, k, iteration, total, true, neighbours, weights, outgoing, active_in,
                    STATE_NAMES);
}
#endif

#if !HAS_IDENTITY
/* A work-item scans a list until it finds a message. */
static void pull(ulong *scanned, ulong *received, BACKWARD, GRAPH, PART SHARED, STATE)
{
    const int iteration = (int)loop[ITERATION];
    for (uint row = get_global_id(0); row < ROWS(searched); row += get_global_size(0)) {
        const uint v = VERTEX_OF(row);
        if (v >= searched || !receives(v, iteration, STATE_NAMES))
            continue;
        (*received)++;
        MESSAGE total = IDENTITY;
        bool found = false;
        OFFSET k = backward_indptr[v] - SHIFT(row, backward_indptr);
        const OFFSET first = k, last = backward_indptr[v + 1] - SHIFT(row, backward_indptr);
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
/* A work-group takes up to GROUP receivers. Their edges are divided into equal runs, one for each
 * work-item. A list's total is combined from its runs in order, so that sums of floats are
 * reproducible. Lists of over LONG_PULL edges wait for work-groups of their own (`pull_heavy`). If
 * it is not `due`, it returns at once. */
static void pull(bool due, __local uint *ends, __local OFFSET *firsts, __local MESSAGE *starts,
                 __local MESSAGE *continued, __local MESSAGE *totals_of_lists,
                 ulong *scanned, ulong *received, BACKWARD, GRAPH, PART SHARED, STATE)
{
    const uint lid = get_local_id(0), rows = due ? ROWS(searched) : 0, each = TILE_ROWS(rows);
    const int iteration = (int)loop[ITERATION];
    for (uint tile = get_group_id(0) * each; tile < rows; tile += get_num_groups(0) * each) {
        const uint base = VERTEX_OF(tile), v = base + lid;
        uint length = 0;
#if ALL_ACTIVE
        if (lid < each && v < searched)
            combined[v] = TO_BITS(IDENTITY);
#endif
        if (lid < each && v < searched && receives(v, iteration, STATE_NAMES)) {
            (*received)++;
            firsts[lid] = backward_indptr[v] - SHIFT(tile, backward_indptr);
            length = (uint)(backward_indptr[v + 1] - backward_indptr[v]);
            *scanned += length;
            if (length > LONG_PULL) {
                list_pieces(ROW_OF(tile + lid, v), length, heavy, counters);
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
            while (ends[at] <= edge) /* skip empty lists */
                at++;
            const uint list_begin = at ? ends[at - 1] : 0, stop = min(ends[at], to);
            MESSAGE total = IDENTITY;
            const OFFSET shift = firsts[at] - list_begin;
            gather_edges(base + at, shift + edge, shift + stop, 1, iteration, &total,
                         backward_neighbours, backward_weights, outgoing, active_in, STATE_NAMES);
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
