/* Marks the blocks whose neighbour lists an iteration reads; the host sends them (streamed.py). */

/* Mark the blocks where a vertex with edges sends or receives. The mode follows the marks.
 * Receivers are counted here, since receivers without edges may be in blocks without marks. */
__kernel void choose_blocks(__global uchar *chosen, const uint total, GRAPH,
                            __global const OFFSET *backward_indptr, SHARED, STATE)
{
    __local uint marked;
    __local ulong counts[2];
    const uint lid = get_local_id(0);
    const int iteration = (int)loop[ITERATION];
    const long mode = loop[MODE];
    ulong received = 0;
    for (uint block = get_group_id(0); block < total; block += get_num_groups(0)) {
        const uint v = block * GROUP + lid;
        bool wanted = false;
        if (mode == PUSH && v < searched)
            wanted = active_in[v] == iteration && indptr[v] < indptr[v + 1];
        if (mode == PULL && v < searched) {
#if ALL_ACTIVE
            combined[v] = TO_BITS(IDENTITY);
#endif
            if (receives(v, iteration, STATE_NAMES)) {
                received++;
                wanted = backward_indptr[v] < backward_indptr[v + 1];
            }
        }
        mark_block(wanted, &marked, chosen + block);
    }
    if (get_global_id(0) == 0)
        chosen[total] = mode;
    add_counts(0, received, SCANNED, RECEIVED, counts, counters);
}

/* Clear the list of long neighbour lists for the next part. */
__kernel void end_part(volatile __global ulong *counters)
{
    counters[HEAVY_COUNT] = 0;
}
