// A work-item counts the neighbours of one vertex with at least `least` edges.

__kernel void count_busy(uint vertices, uint least, __global const ulong *indptr,
                         __global const uint *neighbours, __global const uint *degree,
                         __global int *count)
{
    uint v = get_global_id(0);
    if (v >= vertices)
        return;
    int found = 0;
    for (ulong k = indptr[v]; k < indptr[v + 1]; k++)
        found += degree[neighbours[k]] >= least;
    count[v] = found;
}
