/* Colouring on a device: rounds, each of which colours the vertices that wait for none (Jones and
 * Plassmann, 1993, "A parallel graph coloring heuristic").
 *
 * Follows tiles.cl. Built with -DOFFSET=uint or ulong for the type of `indptr`. At most ROUNDS are
 * launched one after the other before the host reads the result.
 *
 * A vertex waits for its neighbours of lower rank (colour_order.py). A coloured vertex notes its
 * colour in the sets of its neighbours of higher rank, which no longer wait for it. A vertex that
 * waits for none takes the first colour that its set lacks. No set changes in the round in which it
 * is read.
 *
 * With -DSTREAMED the device has a part of the lists at a time. Vertices are numbered by rank then.
 * The vertices of a part, a range, are coloured before the next part is sent: all others that they
 * wait for precede them. So each list is sent once.
 *
 *     rank        uint (n,)
 *     colour      int (n,)        written when the vertex is coloured
 *     waiting     uint (n,)       for how many neighbours a vertex waits
 *     taken       uint (any,)     the vertices' sets of taken colours, a bit for each; see first_word
 *     sizes       uint (any,)     by round: entries of the queue, from 0 on, and of the list of heavy
 *                                 vertices, from HEAVY on; at HEAVY_TO_COUNT, entries of that list
 *                                 of `count_waiting`; at EDGES, a ulong, entries of lists read
 */

#ifdef STREAMED
/* `neighbours` begins with entry number `skipped` of all lists. */
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

/* Return where a vertex's set begins. It has room for colours up to the vertex's degree, and never
 * takes a larger one. */
static ulong first_word(OFFSET first, uint v) { return ((ulong)first >> 5) + v; }

/* Return the vertices of a tile: few where there are fewer vertices than work-items, so that all
 * work-groups have some. At the front of a queue there may be few vertices of long lists. */
static uint tile_size(uint count)
{
    const uint groups = get_num_groups(0);
    return clamp((count + groups - 1) / groups, 1u, (uint)GROUP);
}

/* Set all sets empty. The vertices have no colour, and wait for none before `count_waiting`. */
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

/* Count for how many neighbours each vertex of a range waits; those of over HEAVY_EDGES are left for
 * `count_heavy`. Neighbours in earlier parts were subtracted when they got their colours. */
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

/* How the work-groups share long lists: `slices` of them read one list. A group takes pairs of a list
 * and a slice of it, the first one numbered by the group. */
static uint slices_of(uint lists) { return max((uint)get_num_groups(0) / max(lists, 1u), 1u); }

/* As above, for the long lists. */
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

/* Put the vertices of a range that wait for none into the first queue. */
__kernel void collect(const uint2 range, __global const uint *waiting, __global uint *queue,
                      volatile __global uint *sizes)
{
    for (uint v = range.s0 + get_global_id(0); v < range.s1; v += get_global_size(0))
        if (waiting[v] == 0)
            queue[atomic_inc(sizes)] = v;
}

/* Tell a neighbour of higher rank the colour of a vertex; queue it if it waits for none now. One in
 * a later part was not counted yet: its count is negative until then. */
static void tell(uint v, uint colour, __global const OFFSET *indptr, volatile __global uint *taken,
                 volatile __global uint *waiting, __global uint *next, volatile __global uint *size)
{
    const OFFSET first = indptr[v];
    if (colour <= indptr[v + 1] - first)
        atomic_or(taken + first_word(first, v) + colour / 32, 1u << colour % 32);
    if (atomic_dec(waiting + v) == 1)
        next[atomic_inc(size)] = v;
}

/* Colour the queued vertices and tell their neighbours. A work-group takes a tile of them; lists of
 * over HEAVY_EDGES are left for `tell_heavy`. */
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
                tell(v, colours[entry], indptr, taken, waiting, next, sizes + round + 1);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

/* Tell the neighbours of the vertices of long lists that `colour_queue` left. */
__kernel void tell_heavy(const uint round, const uint n, LISTS, __global uint *next,
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
                tell(neighbours[k], colour[u], indptr, taken, waiting, next, sizes + round + 1);
    }
}
