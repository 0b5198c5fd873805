/* Types, arrays, lists and counters that the phases of a shortest-path search on a device share.
 * loop.cl has the loop.
 *
 * Built with -DWEIGHT=int, float or double, and -DOFFSET=uint or ulong for the type of `indptr`. A
 * distance is stored as the BITS of a WEIGHT of at least 0. These compare like signed integers.
 * INFINITE has the BITS of infinity.
 *
 *     distance    BITS (n,)   INFINITE where none is known
 *     relaxed     BITS (n,)   distance with which the vertex relaxed edges last; -1 before that
 *     position    uint (n,)   number of entries that it relaxed then
 *     queued      int (n,)    last round in whose queue the vertex was put
 *     listed      int (n,)    whether a vertex is in the active list
 *     queue       uint (2 n,) vertices within the window; one half is read, the other written
 *     active      uint (2 n,) as in phases.py, also in halves
 *     chunk_vertices, chunk_firsts   uint, ulong: pieces of long runs (below)
 *     counters    ulong       see loop.cl */

#if defined(IS_DOUBLE)
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define BITS long
#define TO_BITS(x) as_long(x)
#define TO_WEIGHT(x) as_double(x)
/* Distances are at least 0, so they compare like unsigned integers. */
#define LOWER(address, bits) ((BITS)lower_long((volatile __global ulong *)(address), (ulong)(bits)))
#define LOWER_LOCAL(address, bits) lower_long_local((volatile __local ulong *)(address), (ulong)(bits))
#define READ(address) ((BITS)read_long((volatile __global ulong *)(address)))
#else
#define BITS int
#define LOWER(address, bits) atomic_min(address, bits)
#define LOWER_LOCAL(address, bits) atomic_min(address, bits)
#define READ(address) atomic_or(address, 0)
#if defined(IS_FLOAT)
#define TO_BITS(x) as_int(x)
#define TO_WEIGHT(x) as_float(x)
#else
#define TO_WEIGHT(x) (x)
#endif
#endif

/* Read a distance that other work-items may lower meanwhile. Before an atomic minimum, a stale
 * value costs only the atomic. If the vertex is being relaxed, whoever lowers its distance queues
 * it again. The read is atomic with -DATOMIC_PEEK, for a checker of races, and where a distance has
 * two words. */
#if defined(ATOMIC_PEEK) || (defined(IS_DOUBLE) && !defined(INT64_ATOMICS))
#define PEEK(address) READ(address)
#else
#define PEEK(address) (*(address))
#endif

#define LISTS                                                                                      \
    __global const OFFSET *indptr, __global const uint *neighbours, __global const WEIGHT *weights
#define BACKWARD                                                                                   \
    __global const OFFSET *backward_indptr, __global const uint *backward_neighbours,              \
        __global const WEIGHT *backward_weights, __global const uint *backward_order
#define SEARCH                                                                                     \
    const uint n, volatile __global BITS *distance, __global BITS *relaxed,                        \
        __global uint *position, volatile __global int *queued, volatile __global int *listed,     \
        __global uint *queue, __global uint *active, __global uint *chunk_vertices,                \
        __global ulong *chunk_firsts, volatile __global ulong *counters
#define LISTS_NAMES indptr, neighbours, weights
#define BACKWARD_NAMES backward_indptr, backward_neighbours, backward_weights, backward_order
#define SEARCH_NAMES                                                                               \
    n, distance, relaxed, position, queued, listed, queue, active, chunk_vertices, chunk_firsts,   \
        counters

/* Entry k, by rising weight, of the neighbour list that begins at `begin`. */
#if DIRECTED
#define BY_WEIGHT(begin, k) ((begin) + backward_order[k])
#else
#define BY_WEIGHT(begin, k) (k)
#endif

/* Local memory of a work-group. */
typedef struct {
    uint ends[GROUP];
    OFFSET firsts[GROUP];
    BITS froms[GROUP];
    ulong sums[3]; /* SCANNED, LEFT, FRESH */
    BITS lowest;   /* smallest distance that waits for a later window */
    BITS best;     /* of a vertex that the whole group pulls */
    long now[NOW_WORDS];
    uint alright; /* see grid.cl */
} Shared;

/* Counts of a work-item in a phase. */
typedef struct {
    ulong scanned, left, fresh;
    BITS lowest;
} Counts;

static volatile __global uint *step_counter(__local const long *now, uint which,
                                            volatile __global ulong *counters)
{
    return (volatile __global uint *)(counters + now[NUMBER] % 3 * STEP_COUNTERS + which);
}

static volatile __global ulong *window_counters(__local const long *now,
                                                volatile __global ulong *counters)
{
    return counters + 3 * STEP_COUNTERS + now[WINDOW] % 3 * WINDOW_COUNTERS;
}

/* Return the distance at the end of an edge, INFINITE if it exceeds the type. */
static BITS behind(BITS from, WEIGHT weight)
{
#ifdef TO_BITS
    return TO_BITS(TO_WEIGHT(from) + weight);
#else
    return weight >= INFINITE - from ? INFINITE : from + weight;
#endif
}

/* Return the weight of entry k of a neighbour list, or of the last entry if k is beyond it. */
static WEIGHT weight_at(OFFSET begin, OFFSET k, OFFSET last, BACKWARD)
{
    const OFFSET in_list = min(k, max(last, (OFFSET)1) - 1);
    return backward_weights[BY_WEIGHT(begin, in_list)];
}

static bool is_infinite(WEIGHT weight)
{
#ifdef TO_BITS
    return isinf(weight);
#else
    return false;
#endif
}

static void note_overflow(__local const long *now, volatile __global ulong *counters)
{
    atomic_or(step_counter(now, OVERFLOW, counters), 1);
}

/* Append a vertex to a list unless its mark says that it is there. Marks of a queue are not cleared
 * while others may set them: a device may reorder one work-item's atomics on two addresses. */
static void append_once(uint v, int mark, volatile __global int *marks,
                        volatile __global uint *counter, __global uint *list)
{
    if (atomic_xchg(marks + v, mark) != mark)
        list[next_place(counter)] = v;
}

static __global uint *written(__global uint *pair, uint n, long side)
{
    return pair + (side ? 0 : n);
}

static __global const uint *read_of(__global const uint *pair, uint n, long side)
{
    return pair + (side ? n : 0);
}

/* Phases of a shortest-path search on a device; phases.py is the twin.
 *
 * Neighbour lists are sorted by weight. So in a window a vertex relaxes a contiguous run of
 * entries, whose end a binary search finds. A work-group shares the runs of several vertices
 * evenly. Runs of more than CHUNK_EDGES are cut into pieces, and each piece goes to one
 * work-group. */

static void relax_edge(uint v, BITS from, WEIGHT weight, __local const long *now, BITS *lowest,
                       SEARCH)
{
    const BITS bits = behind(from, weight);
    if (bits >= INFINITE) {
        if (!is_infinite(weight))
            note_overflow(now, counters);
        return;
    }
    if (bits >= PEEK(distance + v) || LOWER(distance + v, bits) <= bits)
        return;
    if (bits < now[END]) {
        append_once(v, (int)now[ROUND], queued, step_counter(now, NEXT, counters),
                    written(queue, n, now[QUEUE_SIDE]));
    } else {
        *lowest = min(*lowest, bits);
        append_once(v, 1, listed, (volatile __global uint *)(window_counters(now, counters) + KEPT),
                    written(active, n, now[ACTIVE_SIDE]));
    }
}

/* Return the first entry, starting with `k`, that ends at `limit` or beyond. */
static OFFSET run_end(OFFSET k, OFFSET last, BITS from, BITS limit, __global const WEIGHT *weights)
{
    while (k < last) {
        const OFFSET middle = k + (last - k) / 2;
        if (behind(from, weights[middle]) < limit)
            k = middle + 1;
        else
            last = middle;
    }
    return k;
}

/* Find the run that a vertex relaxes now, and keep its position; return its first entry. With
 * PREFIX, a vertex with more edges joins the list of active vertices. */
static OFFSET take_run(uint u, uint *length, __local const long *now, Counts *counts, LISTS, SEARCH)
{
    const bool is_full = now[STRATEGY] == FULL;
    const OFFSET first = indptr[u], last = indptr[u + 1];
    const BITS from = PEEK(distance + u), before = relaxed[u];
    OFFSET k = first, stop = last;
    if (before == from)
        k = is_full ? last : first + position[u];
    else if (!DIRECTED && last - first == 1 && u != now[SOURCE])
        k = last; /* the only edge leads back to the vertex that the distance came from */
    if (!is_full)
        stop = run_end(k, last, from, (BITS)now[END], weights);
    relaxed[u] = from;
    position[u] = (uint)(stop - first);
    counts->fresh += before < 0 ? last - first : 0;
    counts->scanned += stop - k;
    *length = (uint)(stop - k);
    if (stop == last)
        return k;
    const BITS waits = behind(from, weights[stop]);
    if (waits < INFINITE) {
        counts->lowest = min(counts->lowest, waits);
        counts->left += last - stop;
        if (listed[u] == 0) {
            listed[u] = 1;
            const uint place =
                next_place((volatile __global uint *)(window_counters(now, counters) + KEPT));
            written(active, n, now[ACTIVE_SIDE])[place] = u;
        }
    } else if (!is_infinite(weights[stop])) {
        note_overflow(now, counters);
    }
    return k;
}

/* Add the work-items' counts to the counters of step and window. The whole group calls it. */
static void add_counts(const Counts *counts, __local Shared *mine, volatile __global ulong *counters)
{
    const uint lid = get_local_id(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lid == 0) {
        mine->sums[0] = mine->sums[1] = mine->sums[2] = 0;
        mine->lowest = INFINITE;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (counts->scanned)
        add_long_local(mine->sums, counts->scanned);
    if (counts->left)
        add_long_local(mine->sums + 1, counts->left);
    if (counts->fresh)
        add_long_local(mine->sums + 2, counts->fresh);
    if (counts->lowest < INFINITE)
        LOWER_LOCAL(&mine->lowest, counts->lowest);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lid == 0) {
        volatile __global ulong *step = counters + mine->now[NUMBER] % 3 * STEP_COUNTERS;
        for (uint i = 0; i < 3; i++)
            if (mine->sums[i])
                add_long(step + SCANNED + i, mine->sums[i]);
        if (mine->lowest < INFINITE)
            LOWER((volatile __global BITS *)(window_counters(mine->now, counters) + LOWEST),
                  mine->lowest);
    }
}

/* Append the pieces of a run to the chunks. */
static void append_chunks(uint u, OFFSET first, uint length, uint piece, __local const long *now,
                          SEARCH)
{
    const uint pieces = (length + piece - 1) / piece;
    uint place = atomic_add(step_counter(now, CHUNKS, counters), pieces);
    for (uint i = 0; i < pieces; i++, place++) {
        chunk_vertices[place] = u;
        chunk_firsts[place] = first + (ulong)i * piece;
    }
}

/* Relax edges of the queued or the active vertices. */
static void relax_lists(uint group, uint groups, __local Shared *mine, LISTS, SEARCH)
{
    __local const long *now = mine->now;
    const uint lid = get_local_id(0), count = (uint)now[COUNT];
    const bool continues = now[STEP] == ACTIVE;
    __global const uint *items =
        continues ? read_of(active, n, now[ACTIVE_SIDE]) : read_of(queue, n, now[QUEUE_SIDE]);
    const uint each = clamp((count + groups - 1) / groups, 1u, (uint)GROUP);
    Counts counts = {0, 0, 0, INFINITE};
    for (uint tile = group * each; tile < count; tile += groups * each) {
        uint length = 0;
        if (lid < each && tile + lid < count) {
            const uint u = items[tile + lid];
            if (continues)
                listed[u] = 0;
            mine->firsts[lid] = take_run(u, &length, now, &counts, LISTS_NAMES, SEARCH_NAMES);
            mine->froms[lid] = relaxed[u];
            if (length > CHUNK_EDGES) {
                append_chunks(u, mine->firsts[lid], length, CHUNK_EDGES, now, SEARCH_NAMES);
                length = 0;
            }
        }
        mine->ends[lid] = length;
        const uint total = running_sums(mine->ends);
        for (uint e = lid; e < total; e += GROUP) {
            const uint owner = owner_of(mine->ends, e);
            const OFFSET k = mine->firsts[owner] + place_in_list(mine->ends, owner, e);
            relax_edge(neighbours[k], mine->froms[owner], weights[k], now, &counts.lowest,
                       SEARCH_NAMES);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    add_counts(&counts, mine, counters);
}

/* Relax the pieces of long runs, a work-group each. */
static void relax_chunks(uint group, uint groups, __local Shared *mine, LISTS, SEARCH)
{
    const uint lid = get_local_id(0), count = *step_counter(mine->now, CHUNKS, counters);
    Counts counts = {0, 0, 0, INFINITE};
    for (uint i = group; i < count; i += groups) {
        const uint u = IN_RANGE(chunk_vertices[i], n);
        const OFFSET first = (OFFSET)chunk_firsts[i];
        const OFFSET stop = min(first + CHUNK_EDGES, indptr[u] + position[u]);
        const BITS from = relaxed[u];
        for (OFFSET k = first + lid; k < stop; k += GROUP)
            relax_edge(neighbours[k], from, weights[k], mine->now, &counts.lowest, SEARCH_NAMES);
    }
    add_counts(&counts, mine, counters);
}

/* List the vertices that are not settled. */
static void find_unsettled(uint first, uint stride, __local const long *now, SEARCH)
{
    volatile __global uint *counter = (volatile __global uint *)(window_counters(now, counters) + KEPT);
    for (uint v = first; v < n; v += stride)
        if (distance[v] >= now[END])
            written(active, n, now[ACTIVE_SIDE])[next_place(counter)] = v;
}

/* Queue the vertices of the far pile within the window; drop those settled before. */
static void select_window(uint first, uint stride, __local const long *now, Counts *counts, SEARCH)
{
    __global const uint *items = read_of(active, n, now[ACTIVE_SIDE]);
    volatile __global uint *kept = (volatile __global uint *)(window_counters(now, counters) + KEPT);
    for (uint i = first; i < now[COUNT]; i += stride) {
        const uint v = items[i];
        const BITS bits = distance[v];
        if (bits >= now[END] && bits < INFINITE) {
            counts->lowest = min(counts->lowest, bits);
            written(active, n, now[ACTIVE_SIDE])[next_place(kept)] = v;
            continue;
        }
        listed[v] = 0;
        if (bits >= now[START] && bits < INFINITE)
            written(queue, n, now[QUEUE_SIDE])[next_place(step_counter(now, NEXT, counters))] = v;
    }
}

/* Return the distance of an unsettled vertex by one incoming edge, or `best` if that is smaller. */
static BITS pull_edge(OFFSET k, BITS best, __local const long *now, BACKWARD, SEARCH)
{
    const BITS before = PEEK(distance + backward_neighbours[k]);
    if (before >= now[END])
        return best;
    const BITS bits = behind(before, backward_weights[k]);
    if (bits >= INFINITE && !is_infinite(backward_weights[k]))
        note_overflow(now, counters);
    return min(best, bits);
}

/* Tell whether this weight is at least the best distance; then so are all later edges' weights. */
static bool is_hopeless(WEIGHT weight, BITS best)
{
    return behind(0, weight) >= best;
}

static void settle(uint v, BITS best, Counts *counts, SEARCH)
{
    listed[v] = best < INFINITE; /* `select_window` drops the others */
    if (best < INFINITE)
        LOWER(distance + v, best);
    counts->lowest = min(counts->lowest, best);
}

/* Give unsettled vertices the best distance by a settled neighbour. Those with many edges become
 * chunks. */
static void pull_lists(uint first, uint stride, __local const long *now, Counts *counts, BACKWARD,
                       SEARCH)
{
    __global const uint *items = read_of(active, n, now[ACTIVE_SIDE]);
    for (uint i = first; i < now[COUNT]; i += stride) {
        const uint v = items[i];
        const OFFSET begin = backward_indptr[v], last = backward_indptr[v + 1];
        if (last - begin > PULL_EDGES) {
            append_chunks(v, begin, 1, 1, now, SEARCH_NAMES);
            continue;
        }
        BITS best = PEEK(distance + v);
        OFFSET k = begin;
        for (; k < last; k++) {
            const OFFSET at = BY_WEIGHT(begin, k);
            if (is_hopeless(backward_weights[at], best))
                break;
            best = pull_edge(at, best, now, BACKWARD_NAMES, SEARCH_NAMES);
        }
        counts->scanned += k - begin;
        settle(v, best, counts, SEARCH_NAMES);
    }
}

/* Do the same for vertices with many edges, a work-group each. */
static void pull_chunks(uint group, uint groups, __local Shared *mine, BACKWARD, SEARCH)
{
    const uint lid = get_local_id(0), count = *step_counter(mine->now, CHUNKS, counters);
    Counts counts = {0, 0, 0, INFINITE};
    for (uint i = group; i < count; i += groups) {
        const uint v = IN_RANGE(chunk_vertices[i], n);
        const OFFSET begin = backward_indptr[v], last = backward_indptr[v + 1];
        OFFSET k = begin;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lid == 0)
            mine->best = PEEK(distance + v);
        barrier(CLK_LOCAL_MEM_FENCE);
        BITS best = mine->best;
        while (k < last && !is_hopeless(weight_at(begin, k, last, BACKWARD_NAMES), best)) {
            barrier(CLK_LOCAL_MEM_FENCE);
            if (k + lid < last)
                LOWER_LOCAL(&mine->best, pull_edge(BY_WEIGHT(begin, k + lid), best, mine->now,
                                                   BACKWARD_NAMES, SEARCH_NAMES));
            barrier(CLK_LOCAL_MEM_FENCE);
            best = mine->best;
            counts.scanned += lid ? 0 : min((OFFSET)GROUP, last - k);
            k += GROUP;
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE); /* all have read the distance */
        if (lid == 0)
            settle(v, best, &counts, SEARCH_NAMES);
    }
    add_counts(&counts, mine, counters);
}

/* Parents of a shortest-path tree, found from the distances on a device; tree.py is the twin.
 *
 * A neighbour list is read by rising weight, until a weight exceeds the vertex's distance. A
 * work-item reads the first PULL_EDGES entries. If they do not contain the parent, the whole
 * work-group continues. */

/* Return the start of an edge if it is nearer and the edge makes up the vertex's distance. */
static uint nearer_by(OFFSET at, BITS mine, __global const BITS *distance, BACKWARD)
{
    const uint u = backward_neighbours[at];
    const BITS before = distance[u];
    return before < mine && behind(before, backward_weights[at]) == mine ? u : NO_VERTEX;
}

/* Scan the rest of a neighbour list with the whole work-group; return the parent. */
static uint search_together(OFFSET begin, OFFSET last, BITS mine, __local uint *found,
                            __global const BITS *distance, BACKWARD)
{
    const uint lid = get_local_id(0);
    uint up = NO_VERTEX;
    for (OFFSET k = begin + PULL_EDGES;
         k < last && up == NO_VERTEX && behind(0, weight_at(begin, k, last, BACKWARD_NAMES)) <= mine;
         k += GROUP) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lid == 0)
            *found = NO_VERTEX;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (k + lid < last) {
            const uint u = nearer_by(BY_WEIGHT(begin, k + lid), mine, distance, BACKWARD_NAMES);
            if (u != NO_VERTEX)
                atomic_xchg(found, u);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        up = *found;
    }
    return up;
}

/* Write a parent of each vertex, or NO_VERTEX. Count as orphans the reached vertices that have no
 * nearer neighbour to be their parent. Adjacent ids go to different work-groups, since hubs often
 * have adjacent ids. */
__kernel void find_parents(const uint n, __global const BITS *distance, BACKWARD,
                           __global uint *parent, volatile __global uint *orphans)
{
    __local uint waiting[GROUP], count, found;
    const uint lid = get_local_id(0), group = get_group_id(0), groups = get_num_groups(0);
    for (ulong tile = 0; tile < n; tile += (ulong)groups * GROUP) {
        const ulong v = tile + (ulong)lid * groups + group;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lid == 0)
            count = 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (v < n) {
            const BITS mine = distance[v];
            const OFFSET begin = backward_indptr[v], last = backward_indptr[v + 1];
            const OFFSET stop = min(last, begin + PULL_EDGES);
            uint up = NO_VERTEX;
            OFFSET k = mine < INFINITE ? begin : last;
            for (; k < stop && up == NO_VERTEX; k++) {
                const OFFSET at = BY_WEIGHT(begin, k);
                if (behind(0, backward_weights[at]) > mine)
                    k = last;
                else
                    up = nearer_by(at, mine, distance, BACKWARD_NAMES);
            }
            if (up == NO_VERTEX && k < last) {
                waiting[atomic_inc(&count)] = (uint)v;
            } else {
                parent[v] = up;
                if (up == NO_VERTEX && mine < INFINITE)
                    atomic_inc(orphans);
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        const uint most = count;
        for (uint i = 0; i < most; i++) {
            const uint u = IN_RANGE(waiting[i], n);
            const OFFSET begin = backward_indptr[u];
            const uint up = search_together(begin, backward_indptr[u + 1], distance[u], &found,
                                            distance, BACKWARD_NAMES);
            if (lid == 0) {
                parent[u] = up;
                if (up == NO_VERTEX)
                    atomic_inc(orphans);
            }
        }
    }
}
