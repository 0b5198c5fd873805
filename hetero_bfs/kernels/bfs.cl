/* One level of breadth-first search on an OpenCL device, top-down or bottom-up.
 * Twin of bfs.py, which describes the encoding of the state.
 *
 * Top-down balances by edges: a work-group takes TILE edges of the frontier wherever they lie,
 * finds their queue entries by binary search, and its work-items take the edges in turn, so that
 * a hub is spread over many work-groups. Bottom-up gives a work-group whole bitmap words, so that
 * nobody else writes them: first neighbours of the tile, then the survivors packed, then those
 * with long lists by the whole work-group.
 */

#define ITEMS 4
#define TILE (GROUP * ITEMS)
#define TILE_VERTICES (GROUP * 8)
#define TILE_WORDS (TILE_VERTICES / 32)
#define LONG_LIST 512

/* Look before claiming: a plain read, which may be stale; the atomic that follows decides. Race
 * checkers object to it, and OpenCL C 1.2 has no atomic read: for them -DATOMIC_PEEK. */
#ifdef ATOMIC_PEEK
#define PEEK(address) atomic_or(address, 0)
#else
#define PEEK(address) (*(address))
#endif

/* Push edges [tile, tile + TILE) of the frontier. */
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void top_down(const uint count, const OFFSET edges,
              __global const uint *restrict queue, __global const OFFSET *restrict offsets,
              __global const OFFSET *restrict indptr, __global const uint *restrict degree,
              __global uint *visited, __global uint *restrict parent,
              __global ulong *restrict counters, const uint slot,
              __global uint *restrict next_queue, __global OFFSET *restrict next_offsets,
              EDGE_PARAMS)
{
    __local uint bounds[2];
    __local uint vertex[TILE];
    __local uint begin[TILE];   /* first edge of each entry, within the tile */
    __local OFFSET shift[TILE]; /* edge in the tile + shift = edge in the graph */
    __local uint found[TILE];
    __local uint num_found;
    __local ulong scratch[GROUP];
    __local ulong base;
    const uint lid = get_local_id(0);
    const OFFSET tile = (OFFSET)get_group_id(0) * TILE;
    const uint size = (uint)min((OFFSET)TILE, edges - tile);

    if (lid < 2) {
        const OFFSET target = lid == 0 ? tile : tile + size - 1;
        uint low = 0, high = count;
        while (high - low > 1) {
            const uint middle = low + (high - low) / 2;
            if (offsets[middle] <= target)
                low = middle;
            else
                high = middle;
        }
        bounds[lid] = low;
    }
    if (lid == 0)
        num_found = 0;
    barrier(CLK_LOCAL_MEM_FENCE);

    const uint first = bounds[0];
    const uint entries = bounds[1] - first + 1; /* every entry has an edge: at most TILE */
    for (uint i = lid; i < entries; i += GROUP) {
        const uint u = queue[first + i];
        const OFFSET offset = offsets[first + i];
        vertex[i] = u;
        begin[i] = i == 0 ? 0 : (uint)(offset - tile); /* only the first began before the tile */
        shift[i] = indptr[u] - offset + tile;
    }
    uint top_step = 1;
    while (top_step < entries)
        top_step <<= 1;
    barrier(CLK_LOCAL_MEM_FENCE);

    uint source[ITEMS], target[ITEMS];
    for (uint k = 0; k < ITEMS; k++) {
        const uint edge = k * GROUP + lid;
        target[k] = NO_VERTEX;
        if (edge < size) {
            uint entry = 0;
            for (uint step = top_step >> 1; step; step >>= 1)
                if (entry + step < entries && begin[entry + step] <= edge)
                    entry += step;
            source[k] = vertex[entry];
            LOAD_EDGE(target[k], shift[entry] + edge);
        }
    }
    for (uint k = 0; k < ITEMS; k++) {
        const uint v = target[k];
        if (v == NO_VERTEX)
            continue;
        const uint bit = 1u << (v & 31);
        if (!(PEEK(&visited[v >> 5]) & bit) && !(atomic_or(&visited[v >> 5], bit) & bit)) {
            parent[v] = source[k];
            if (QUEUEABLE(degree[v]))
                found[atomic_inc(&num_found)] = v;
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (num_found == 0)
        return;

    const uint from = min(lid * ITEMS, num_found);
    const uint to = min(from + ITEMS, num_found);
    ulong packed = 0;
    for (uint i = from; i < to; i++)
        packed += PACK(1, degree[found[i]]);
    const ulong position = group_reserve(packed, scratch, &base, counters + slot);
    size_t place = COUNT_OF(position);
    OFFSET offset = (OFFSET)EDGES_OF(position);
    for (uint i = from; i < to; i++) {
        next_queue[place] = found[i];
        next_offsets[place] = offset;
        place++;
        offset += degree[found[i]];
    }
}

/* A bit of the bitmap. With CACHED_WORDS (strategy BGC) the first words, the hubs' after relabelling,
 * come from local memory; the file is built once without and once with. */
#define BIT_IN(words, v) ((words[(v) >> 5] >> ((v) & 31)) & 1)
#if CACHED_WORDS > 0
#define VISITED(v) ((v) < CACHED_WORDS * 32 ? BIT_IN(cache, v) : BIT_IN(visited, v))
#else
#define VISITED(v) BIT_IN(visited, v)
#endif

/* Look for a visited neighbour of every unvisited vertex. `first`, `indptr` and the edges belong
 * to the transposed graph. Work-groups take tiles of TILE_VERTICES in turn. */
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void bottom_up(const uint n, const uint words, __global const uint *restrict first,
               __global const OFFSET *restrict indptr, __global const uint *restrict degree,
               __global const uint *restrict visited, __global uint *restrict next_visited,
               __global uint *restrict parent, __global ulong *restrict counters,
               const uint slot, EDGE_PARAMS)
{
    __local uint seen[TILE_WORDS];
    __local uint fresh[TILE_WORDS];
    __local uint survivors[TILE_VERTICES];
    __local uint num_survivors, num_long;
    __local uint long_parent;
    __local ulong scratch[GROUP];
    const uint lid = get_local_id(0);
    ulong packed = 0;

#if CACHED_WORDS > 0
    __local uint cache[CACHED_WORDS];
    for (uint word = lid; word < CACHED_WORDS; word += GROUP)
        cache[word] = word < words ? visited[word] : 0;
#endif

    for (uint tile = get_group_id(0) * TILE_WORDS; tile < words;
         tile += get_num_groups(0) * TILE_WORDS) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lid < TILE_WORDS) {
            seen[lid] = tile + lid < words ? visited[tile + lid] : NO_VERTEX;
            fresh[lid] = 0;
        }
        if (lid == 0) {
            num_survivors = 0;
            num_long = 0;
        }
        barrier(CLK_LOCAL_MEM_FENCE);

        /* First neighbours: contiguous reads that settle most vertices of a big level. */
        for (uint i = lid; i < TILE_VERTICES; i += GROUP) {
            const uint v = tile * 32 + i;
            const uint bit = 1u << (i & 31);
            if (v >= n || (seen[i >> 5] & bit))
                continue;
            const uint u = first[v];
            if (u == v) /* no neighbours */
                continue;
            if (VISITED(u)) {
                parent[v] = u;
                atomic_or(&fresh[i >> 5], bit);
                packed += PACK(1, degree[v]);
            } else {
                survivors[atomic_inc(&num_survivors)] = i;
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);

        /* The others, packed, so that no work-item idles beside a long list. */
        const uint todo = num_survivors;
        for (uint round = 0; round < todo; round += GROUP) {
            const uint i = round + lid < todo ? survivors[round + lid] : NO_VERTEX;
            barrier(CLK_LOCAL_MEM_FENCE);
            if (i != NO_VERTEX) {
                const uint v = tile * 32 + i;
                const OFFSET end = indptr[v + 1];
                const OFFSET begin = indptr[v] + 1;
                const OFFSET stop = end - begin > LONG_LIST ? begin + LONG_LIST : end;
                uint match = NO_VERTEX;
                for (OFFSET edge = begin; edge < stop && match == NO_VERTEX; edge += 4) {
                    uint u[4];
                    for (uint k = 0; k < 4; k++) {
                        const OFFSET nth = edge + k < stop ? edge + k : stop - 1;
                        LOAD_EDGE(u[k], nth);
                    }
                    for (uint k = 0; k < 4; k++)
                        if (match == NO_VERTEX && VISITED(u[k]))
                            match = u[k];
                }
                if (match != NO_VERTEX) {
                    parent[v] = match;
                    atomic_or(&fresh[i >> 5], 1u << (i & 31));
                    packed += PACK(1, degree[v]);
                } else if (stop < end) {
                    survivors[atomic_inc(&num_long)] = i; /* slots below `round` are free */
                }
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }

        /* What is left of long lists, one after another, by the whole work-group. */
        const uint todo_long = num_long;
        for (uint j = 0; j < todo_long; j++) {
            const uint i = survivors[j];
            const uint v = tile * 32 + i;
            const OFFSET end = indptr[v + 1];
            OFFSET edge = indptr[v] + 1 + LONG_LIST;
            if (lid == 0)
                long_parent = NO_VERTEX;
            barrier(CLK_LOCAL_MEM_FENCE);
            for (uint match = NO_VERTEX; edge < end && match == NO_VERTEX; edge += GROUP) {
                if (edge + lid < end) {
                    uint u;
                    LOAD_EDGE(u, edge + lid);
                    if (VISITED(u))
                        atomic_min(&long_parent, u);
                }
                barrier(CLK_LOCAL_MEM_FENCE);
                match = long_parent;
                barrier(CLK_LOCAL_MEM_FENCE);
            }
            if (lid == 0 && long_parent != NO_VERTEX) {
                parent[v] = long_parent;
                fresh[i >> 5] |= 1u << (i & 31);
                packed += PACK(1, degree[v]);
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (lid < TILE_WORDS && tile + lid < words)
            next_visited[tile + lid] = seen[lid] | fresh[lid];
    }

    ulong total;
    group_scan(packed, scratch, &total);
    if (lid == 0 && total)
        atom_add(counters + slot, total);
}
