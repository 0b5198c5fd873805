/* Levels of 64 searches at once on an OpenCL device; twin of phases.py, which explains the arrays.
 * The host launches each level, and makes rows of the planes that it reads back.
 *
 * A push follows the edges of the queue. A work-group's vertices share them, and bits are set by
 * atomics on halves of a word. Then `settle` keeps the bits that are new. A pull gives each vertex
 * to a work-item. Beyond SHORT_LIST edges of a vertex, the whole work-group reads the rest.
 *
 * `counts` is ulong (any,), see `Count` in device.py; the bits of ALIVE are two halves.
 *
 * Build options: GROUP, OFFSET (uint or ulong), SHORT_LIST (a multiple of 4). Needs tiles.cl. */

#define ROUND_EDGES 8 /* edges of a work-item between checks whether the work-group is done */

/* Reset all searches. Masked vertices count as reached. */
__kernel void start(const uint n, const uint has_mask, __global const uchar *mask,
                    __global ulong *seen, __global ulong *plane)
{
    for (size_t v = get_global_id(0); v < n; v += get_global_size(0)) {
        seen[v] = has_mask && mask[v] ? ~(ulong)0 : 0;
        plane[v] = 0;
    }
}

/* Start search i at sources[i], for all i in `active`, by one work-item. */
__kernel void seed(const ulong active, __global const uint *sources, __global ulong *seen,
                   __global ulong *plane)
{
    for (uint i = 0; i < SEARCHES; i++)
        if (active >> i & 1) {
            seen[sources[i]] |= (ulong)1 << i;
            plane[sources[i]] |= (ulong)1 << i;
        }
}

__kernel void clear_plane(const uint n, __global ulong *plane)
{
    for (size_t v = get_global_id(0); v < n; v += get_global_size(0))
        plane[v] = 0;
}

__kernel GROUP_SIZE void push(const uint queued, __global const uint *queue,
                              __global const OFFSET *indptr, __global const uint *indices,
                              __global const ulong *frontier, __global uint *found)
{
    __local uint ends[GROUP], vertex[GROUP];
    const uint lid = get_local_id(0);
    for (uint tile = get_group_id(0) * GROUP; tile < queued; tile += get_num_groups(0) * GROUP) {
        barrier(CLK_LOCAL_MEM_FENCE);
        const bool has_vertex = tile + lid < queued;
        const uint u = has_vertex ? queue[tile + lid] : 0;
        vertex[lid] = u;
        ends[lid] = has_vertex ? (uint)(indptr[u + 1] - indptr[u]) : 0;
        const uint edges = running_sums(ends);
        for (uint e = lid; e < edges; e += GROUP) {
            const uint place = owner_of(ends, e), from = vertex[place];
            const uint to = indices[indptr[from] + place_in_list(ends, place, e)];
            const ulong word = frontier[from];
            if ((uint)word)
                atomic_or(found + 2 * (size_t)to, (uint)word);
            if (word >> 32)
                atomic_or(found + 2 * (size_t)to + 1, (uint)(word >> 32));
        }
    }
}

/* Return the sum of all work-items' values. */
static ulong group_sum(ulong value, __local ulong *scratch)
{
    const uint lid = get_local_id(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    scratch[lid] = value;
    for (uint width = GROUP / 2; width; width >>= 1) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lid < width)
            scratch[lid] += scratch[lid + width];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    return scratch[0];
}

/* Record new bits of a work-group's vertices, one vertex for each work-item: `new` of `wanted`. */
static void take(uint v, bool has_vertex, ulong wanted, ulong new, __global const OFFSET *indptr,
                 __global const OFFSET *lists, volatile __global ulong *counts,
                 __global uint *queue, __local uint *ends, __local ulong *scratch,
                 __local uint *alive)
{
    const uint lid = get_local_id(0);
    const bool lacks = has_vertex && wanted != new;
    const ulong edges = new ? indptr[v + 1] - indptr[v] : 0;
    const ulong left = lacks ? lists[v + 1] - lists[v] : 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lid < 2)
        alive[lid] = 0;
    ends[lid] = new != 0;
    const uint total = running_sums(ends);
    const ulong all_edges = group_sum(edges, scratch), all_left = group_sum(left, scratch);
    if ((uint)new)
        atomic_or(alive, (uint)new);
    if (new >> 32)
        atomic_or(alive + 1, (uint)(new >> 32));
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lid == 0) {
        if (total) {
            add_long(counts + VERTICES, total);
            add_long(counts + EDGES, all_edges);
            atomic_or((volatile __global uint *)(counts + ALIVE), alive[0]);
            atomic_or((volatile __global uint *)(counts + ALIVE) + 1, alive[1]);
            scratch[0] = atomic_add((volatile __global uint *)(counts + QUEUED), total);
        }
        if (all_left)
            add_long(counts + LEFT, all_left);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (new)
        queue[(uint)scratch[0] + ends[lid] - 1] = v;
}

#define TAKE_PARAMS                                                                             \
    const uint n, const ulong active, __global const OFFSET *indptr,                            \
        __global const OFFSET *lists, __global ulong *found, __global ulong *seen,              \
        volatile __global ulong *counts, __global uint *queue

#define DECLARE_TAKE                                                                            \
    __local uint ends[GROUP], alive[2];                                                         \
    __local ulong scratch[GROUP];                                                               \
    const uint lid = get_local_id(0);

/* Keep the bits that a push found and no earlier level has. */
__kernel GROUP_SIZE void settle(TAKE_PARAMS)
{
    DECLARE_TAKE
    for (uint tile = get_group_id(0) * GROUP; tile < n; tile += get_num_groups(0) * GROUP) {
        const uint v = tile + lid;
        const bool has_vertex = v < n;
        const ulong before = has_vertex ? seen[v] : ~(ulong)0;
        const ulong new = has_vertex ? found[v] & ~before : 0;
        if (has_vertex)
            found[v] = new;
        if (new)
            seen[v] = before | new;
        take(v, has_vertex, active & ~before, new & active, indptr, lists, counts, queue, ends,
             scratch, alive);
    }
}

/* Return the words of edges [edge, stop) combined by OR; stop early once all of `wanted` is
 * there. */
static ulong pull_list(ulong wanted, OFFSET edge, OFFSET stop, __global const uint *indices,
                       __global const ulong *frontier)
{
    ulong new = 0;
    for (; edge + 4 <= stop && (new & wanted) != wanted; edge += 4) {
        ulong word[4];
#pragma unroll
        for (uint k = 0; k < 4; k++)
            word[k] = frontier[indices[edge + k]];
        new |= word[0] | word[1] | word[2] | word[3];
    }
    if ((new & wanted) != wanted)
        for (; edge < stop; edge++)
            new |= frontier[indices[edge]];
    return new & wanted;
}

__kernel GROUP_SIZE void pull(TAKE_PARAMS, __global const uint *indices,
                              __global const ulong *frontier)
{
    DECLARE_TAKE
    __local uint longs[GROUP], num_long, done;
    __local ulong words[GROUP], lacks[GROUP];
    __local uint gained[2];
    for (uint tile = get_group_id(0) * GROUP; tile < n; tile += get_num_groups(0) * GROUP) {
        const uint v = tile + lid;
        const bool has_vertex = v < n;
        const ulong before = has_vertex ? seen[v] : ~(ulong)0, wanted = active & ~before;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lid == 0)
            num_long = 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        words[lid] = 0;
        lacks[lid] = wanted;
        if (wanted) {
            const OFFSET begin = lists[v], end = lists[v + 1];
            const bool is_long = end - begin > SHORT_LIST;
            words[lid] = pull_list(wanted, begin, is_long ? begin + SHORT_LIST : end, indices,
                                   frontier);
            if (is_long && words[lid] != wanted)
                longs[atomic_inc(&num_long)] = lid;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        const uint todo = num_long;
        for (uint j = 0; j < todo; j++) {
            const uint place = IN_RANGE(longs[j], GROUP), w = IN_RANGE(tile + place, n);
            const ulong lacked = lacks[place];
            const OFFSET end = lists[w + 1];
            OFFSET edge = lists[w] + SHORT_LIST;
            barrier(CLK_LOCAL_MEM_FENCE);
            if (lid == 0) {
                gained[0] = (uint)words[place];
                gained[1] = (uint)(words[place] >> 32);
                done = 0;
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            while (!done && edge < end) {
                ulong mine = 0;
                for (uint k = 0; k < ROUND_EDGES; k++) {
                    const OFFSET e = edge + k * GROUP + lid;
                    mine |= e < end ? frontier[indices[e]] : 0;
                }
                if ((uint)mine)
                    atomic_or(gained, (uint)mine);
                if (mine >> 32)
                    atomic_or(gained + 1, (uint)(mine >> 32));
                edge += GROUP * ROUND_EDGES;
                barrier(CLK_LOCAL_MEM_FENCE);
                if (lid == 0) {
                    const ulong sofar = (ulong)gained[1] << 32 | gained[0];
                    done = (sofar & lacked) == lacked;
                    words[place] = sofar & lacked;
                }
                barrier(CLK_LOCAL_MEM_FENCE);
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        const ulong new = words[lid];
        if (has_vertex)
            found[v] = new;
        if (new)
            seen[v] = before | new;
        take(v, has_vertex, wanted, new, indptr, lists, counts, queue, ends, scratch, alive);
    }
}
