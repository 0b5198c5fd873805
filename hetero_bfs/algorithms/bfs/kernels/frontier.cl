/* Starts and ends a search, converts a frontier from bitmap to queue, and merges parents.
 * Twin of frontier.py; level.py describes the arrays. */

/* The data of a step (steps.cl), and this work-group's share of it. The first array of each pair
 * belongs to the frontier of this level, the other one to the frontier of the next level. */
typedef struct {
    uint group, groups; /* the share is number `group` of `groups` */
    __global uint *parent, *visited, *other_visited, *queue, *other_queue;
    __global OFFSET *offsets, *other_offsets;
    volatile __global ulong *counter; /* of the vertices and edges that the step finds */
    __local ulong *scratch, *base;
} Step;

/* Make `source` the only visited vertex and the frontier. */
static void start(const Step *step, uint words, uint source)
{
    for (uint word = step->group * GROUP + get_local_id(0); word < words;
         word += step->groups * GROUP)
        step->visited[word] = word == source >> 5 ? 1u << (source & 31) : 0;
    if (step->group == 0 && get_local_id(0) == 0) {
        step->parent[source] = source;
        step->queue[0] = source;
        step->offsets[0] = 0;
    }
}

/* Vertices and edges of a word's bits, packed, without vertices that do not go into a queue.
 * `common` is the degree of all 32 vertices, or MIXED_DEGREES. */
static ulong count_word(uint word, uint bits, uint common, __global const uint *degree)
{
    if (common != MIXED_DEGREES)
        return QUEUEABLE(common) ? PACK(popcount(bits), (ulong)popcount(bits) * common) : 0;
    ulong packed = 0;
    for (; bits; bits &= bits - 1) {
        const uint d = degree[word * 32 + LOWEST(bits)];
        packed += QUEUEABLE(d) ? PACK(1, d) : 0;
    }
    return packed;
}

/* Queue the vertices that the last level visited; one word of the bitmap per work-item. */
static void bitmap_to_queue(const Step *step, uint words, __global const uint *degree,
                            __global const uint *word_degree)
{
    __global const uint *visited = step->visited, *old = step->other_visited;
    __global uint *queue = step->queue;
    __global OFFSET *offsets = step->offsets;
    __local ulong *base = step->base;
    for (uint chunk = step->group * GROUP; chunk < words; chunk += step->groups * GROUP) {
        const uint word = chunk + get_local_id(0);
        uint fresh = word < words ? visited[word] & ~old[word] : 0;
        const uint common = fresh ? word_degree[word] : MIXED_DEGREES;
        ulong total;
        const ulong before =
            group_scan(count_word(word, fresh, common, degree), step->scratch, &total);
        if (get_local_id(0) == 0)
            *base = total ? fetch_add_long(step->counter, total) : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        size_t place = COUNT_OF(*base + before);
        OFFSET offset = (OFFSET)EDGES_OF(*base + before);
        for (; fresh; fresh &= fresh - 1) {
            const uint v = word * 32 + LOWEST(fresh);
            const uint d = common == MIXED_DEGREES ? degree[v] : common;
            if (QUEUEABLE(d)) {
                queue[place] = v;
                offsets[place] = offset;
                place++;
                offset += d;
            }
        }
    }
}

/* Set the parents of unvisited vertices to NO_VERTEX. */
static void invalidate_stale_parents(const Step *step, uint n, uint words)
{
    for (uint word = step->group * GROUP + get_local_id(0); word < words;
         word += step->groups * GROUP) {
        uint rest = ~step->visited[word];
        if (word == words - 1 && n & 31)
            rest &= (1u << (n & 31)) - 1;
        for (; rest; rest &= rest - 1)
            step->parent[word * 32 + LOWEST(rest)] = NO_VERTEX;
    }
}

/* Write parents that another device found: parent[vertices[i]] = parents[i]. */
__kernel void scatter_parents(const uint count, __global const uint *restrict vertices,
                              __global const uint *restrict parents, __global uint *restrict parent)
{
    for (size_t i = get_global_id(0); i < count; i += get_global_size(0))
        parent[vertices[i]] = parents[i];
}
