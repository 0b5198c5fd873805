/* Parents of a shortest-path tree, found from the distances on a device; tree.py is the twin.
 *
 * A neighbour list is read by rising weight, until a weight exceeds the vertex's distance. A
 * work-item reads the first PULL_EDGES entries. If they do not contain the parent, the whole
 * work-group continues. */

/* Return the start of an edge if it is nearer and the edge makes up the vertex's distance. */
static uint nearer_by(OFFSET at, BITS mine, __global const BITS *distance, BACKWARD)
{
    const uint u = backward_neighbours[at];
    const BITS before = distance[u];
    return before < mine && behind(before, backward_weights[at]) == mine ? u : NO_VERTEX;
}

/* Scan the rest of a neighbour list with the whole work-group; return the parent. */
static uint search_together(OFFSET begin, OFFSET last, BITS mine, __local uint *found,
                            __global const BITS *distance, BACKWARD)
{
    const uint lid = get_local_id(0);
    uint up = NO_VERTEX;
    for (OFFSET k = begin + PULL_EDGES;
         k < last && up == NO_VERTEX && behind(0, weight_at(begin, k, last, BACKWARD_NAMES)) <= mine;
         k += GROUP) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lid == 0)
            *found = NO_VERTEX;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (k + lid < last) {
            const uint u = nearer_by(BY_WEIGHT(begin, k + lid), mine, distance, BACKWARD_NAMES);
            if (u != NO_VERTEX)
                atomic_xchg(found, u);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        up = *found;
    }
    return up;
}

/* Write a parent of each vertex, or NO_VERTEX. Count as orphans the reached vertices that have no
 * nearer neighbour to be their parent. Adjacent ids go to different work-groups, since hubs often
 * have adjacent ids. */
__kernel void find_parents(const uint n, __global const BITS *distance, BACKWARD,
                           __global uint *parent, volatile __global uint *orphans)
{
    __local uint waiting[GROUP], count, found;
    const uint lid = get_local_id(0), group = get_group_id(0), groups = get_num_groups(0);
    for (ulong tile = 0; tile < n; tile += (ulong)groups * GROUP) {
        const ulong v = tile + (ulong)lid * groups + group;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lid == 0)
            count = 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (v < n) {
            const BITS mine = distance[v];
            const OFFSET begin = backward_indptr[v], last = backward_indptr[v + 1];
            const OFFSET stop = min(last, begin + PULL_EDGES);
            uint up = NO_VERTEX;
            OFFSET k = mine < INFINITE ? begin : last;
            for (; k < stop && up == NO_VERTEX; k++) {
                const OFFSET at = BY_WEIGHT(begin, k);
                if (behind(0, backward_weights[at]) > mine)
                    k = last;
                else
                    up = nearer_by(at, mine, distance, BACKWARD_NAMES);
            }
            if (up == NO_VERTEX && k < last) {
                waiting[atomic_inc(&count)] = (uint)v;
            } else {
                parent[v] = up;
                if (up == NO_VERTEX && mine < INFINITE)
                    atomic_inc(orphans);
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        const uint most = count;
        for (uint i = 0; i < most; i++) {
            const uint u = IN_RANGE(waiting[i], n);
            const OFFSET begin = backward_indptr[u];
            const uint up = search_together(begin, backward_indptr[u + 1], distance[u], &found,
                                            distance, BACKWARD_NAMES);
            if (lid == 0) {
                parent[u] = up;
                if (up == NO_VERTEX)
                    atomic_inc(orphans);
            }
        }
    }
}
