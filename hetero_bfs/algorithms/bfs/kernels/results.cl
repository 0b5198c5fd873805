/* Results in the caller's ids (device_memory.py). `new_of_old` is NO_VERTEX for vertices that are
 * not searched; `n` vertices are. The results are -1, which is NO_VERTEX, without parent or level.
 * Twin of restore.py. */

/* A parent that is not a vertex becomes an invalid id, which validation finds. */
__kernel void restore_parents(const uint num_vertices, const uint n,
                              __global const uint *restrict new_of_old,
                              __global const uint *restrict old_of_new,
                              __global const uint *restrict parent, __global uint *restrict result)
{
    for (size_t old = get_global_id(0); old < num_vertices; old += get_global_size(0)) {
        const uint v = new_of_old[old];
        const uint up = v < n ? parent[v] : NO_VERTEX;
        result[old] = up < n ? old_of_new[up] : up == NO_VERTEX ? NO_VERTEX : num_vertices;
    }
}

/* Depths by pointer jumping: `up` is an ancestor of each vertex, or its source, and `depth` the
 * number of edges to it. These are the ancestors at distance 2. */
__kernel void begin_depths(const uint n, __global const uint *restrict parent,
                           __global uint *restrict up, __global uint *restrict depth)
{
    for (size_t v = get_global_id(0); v < n; v += get_global_size(0)) {
        const uint first = parent[v];
        const uint second = first < n ? parent[first] : NO_VERTEX;
        up[v] = second;
        depth[v] = (first != v) + (second != first);
    }
}

/* Double the distance of the ancestors. */
__kernel void double_depths(const uint n, __global const uint *restrict up,
                            __global const uint *restrict depth, __global uint *restrict next_up,
                            __global uint *restrict next_depth)
{
    for (size_t v = get_global_id(0); v < n; v += get_global_size(0)) {
        const uint first = up[v];
        next_up[v] = first < n ? up[first] : NO_VERTEX;
        next_depth[v] = first < n ? depth[v] + depth[first] : 0;
    }
}

/* `up` and `depth` lead to the sources. */
__kernel void restore_levels(const uint num_vertices, const uint n,
                             __global const uint *restrict new_of_old,
                             __global const uint *restrict up, __global const uint *restrict depth,
                             __global uint *restrict result)
{
    for (size_t old = get_global_id(0); old < num_vertices; old += get_global_size(0)) {
        const uint v = new_of_old[old];
        result[old] = v < n && up[v] < n ? depth[v] : NO_VERTEX;
    }
}
