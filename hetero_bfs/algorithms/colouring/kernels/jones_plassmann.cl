/* Colouring on a device. Each round colours the vertices that do not wait for others (Jones and
 * Plassmann, 1993, "A parallel graph coloring heuristic").
 *
 * Follows tiles.cl. Built with -DOFFSET=uint or ulong for the type of `indptr`. The host launches
 * at most ROUNDS rounds before it reads their result.
 *
 * A vertex waits for its neighbours of lower rank (lists.py). A coloured vertex adds its
 * colour to the sets of its neighbours of higher rank, which then no longer wait for it. A vertex
 * that waits for none takes the first colour that its set lacks. A set does not change in the round
 * in which it is read.
 *
 * With -DSTREAMED the device has one part of the adjacency at a time, and vertices are numbered by
 * rank. A part belongs to a range of ranks. Its vertices are coloured before the next part is sent,
 * since they wait only for vertices of this range or of earlier ones. So each part is sent once.
 *
 *     rank        uint (n,)
 *     colour      int (n,)        written when the vertex is coloured
 *     waiting     uint (n,)       number of neighbours that a vertex waits for
 *     taken       uint (any,)     sets of taken colours by vertex, a bit for each; see first_word
 *     sizes       uint (any,)     item r: length of the queue of round r; HEAVY + r: length of its
 *                                 list of heavy vertices; HEAVY_TO_COUNT: length of that list in
 *                                 `count_waiting`; EDGES, a ulong: entries read
 */

#ifdef STREAMED
/* `neighbours` begins with entry number `skipped` of the whole adjacency. */
#define LISTS __global const OFFSET *indptr, __global const uint *neighbours, const ulong skipped
#define RANK(v) (v)
#define ENTRY(k) ((k) - (OFFSET)skipped)
#else
#define LISTS                                                                                       \
    __global const OFFSET *indptr, __global const uint *neighbours, __global const uint *rank
#define RANK(v) rank[v]
#define ENTRY(k) (k)
#endif

static void add_edges(volatile __global uint *sizes, ulong count)
{
    add_long((volatile __global ulong *)(sizes + EDGES), count);
}

/* Return where a vertex's set begins. It has room for colours up to the vertex's degree, and a
 * vertex never takes a larger colour. */
static ulong first_word(OFFSET first, uint v) { return ((ulong)first >> 5) + v; }

/* Return the vertices of a tile. If there are fewer vertices than work-items, tiles are small, so
 * that all work-groups have some: the first vertices of a queue may have high degrees. */
static uint tile_size(uint count)
{
    const uint groups = get_num_groups(0);
    return clamp((count + groups - 1) / groups, 1u, (uint)GROUP);
}

/* Empty all sets. The vertices have no colour, and wait for none before `count_waiting`. */
__kernel void start(const uint n, const ulong words, __global uint *taken, __global uint *waiting,
                    __global uint *colour)
{
    for (ulong word = get_global_id(0); word < words; word += get_global_size(0))
        taken[word] = 0;
    for (uint v = get_global_id(0); v < n; v += get_global_size(0)) {
        waiting[v] = 0;
        colour[v] = 0xffffffff; /* -1 on the host */
    }
}

/* Count how many neighbours each vertex of a range waits for. Those with more than HEAVY_EDGES
 * edges are left for `count_heavy`. Neighbours in earlier parts were subtracted when they were
 * coloured. */
__kernel void count_waiting(const uint2 range, LISTS, __global uint *heavy,
                            volatile __global uint *waiting, volatile __global uint *sizes)
{
    __local uint ends[GROUP];
    __local OFFSET firsts[GROUP];
    __local uint ranks[GROUP];
    const uint lid = get_local_id(0);
    const uint size = tile_size(range.s1 - range.s0), step = get_num_groups(0) * size;
    for (uint tile = range.s0 + get_group_id(0) * size; tile < range.s1; tile += step) {
        uint degree = 0;
        const uint u = tile + lid;
        if (lid < size && u < range.s1) {
            firsts[lid] = ENTRY(indptr[u]);
            ranks[lid] = RANK(u);
            degree = (uint)(indptr[u + 1] - indptr[u]);
            if (degree > HEAVY_EDGES) {
                heavy[atomic_inc(sizes + HEAVY_TO_COUNT)] = u;
                degree = 0;
            }
        }
        ends[lid] = degree;
        const uint total = running_sums(ends);
        if (lid == 0 && total)
            add_edges(sizes, total);
        uint counted = 0, of = 0;
        for (uint e = lid; e < total; e += GROUP) {
            const uint entry = owner_of(ends, e);
            if (entry != of) {
                if (counted)
                    atomic_add(waiting + tile + of, counted);
                counted = 0;
                of = entry;
            }
            const OFFSET k = firsts[entry] + place_in_list(ends, entry, e);
            counted += RANK(neighbours[k]) < ranks[entry];
        }
        if (counted)
            atomic_add(waiting + tile + of, counted);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

/* The work-groups share the vertices of high degree: `slices` groups read the neighbours of one
 * vertex. A group takes pairs of a vertex and a slice; the group's number is that of its first
 * pair. */
static uint slices_of(uint lists) { return max((uint)get_num_groups(0) / max(lists, 1u), 1u); }

/* Like `count_waiting`, for the vertices that it left. */
__kernel void count_heavy(const uint n, LISTS, __global const uint *heavy, volatile __global uint *waiting,
                          volatile __global uint *sizes)
{
    const uint lists = sizes[HEAVY_TO_COUNT], slices = slices_of(lists), lid = get_local_id(0);
    for (uint pair = get_group_id(0); pair < lists * slices; pair += get_num_groups(0)) {
        const uint u = IN_RANGE(heavy[pair / slices], n), before = RANK(u);
        const OFFSET last = ENTRY(indptr[u + 1]);
        const OFFSET first = ENTRY(indptr[u]) + pair % slices * GROUP + lid;
        if (pair % slices == 0 && lid == 0)
            add_edges(sizes, last - first);
        uint counted = 0;
        for (OFFSET k = first; k < last; k += slices * GROUP)
            counted += RANK(neighbours[k]) < before;
        if (counted)
            atomic_add(waiting + u, counted);
    }
}

/* Put the vertices of a range that do not wait into the first queue. */
__kernel void collect(const uint2 range, __global const uint *waiting, __global uint *queue,
                      volatile __global uint *sizes)
{
    for (uint v = range.s0 + get_global_id(0); v < range.s1; v += get_global_size(0))
        if (waiting[v] == 0)
            queue[atomic_inc(sizes)] = v;
}

/* Add the colour of a vertex to the set of a neighbour of higher rank, and queue the neighbour if
 * it waits no more. In a later part it is not counted yet; until then its count is negative. */
static void notify(uint v, uint colour, __global const OFFSET *indptr, volatile __global uint *taken,
                 volatile __global uint *waiting, __global uint *next, volatile __global uint *size)
{
    const OFFSET first = indptr[v];
    if (colour <= indptr[v + 1] - first)
        atomic_or(taken + first_word(first, v) + colour / 32, 1u << colour % 32);
    if (atomic_dec(waiting + v) == 1)
        next[atomic_inc(size)] = v;
}

/* Colour the queued vertices and update their neighbours. A work-group takes a tile of them.
 * Vertices with more than HEAVY_EDGES edges are left for `notify_heavy`. */
__kernel void colour_queue(const uint round, LISTS, __global const uint *queue,
                           __global uint *next, __global uint *heavy, __global uint *colour,
                           volatile __global uint *taken, volatile __global uint *waiting,
                           volatile __global uint *sizes)
{
    __local uint ends[GROUP];
    __local OFFSET firsts[GROUP];
    __local uint ranks[GROUP];
    __local uint colours[GROUP];
    const uint lid = get_local_id(0), count = sizes[round];
    const uint size = tile_size(count);
    for (uint tile = get_group_id(0) * size; tile < count; tile += get_num_groups(0) * size) {
        uint degree = 0;
        if (lid < size && tile + lid < count) {
            const uint u = queue[tile + lid];
            const OFFSET first = indptr[u];
            degree = (uint)(indptr[u + 1] - first);
            ulong word = first_word(first, u);
            uint found = 0;
            for (; taken[word] == 0xffffffff; word++)
                found += 32;
            const uint free = ~taken[word];
            found += 31 - clz(free & -free); /* the lowest set bit */
            colour[u] = found;
            colours[lid] = found;
            firsts[lid] = ENTRY(first);
            ranks[lid] = RANK(u);
            if (degree > HEAVY_EDGES) {
                heavy[atomic_inc(sizes + HEAVY + round)] = u;
                degree = 0;
            }
        }
        ends[lid] = degree;
        const uint total = running_sums(ends);
        if (lid == 0 && total)
            add_edges(sizes, total);
        for (uint e = lid; e < total; e += GROUP) {
            const uint entry = owner_of(ends, e);
            const uint v = neighbours[firsts[entry] + place_in_list(ends, entry, e)];
            if (RANK(v) > ranks[entry])
                notify(v, colours[entry], indptr, taken, waiting, next, sizes + round + 1);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

/* Update the neighbours of the vertices that `colour_queue` left. */
__kernel void notify_heavy(const uint round, const uint n, LISTS, __global uint *next,
                         __global const uint *heavy, __global const uint *colour, volatile __global uint *taken,
                         volatile __global uint *waiting, volatile __global uint *sizes)
{
    const uint lists = sizes[HEAVY + round], slices = slices_of(lists), lid = get_local_id(0);
    for (uint pair = get_group_id(0); pair < lists * slices; pair += get_num_groups(0)) {
        const uint u = IN_RANGE(heavy[pair / slices], n), before = RANK(u);
        const OFFSET last = ENTRY(indptr[u + 1]);
        const OFFSET first = ENTRY(indptr[u]) + pair % slices * GROUP + lid;
        if (pair % slices == 0 && lid == 0)
            add_edges(sizes, last - first);
        for (OFFSET k = first; k < last; k += slices * GROUP)
            if (RANK(neighbours[k]) > before)
                notify(neighbours[k], colour[u], indptr, taken, waiting, next, sizes + round + 1);
    }
}
