/* Starting and ending a search, turning a frontier from bitmap to queue, and merging parents.
 * Twin of frontier.py; see level.py for the encoding of the state.
 *
 * Functions with `group` and `groups` are shared by so many work-groups of a grid (steps.cl).
 */

/* Make `source` the only visited vertex and the frontier. */
static void start(uint group, uint groups, uint words, uint source, __global uint *visited,
                  __global uint *parent, __global uint *queue, __global OFFSET *offsets)
{
    for (uint word = group * GROUP + get_local_id(0); word < words; word += groups * GROUP)
        visited[word] = word == source >> 5 ? 1u << (source & 31) : 0;
    if (group == 0 && get_local_id(0) == 0) {
        parent[source] = source;
        queue[0] = source;
        offsets[0] = 0;
    }
}

/* Vertices and edges of a word's bits, of those that have a place in a queue. `common` is the
 * degree of all 32 vertices, or MIXED_DEGREES. */
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

/* Queue the vertices that are in `visited` and not in `old`; one word per work-item. */
static void bitmap_to_queue(uint group, uint groups, uint words, __global const uint *visited,
                            __global const uint *old, __global const uint *degree,
                            __global const uint *word_degree, volatile __global ulong *counter,
                            __global uint *queue, __global OFFSET *offsets,
                            __local ulong *scratch, __local ulong *base)
{
    for (uint chunk = group * GROUP; chunk < words; chunk += groups * GROUP) {
        const uint word = chunk + get_local_id(0);
        uint fresh = word < words ? visited[word] & ~old[word] : 0;
        const uint common = fresh ? word_degree[word] : MIXED_DEGREES;
        ulong total;
        const ulong before =
            group_scan(count_word(word, fresh, common, degree), scratch, &total);
        if (get_local_id(0) == 0)
            *base = total ? atom_add(counter, total) : 0;
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

/* Leave NO_VERTEX as parent of the vertices that are not visited. */
static void invalidate_stale_parents(uint group, uint groups, uint n, uint words,
                                 __global const uint *visited, __global uint *parent)
{
    for (uint word = group * GROUP + get_local_id(0); word < words; word += groups * GROUP) {
        uint rest = ~visited[word];
        if (word == words - 1 && n & 31)
            rest &= (1u << (n & 31)) - 1;
        for (; rest; rest &= rest - 1)
            parent[word * 32 + LOWEST(rest)] = NO_VERTEX;
    }
}

/* Take over parents that another device found: parent[vertices[i]] = parents[i]. */
__kernel void scatter_parents(const uint count, __global const uint *restrict vertices,
                              __global const uint *restrict parents, __global uint *restrict parent)
{
    for (size_t i = get_global_id(0); i < count; i += get_global_size(0))
        parent[vertices[i]] = parents[i];
}
