/* A work-group of GROUP work-items shares the edges of GROUP vertices. */

/* Replace each vertex's number of edges by the end of its edges; return their sum. All work-items
 * of the group must call this. */
static uint running_sums(__local uint *ends)
{
    const uint lid = get_local_id(0);
    for (uint distance_back = 1; distance_back < GROUP; distance_back *= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        const uint before = lid >= distance_back ? ends[lid - distance_back] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        ends[lid] += before;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    return ends[GROUP - 1];
}

/* Return the index of the vertex that has edge `e`: the first whose edges end after it. */
static uint owner_of(__local const uint *ends, uint e)
{
    uint low = 0, high = GROUP - 1;
    while (low < high) {
        const uint middle = (low + high) / 2;
        if (ends[middle] > e)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Return the position of edge `e` in its vertex's list. */
static uint place_in_list(__local const uint *ends, uint place, uint e)
{
    return e - (place ? ends[place - 1] : 0);
}

/* Tell the host whether any work-item needs the neighbour lists of a block. All work-items of the
 * group must call this. */
static void mark_block(bool wanted, __local uint *marked, __global uchar *chosen)
{
    const uint lid = get_local_id(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lid == 0)
        *marked = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (wanted)
        atomic_or(marked, 1);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lid == 0)
        *chosen = *marked;
}
