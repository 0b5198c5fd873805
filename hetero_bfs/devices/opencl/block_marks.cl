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
