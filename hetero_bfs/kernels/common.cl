/* What every kernel file needs: types, work-group scan, the packed counter.
 *
 * Build options: OFFSET (uint or ulong: an offset into the edge array), GROUP (work-items per
 * work-group, a power of two), EDGE_BITS (low bits of the counter that hold edges), NUM_PARTS and
 * PART_SHIFT (parts.cl), CACHED_WORDS (bfs.cl), DIRECTED if a vertex may lack out-edges.
 */

#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable

#define NO_VERTEX 0xFFFFFFFFu
#define EDGES_OF(packed) ((packed) & (((ulong)1 << EDGE_BITS) - 1))
#define COUNT_OF(packed) ((packed) >> EDGE_BITS)
#define PACK(count, edges) (((ulong)(count) << EDGE_BITS) | (ulong)(edges))

#ifdef DIRECTED
#define QUEUEABLE(degree) ((degree) > 0)
#else
#define QUEUEABLE(degree) 1
#endif

/* Exclusive sum over the work-group; scratch holds GROUP values, total returns the sum. */
static ulong group_scan(ulong value, __local ulong *scratch, ulong *total)
{
    const uint lid = get_local_id(0);
    scratch[lid] = value;
    for (uint step = 1; step < GROUP; step <<= 1) {
        barrier(CLK_LOCAL_MEM_FENCE);
        const ulong left = lid >= step ? scratch[lid - step] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        scratch[lid] += left;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    *total = scratch[GROUP - 1];
    return scratch[lid] - value;
}

/* Reserve queue slots and edge offsets for a whole work-group with one atomic addition.
 * Returns the packed position of this work-item's first entry. */
static ulong group_reserve(ulong packed, __local ulong *scratch, __local ulong *base,
                           volatile __global ulong *counter)
{
    ulong total;
    const ulong before = group_scan(packed, scratch, &total);
    if (get_local_id(0) == 0)
        *base = total ? atom_add(counter, total) : 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    return *base + before;
}
