/* Levels of a search whose edges stay on the host and stream through the device in parts
 * (devices/opencl_stream.py); all that is kept per vertex is resident, encoded as bfs.py says.
 *
 * A level first marks in `needed`, one bit each, the blocks of 2^block_shift edges that it will
 * read, then reads them part by part, as they arrive. Top-down needs the lists of the frontier's
 * vertices, given as a bitmap here. Bottom-up looks at first neighbours and the resident heads of
 * lists before it marks what is left of the lists of vertices that found nothing.
 *
 * A part is shared by edges: a work-item takes SEGMENT edges, finds in `owner` (the vertex that
 * has the first edge of each block) and by binary search whose they are, and walks on from there.
 * Hubs are spread over many work-items by that, and nothing is kept in local memory: the bus is
 * what bounds these levels. Blocks that are not marked may hold anything; nobody reads them.
 *
 * Needs common.cl and frontier.cl. Graph arguments are the forward or the backward lists.
 */

#define SEGMENT 32 /* edges; a block has at least as many */
#define IS_SET(bitmap, v) ((bitmap)[(v) >> 5] >> ((v) & 31) & 1)

/* See bfs.cl. */
#ifndef PEEK
#ifdef ATOMIC_PEEK
#define PEEK(address) atomic_or(address, 0)
#else
#define PEEK(address) (*(address))
#endif
#endif

/* Beginning and ending a search, and turning bitmaps into queues. */

__kernel void stream_start(const uint words, const uint root, __global uint *visited,
                           __global uint *parent, __global uint *queue, __global OFFSET *offsets)
{
    start(get_group_id(0), get_num_groups(0), words, root, visited, parent, queue, offsets);
}

__kernel void stream_forget(const uint n, const uint words, __global const uint *visited,
                            __global uint *parent)
{
    forget_stale_parents(get_group_id(0), get_num_groups(0), n, words, visited, parent);
}

/* Queue the vertices that are in `visited` and not in `old`. */
__kernel GROUP_SIZE void stream_queue(const uint words, __global const uint *visited,
                                      __global const uint *old, __global const uint *degree,
                                      __global const uint *word_degree,
                                      volatile __global ulong *counter, __global uint *queue,
                                      __global OFFSET *offsets)
{
    __local ulong scratch[SCAN_SIZE], base;
    bitmap_to_queue(get_group_id(0), get_num_groups(0), words, visited, old, degree, word_degree,
                    counter, queue, offsets, scratch, &base);
}

/* Count the vertices that are in `visited` and not in `old`, also those that no queue takes. */
__kernel GROUP_SIZE void stream_count(const uint words, __global const uint *visited,
                                      __global const uint *old, __global const uint *degree,
                                      __global const uint *word_degree,
                                      volatile __global ulong *counter)
{
    __local ulong scratch[SCAN_SIZE];
    ulong packed = 0, total;
    for (size_t word = get_global_id(0); word < words; word += get_global_size(0)) {
        const uint fresh = visited[word] & ~old[word];
        if (fresh) {
            const ulong counted = count_word((uint)word, fresh, word_degree[word], degree);
            packed += PACK(popcount(fresh), EDGES_OF(counted));
        }
    }
    group_scan(packed, scratch, &total);
    if (get_local_id(0) == 0 && total)
        atom_add(counter, total);
}

/* The frontier as a bitmap, from a queue; the bitmap is all zeros before. */
__kernel void stream_frontier_of_queue(__global const uint *queue, volatile __global uint *frontier,
                                       const uint count)
{
    for (size_t i = get_global_id(0); i < count; i += get_global_size(0))
        atomic_or(frontier + (queue[i] >> 5), 1u << (queue[i] & 31));
}

/* The frontier as a bitmap, from what bottom-up left. */
__kernel void stream_frontier_of_bitmap(const uint words, __global const uint *visited,
                                        __global const uint *old, __global uint *frontier)
{
    for (size_t word = get_global_id(0); word < words; word += get_global_size(0))
        frontier[word] = visited[word] & ~old[word];
}

/* Finding out what a level needs. */

/* Mark the blocks of edges [begin, end). */
static void mark_blocks(OFFSET begin, OFFSET end, uint block_shift, volatile __global uint *needed)
{
    if (begin >= end)
        return;
    OFFSET block = begin >> block_shift;
    const OFFSET last = (end - 1) >> block_shift;
    while (block <= last) {
        const OFFSET stop = min(block | 31, last);
        const uint mask = NO_VERTEX >> (31 - (uint)(stop - block)) << (uint)(block & 31);
        if (~PEEK(needed + (block >> 5)) & mask)
            atomic_or(needed + (block >> 5), mask);
        block = stop + 1;
    }
}

/* Mark the lists of the frontier. */
__kernel void stream_mark(const uint words, __global const OFFSET *indptr,
                          __global const uint *frontier, const uint block_shift,
                          volatile __global uint *needed)
{
    for (size_t word = get_global_id(0); word < words; word += get_global_size(0))
        for (uint rest = frontier[word]; rest; rest &= rest - 1) {
            const size_t v = word * 32 + LOWEST(rest);
            mark_blocks(indptr[v], indptr[v + 1], block_shift, needed);
        }
}

/* Look at the first neighbours of unvisited vertices, and at the others that are resident: column
 * k of `heads` has neighbour number k + 1 of each vertex, or the vertex itself if it has fewer.
 * Writes the next bitmap, and marks what is left of the lists. One vertex per work-item. */
__kernel GROUP_SIZE void stream_first(const uint n, const uint words,
                                      __global const OFFSET *indptr, __global const uint *first,
                                      __global const uint *heads, const uint columns,
                                      __global const uint *visited, __global uint *next,
                                      __global uint *parent, const uint block_shift,
                                      volatile __global uint *needed)
{
    __local uint fresh[GROUP / 32];
    const uint lid = get_local_id(0);
    const size_t v = get_global_id(0);
    if (lid < GROUP / 32)
        fresh[lid] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (v < n && !IS_SET(visited, v)) {
        uint u = first[v], looked = 0;
        while (u != v && !IS_SET(visited, u)) {
            u = looked < columns ? heads[looked * (size_t)n + v] : (uint)v;
            looked++;
        }
        if (u != v) {
            parent[v] = u;
            atomic_or(&fresh[lid >> 5], 1u << (lid & 31));
        } else if (looked > columns) {
            mark_blocks(indptr[v] + looked, indptr[v + 1], block_shift, needed);
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const size_t word = get_group_id(0) * (GROUP / 32) + lid;
    if (lid < GROUP / 32 && word < words)
        next[word] = visited[word] | fresh[lid];
}

/* Reading a part. */

/* A work-item's share of a part: edges [edge, end), the first of which is vertex v's. */
typedef struct {
    OFFSET edge, end;
    uint v, high; /* the vertices of the block are below `high` */
} Segment;

/* The vertex in [low, high) whose list has this edge: the last one that begins at or before it. */
static uint owner_of(OFFSET edge, uint low, uint high, __global const OFFSET *indptr)
{
    while (high - low > 1) {
        const uint middle = low + (high - low) / 2;
        if (indptr[middle] <= edge)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* The segment of this work-item among edges [begin, end); an empty one if its block is not marked. */
static Segment take_segment(ulong begin, ulong end, __global const OFFSET *indptr,
                            __global const uint *owner, uint block_shift,
                            __global const uint *needed)
{
    const ulong edge = begin + get_global_id(0) * (ulong)SEGMENT;
    const size_t block = (size_t)(edge >> block_shift);
    Segment segment = {(OFFSET)edge, (OFFSET)edge, 0, 0};
    if (edge < end && IS_SET(needed, block)) {
        segment.end = (OFFSET)min(edge + SEGMENT, end);
        segment.high = owner[block + 1] + 1;
        segment.v = owner_of((OFFSET)edge, owner[block], segment.high, indptr);
    }
    return segment;
}

/* Go on to the list that begins at `edge`; vertices without edges are stepped over. */
static void go_on(Segment *segment, OFFSET edge, __global const OFFSET *indptr)
{
    segment->edge = edge;
    if (edge < segment->end) {
        segment->v++;
        if (indptr[segment->v + 1] <= edge)
            segment->v = owner_of(edge, segment->v, segment->high, indptr);
    }
}

/* `part` has the edges from `part_begin` on; a launch reads [begin, end). */
#define PART_PARAMS                                                                            \
    __global const uint *part, const ulong part_begin, const ulong begin, const ulong end,     \
        __global const OFFSET *indptr, __global const uint *owner, const uint block_shift,     \
        __global const uint *needed

/* Push the frontier's edges. */
__kernel void stream_push(PART_PARAMS, __global const uint *frontier,
                          volatile __global uint *visited, __global uint *parent)
{
    Segment mine = take_segment(begin, end, indptr, owner, block_shift, needed);
    while (mine.edge < mine.end) {
        const OFFSET stop = min(indptr[mine.v + 1], mine.end);
        const bool active = IS_SET(frontier, mine.v);
        for (OFFSET edge = active ? mine.edge : stop; edge < stop; edge++) {
            const uint u = part[edge - (OFFSET)part_begin];
            const uint bit = 1u << (u & 31);
            if (!(PEEK(visited + (u >> 5)) & bit) && !(atomic_or(visited + (u >> 5), bit) & bit))
                parent[u] = mine.v;
        }
        go_on(&mine, stop, indptr);
    }
}

/* Look for a visited neighbour of vertices that have none yet. A list may lie in several segments:
 * whoever sets the vertex's bit writes its parent. */
__kernel void stream_pull(PART_PARAMS, __global const uint *visited, volatile __global uint *next,
                          __global uint *parent)
{
    Segment mine = take_segment(begin, end, indptr, owner, block_shift, needed);
    while (mine.edge < mine.end) {
        const OFFSET stop = min(indptr[mine.v + 1], mine.end);
        const uint bit = 1u << (mine.v & 31);
        bool open = !(PEEK(next + (mine.v >> 5)) & bit);
        for (OFFSET edge = mine.edge; open && edge < stop; edge++) {
            const uint u = part[edge - (OFFSET)part_begin];
            if (IS_SET(visited, u)) {
                open = false;
                if (!(atomic_or(next + (mine.v >> 5), bit) & bit))
                    parent[mine.v] = u;
            }
        }
        go_on(&mine, stop, indptr);
    }
}
