/* Colouring on a device. Each round colours the vertices that do not wait for others (Jones and
 * Plassmann, 1993, "A parallel graph coloring heuristic").
 *
 * Follows tiles.cl. Built with -DOFFSET=uint or ulong for the type of `indptr`. The host launches
 * at most ROUNDS rounds before it reads their result.
 *
 * A vertex waits for its neighbours of lower rank (host.py). A coloured vertex adds its
 * colour to the sets of its neighbours of higher rank, which then no longer wait for it. A vertex
 * that waits for none takes the first colour that its set lacks. A set does not change in the round
 * in which it is read.
 *
 * The vertices of the first ranks are hubs. The host has coloured them before, and no vertex waits
 * for them: `count_waiting` adds their colours to the sets of their neighbours.
 *
 * With -DSTREAMED the device has one part of the adjacency at a time, and vertices are numbered by
 * rank. A part belongs to a range of ranks. Its vertices are coloured before the next part is sent,
 * since they wait only for vertices of this range or of earlier ones. So each part is sent once.
 *
 *     rank        uint (n,)
 *     colour      int (n,)        NONE until the vertex is coloured
 *     waiting     uint (n,)       number of neighbours that a vertex waits for
 *     taken       uint (any,)     sets of taken colours by vertex, a bit for each; see first_word
 *     sizes       uint (any,)     item r: length of the queue of round r; EDGES, a ulong: entries
 *                                 read
 */

#define NONE 0xffffffff /* -1 on the host */

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
        colour[v] = NONE;
    }
}

/* Add a colour to the set of a vertex. */
static void add_colour(uint v, uint colour, __global const OFFSET *indptr,
                       volatile __global uint *taken)
{
    const OFFSET first = indptr[v];
    if (colour <= indptr[v + 1] - first)
        atomic_or(taken + first_word(first, v) + colour / 32, 1u << colour % 32);
}

/* Count how many neighbours each vertex of a range waits for, the first `hubs` ranks left out.
 * Neighbours in earlier parts were subtracted when they were coloured. */
__kernel void count_waiting(const uint2 range, const uint hubs, LISTS, __global const uint *colour,
                            volatile __global uint *taken, volatile __global uint *waiting,
                            volatile __global uint *sizes)
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
            degree = ranks[lid] < hubs ? 0 : (uint)(indptr[u + 1] - indptr[u]);
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
            const uint v = neighbours[firsts[entry] + place_in_list(ends, entry, e)];
            if (RANK(v) < hubs)
                add_colour(tile + entry, colour[v], indptr, taken);
            else
                counted += RANK(v) < ranks[entry];
        }
        if (counted)
            atomic_add(waiting + tile + of, counted);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

/* Put the vertices of a range that do not wait, and have no colour, into the first queue. */
__kernel void collect(const uint2 range, __global const uint *waiting, __global const uint *colour,
                      __global uint *queue, volatile __global uint *sizes)
{
    for (uint v = range.s0 + get_global_id(0); v < range.s1; v += get_global_size(0))
        if (waiting[v] == 0 && colour[v] == NONE)
            queue[atomic_inc(sizes)] = v;
}

/* Add the colour of a vertex to the set of a neighbour of higher rank, and queue the neighbour if
 * it waits no more. In a later part it is not counted yet; until then its count is negative. */
static void notify(uint v, uint colour, __global const OFFSET *indptr, volatile __global uint *taken,
                 volatile __global uint *waiting, __global uint *next, volatile __global uint *size)
{
    add_colour(v, colour, indptr, taken);
    if (atomic_dec(waiting + v) == 1)
        next[atomic_inc(size)] = v;
}

/* Colour the queued vertices and update their neighbours. A work-group takes a tile of them. */
__kernel void colour_queue(const uint round, LISTS, __global const uint *queue,
                           __global uint *next, __global uint *colour,
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
