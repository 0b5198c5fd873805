/* A top-down level of a search on an OpenCL device, and the graph for both directions.
 * level.py describes the arrays.
 *
 * Work-groups get equal numbers of edges. A work-group takes a tile, which is up to TILE
 * consecutive edges of the frontier. It finds the queue entries of these edges by binary search.
 * Its work-items take the edges by turns. So many work-groups share the edges of a hub.
 */

#define TILE (GROUP * ITEMS) /* edges, below PAST_TILE */
#define PAST_TILE 0xFFFF

/* A plain read before a claim. What it reads may be stale; the atomic operation that follows
 * decides. Race checkers report it as an error, and OpenCL C 1.2 has no atomic read, so for them
 * there is -DATOMIC_PEEK. */
#ifdef ATOMIC_PEEK
#define PEEK(address) atomic_or(address, 0)
#else
#define PEEK(address) (*(address))
#endif

/* A graph on the device; see SearchGraph. For each word of the bitmap, `word_degree` has the
 * degree of all 32 vertices, or MIXED_DEGREES if they differ. */
typedef struct {
    uint n, words;
    __global const OFFSET *indptr, *backward_indptr;
    __global const uint *degree, *word_degree, *first;
    Edges forward, backward;
#ifdef MASKED
    __global const uint *mask; /* bitmap of vertices that are visited and are no parents */
#endif
#ifdef RANKS
    Told told;
#endif
} Graph;

/* The number of a vertex of which there is a degree; a rank has none of other ranks' vertices. */
#ifdef RANKS
#define WITH_DEGREE(graph, v) ((v) < (graph)->n ? (v) : 0)
#else
#define WITH_DEGREE(graph, v) (v)
#endif

typedef struct {
    uint bounds[2];
    ushort begin[TILE]; /* first edge of each queue entry, within the tile */
    OFFSET shift[TILE]; /* edge in the tile + shift = edge in the graph */
#ifdef RANKS
    uint told[RANKS];
#endif
} TopDown;

/* Find the queue entries of a tile's first and last edge, by the whole work-group. In each round
 * every work-item looks at a range of its own, and one range is left. Once few entries are left,
 * they look at all of these. */
#define FEW_ENTRIES (8 * GROUP)

static void find_bounds(OFFSET first, OFFSET last, uint count, __global const OFFSET *offsets,
                        __local uint *bounds, __local ulong *scratch)
{
    const uint lid = get_local_id(0);
    uint range = count;
    if (lid < 2)
        bounds[lid] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    while (range > FEW_ENTRIES) { /* narrow both down to a range */
        range = (range + GROUP - 1) / GROUP;
        uint begin[2];
#pragma unroll
        for (uint b = 0; b < 2; b++)
            begin[b] = bounds[b] + lid * range;
        barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
        for (uint b = 0; b < 2; b++) {
            const OFFSET wanted = b ? last : first;
            if (begin[b] < count && offsets[begin[b]] <= wanted &&
                (begin[b] + range >= count || offsets[begin[b] + range] > wanted))
                bounds[b] = begin[b];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const uint from = bounds[0], past = min(bounds[1] + range, count);
    uint before[2] = {0, 0}; /* entries that begin no later than `first`, than `last` */
    for (uint next = from + lid; next < past; next += FEW_ENTRIES) {
        OFFSET offset[FEW_ENTRIES / GROUP];
#pragma unroll
        for (uint k = 0; k < FEW_ENTRIES / GROUP; k++) /* all reads at once */
            offset[k] = next + k * GROUP < past ? offsets[next + k * GROUP] : last + 1;
#pragma unroll
        for (uint k = 0; k < FEW_ENTRIES / GROUP; k++) {
            before[0] += offset[k] <= first;
            before[1] += offset[k] <= last;
        }
    }
    ulong total;
    group_scan((ulong)before[1] << 32 | before[0], scratch, &total);
    if (lid < 2)
        bounds[lid] = from + (uint)(total >> 32 * lid) - 1;
    barrier(CLK_LOCAL_MEM_FENCE);
}

/* Claim a vertex unless `before` says that it is visited; returns what its word was before. */
static uint claim(uint v, uint before, __global uint *visited)
{
    const uint bit = 1u << (v & 31);
    return before & bit ? before : atomic_or(&visited[v >> 5], bit);
}

#ifdef NVIDIA
/* Words of the bitmap that a warp's vertices lie in, at most, if it claims run by run. */
#define RUN_WORDS 8

/* Claim as `claim` does, a whole warp at once. Long lists begin with the hubs, so there a warp's
 * vertices lie side by side. Then one atomic operation claims a run of vertices in one word. All
 * work-groups claim hubs, whose words are few, so fewer operations wait for each other. */
static uint claim_together(uint v, uint before, __global uint *visited)
{
    const uint word = v >> 5, bit = 1u << (v & 31), lane = get_local_id(0) & 31;
    if (shuffle_from(word, 31) - shuffle_from(word, 0) >= RUN_WORDS)
        return claim(v, before, visited);
    const uint previous = shuffle_up(word, 1); /* by all lanes, so not in a condition */
    const uint heads = ballot(lane == 0 || word != previous);
    const uint so_far = NO_VERTEX >> (31 - lane), later = heads & ~so_far;
    const uint begin = 31 - clz(heads & so_far), end = later ? 30 - clz(later & -later) : 31;
    uint bits = before & bit ? 0 : bit; /* of the run, up to this lane */
#pragma unroll
    for (uint distance = 1; distance < 32; distance <<= 1) {
        const uint other = shuffle_up(bits, distance);
        bits |= lane >= begin + distance ? other : 0;
    }
    const uint earlier = shuffle_up(bits, 1); /* which claim the same vertex, if lists meet here */
    uint was = 0;
    if (lane == end && bits)
        was = atomic_or(&visited[word], bits);
    return before | shuffle_from(was, end) | (lane > begin ? earlier : 0);
}
#else
#define claim_together claim
#endif

/* Push the `edges` edges of the `count` vertices in the queue.
 * If one tile for each work-group is enough, the level is `eager`. Then its time is the latency of
 * dependent reads. So all work-groups take a share, claim without reading first, and read the
 * degrees of all ends before they know which are needed. */
static void top_down(const Step *step, const Graph *graph, uint count, OFFSET edges,
                     __local TopDown *mine)
{
    const uint lid = get_local_id(0), group = step->group, groups = step->groups;
    __global const uint *queue = step->queue;
    __global const OFFSET *offsets = step->offsets;
    __global uint *visited = step->visited, *parent = step->parent;
    __global uint *next_queue = step->other_queue;
    __global OFFSET *next_offsets = step->other_offsets;
    __local ulong *scratch = step->scratch, *base = step->base;
    const bool eager = edges <= (OFFSET)groups * TILE;
    const OFFSET share = (edges + groups * GROUP - 1) / (groups * GROUP);
    const uint items = eager ? (uint)share : ITEMS, tile_size = GROUP * items;
    for (OFFSET tile = (OFFSET)group * tile_size; tile < edges;
         tile += (OFFSET)groups * tile_size) {
        const uint size = (uint)min((OFFSET)tile_size, edges - tile);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (count > TILE) {
            find_bounds(tile, tile + size - 1, count, offsets, mine->bounds, scratch);
        } else {
            for (uint i = lid; i < count; i += GROUP) {
                const OFFSET begin = offsets[i], end = i + 1 < count ? offsets[i + 1] : edges;
#pragma unroll
                for (uint b = 0; b < 2; b++) {
                    const OFFSET wanted = tile + b * (size - 1);
                    if (begin <= wanted && wanted < end)
                        mine->bounds[b] = i;
                }
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        const uint first = mine->bounds[0];
        const uint entries = mine->bounds[1] - first + 1;
        for (uint i = lid; i < entries; i += GROUP) {
            const OFFSET offset = offsets[first + i];
            mine->begin[i] = offset <= tile ? 0 : (ushort)min(offset - tile, (OFFSET)PAST_TILE);
            mine->shift[i] = graph->indptr[queue[first + i]] - offset + tile;
        }
        uint top_step = 1;
        while (top_step < entries)
            top_step <<= 1;
        barrier(CLK_LOCAL_MEM_FENCE);

        uint target[ITEMS], source[ITEMS], entry[ITEMS], before[ITEMS], length[ITEMS];
#pragma unroll
        for (uint k = 0; k < ITEMS; k++)
            entry[k] = 0;
        for (uint stride = top_step >> 1; stride; stride >>= 1) { /* all searches at once */
#pragma unroll
            for (uint k = 0; k < ITEMS; k++) {
                const uint next = entry[k] + stride;
                if (k < items && next < entries && mine->begin[next] <= k * GROUP + lid)
                    entry[k] = next;
            }
        }
#pragma unroll
        for (uint k = 0; k < ITEMS; k++) {
            const uint edge = k * GROUP + lid;
            target[k] = NO_VERTEX;
            if (edge < size) {
                target[k] = load_edge(&graph->forward, mine->shift[entry[k]] + edge);
                source[k] = queue[first + entry[k]];
            }
        }
#pragma unroll
        for (uint k = 0; k < ITEMS; k++) {
            before[k] = target[k] == NO_VERTEX ? NO_VERTEX : 0;
            if (eager && k < items)
                length[k] = graph->degree[before[k] ? 0 : WITH_DEGREE(graph, target[k])];
            else if (!before[k])
                before[k] = PEEK(&visited[target[k] >> 5]);
        }
#pragma unroll
        for (uint k = 0; k < ITEMS; k++) /* all claims at once: nothing waits for the first */
            if (k < items)
                before[k] = claim_together(target[k], before[k], visited);
#pragma unroll
        for (uint k = 0; k < ITEMS; k++)
            target[k] = before[k] >> (target[k] & 31) & 1 ? NO_VERTEX : target[k];
#ifdef RANKS
        tell_owners(&graph->told, graph->n, target, source, mine->told);
#endif
        ulong packed = 0, total;
#pragma unroll
        for (uint k = 0; k < ITEMS; k++) {
            if (target[k] != NO_VERTEX) {
                parent[target[k]] = source[k];
                if (!eager)
                    length[k] = graph->degree[target[k]];
                packed += QUEUEABLE(length[k]) ? PACK(1, length[k]) : 0;
            }
        }
        const ulong others = group_scan(packed, scratch, &total);
        if (lid == 0)
            *base = total ? atom_add(step->counter, total) : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        size_t place = COUNT_OF(*base + others);
        OFFSET offset = (OFFSET)EDGES_OF(*base + others);
#pragma unroll
        for (uint k = 0; k < ITEMS; k++)
            if (target[k] != NO_VERTEX && QUEUEABLE(length[k])) {
                next_queue[place] = target[k];
                next_offsets[place] = offset;
                place++;
                offset += length[k];
            }
    }
}
