/* A bottom-up level of a search on an OpenCL device; needs top_down.cl. level.py describes the
 * arrays.
 *
 * A work-group gets whole words of the bitmap, so no other work-group writes to them. A tile has
 * TILE_VERTICES vertices. Consecutive work-items read first neighbours of consecutive vertices,
 * which finds most parents. The remaining vertices are survivors: they are packed, and their lists
 * are read in rounds, each by a work-item up to a limit of edges (`own_edges`). A rest of at most
 * half the limit is read, too: leaving it would take longer. Once most lists of a tile's earlier
 * rounds had no parent within the limit, the limit is FEW. So a tile that the search reaches late,
 * or never, takes little time. If at most one vertex in SPARSE_SHARE is unvisited, the level is
 * sparse: each work-item takes a word and reads the lists of its vertices, except lists longer than
 * the limit.
 *
 * The rests of long lists wait until the end of the tile. If they are little work, the whole
 * work-group reads one after the other. Otherwise it leaves them: it adds them to a common queue,
 * and all work-groups share the work in a step of its own (PULL_REST in steps.cl). */

#define TILE_VERTICES (GROUP * VERTICES_PER_ITEM)
#define TILE_WORDS (TILE_VERTICES / 32)
#define LONG_LIST 512
#define FEW 4 /* edges */
#define LIST_WORK (2 * GROUP) /* the barriers of `pull_long`, as a number of edges */
#define LIST_COST (4 * TEAM)  /* finding a list that was left, as a number of edges */
#define FRESH 1u /* outcomes of pull_first */
#define LEFT 2u
#define SPARSE_SHARE 256

typedef struct {
    uint seen[TILE_WORDS];
    uint fresh[GROUP];        /* newly visited bits of a word; sparse tiles have GROUP words */
    uint degrees[TILE_WORDS]; /* common degree of a word's vertices, or MIXED_DEGREES */
    OFFSET lists[TILE_WORDS]; /* start of a word's first list */
    uint left[TILE_WORDS];    /* bits of the vertices that become survivors */
    uint place[TILE_WORDS];   /* start of a word's survivors */
    union {
        uchar bytes[TILE_VERTICES];
        uint fours[TILE_VERTICES / 4];
    } outcome;
    ushort survivors[TILE_VERTICES];
    uint num_survivors, num_long, long_work;
    volatile uint long_parent;
    uint cache[CACHED_WORDS];
} BottomUp;

/* The edges of a long list that a work-item reads by itself at a bottom-up level. Of the edges of
 * unvisited vertices, about one in unvisited / frontier leads to the frontier. A list that has none
 * among four times as many edges probably has none at all. If fewer than one edge in SHORT_LIST
 * leads there, a work-item reads SHORT_LIST edges, and the work-groups share the rest. */
static uint own_edges(ulong frontier, ulong unvisited)
{
    if (unvisited > frontier * SHORT_LIST)
        return SHORT_LIST;
    const float enough = 4 * (float)unvisited / (float)max(frontier, (ulong)1);
    return clamp((uint)enough, (uint)SHORT_LIST, (uint)LONG_LIST);
}

/* A word of the bitmap of the vertices that may be parents: visited and not masked. */
#ifdef MASKED
#define REACHED(graph, visited, word) ((visited)[word] & ~(graph)->mask[word])
#else
#define REACHED(graph, visited, word) ((visited)[word])
#endif

/* Whether `v` may be a parent. The first `cached` words of the bitmap come from local memory
 * (strategy BGC). After relabelling they belong to the hubs. */
static bool is_reached(const Graph *graph, uint v, __global const uint *visited,
                       __local const uint *cache, uint cached)
{
    const uint word = v >> 5 < cached ? cache[v >> 5] : REACHED(graph, visited, v >> 5);
    return word >> (v & 31) & 1;
}

/* The first visited neighbour among four edges, or NO_VERTEX: `edge` and those that follow it at
 * distance `stride`, without those behind `last`. The cache in local memory is not used: few reads
 * would hit it, and PoCL 3.1's compiler fails on it in nested loops. */
static uint pull_four(const Graph *graph, OFFSET edge, OFFSET last, uint stride,
                      __global const uint *visited)
{
    uint match = NO_VERTEX, u[4], seen[4];
#pragma unroll
    for (uint k = 0; k < 4; k++)
        u[k] = load_edge(&graph->backward, min(edge + k * stride, last));
#pragma unroll
    for (uint k = 0; k < 4; k++)
        seen[k] = REACHED(graph, visited, u[k] >> 5);
#pragma unroll
    for (uint k = 4; k--;)
        match = seen[k] >> (u[k] & 31) & 1 ? u[k] : match;
    return match;
}

/* The first visited neighbour among edges [edge, stop), or NO_VERTEX. */
static uint pull_list(const Graph *graph, OFFSET edge, OFFSET stop, __global const uint *visited,
                      uint cached, __local const uint *cache)
{
    uint match = NO_VERTEX;
    for (; edge < stop && match == NO_VERTEX; edge += 4) {
        uint u[4];
        bool hit[4];
#pragma unroll
        for (uint k = 0; k < 4; k++)
            u[k] = load_edge(&graph->backward, edge + k < stop ? edge + k : stop - 1);
#pragma unroll
        for (uint k = 0; k < 4; k++)
            hit[k] = is_reached(graph, u[k], visited, cache, cached);
#pragma unroll
        for (uint k = 4; k--;)
            match = hit[k] ? u[k] : match;
    }
    return match;
}

/* Visit vertex number `i` of a tile, with parent `u`. */
static void found(uint i, uint tile, uint u, __global uint *parent, __local BottomUp *mine)
{
    parent[tile * 32 + i] = u;
    atomic_or(&mine->fresh[i >> 5], 1u << (i & 31));
}

/* Find the list of vertex number `i` of a tile. */
static void find_list(uint i, uint tile, bool sparse, const Graph *graph,
                      __local const BottomUp *mine, OFFSET *begin, OFFSET *end)
{
    const uint degree = sparse ? MIXED_DEGREES : mine->degrees[i >> 5];
    if (degree != MIXED_DEGREES) {
        *begin = mine->lists[i >> 5] + (OFFSET)degree * (i & 31);
        *end = *begin + degree;
    } else {
        *begin = graph->backward_indptr[tile * 32 + i];
        *end = graph->backward_indptr[tile * 32 + i + 1];
    }
}

/* A visited neighbour among edges [edge, end), or NO_VERTEX; the whole work-group searches. */
static uint pull_long(const Graph *graph, OFFSET edge, OFFSET end, __global const uint *visited,
                      uint cached, __local BottomUp *mine)
{
    const uint lid = get_local_id(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lid == 0)
        mine->long_parent = NO_VERTEX;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (edge += lid; edge < end && PEEK(&mine->long_parent) == NO_VERTEX; edge += GROUP) {
        const uint u = load_edge(&graph->backward, edge);
        if (is_reached(graph, u, visited, mine->cache, cached))
            atomic_min(&mine->long_parent, u);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    return mine->long_parent;
}

/* Let vertex number `i` of a tile, with `rest` unread edges, wait until the end of the tile. False if
 * too many wait already. */
static bool wait_long(uint i, OFFSET rest, __local BottomUp *mine)
{
    const uint slot = atomic_inc(&mine->num_long);
    if (slot < TILE_VERTICES) {
        mine->survivors[slot] = i;
        atomic_add(&mine->long_work, (uint)min(rest, (OFFSET)MOST_OWN_WORK) + LIST_WORK);
    }
    return slot < TILE_VERTICES;
}

/* Leave the `count` lists that wait, of which `read` edges each are read, to all work-groups. Queue
 * their vertices, the sums of the unread edges before them, and the ends of the lists. The whole
 * work-group calls this; there is no barrier. */
static void leave_lists(const Step *step, const Graph *graph, uint tile, bool sparse, uint read,
                        uint count, __local BottomUp *mine)
{
    const uint lid = get_local_id(0);
    OFFSET begin, end;
    ulong packed = 0;
    for (uint j = lid; j < count; j += GROUP) {
        find_list(mine->survivors[j], tile, sparse, graph, mine, &begin, &end);
        packed += PACK(1, end - begin - read);
    }
    ulong before = fetch_add_together(step->counter + 1, packed);
    if (packed && !before)
        add_long(step->counter, HAS_REST);
    for (uint j = lid; j < count; j += GROUP) {
        const uint i = mine->survivors[j];
        const size_t slot = COUNT_OF(before);
        find_list(i, tile, sparse, graph, mine, &begin, &end);
        step->left_vertex[slot] = tile * 32 + i;
        step->left_before[slot] = (OFFSET)EDGES_OF(before);
        step->left_end[slot] = end;
        before += PACK(1, end - begin - read);
    }
}

/* Look for a visited neighbour of each survivor, starting with the second edge of its list. Then
 * read the rests of long lists, or leave them. */
static void pull_survivors(const Step *step, const Graph *graph, uint tile, bool sparse, uint limit,
                           uint cached, __local BottomUp *mine)
{
    const uint lid = get_local_id(0), todo = mine->num_survivors;
    __global const uint *visited = step->visited;
    OFFSET begin, end;
    for (uint round = 0; round < todo; round += GROUP) {
        const uint i = round + lid < todo ? mine->survivors[round + lid] : NO_VERTEX;
        limit = 2 * mine->num_long > round ? min(limit, (uint)FEW) : limit;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (i != NO_VERTEX) {
            find_list(i, tile, sparse, graph, mine, &begin, &end);
            begin++;
            const OFFSET stop = end - begin > limit + limit / 2 ? begin + limit : end;
            const uint match = pull_list(graph, begin, stop, visited, cached, mine->cache);
            if (match != NO_VERTEX)
                found(i, tile, match, step->parent, mine);
            else if (stop < end)
                wait_long(i, end - stop, mine); /* earlier slots are free */
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const uint read = sparse ? 0 : 1 + limit; /* the least limit; some edges are read again */
    const uint todo_long = min(mine->num_long, (uint)TILE_VERTICES);
    const bool leaves = mine->long_work > MOST_OWN_WORK;
    if (leaves)
        leave_lists(step, graph, tile, sparse, read, todo_long, mine);
    for (uint j = 0; j < (leaves ? 0 : todo_long); j++) {
        const uint i = IN_RANGE(mine->survivors[j], graph->n - tile * 32);
        find_list(i, tile, sparse, graph, mine, &begin, &end);
        const uint match = pull_long(graph, begin + read, end, visited, cached, mine);
        if (lid == 0 && match != NO_VERTEX)
            found(i, tile, match, step->parent, mine);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

/* Newly visited vertices of a word and their edges, packed. Vertices without edges count too. */
static ulong count_fresh(const Graph *graph, uint word, uint fresh)
{
    const uint common = fresh ? graph->word_degree[word] : 0;
    if (common == 0)
        return PACK(popcount(fresh), 0);
    return PACK(popcount(fresh), EDGES_OF(count_word(word, fresh, common, graph->degree)));
}

/* The bits of a bitmap's word past the last vertex. */
static uint past_bits(const Graph *graph, uint word)
{
    if (word >= graph->words)
        return NO_VERTEX;
    return word == graph->words - 1 && graph->n & 31 ? NO_VERTEX << (graph->n & 31) : 0;
}

/* Test the first neighbours of a tile's unvisited vertices. Each vertex gets a byte: FRESH if its
 * first neighbour is visited, LEFT if it has more neighbours, or 0. */
static void pull_first(const Graph *graph, uint tile, __global const uint *visited,
                       __global uint *parent, uint cached, __local BottomUp *mine)
{
    const uint lid = get_local_id(0);
    uint u[VERTICES_PER_ITEM];
    bool hit[VERTICES_PER_ITEM];
#pragma unroll
    for (uint k = 0; k < VERTICES_PER_ITEM; k++) {
        const uint i = k * GROUP + lid;
        const uint v = tile * 32 + i;
        u[k] = mine->seen[i >> 5] >> (i & 31) & 1 ? v : graph->first[v];
        u[k] = u[k] == v ? NO_VERTEX : u[k]; /* visited, or without neighbours */
    }
#pragma unroll
    for (uint k = 0; k < VERTICES_PER_ITEM; k++)
        hit[k] = u[k] != NO_VERTEX && is_reached(graph, u[k], visited, mine->cache, cached);
#pragma unroll
    for (uint k = 0; k < VERTICES_PER_ITEM; k++) {
        const uint i = k * GROUP + lid;
        const bool left = u[k] != NO_VERTEX && mine->degrees[i >> 5] != 1;
        if (hit[k])
            parent[tile * 32 + i] = u[k];
        mine->outcome.bytes[i] = hit[k] ? FRESH : left ? LEFT : 0;
    }
}

/* Gather the outcomes of a word, by one work-item, four bytes into four bits at a time. */
#define FOUR_BITS(bytes) (((bytes) & 0x01010101u) * 0x01020408u >> 24 & 15)

static void gather_word(__local BottomUp *mine)
{
    const uint word = get_local_id(0);
    uint fresh = 0, left = 0;
    for (uint i = 0; i < 8; i++) {
        const uint four = (i + word) & 7; /* rotated, to avoid bank conflicts in local memory */
        const uint bytes = mine->outcome.fours[word * 8 + four];
        fresh |= FOUR_BITS(bytes / FRESH) << 4 * four;
        left |= FOUR_BITS(bytes / LEFT) << 4 * four;
    }
    mine->fresh[word] = fresh;
    mine->left[word] = left;
    mine->place[word] = atomic_add(&mine->num_survivors, popcount(left));
}

/* Store the survivors; each work-item handles VERTICES_PER_ITEM vertices. */
static void pull_left(__local BottomUp *mine)
{
    const uint begin = get_local_id(0) * VERTICES_PER_ITEM;
    const uint left = mine->left[begin >> 5], shift = begin & 31;
    uint slot = mine->place[begin >> 5] + popcount(left & ((1u << shift) - 1));
    for (uint rest = left >> shift & ((1u << VERTICES_PER_ITEM) - 1); rest; rest &= rest - 1)
        mine->survivors[slot++] = begin + LOWEST(rest);
}

/* Look for a visited neighbour of each vertex in a word of a sparse tile, by one work-item.
 * Vertices with long lists wait, if there is room. */
static void pull_word(const Step *step, const Graph *graph, uint tile, uint unvisited,
                      uint limit, __local BottomUp *mine)
{
    const uint lid = get_local_id(0);
    for (uint rest = unvisited; rest; rest &= rest - 1) {
        const uint i = lid * 32 + LOWEST(rest);
        uint match = NO_VERTEX;
        OFFSET begin, end;
        find_list(i, tile, true, graph, mine, &begin, &end);
        if (end - begin > limit && wait_long(i, end - begin, mine))
            end = begin;
        for (; begin < end && match == NO_VERTEX; begin += 4)
            match = pull_four(graph, begin, end - 1, 1, step->visited);
        if (match != NO_VERTEX)
            found(i, tile, match, step->parent, mine);
    }
}

/* Look for a visited neighbour of each unvisited vertex of a tile. Return the counts of the word of
 * work-item `lid`, packed. All tiles pass the same barriers, since PoCL's compiler duplicates the
 * code after a branch that has barriers. */
static ulong pull_tile(const Step *step, const Graph *graph, uint tile, bool sparse, uint limit,
                       uint cached, __local BottomUp *mine)
{
    const uint lid = get_local_id(0), word = tile + lid;
    __global const uint *visited = step->visited;
    const bool has_word = lid < (sparse ? GROUP : TILE_WORDS);
    const uint past = has_word ? past_bits(graph, word) : NO_VERTEX;
    const uint seen = ~past ? visited[word] | past : past;
    barrier(CLK_LOCAL_MEM_FENCE);
    mine->fresh[lid] = 0;
    if (!sparse && has_word) {
        mine->seen[lid] = seen;
#ifdef DIRECTED /* `word_degree` has out-degrees */
        mine->degrees[lid] = MIXED_DEGREES;
#else
        mine->degrees[lid] = ~past ? graph->word_degree[word] : 0;
        mine->lists[lid] = ~past ? graph->backward_indptr[word * 32] : 0;
#endif
    }
    if (lid == 0)
        mine->num_survivors = mine->num_long = mine->long_work = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (sparse)
        pull_word(step, graph, tile, ~seen, limit, mine);
    else
        pull_first(graph, tile, visited, step->parent, cached, mine);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (!sparse && has_word)
        gather_word(mine);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (!sparse)
        pull_left(mine);
    barrier(CLK_LOCAL_MEM_FENCE);
    pull_survivors(step, graph, tile, sparse, limit, cached, mine);
    if (!~past)
        return 0;
    step->other_visited[word] = (seen | mine->fresh[lid]) & ~past;
    return count_fresh(graph, word, mine->fresh[lid]);
}

/* A list that was left: its vertex, the edges left up to its end, and its end in the graph. */
typedef struct {
    uint v;
    OFFSET past, end;
} LeftList;

/* List number `i` of the `count` lists that were left, which have `edges` unread edges. */
static LeftList left_list(const Step *step, uint i, uint count, OFFSET edges)
{
    const LeftList list = {i < count ? step->left_vertex[i] : 0,
                           i + 1 < count ? step->left_before[i + 1] : edges,
                           i < count ? step->left_end[i] : 0};
    return list;
}

/* Look for a visited neighbour among the edges that were left, of which `left` (packed) says how
 * many lists and edges there are. TEAM work-items read a list together. Each team takes an equal
 * share of the work, which is the edges plus LIST_COST for each list, in the order of the lists. It
 * skips the rest of a list whose vertex is visited. The next list's numbers are read in advance. */
static void pull_left_lists(const Step *step, const Graph *graph, ulong left)
{
    const uint lane = get_local_id(0) % TEAM, teams = step->groups * (GROUP / TEAM);
    const uint team = step->group * (GROUP / TEAM) + get_local_id(0) / TEAM;
    const uint count = (uint)COUNT_OF(left);
    const OFFSET edges = (OFFSET)EDGES_OF(left);
    const ulong work = edges + (ulong)LIST_COST * count, share = work / teams + 1;
    const ulong end = min(share * (team + 1), work);
    ulong done = min(share * team, work); /* work before this team's, then before the next list */
    uint i = 0, past = count;             /* find the list in which the share begins */
    while (past - i > 1) {
        const uint middle = i + (past - i) / 2;
        if (step->left_before[middle] + (ulong)LIST_COST * middle <= done)
            i = middle;
        else
            past = middle;
    }
    ulong packed = 0, total;
    OFFSET before = i < count ? step->left_before[i] : edges;
    LeftList next = left_list(step, i, count, edges);
    while (done < end) {
        const LeftList list = next;
        next = left_list(step, ++i, count, edges);
        const ulong lists = (ulong)LIST_COST * i; /* the work of this list's edges follows */
        OFFSET edge = done > lists + before ? (OFFSET)(done - lists) : before;
        const OFFSET stop = end > lists ? (OFFSET)min((ulong)list.past, end - lists) : 0;
        const OFFSET shift = list.end - list.past;
        const uint bit = 1u << (list.v & 31);
        volatile __global uint *word = step->other_visited + (list.v >> 5);
        uint match = NO_VERTEX;
        bool open = true;
        for (edge += lane; open && edge < stop; edge += 4 * TEAM) {
            match = pull_four(graph, shift + edge, shift + stop - 1, TEAM, step->visited);
            open = match == NO_VERTEX && !(PEEK(word) & bit);
        }
        if (match != NO_VERTEX && !(atomic_or(word, bit) & bit)) {
            step->parent[list.v] = match;
            packed += PACK(1, graph->degree[list.v]);
        }
        before = list.past;
        done = list.past + lists;
    }
    group_scan(packed, step->scratch, &total);
    if (get_local_id(0) == 0 && total)
        add_long(step->counter, total);
}

/* Look for a visited neighbour of each unvisited vertex; there are `unvisited` of them. This reads
 * the bitmap as the level found it and writes the `words` of the other bitmap for the next level.
 * `limit` is the number of edges of a long list that a work-item reads. */
static void bottom_up(const Step *step, const Graph *graph, uint words, ulong unvisited, uint limit,
                      uint cached, __local BottomUp *mine)
{
    const uint lid = get_local_id(0), group = step->group, groups = step->groups;
    const bool sparse = unvisited * SPARSE_SHARE < graph->n;
    const uint tile_words = sparse ? GROUP : TILE_WORDS;
    ulong packed = 0, total;
    cached = min(cached, words);
    for (uint word = lid; word < cached; word += GROUP)
        mine->cache[word] = REACHED(graph, step->visited, word);
    for (uint tile = group * tile_words; tile < words; tile += groups * tile_words)
        packed += pull_tile(step, graph, tile, sparse, limit, cached, mine);
    group_scan(packed, step->scratch, &total);
    if (lid == 0 && total)
        add_long(step->counter, total);
}
