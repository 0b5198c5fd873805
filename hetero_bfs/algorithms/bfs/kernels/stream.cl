/* Levels of a search whose edges stay on the host and come to the device in pages (streamed.py).
 * Arrays with an entry per vertex are resident. So are the heads of all neighbour lists, and the
 * first pages of the edges; if vertices are numbered by falling degree, these are the hubs' lists.
 * A page has 2^PAGE_SHIFT edges.
 *
 * The host queues four kernels for a level at once. The first one (stream_heads_*) reads the heads.
 * It marks the other pages that the level needs in `needed`, one bit each. Top-down needs the
 * longer lists of the frontier. Bottom-up needs the rest of the lists of vertices that found no
 * parent. stream_list converts the marks to two arrays of page numbers: resident pages and missing
 * pages. stream_push or stream_pull reads the resident pages. stream_finish ends the level if no
 * page is missing. Otherwise the host sends the missing pages, stream_push or stream_pull reads
 * them, and then the level ends.
 *
 * There are three bitmaps (level.py). `visited` has the vertices visited before the level, `next`
 * also those that it visits; between levels they are equal. The third is `frontier`. A masked
 * search has a fourth, `reached`, without the masked vertices, in which bottom-up looks for
 * parents.
 *
 * Work-items share a page by edges. Each takes SEGMENT_EDGES edges and finds the vertex of the
 * first one: `owner` has the vertex of every 2^OWNER_SHIFT-th edge, and a binary search between two
 * of these finds the vertex. From there the work-item proceeds along the lists. If all edges of a
 * page belong to one vertex, consecutive work-items take consecutive edges. Local memory is not
 * used, since the bus to the host limits these levels.
 *
 * Needs common.cl. Build options: PAGE_SHIFT, OWNER_SHIFT. Graph arguments are the
 * forward or the backward CSR arrays. */

#define LANES_SHIFT (PAGE_SHIFT - SEGMENT_SHIFT)
#define LANES (1u << LANES_SHIFT)
#define IS_SET(bitmap, v) ((bitmap)[(v) >> 5] >> ((v) & 31) & 1)

/* Start a search: only `source` is visited, is in the frontier, and has a parent. */
__kernel void stream_start(const uint n, const uint words, const uint source,
                           __global uint *visited, __global uint *next, __global uint *frontier,
                           __global uint *parent)
{
    for (size_t v = get_global_id(0); v < n; v += get_global_size(0))
        parent[v] = v == source ? source : NO_VERTEX;
    for (size_t word = get_global_id(0); word < words; word += get_global_size(0)) {
        const uint bits = word == source >> 5 ? 1u << (source & 31) : 0;
        visited[word] = bits;
        next[word] = bits;
        frontier[word] = bits;
    }
}

/* The part of a level that needs only the heads of lists. */

/* The first neighbours of all lists, in columns. Column k begins at at[k]. It has neighbour k of
 * vertices 0 to size[k] - 1, or the vertex itself if it has no neighbour k. Vertices with higher
 * numbers have no neighbour k. */
#define HEADS_PARAMS                                                                           \
    __global const uint *heads, __global const ulong *at, __global const uint *size,           \
        const uint columns

/* Mark the pages of edges [begin, end). A word of marks is read before it is written, unless all
 * its pages are in that range: then other work-items rarely mark any of them. */
static void mark_pages(OFFSET begin, OFFSET end, volatile __global uint *needed)
{
    if (begin >= end)
        return;
    const OFFSET first = begin >> PAGE_SHIFT, last = (end - 1) >> PAGE_SHIFT;
    for (OFFSET page = first; page <= last; page = (page | 31) + 1) {
        const OFFSET stop = min(page | 31, last);
        const uint mask = NO_VERTEX >> (31 - (uint)(stop - page)) << (uint)(page & 31);
        volatile __global uint *word = needed + (page >> 5);
        if (mask == NO_VERTEX || ~PEEK(word) & mask)
            atomic_or(word, mask);
    }
}

/* Make v the parent of u, unless it has one. */
static void claim(uint u, uint v, volatile __global uint *next, __global uint *parent)
{
    const uint bit = 1u << (u & 31);
    if (!(PEEK(next + (u >> 5)) & bit) && !(atomic_or(next + (u >> 5), bit) & bit))
        parent[u] = v;
}

/* Clear the status: nothing is found yet, and no page is listed. */
static void clear_status(__global uint *status)
{
    if (get_global_id(0) == 0)
        for (uint word = 0; word < STATUS_WORDS; word++)
            status[word] = 0;
}

/* Push the frontier's lists that fit in the heads; mark the pages of the others. One vertex per
 * work-item. */
__kernel void stream_heads_push(const uint n, __global const OFFSET *indptr, HEADS_PARAMS,
                                __global const uint *frontier, volatile __global uint *next,
                                __global uint *parent, volatile __global uint *needed,
                                __global uint *status)
{
    const size_t v = get_global_id(0);
    clear_status(status);
    if (v >= n || !IS_SET(frontier, v))
        return;
    const OFFSET begin = indptr[v], end = indptr[v + 1];
    if (end - begin > columns)
        mark_pages(begin, end, needed);
    else
        for (uint k = 0; k < (uint)(end - begin); k++)
            claim(heads[at[k] + v], (uint)v, next, parent);
}

/* Look for a parent of each unvisited vertex in the head of its list, and write `next`. If there is
 * none, mark the pages of the rest of the list. One vertex per work-item. */
__kernel GROUP_SIZE void stream_heads_pull(const uint n, const uint words,
                                           __global const OFFSET *indptr, HEADS_PARAMS,
                                           __global const uint *visited,
                                           __global const uint *reached, __global uint *next,
                                           __global uint *parent, volatile __global uint *needed,
                                           __global uint *status)
{
    __local uint fresh[GROUP / 32];
    const uint lid = get_local_id(0);
    const size_t v = get_global_id(0);
    clear_status(status);
    if (lid < GROUP / 32)
        fresh[lid] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (v < n && !IS_SET(visited, v)) {
        uint k = 0, u = NO_VERTEX;
        for (; k < columns && u == NO_VERTEX && v < size[k]; k++) {
            const uint neighbour = heads[at[k] + v];
            if (neighbour == v)
                break;
            u = IS_SET(reached, neighbour) ? neighbour : NO_VERTEX;
        }
        if (u != NO_VERTEX) {
            parent[v] = u;
            atomic_or(&fresh[lid >> 5], 1u << (lid & 31));
        } else if (k == columns) {
            mark_pages(indptr[v] + columns, indptr[v + 1], needed);
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const size_t word = get_group_id(0) * (GROUP / 32) + lid;
    if (lid < GROUP / 32 && word < words)
        next[word] = visited[word] | fresh[lid];
}

/* Write the bitmap of vertices that may be parents in a masked search. */
__kernel void stream_unmask(const uint words, __global const uint *visited,
                            __global const uint *mask, __global uint *reached)
{
    for (size_t word = get_global_id(0); word < words; word += get_global_size(0))
        reached[word] = visited[word] & ~mask[word];
}

/* Append the pages of a word of marks to the arrays of resident and of missing pages; the whole
 * work-group calls this. */
static void list_pages(uint word, uint marked_here, uint marked_missing,
                       volatile __global uint *status, __global uint *here,
                       __local ulong *scratch, __local uint *base)
{
    const ulong counts = (ulong)popcount(marked_missing) << 32 | popcount(marked_here);
    ulong total;
    const ulong before = group_scan(counts, scratch, &total);
    if (get_local_id(0) == 0) {
        base[0] = (uint)total ? atomic_add(status + HERE, (uint)total) : 0;
        base[1] = total >> 32 ? atomic_add(status + MISSING, (uint)(total >> 32)) : 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    __global uint *list = here + base[0] + (uint)before;
    for (; marked_here; marked_here &= marked_here - 1)
        *list++ = word * 32 + LOWEST(marked_here);
    list = (__global uint *)status + STATUS_WORDS + base[1] + (uint)(before >> 32);
    for (; marked_missing; marked_missing &= marked_missing - 1)
        *list++ = word * 32 + LOWEST(marked_missing);
}

/* List the marked pages, and clear the marks. The first `resident` pages are resident. */
__kernel GROUP_SIZE void stream_list(const uint words, const uint resident, __global uint *needed,
                                     volatile __global uint *status, __global uint *here)
{
    __local ulong scratch[SCAN_SIZE];
    __local uint base[2];
    for (uint chunk = get_group_id(0) * GROUP; chunk < words;
         chunk += get_num_groups(0) * GROUP) {
        const uint word = chunk + get_local_id(0);
        const uint marked = word < words ? needed[word] : 0;
        const uint split = min(resident - min(resident, word * 32), 32u);
        const uint missing = split < 32 ? marked >> split << split : 0;
        if (marked)
            needed[word] = 0;
        list_pages(word, marked ^ missing, missing, status, here, scratch, base);
    }
}

/* Reading pages. */

/* A work-item's share of a page: edges edge, edge + step, ... below `end`; the first is v's. */
typedef struct {
    OFFSET edge, end;
    uint step;
    uint v, high; /* the vertices of the page are below `high` */
} Segment;

/* The lists whose pages are read. */
typedef struct {
    OFFSET num_edges;
    __global const OFFSET *indptr;
    __global const uint *owner;
} Lists;

/* The edges of a page; the first one is edge `begin`. */
typedef struct {
    __global const uint *edges;
    OFFSET begin;
} Page;

/* The vertex in [low, high) whose list has this edge: the last list that begins at or before it. */
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

static Segment take_segment(uint page, uint lane, const Lists *lists)
{
    const OFFSET begin = (OFFSET)page << PAGE_SHIFT;
    const OFFSET size = min((OFFSET)1 << PAGE_SHIFT, lists->num_edges - begin);
    const OFFSET low = min((OFFSET)lane << SEGMENT_SHIFT, size);
    Segment segment = {begin + low, begin + min(low + SEGMENT_EDGES, size), 1, 0, 0};
    if (low < size) {
        const OFFSET stretch = segment.edge >> OWNER_SHIFT;
        segment.high = lists->owner[stretch + 1] + 1;
        segment.v = owner_of(segment.edge, lists->owner[stretch], segment.high, lists->indptr);
        if (size == 1 << PAGE_SHIFT && lists->indptr[segment.v] <= begin &&
            lists->indptr[segment.v + 1] >= begin + size) {
            segment.edge = begin + lane;
            segment.end = begin + size;
            segment.step = LANES;
        }
    }
    return segment;
}

/* Go on to the list that begins at `edge`; skip vertices without edges. */
static void go_on(Segment *segment, OFFSET edge, __global const OFFSET *indptr)
{
    segment->edge = edge;
    if (edge < segment->end) {
        segment->v++;
        if (indptr[segment->v + 1] <= edge)
            segment->v = owner_of(edge, segment->v, segment->high, indptr);
    }
}

static void push_segment(Segment mine, const Page *page, const Lists *lists,
                         __global const uint *frontier, volatile __global uint *next,
                         __global uint *parent)
{
    while (mine.edge < mine.end) {
        const OFFSET stop = min(lists->indptr[mine.v + 1], mine.end);
        const bool active = IS_SET(frontier, mine.v);
        for (OFFSET edge = active ? mine.edge : stop; edge < stop; edge += mine.step)
            claim(page->edges[edge - page->begin], mine.v, next, parent);
        go_on(&mine, stop, lists->indptr);
    }
}

/* Look for a visited neighbour of vertices without a parent. A list may be in several segments. The
 * work-item that sets the vertex's bit writes its parent. */
static void pull_segment(Segment mine, const Page *page, const Lists *lists,
                         __global const uint *visited, volatile __global uint *next,
                         __global uint *parent)
{
    while (mine.edge < mine.end) {
        const OFFSET stop = min(lists->indptr[mine.v + 1], mine.end);
        const uint bit = 1u << (mine.v & 31);
        bool open = !(PEEK(next + (mine.v >> 5)) & bit);
        for (OFFSET edge = mine.edge; open && edge < stop; edge += mine.step) {
            const uint u = page->edges[edge - page->begin];
            if (IS_SET(visited, u)) {
                open = false;
                if (!(atomic_or(next + (mine.v >> 5), bit) & bit))
                    parent[mine.v] = u;
            }
        }
        go_on(&mine, stop, lists->indptr);
    }
}

/* Read `count` pages that were sent; `rows` has their numbers, and the positions of their first
 * edges in `edges`. If `count` is 0, read the needed ones of the resident pages from `first` to
 * `last`, which lie one after another; `rows` has the numbers of all needed resident pages. `known`
 * is the frontier or the visited vertices. */
#define READ_PARAMS                                                                            \
    const uint count, const uint first, const uint last, __global const uint *rows,            \
        __global const uint *edges, const ulong num_edges, __global const OFFSET *indptr,      \
        __global const uint *owner, __global const uint *status, __global const uint *known,   \
        volatile __global uint *next, __global uint *parent

#define READ_PAGES(read_segment)                                                               \
    const Lists lists = {(OFFSET)num_edges, indptr, owner};                                    \
    const size_t items = (size_t)(count ? count : status[HERE]) << LANES_SHIFT;                \
    for (size_t i = get_global_id(0); i < items; i += get_global_size(0)) {                    \
        const size_t row = i >> LANES_SHIFT;                                                   \
        const uint number = rows[count ? 2 * row : row];                                       \
        if (number >= first && number < last) {                                                \
            const OFFSET position =                                                            \
                count ? rows[2 * row + 1] : (OFFSET)(number - first) << PAGE_SHIFT;            \
            const Page page = {edges + position, (OFFSET)number << PAGE_SHIFT};                \
            read_segment(take_segment(number, i & (LANES - 1), &lists), &page, &lists, known,  \
                         next, parent);                                                        \
        }                                                                                      \
    }

__kernel void stream_push(READ_PARAMS)
{
    READ_PAGES(push_segment)
}

__kernel void stream_pull(READ_PARAMS)
{
    READ_PAGES(pull_segment)
}

/* End a level, unless missing pages were not sent yet. The vertices that it found become the
 * frontier, and are counted. There is only one sum over the work-group: with two in a kernel, PoCL
 * 3.1 sometimes gets one wrong, as if work-groups shared the scratch. */
__kernel GROUP_SIZE void stream_finish(const uint words, const uint all_sent,
                                       __global uint *visited, __global const uint *next,
                                       __global uint *frontier, __global const uint *degree,
                                       __global const uint *word_degree,
                                       volatile __global ulong *found,
                                       volatile __global uint *status)
{
    __local ulong scratch[SCAN_SIZE];
    const uint end = all_sent || !status[MISSING] ? words : 0;
    ulong packed = 0, total;
    for (size_t word = get_global_id(0); word < end; word += get_global_size(0)) {
        const uint after = next[word], fresh = after & ~visited[word];
        frontier[word] = fresh;
        if (fresh) {
            const ulong counted = count_word((uint)word, fresh, word_degree[word], degree);
            const uint dead_ends = popcount(fresh) - (uint)COUNT_OF(counted);
            visited[word] = after;
            packed += PACK(popcount(fresh), EDGES_OF(counted));
            if (dead_ends)
                atomic_add(status + DEAD_ENDS, dead_ends);
        }
    }
    group_scan(packed, scratch, &total);
    if (get_local_id(0) == 0 && total)
        add_long(found + FOUND, total);
}
