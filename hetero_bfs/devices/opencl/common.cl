/* What every kernel file needs: types, the packed counter, sums over a work-group.
 *
 * Build options: OFFSET (uint or ulong: an offset into the edge array), GROUP (work-items per
 * work-group, a power of two), EDGE_BITS (low bits of the counter that hold edges), NUM_PARTS
 * and PART_SHIFT (parts.cl), ITEMS, VERTICES_PER_ITEM, CACHED_WORDS (bottom_up.cl), ROOM,
 * SINGLE_GROUP_EDGES, COOPERATIVE_GROUPS, COOPERATIVE_EDGES (cooperative.cl), LOG_ROWS
 * (steps.cl), ONE_LAUNCH for `search`, ONE_STEP for `step` (level_loop.cl), DIRECTED if a vertex
 * may lack out-edges, ATOMIC_PEEK and TESTS for tests. Numbers that Python has too come from it
 * (header.py). Needs atomics.cl and vendor.cl. */

#define EDGES_OF(packed) ((packed) & (((ulong)1 << EDGE_BITS) - 1))
#define COUNT_OF(packed) ((packed) >> EDGE_BITS)
#define PACK(count, edges) (((ulong)(count) << EDGE_BITS) | (ulong)(edges))

#ifdef DIRECTED
#define QUEUEABLE(degree) ((degree) > 0)
#else
#define QUEUEABLE(degree) 1
#endif

/* The place of the lowest bit that is set in a word that is not zero. */
#define LOWEST(word) (31 - clz((word) & -(word)))

/* Exclusive sum over the work-group, in rows of SCAN_ROW values; scratch holds GROUP values and
 * one per row. `total` returns the sum. */
#define SCAN_ROW 16
#define SCAN_ROWS (GROUP / SCAN_ROW)
#define SCAN_SIZE (GROUP + SCAN_ROWS)

#ifdef HAS_SHUFFLES
static ulong group_scan(ulong value, __local ulong *scratch, ulong *total)
{
    const uint lid = get_local_id(0), lane = lid & 31, warp = lid >> 5;
    ulong sum = value, before = 0, all = 0;
#pragma unroll
    for (uint distance = 1; distance < 32; distance <<= 1) {
        const ulong other = (ulong)shuffle_up((uint)(sum >> 32), distance) << 32 |
                            shuffle_up((uint)sum, distance);
        sum += lane >= distance ? other : 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane == 31)
        scratch[warp] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (uint i = 0; i < GROUP / 32; i++) {
        const ulong other = scratch[i];
        before += i < warp ? other : 0;
        all += other;
    }
    *total = all;
    return before + sum - value;
}
#else
static ulong group_scan(ulong value, __local ulong *scratch, ulong *total)
{
    const uint lid = get_local_id(0);
    const uint row = lid / SCAN_ROW;
    barrier(CLK_LOCAL_MEM_FENCE);
    scratch[lid] = value;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lid < SCAN_ROWS) {
        ulong sum = 0;
        for (uint i = 0; i < SCAN_ROW; i++)
            sum += scratch[lid * SCAN_ROW + i];
        scratch[GROUP + lid] = sum;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    ulong before = 0, all = 0;
    for (uint i = 0; i < SCAN_ROWS; i++) {
        const ulong sum = scratch[GROUP + i];
        before += i < row ? sum : 0;
        all += sum;
    }
    for (uint i = row * SCAN_ROW; i < lid; i++)
        before += scratch[i];
    *total = all;
    return before;
}
#endif
