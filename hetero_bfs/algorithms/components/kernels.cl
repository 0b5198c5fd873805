/* Connected components on a device. kernels.py explains labels and correctness.
 *
 * Built with tiles.cl, -DOFFSET=uint or ulong for the type of `indptr`, and -DGROUP.
 *
 *     first       uint (n,)   the first neighbour of each vertex
 *     label       uint (n,)
 *     heavy       uint (n,)   vertices with more than HEAVY_EDGES edges
 *     counters    ulong (any,)    `Counter` in device.py
 *
 * A tile is the adjacency of GROUP consecutive vertices, which a work-group processes. With
 * -DSTREAMED the device has only some tiles, one in each row. `rows` has the tile's number, and the
 * position where its entries begin in `neighbours`.
 *
 * The host launches all kernels and reads nothing between them. A kernel returns at once if
 * counters of earlier launches show that it is not needed.
 *
 * Memory may be weakly ordered. Only a compare-and-swap changes a root's label, and only to a
 * smaller vertex. All other writes are to vertices that are not roots, and these never become roots
 * again. Such a write replaces a label by a vertex further up its path. So any label that is read,
 * current or stale, is a vertex of the same component, and never a larger one. So no cycle can
 * form, and paths end. If a vertex is no longer a root, its compare-and-swap fails and returns its
 * label. */

/* Read a label that others may lower meanwhile, and write one. With -DATOMIC_PEEK, for a checker of
 * races, both are atomic. */
#ifdef ATOMIC_PEEK
#define PEEK(address) atomic_or(address, 0)
#define POKE(address, value) atomic_xchg(address, value)
#else
#define PEEK(address) (*(address))
#define POKE(address, value) (*(address) = (value))
#endif

static uint find_root(volatile __global uint *label, uint v)
{
    uint up = PEEK(label + v);
    while (up != v) {
        v = up;
        up = PEEK(label + v);
    }
    return up;
}

/* Join the trees of two vertices; return whether they were different. */
static uint link_trees(volatile __global uint *label, uint u, uint v)
{
    uint one = find_root(label, u), other = find_root(label, v);
    while (one != other) {
        const uint high = max(one, other), low = min(one, other);
        const uint held = atomic_cmpxchg(label + high, high, low);
        if (held == high)
            return 1;
        one = find_root(label, held);
        other = find_root(label, low);
    }
    return 0;
}

__kernel void hook_first(const uint n, __global const uint *first, __global uint *label,
                         volatile __global ulong *counters)
{
    uint trees = 0;
    for (uint v = get_global_id(0); v < n; v += get_global_size(0)) {
        label[v] = min(v, first[v]);
        trees += first[v] >= v;
    }
    if (trees)
        add_long(counters + TREES, trees);
}

/* Replace each vertex's label by its root. Each step writes a label, which shortens the paths of
 * other vertices, since paths may be long. */
__kernel void compress(const uint n, volatile __global uint *label, __global const ulong *counters)
{
    if (counters[HOOKS] == counters[COMPRESSED])
        return;
    for (uint v = get_global_id(0); v < n; v += get_global_size(0)) {
        uint up = PEEK(label + v);
        uint above = PEEK(label + up);
        while (above != up) {
            POKE(label + v, above);
            up = above;
            above = PEEK(label + up);
        }
    }
}

/* Find the most frequent label of GROUP vertices, by one work-group. */
__kernel void sample(const uint n, const ulong edges, __global const uint *label,
                     __global ulong *counters)
{
    __local uint roots[GROUP];
    __local uint counts[GROUP];
    const uint lid = get_local_id(0);
    roots[lid] = label[(uint)((ulong)lid * n / GROUP)];
    barrier(CLK_LOCAL_MEM_FENCE);
    uint count = 0;
    for (uint i = 0; i < GROUP; i++)
        count += roots[i] == roots[lid];
    counts[lid] = count;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lid == 0) {
        uint best = 0;
        for (uint i = 1; i < GROUP; i++)
            if (counts[i] > counts[best])
                best = i;
        counters[LARGEST] = roots[best];
        counters[ROOTS_FIRST] = (GROUP - counts[best]) * edges > (ulong)GROUP * n;
        counters[COMPRESSED] = counters[HOOKS];
    }
}

#ifdef STREAMED
#define LISTS                                                                                       \
    __global const OFFSET *indptr, __global const uint *neighbours, __global const uint *rows
#define FIRST_OF(row) IN_RANGE(rows[2 * (row)] * GROUP, n)
#define ENTRY_OF(row, v) (rows[2 * (row) + 1] + (indptr[v] - indptr[FIRST_OF(row)]))
#else
#define LISTS __global const OFFSET *indptr, __global const uint *neighbours
#define FIRST_OF(row) ((row) * GROUP)
#define ENTRY_OF(row, v) indptr[v]
#endif

/* A pass: whether it reads the `rest` instead of the roots, its number, and the number of rows. */
#define REST s0
#define PASS s1
#define NUM_ROWS s2

/* Tell whether a pass reads the neighbours of a vertex, provided that it reads any. */
static bool reads_list(uint v, uint rest, uint largest, volatile __global uint *label)
{
    const uint up = PEEK(label + v);
    return v != largest && up != largest && (rest || up == v);
}

/* Link vertices outside the largest component with their neighbours: the roots, or the `rest`. A
 * work-group takes GROUP vertices, and its work-items share all their edges. Vertices with more
 * than HEAVY_EDGES edges are left to the whole grid (`link_heavy`). */
__kernel void link_lists(const uint4 one_pass, const uint n, LISTS, __global uint *heavy,
                         volatile __global uint *label, volatile __global ulong *counters)
{
    __local uint ends[GROUP];
    __local OFFSET firsts[GROUP];
    const uint lid = get_local_id(0), largest = (uint)counters[LARGEST];
    volatile __global uint *length_of_list =
        (volatile __global uint *)(counters + HEAVY + one_pass.PASS);
    const uint num_rows = one_pass.REST || counters[ROOTS_FIRST] ? one_pass.NUM_ROWS : 0;
    ulong hooks = 0, edges = 0;
    for (uint row = get_group_id(0); row < num_rows; row += get_num_groups(0)) {
        const uint first = FIRST_OF(row), v = first + lid;
        uint degree = 0;
        if (v < n && reads_list(v, one_pass.REST, largest, label)) {
            firsts[lid] = ENTRY_OF(row, v);
            degree = (uint)(indptr[v + 1] - indptr[v]);
            edges += degree;
            if (degree > HEAVY_EDGES) {
                heavy[next_place(length_of_list)] = row * GROUP + lid;
                degree = 0;
            }
        }
        ends[lid] = degree;
        const uint total = running_sums(ends);
        for (uint e = lid; e < total; e += GROUP) {
            const uint owner = owner_of(ends, e);
            const OFFSET k = firsts[owner] + place_in_list(ends, owner, e);
            hooks += link_trees(label, first + owner, neighbours[k]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (hooks)
        add_long(counters + HOOKS, hooks);
    if (edges)
        add_long(counters + EDGES, edges);
}

/* Link the vertices that `link_lists` left, by the whole grid. */
__kernel void link_heavy(const uint4 one_pass, const uint n, LISTS, __global const uint *heavy,
                         volatile __global uint *label, volatile __global ulong *counters)
{
    const uint count = (uint)counters[HEAVY + one_pass.PASS];
    ulong hooks = 0;
    for (uint i = 0; i < count; i++) {
        const uint row = IN_RANGE(heavy[i] / GROUP, one_pass.NUM_ROWS);
        const uint v = IN_RANGE(FIRST_OF(row) + heavy[i] % GROUP, n);
        const OFFSET begin = ENTRY_OF(row, v), last = begin + (indptr[v + 1] - indptr[v]);
        for (OFFSET k = begin + get_global_id(0); k < last; k += get_global_size(0))
            hooks += link_trees(label, v, neighbours[k]);
    }
    if (hooks)
        add_long(counters + HOOKS, hooks);
}

#ifdef STREAMED
/* Mark the tiles with a vertex that has edges and whose neighbours a pass reads. */
__kernel void choose_tiles(const uint4 one_pass, const uint n, __global const OFFSET *indptr,
                           __global uchar *chosen, volatile __global uint *label,
                           volatile __global ulong *counters)
{
    __local uint marked;
    const uint largest = (uint)counters[LARGEST];
    const bool any = one_pass.REST || counters[ROOTS_FIRST];
    for (uint tile = get_group_id(0); tile < one_pass.NUM_ROWS; tile += get_num_groups(0)) {
        const uint v = tile * GROUP + get_local_id(0);
        const bool has_list = v < n && indptr[v] < indptr[v + 1];
        const bool wanted = any && has_list && reads_list(v, one_pass.REST, largest, label);
        mark_block(wanted, &marked, chosen + tile);
    }
}

/* Empty the list of heavy vertices, before other tiles are linked. */
__kernel void end_heavy(const uint4 one_pass, volatile __global ulong *counters)
{
    counters[HEAVY + one_pass.PASS] = 0;
}
#endif
