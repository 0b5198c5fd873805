/* Starting a search, turning a frontier from bitmap to queue, and merging parents.
 * Twin of frontier.py; see bfs.py for the encoding of the state. */

/* Forget the last search; a root of NO_VERTEX leaves the frontier empty. */
__kernel void start(const uint n, const uint words, const uint root,
                    __global uint *restrict parent, __global uint *restrict visited,
                    __global uint *restrict queue, __global OFFSET *restrict offsets,
                    __global ulong *restrict counters, const uint num_counters)
{
    const size_t step = get_global_size(0);
    for (size_t v = get_global_id(0); v < n; v += step)
        parent[v] = v == root ? root : NO_VERTEX;
    for (size_t word = get_global_id(0); word < words; word += step)
        visited[word] = root != NO_VERTEX && word == root >> 5 ? 1u << (root & 31) : 0;
    for (size_t i = get_global_id(0); i < num_counters; i += step)
        counters[i] = 0;
    if (get_global_id(0) == 0 && root != NO_VERTEX) {
        queue[0] = root;
        offsets[0] = 0;
    }
}

/* Queue the vertices that are in `visited` and not in `old`; one word per work-item. */
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void bitmap_to_queue(const uint words, __global const uint *restrict visited,
                     __global const uint *restrict old, __global const uint *restrict degree,
                     __global ulong *restrict counters, const uint slot,
                     __global uint *restrict queue, __global OFFSET *restrict offsets)
{
    __local ulong scratch[GROUP];
    __local ulong base;
    const uint word = get_global_id(0);
    const uint fresh = word < words ? visited[word] & ~old[word] : 0;
    ulong packed = 0;
    for (uint rest = fresh; rest; rest &= rest - 1) {
        const uint d = degree[word * 32 + 31 - clz(rest & -rest)];
        if (QUEUEABLE(d))
            packed += PACK(1, d);
    }
    const ulong position = group_reserve(packed, scratch, &base, counters + slot);
    size_t place = COUNT_OF(position);
    OFFSET offset = (OFFSET)EDGES_OF(position);
    for (uint rest = fresh; rest; rest &= rest - 1) {
        const uint v = word * 32 + 31 - clz(rest & -rest);
        const uint d = degree[v];
        if (QUEUEABLE(d)) {
            queue[place] = v;
            offsets[place] = offset;
            place++;
            offset += d;
        }
    }
}

/* Take over parents that another device found: parent[vertices[i]] = parents[i]. */
__kernel void scatter_parents(const uint count, __global const uint *restrict vertices,
                              __global const uint *restrict parents, __global uint *restrict parent)
{
    for (size_t i = get_global_id(0); i < count; i += get_global_size(0))
        parent[vertices[i]] = parents[i];
}
