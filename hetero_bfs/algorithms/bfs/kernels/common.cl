/* Shared by the other files: the packed counter, sums over a work-group, the edges in parts.
 *
 * Build options: OFFSET (uint or ulong: an offset into the edge array), GROUP (work-items per
 * work-group, a power of two), EDGE_BITS (low bits of the counter that hold edges), NUM_PARTS
 * and PART_SHIFT (below), ITEMS, VERTICES_PER_ITEM, CACHED_WORDS, SHORT_LIST, MOST_OWN_WORK, TEAM
 * (bottom_up.cl), ROOM, SINGLE_GROUP_EDGES, COOPERATIVE_GROUPS, COOPERATIVE_EDGES
 * (cooperative.cl), LOG_ROWS (steps.cl), ONE_LAUNCH for `search`, ONE_STEP for `step`
 * (level_loop.cl), DIRECTED if a vertex may lack out-edges, ATOMIC_PEEK and TESTS for tests.
 * Numbers that Python has too come from built_programs.py. Needs atomics.cl and vendor.cl. */

#define EDGES_OF(packed) ((packed) & (((ulong)1 << EDGE_BITS) - 1))
#define COUNT_OF(packed) ((packed) >> EDGE_BITS)
#define PACK(count, edges) (((ulong)(count) << EDGE_BITS) | (ulong)(edges))

/* Set in the counter of a bottom-up level that left lists (bottom_up.cl). Vertices and edges need
 * none of these bits; a barrier across the work-groups uses the highest one (grid.cl). */
#ifdef ONE_LAUNCH
#define HAS_REST ((ulong)1 << 62)
#else
#define HAS_REST ((ulong)1 << 63)
#endif

#ifdef DIRECTED
#define QUEUEABLE(degree) ((degree) > 0)
#else
#define QUEUEABLE(degree) 1
#endif

/* A plain read before a claim. Its value may be stale; the atomic operation that follows decides.
 * Race checkers report it as an error, and OpenCL C 1.2 has no atomic read. -DATOMIC_PEEK is for
 * these checkers. */
#ifdef ATOMIC_PEEK
#define PEEK(address) atomic_or(address, 0)
#else
#define PEEK(address) (*(address))
#endif

/* The position of the lowest set bit of a word that is not zero. */
#define LOWEST(word) (31 - clz((word) & -(word)))

/* Exclusive prefix sum over the work-group, in rows of SCAN_ROW values. `scratch` has SCAN_SIZE
 * items: GROUP values and one per row. `total` returns the sum of all values. */
#define SCAN_ROW 16
#define SCAN_ROWS (GROUP / SCAN_ROW)
#define SCAN_SIZE (GROUP + SCAN_ROWS)

#ifdef HAS_SHUFFLES
/* Inclusive prefix sum over a warp. */
static ulong warp_scan(ulong value)
{
    const uint lane = get_local_id(0) & 31;
    ulong sum = value;
#pragma unroll
    for (uint distance = 1; distance < 32; distance <<= 1) {
        const ulong other = (ulong)shuffle_up((uint)(sum >> 32), distance) << 32 |
                            shuffle_up((uint)sum, distance);
        sum += lane >= distance ? other : 0;
    }
    return sum;
}

static ulong group_scan(ulong value, __local ulong *scratch, ulong *total)
{
    const uint lid = get_local_id(0), lane = lid & 31, warp = lid >> 5;
    const ulong sum = warp_scan(value);
    ulong before = 0, all = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane == 31)
        scratch[warp] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (uint i = 0; i < GROUP / 32; i++) {
        const ulong other = scratch[i];
        before += i < warp ? other : 0;
        all += other;
    }
    *total = all;
    return before + sum - value;
}

/* Add; return the old number. All work-items call this together, and a warp does one atomic. */
static ulong fetch_add_together(volatile __global ulong *address, ulong value)
{
    ulong sum = warp_scan(value), before = 0;
    if ((get_local_id(0) & 31) == 31 && sum)
        before = fetch_add_long(address, sum);
    before = (ulong)shuffle_from((uint)(before >> 32), 31) << 32 | shuffle_from((uint)before, 31);
    return before + sum - value;
}
#else
static ulong group_scan(ulong value, __local ulong *scratch, ulong *total)
{
    const uint lid = get_local_id(0);
    const uint row = lid / SCAN_ROW;
    barrier(CLK_LOCAL_MEM_FENCE);
    scratch[lid] = value;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lid < SCAN_ROWS) {
        ulong sum = 0;
        for (uint i = 0; i < SCAN_ROW; i++)
            sum += scratch[lid * SCAN_ROW + i];
        scratch[GROUP + lid] = sum;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    ulong before = 0, all = 0;
    for (uint i = 0; i < SCAN_ROWS; i++) {
        const ulong sum = scratch[GROUP + i];
        before += i < row ? sum : 0;
        all += sum;
    }
    for (uint i = row * SCAN_ROW; i < lid; i++)
        before += scratch[i];
    *total = all;
    return before;
}

static ulong fetch_add_together(volatile __global ulong *address, ulong value)
{
    return value ? fetch_add_long(address, value) : 0;
}
#endif

/* The edge array, cut into buffers of 2^PART_SHIFT edges (device_memory.py; Zhang et al. 2018,
 * section 4.3). NUM_PARTS is up to 32. PARAMS(name) declares the parts as kernel parameters,
 * ARGS(name) names them as arguments. */

#if NUM_PARTS == 1
typedef struct {
    __global const uint *part[1];
} Edges;

#define DECLARE_EDGES(name) const Edges name = {{ARGS(name)}};

static uint load_edge(const Edges *edges, OFFSET edge)
{
    return edges->part[0][edge];
}
#else
/* The addresses of the parts are in local memory. So an edge takes one read there and one load, and
 * neighbouring work-items can share that load. */
typedef struct {
    __global const uint *__local const *part;
} Edges;

/* Declare an Edges called `name` from its parameters. A barrier must follow. */
#define DECLARE_EDGES(name)                                                                    \
    __global const uint *__local name##_parts[NUM_PARTS];                                      \
    if (get_local_id(0) == 0) {                                                                \
        __global const uint *const parts[NUM_PARTS] = {ARGS(name)};                            \
        for (uint i = 0; i < NUM_PARTS; i++)                                                   \
            name##_parts[i] = parts[i];                                                        \
    }                                                                                          \
    const Edges name = {name##_parts};

static uint load_edge(const Edges *edges, OFFSET edge)
{
    return edges->part[edge >> PART_SHIFT][edge & (((OFFSET)1 << PART_SHIFT) - 1)];
}
#endif

/* Starts and ends a search, converts a frontier from bitmap to queue, and merges parents.
 * Twin of level.py, which describes the arrays. */

/* The data of a step (steps.cl), and this work-group's share of it. The first array of each pair
 * belongs to the frontier of this level, the other one to the frontier of the next level. */
typedef struct {
    uint group, groups; /* the share is number `group` of `groups` */
    __global uint *parent, *visited, *other_visited, *queue, *other_queue;
    __global OFFSET *offsets, *other_offsets;
    volatile __global ulong *counter; /* first word: vertices and edges that the step finds; second:
                                       * lists that a bottom-up level leaves, and their edges */
    __global uint *left_vertex;              /* the vertex of each list that was left, */
    __global OFFSET *left_before, *left_end; /* the edges left before it, and its end */
    __local ulong *scratch, *base;
} Step;

/* Make `source` the only visited vertex and the frontier. */
static void start(const Step *step, uint words, uint source)
{
    for (uint word = step->group * GROUP + get_local_id(0); word < words;
         word += step->groups * GROUP)
        step->visited[word] = word == source >> 5 ? 1u << (source & 31) : 0;
    if (step->group == 0 && get_local_id(0) == 0) {
        step->parent[source] = source;
        step->queue[0] = source;
        step->offsets[0] = 0;
    }
}

/* Vertices and edges of a word's bits, packed, without vertices that do not go into a queue.
 * `common` is the degree of all 32 vertices, or MIXED_DEGREES. */
static ulong count_word(uint word, uint bits, uint common, __global const uint *degree)
{
    if (common != MIXED_DEGREES)
        return QUEUEABLE(common) ? PACK(popcount(bits), (ulong)popcount(bits) * common) : 0;
    ulong packed = 0;
    for (; bits; bits &= bits - 1) {
        const uint d = degree[word * 32 + LOWEST(bits)];
        packed += QUEUEABLE(d) ? PACK(1, d) : 0;
    }
    return packed;
}

/* Queue the vertices that the last level visited; one word of the bitmap per work-item. */
static void bitmap_to_queue(const Step *step, uint words, __global const uint *degree,
                            __global const uint *word_degree)
{
    __global const uint *visited = step->visited, *old = step->other_visited;
    __global uint *queue = step->queue;
    __global OFFSET *offsets = step->offsets;
    __local ulong *base = step->base;
    for (uint chunk = step->group * GROUP; chunk < words; chunk += step->groups * GROUP) {
        const uint word = chunk + get_local_id(0);
        uint fresh = word < words ? visited[word] & ~old[word] : 0;
        const uint common = fresh ? word_degree[word] : MIXED_DEGREES;
        ulong total;
        const ulong before =
            group_scan(count_word(word, fresh, common, degree), step->scratch, &total);
        if (get_local_id(0) == 0)
            *base = total ? fetch_add_long(step->counter, total) : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        size_t place = COUNT_OF(*base + before);
        OFFSET offset = (OFFSET)EDGES_OF(*base + before);
        for (; fresh; fresh &= fresh - 1) {
            const uint v = word * 32 + LOWEST(fresh);
            const uint d = common == MIXED_DEGREES ? degree[v] : common;
            if (QUEUEABLE(d)) {
                queue[place] = v;
                offsets[place] = offset;
                place++;
                offset += d;
            }
        }
    }
}

/* Set the parents of unvisited vertices to NO_VERTEX. */
static void invalidate_stale_parents(const Step *step, uint n, uint words)
{
    for (uint word = step->group * GROUP + get_local_id(0); word < words;
         word += step->groups * GROUP) {
        uint rest = ~step->visited[word];
        if (word == words - 1 && n & 31)
            rest &= (1u << (n & 31)) - 1;
        for (; rest; rest &= rest - 1)
            step->parent[word * 32 + LOWEST(rest)] = NO_VERTEX;
    }
}

/* Write parents that the host found, as pairs of a vertex and its parent. */
__kernel void scatter_parents(const uint count, __global const uint2 *restrict pairs,
                              __global uint *restrict parent)
{
    for (size_t i = get_global_id(0); i < count; i += get_global_size(0))
        parent[pairs[i].x] = pairs[i].y;
}

/* Write parents that the host found: `found` has the parents of `count` vertices from `first` on.
 * Only a visited vertex without a parent takes one, since others may be of earlier searches. */
__kernel void merge_parents(const uint count, const uint first,
                            __global const uint *restrict visited,
                            __global const uint *restrict found, __global uint *restrict parent)
{
    for (size_t i = get_global_id(0); i < count; i += get_global_size(0)) {
        const size_t v = first + i;
        if (parent[v] == NO_VERTEX && visited[v >> 5] >> (v & 31) & 1)
            parent[v] = found[i];
    }
}
