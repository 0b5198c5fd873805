// Work-items count the neighbours of each vertex that have at least `least` edges.

__kernel void count_busy(uint vertices, uint least, __global const OFFSET *indptr,
                         __global const uint *neighbours, __global const uint *degree,
                         __global int *count)
{
    for (uint v = get_global_id(0); v < vertices; v += get_global_size(0)) {
        int found = 0;
        for (OFFSET k = indptr[v]; k < indptr[v + 1]; k++)
            found += degree[neighbours[k]] >= least;
        count[v] = found;
    }
}
