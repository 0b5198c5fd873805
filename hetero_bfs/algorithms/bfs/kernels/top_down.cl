/* A top-down level of a search on an OpenCL device, and the graph for both directions.
 * level.py describes the arrays.
 *
 * Work-groups get equal numbers of edges. A work-group takes a tile, which is up to TILE
 * consecutive edges of the frontier. It finds the queue entries of these edges by binary search.
 * Consecutive work-items take consecutive edges. So many work-groups share the edges of a hub. */

#define TILE (GROUP * ITEMS) /* edges, below PAST_TILE */
#define PAST_TILE 0xFFFF

/* Messages between ranks, one word each: a top-down level of a rank sends and receives them. ranks.py
 * describes them. */
#ifdef RANKS

typedef struct {
    __global const uint *owner_of_line, *first_column;
    __global ulong *words;          /* for other ranks, starting at each rank's first column */
    volatile __global uint *counts; /* number of words for each rank */
} Sent;

/* Convert the other ranks' vertices among the targets of a tile's edges to words, and remove them;
 * the whole work-group calls this. Own vertices are below `n`. There are four functions with
 * barriers between them, since drivers fail on a function that has a barrier and takes a private
 * array. */
static void clear_counts(__local uint *counts)
{
    for (uint rank = get_local_id(0); rank < RANKS; rank += GROUP)
        counts[rank] = 0;
}

/* Find each target's owner (RANKS for this rank) and its position among the work-group's words for
 * that owner. */
static void count_words(const Sent *sent, uint n, const uint *target, uint *owner, uint *place,
                        __local uint *counts)
{
#pragma unroll
    for (uint k = 0; k < ITEMS; k++) {
        owner[k] = RANKS;
        if (target[k] != NO_VERTEX && target[k] >= n) {
            owner[k] = sent->owner_of_line[target[k] >> LINE_SHIFT];
            place[k] = atomic_inc(&counts[owner[k]]);
        }
    }
}

/* Replace the counts by the positions where the work-group's words begin. */
static void place_words(const Sent *sent, __local uint *counts)
{
    for (uint rank = get_local_id(0); rank < RANKS; rank += GROUP)
        if (counts[rank])
            counts[rank] = atomic_add(&sent->counts[rank], counts[rank]);
}

static void write_words(const Sent *sent, uint *target, const uint *source, const uint *owner,
                        const uint *place, __local const uint *counts)
{
#pragma unroll
    for (uint k = 0; k < ITEMS; k++)
        if (owner[k] < RANKS) {
            const uint first = sent->first_column[owner[k]];
            sent->words[first + counts[owner[k]] + place[k]] =
                (ulong)(target[k] - first) << 32 | source[k];
            target[k] = NO_VERTEX;
        }
}

/* Visit the vertices that another rank found; its columns begin at `first`. The next frontier
 * already has `before` (packed) vertices and edges; `counter` counts those that are added. */
__kernel GROUP_SIZE void receive_words(const uint count, const uint first, const ulong before,
                                       __global const ulong *restrict words,
                                       __global const uint *restrict degree,
                                       __global uint *visited, __global uint *parent,
                                       __global uint *queue, __global OFFSET *offsets,
                                       volatile __global ulong *counter)
{
    __local ulong scratch[SCAN_SIZE], base;
    const uint lid = get_local_id(0);
    for (uint chunk = get_group_id(0) * GROUP; chunk < count; chunk += get_global_size(0)) {
        uint v = 0, length = 0;
        ulong packed = 0, total;
        if (chunk + lid < count) {
            v = words[chunk + lid] >> 32;
            if (!(atomic_or(&visited[v >> 5], 1u << (v & 31)) >> (v & 31) & 1)) {
                parent[v] = first + (uint)words[chunk + lid];
                length = degree[v];
                packed = QUEUEABLE(length) ? PACK(1, length) : 0;
            }
        }
        const ulong others = group_scan(packed, scratch, &total);
        if (lid == 0)
            base = before + (total ? fetch_add_long(counter, total) : 0);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (packed) {
            queue[COUNT_OF(base + others)] = v;
            offsets[COUNT_OF(base + others)] = (OFFSET)EDGES_OF(base + others);
        }
    }
}
#endif

/* A graph on the device; see SearchGraph. For each word of the bitmap, `word_degree` has the common
 * degree of the 32 vertices, or MIXED_DEGREES. */
typedef struct {
    uint n, words;
    __global const OFFSET *indptr, *backward_indptr;
    __global const uint *degree, *word_degree, *first;
    Edges forward, backward;
#ifdef MASKED
    __global const uint *mask; /* bitmap of vertices that count as visited but are not parents */
#endif
#ifdef RANKS
    Sent sent;
#endif
} Graph;

/* A vertex whose degree can be read: `v`, or 0 if `v` belongs to another rank. */
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
    uint sent[RANKS];
#endif
} TopDown;

/* Store an entry in `bounds` if it has the first or the last edge. */
static void note_bounds(uint entry, OFFSET begin, OFFSET end, OFFSET first, OFFSET last,
                        __local uint *bounds)
{
    if (begin <= first && first < end)
        bounds[0] = entry;
    if (begin <= last && last < end)
        bounds[1] = entry;
}

/* Find the queue entries of a tile's first and last edge, by the whole work-group. `edges` is the
 * end of the last of the `count` entries. While there are many candidate entries, each work-item
 * tests one range of them, and one range remains. Then they test each of the remaining entries.
 * Small queues have a loop of their own, and not an `else`: PoCL 5 ends the process otherwise. */
#define FEW_ENTRIES (8 * GROUP)

static void find_bounds(OFFSET first, OFFSET last, uint count, OFFSET edges,
                        __global const OFFSET *offsets, __local uint *bounds)
{
    const uint lid = get_local_id(0);
    uint range = count > TILE ? count : 0, from[2] = {0, 0};
    while (range > FEW_ENTRIES) { /* narrow both down to a range */
        range = (range + GROUP - 1) / GROUP;
#pragma unroll
        for (uint b = 0; b < 2; b++) {
            const OFFSET wanted = b ? last : first;
            const uint begin = from[b] + lid * range;
            if (begin < count && offsets[begin] <= wanted &&
                (begin + range >= count || offsets[begin + range] > wanted))
                bounds[b] = begin;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
        for (uint b = 0; b < 2; b++)
            from[b] = bounds[b];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const uint past = min(from[1] + range, count);
    for (uint i = lid; i < (count <= TILE ? count : 0); i += GROUP)
        note_bounds(i, offsets[i], i + 1 < count ? offsets[i + 1] : edges, first, last, bounds);
    if (count > TILE) {
        for (uint next = from[0] + lid; next < past; next += FEW_ENTRIES) {
            OFFSET begin[FEW_ENTRIES / GROUP], end[FEW_ENTRIES / GROUP];
#pragma unroll
            for (uint k = 0; k < FEW_ENTRIES / GROUP; k++) { /* all reads at once */
                const uint i = next + k * GROUP;
                begin[k] = i < past ? offsets[i] : edges;
                end[k] = i + 1 < count ? offsets[i + 1] : edges;
            }
#pragma unroll
            for (uint k = 0; k < FEW_ENTRIES / GROUP; k++)
                note_bounds(next + k * GROUP, begin[k], end[k], first, last, bounds);
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

/* Claim a vertex unless `before` says that it is visited; return its word before the claim. */
static uint claim(uint v, uint before, __global uint *visited)
{
    const uint bit = 1u << (v & 31);
    return before & bit ? before : atomic_or(&visited[v >> 5], bit);
}

#ifdef HAS_SHUFFLES
/* A warp claims run by run if its vertices are in at most this number of words of the bitmap. */
#define RUN_WORDS 8

/* Like `claim`, for a whole warp at once. Long neighbour lists begin with the hubs, so a warp's
 * vertices there are close together. Then one atomic operation claims a run of vertices in one
 * word. All work-groups claim hubs, which are in few words, so fewer operations conflict. */
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
    const uint earlier = shuffle_up(bits, 1); /* two lists may have the same vertex */
    uint was = 0;
    if (lane == end && bits)
        was = atomic_or(&visited[word], bits);
    return before | shuffle_from(was, end) | (lane > begin ? earlier : 0);
}
#else
#define claim_together claim
#endif

/* Push the `edges` edges of the `count` vertices in the queue.
 * If one tile per work-group is enough, the level is `eager`: its time is the latency of dependent
 * reads. So all work-groups take a share, claim without reading first, and read the degrees of all
 * ends before they know which ones they need. */
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
        find_bounds(tile, tile + size - 1, count, edges, offsets, mine->bounds);
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
        for (uint k = 0; k < ITEMS; k++) /* all claims overlap */
            if (k < items)
                before[k] = claim_together(target[k], before[k], visited);
#pragma unroll
        for (uint k = 0; k < ITEMS; k++)
            target[k] = before[k] >> (target[k] & 31) & 1 ? NO_VERTEX : target[k];
#ifdef RANKS
        uint owner[ITEMS], position[ITEMS];
        clear_counts(mine->sent);
        barrier(CLK_LOCAL_MEM_FENCE);
        count_words(&graph->sent, graph->n, target, owner, position, mine->sent);
        barrier(CLK_LOCAL_MEM_FENCE);
        place_words(&graph->sent, mine->sent);
        barrier(CLK_LOCAL_MEM_FENCE);
        write_words(&graph->sent, target, source, owner, position, mine->sent);
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
            *base = total ? fetch_add_long(step->counter, total) : 0;
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
