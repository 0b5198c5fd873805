/* Cooperating groups: while the frontier is small, a few work-groups run levels. Each keeps a share
 * of the frontier in its own local memory. All other work-groups wait for the end of that step.
 * Either a single work-group runs the levels, which only needs its own barriers (ALONE). Or
 * COOPERATIVE_GROUPS work-groups run them and exchange the counts of each level (COOPERATE). */

#ifdef ONE_LAUNCH

/* Maximum edges of a share that a work-item takes. */
#define SHARE_ITEMS ((ROOM + GROUP - 1) / GROUP)

/* The edges that a work-item takes. `target` is NO_VERTEX where there is no edge. */
typedef struct {
    uint target[SHARE_ITEMS], source[SHARE_ITEMS];
} Taken;

/* The data for waiting: the words in which cooperating groups report their counts, the barrier's
 * words (grid.cl), and the number of polls after which a work-group gives up. */
typedef struct {
    volatile __global ulong *words;
    volatile __global uint *sync;
    uint patience;
} Link;

/* Find the vertices whose edges this work-item takes, as indices in the share. */
static void find_entries(uint now, uint count, uint edges, uint *entry, __local const Share *mine)
{
    const uint lid = get_local_id(0);
#if COOPERATIVE_GROUPS > 1
#pragma unroll
    for (uint k = 0; k < SHARE_ITEMS; k++)
        entry[k] = k * GROUP + lid < edges ? mine->entry[now][k * GROUP + lid] : 0;
#else
    uint top_step = 1;
    while (top_step < count)
        top_step <<= 1;
#pragma unroll
    for (uint k = 0; k < SHARE_ITEMS; k++)
        entry[k] = 0;
    for (uint step = top_step >> 1; step; step >>= 1) {
#pragma unroll
        for (uint k = 0; k < SHARE_ITEMS; k++) {
            const uint next = entry[k] + step;
            if (next < count && mine->begin[now][next] <= k * GROUP + lid)
                entry[k] = next;
        }
    }
#endif
}

/* Read the edges that this work-item takes of the share in slot `now`, which has `count` vertices
 * with `edges` edges. This reads no array that a search writes. */
static void read_edges(const Graph *graph, uint now, uint count, uint edges, Taken *taken,
                       __local const Share *mine)
{
    const uint lid = get_local_id(0);
    uint entry[SHARE_ITEMS];
    find_entries(now, count, edges, entry, mine);
#pragma unroll
    for (uint k = 0; k < SHARE_ITEMS; k++) {
        const uint edge = k * GROUP + lid;
        taken->target[k] = NO_VERTEX;
        if (edge < edges) {
            taken->target[k] = load_edge(&graph->forward, mine->shift[now][entry[k]] + edge);
            taken->source[k] = mine->vertex[now][entry[k]];
        }
    }
}

/* Store a vertex in a share, at index `place`. If the share has more than ROOM edges, entries of
 * the edges past ROOM are not stored and never read. */
static void put(uint slot, uint place, uint v, OFFSET list, OFFSET begin, uint length,
                __local Share *mine)
{
    mine->vertex[slot][place] = v;
    mine->begin[slot][place] = begin;
    mine->shift[slot][place] = list - begin;
#if COOPERATIVE_GROUPS > 1
    for (OFFSET edge = begin; edge < min(begin + length, (OFFSET)ROOM); edge++)
        mine->entry[slot][edge] = (ushort)place;
#endif
}

#if COOPERATIVE_GROUPS > 1
/* A cooperating work-group reports one word per level: a running number of levels (`generation`), and the
 * numbers of vertices and edges that it found. */
#define COOPERATIVE_EDGE_BITS 20
#define MISSING (1u << COOPERATIVE_EDGE_BITS) /* more edges than a work-group can have */
#define COOPERATIVE_FOUND(word) \
    PACK((uint)(word) >> COOPERATIVE_EDGE_BITS, (word) & (((ulong)1 << COOPERATIVE_EDGE_BITS) - 1))

/* Report the counts of this work-group at level `generation`; one work-item calls this. The claims of
 * this level must come before the claims of the next level in other work-groups. They do, since the
 * word depends on the results of the claims. Hardware keeps that order, though PTX's memory model
 * does not guarantee it. The cooperating groups exchange nothing else. */
static void post_to_groups(volatile __global ulong *word, uint generation, ulong found)
{
    post_word(word, (ulong)generation << 32 | COUNT_OF(found) << COOPERATIVE_EDGE_BITS | EDGES_OF(found));
}

/* Wait for one work-group's word of level `generation`; return 0 if it does not come. */
static ulong await_word(volatile __global ulong *word, uint generation, const Link *link)
{
    uint patience = link->patience;
    ulong value = poll_word(word);
    while (value >> 32 != generation) {
        if (!is_patient(&patience, link->sync)) {
            atomic_xchg(link->sync + GAVE_UP, 1);
            return 0;
        }
        value = poll_word(word);
    }
    return value;
}

/* Add a word's counts to the sums, and update the largest number of edges. A missing word, 0,
 * counts as MISSING edges. */
static void add_word(ulong word, uint *vertices, uint *edges, uint *largest)
{
    const uint more = word ? (uint)EDGES_OF(COOPERATIVE_FOUND(word)) : MISSING;
    *vertices += (uint)COUNT_OF(COOPERATIVE_FOUND(word));
    *edges += more;
    *largest = max(*largest, more);
}

/* Wait for the words of all cooperating groups, which is a barrier for them. Successive levels use
 * different words, since a slow work-group may still read when a fast one writes again. Work-item 0
 * gets the total counts, and `most`, the largest number of edges that one work-group found. If a
 * word does not come, these are 0 and MISSING. After a barrier the words are in `mine`. */
static ulong await_groups(uint generation, volatile __global ulong *words, const Link *link, OFFSET *most,
                         __local Share *mine)
{
    const uint lid = get_local_id(0);
    uint vertices = 0, edges = 0, largest = 0;
#ifdef HAS_SHUFFLES
    if (lid >= 32)
        return 0;
    for (uint i = lid; i < COOPERATIVE_GROUPS; i += 32) {
        mine->words[i] = await_word(words + i, generation, link);
        add_word(mine->words[i], &vertices, &edges, &largest);
    }
#pragma unroll
    for (uint distance = 16; distance; distance >>= 1) {
        vertices += shuffle_down(vertices, distance);
        edges += shuffle_down(edges, distance);
        largest = max(largest, shuffle_down(largest, distance));
    }
#else
    for (uint i = lid; i < COOPERATIVE_GROUPS; i += GROUP)
        mine->words[i] = await_word(words + i, generation, link);
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    for (uint i = 0; i < COOPERATIVE_GROUPS; i++)
        add_word(mine->words[i], &vertices, &edges, &largest);
#endif
    *most = largest;
    return largest < MISSING ? PACK(vertices, edges) : 0;
}
#endif

/* Claim the ends of edges that `read_edges` read, and store the claimed vertices in slot `next`.
 * Return the number of these vertices and of their edges, packed. If there is a `word`, the counts
 * are reported there as soon as they are known. The reads that a successful claim needs start
 * before the claim, so that they overlap with it. */
static ulong push_edges(const Graph *graph, uint next, const Taken *taken, __global uint *visited,
                        __global uint *parent, volatile __global ulong *word, uint generation,
                        __local Shared *mine)
{
    const uint *target = taken->target, *source = taken->source;
    uint length[SHARE_ITEMS];
    OFFSET list[SHARE_ITEMS];
    bool claimed[SHARE_ITEMS];
#pragma unroll
    for (uint k = 0; k < SHARE_ITEMS; k++) {
        const uint v = target[k] == NO_VERTEX ? 0 : target[k];
        length[k] = graph->degree[v];
        list[k] = graph->indptr[v];
    }
#pragma unroll
    for (uint k = 0; k < SHARE_ITEMS; k++) {
        const uint bit = 1u << (target[k] & 31);
        claimed[k] = target[k] != NO_VERTEX && !(atomic_or(&visited[target[k] >> 5], bit) & bit);
    }
    ulong packed = 0, total;
#pragma unroll
    for (uint k = 0; k < SHARE_ITEMS; k++) {
        if (claimed[k])
            parent[target[k]] = source[k];
        claimed[k] = claimed[k] && QUEUEABLE(length[k]);
        packed += claimed[k] ? PACK(1, length[k]) : 0;
    }
    const ulong before = group_scan(packed, mine->scratch, &total);
#if COOPERATIVE_GROUPS > 1
    if (word && get_local_id(0) == 0)
        post_to_groups(word, generation, total);
#endif
    uint place = COUNT_OF(before);
    OFFSET offset = (OFFSET)EDGES_OF(before);
#pragma unroll
    for (uint k = 0; k < SHARE_ITEMS; k++)
        if (claimed[k]) {
            put(next, place, target[k], list[k], offset, length[k], &mine->level.share);
            place++;
            offset += length[k];
        }
    return total;
}

/* Copy work-group `group`'s share of the frontier from the queue into slot 0; return its vertices
 * and edges, packed. `size` work-groups share the frontier by edges. */
static ulong take_share(uint group, uint size, const Graph *graph, __global const uint *queue,
                        __global const OFFSET *offsets, __local Shared *mine)
{
    const uint lid = get_local_id(0), count = (uint)mine->state[FRONTIER_VERTICES];
    const OFFSET edges = (OFFSET)mine->state[FRONTIER_EDGES];
    __local uint *bounds = mine->bounds;
    uint first = 0, past = count;
    if (size > 1) { /* vertices whose first edge is in [low, high) */
        const OFFSET low = (OFFSET)((ulong)edges * group / size);
        const OFFSET high = (OFFSET)((ulong)edges * (group + 1) / size);
        find_bounds(low, high, count, edges + 1, offsets, bounds); /* `high` may be `edges` */
        first = bounds[0] + (offsets[bounds[0]] < low);
        past = bounds[1] + (offsets[bounds[1]] < high);
    }
    const OFFSET begin = first < count ? offsets[first] : edges;
    const OFFSET end = past < count ? offsets[past] : edges;
    for (uint i = lid; first + i < past; i += GROUP) {
        const uint v = queue[first + i];
        put(0, i, v, graph->indptr[v], offsets[first + i] - begin, graph->degree[v],
            &mine->level.share);
    }
    return PACK(past - first, end - begin);
}

/* Write this work-group's share to the common queue, after the shares of lower work-groups. */
static void leave_share(uint slot, ulong share, ulong before, __global uint *queue,
                        __global OFFSET *offsets, __local const Share *mine)
{
    const uint base = (uint)COUNT_OF(before);
    const OFFSET first = (OFFSET)EDGES_OF(before);
    for (uint i = get_local_id(0); i < COUNT_OF(share); i += GROUP) {
        queue[base + i] = mine->vertex[slot][i];
        offsets[base + i] = first + mine->begin[slot][i];
    }
}

/* Advance the state if cooperating groups certainly run the next level too; one work-item calls
 * this. `decide` would have the same result, but takes longer. */
static bool go_on(ulong found, ulong fewest, ulong most, __global const REAL *schedule,
                  __local Shared *mine)
{
    __local ulong *state = mine->state;
    const ulong edges = EDGES_OF(found), vertices = COUNT_OF(found), level = state[LEVEL] + 1;
    const ulong unvisited = state[UNVISITED_EDGES] - edges;
    const ulong unvisited_vertices = state[UNVISITED_VERTICES] - vertices;
    const uint rule = (uint)mine->policy[RULE];
    bool alike;
    if (rule == FIXED)
        alike = scheduled(mine->policy, schedule, (REAL)(uint)level) == (uint)state[CHOSEN];
    else if (rule == DIRECTION || rule == SPEEDS)
        alike = (REAL)(uint)edges * mine->policy[ALPHA] <= (REAL)unvisited;
    else
        alike = IS_ALIKE(state, vertices, edges, unvisited,
                         KIND_OF_LEVEL(mine->policy, edges, unvisited_vertices, 0));
    if (!alike || edges <= fewest || edges > most || unvisited_vertices == 0 ||
        level >= state[LIMIT] || mine->policy[INTERVAL] > 1)
        return false;
    state[PREVIOUS_EDGES] = state[FRONTIER_EDGES];
    state[FRONTIER_VERTICES] = vertices;
    state[FRONTIER_EDGES] = edges;
    state[UNVISITED_VERTICES] = unvisited_vertices;
    state[UNVISITED_EDGES] = unvisited;
    state[LEVEL] = level;
    state[QUEUE_INDEX] ^= 1;
    return true;
}

/* Run levels as one of `size` cooperating groups, while the levels are top-down with few edges. At
 * the end the next step is already decided. */
static void run_cooperative(uint group, uint size, const Graph *graph, const Arrays *arrays,
                            __global const REAL *schedule, __global ulong *rows, const Link *link,
                            __local Shared *mine)
{
    const uint lid = get_local_id(0);
    __local ulong *state = mine->state;
    __local Share *mine_share = &mine->level.share;
    const ulong step = state[STEP];
    /* Groups continue to cooperate when edges are few: starting and stopping takes time. */
    const ulong fewest = step == COOPERATE ? SINGLE_GROUP_EDGES / 2 : 0;
    const ulong most_edges = step == COOPERATE ? COOPERATIVE_EDGES : SINGLE_GROUP_EDGES;
    __global uint *visited = state[VISITED_INDEX] ? arrays->visited1 : arrays->visited0;
    uint q = (uint)state[QUEUE_INDEX], slot = 0, levels = 0;
    ulong chosen = 0, decided = state[DECIDED], began = state[BEGAN];
    ulong ended = 0; /* of the last row */
    Taken taken;
    ulong share = take_share(group, size, graph, q ? arrays->queue1 : arrays->queue0,
                             q ? arrays->offsets1 : arrays->offsets0, mine);
#if COOPERATIVE_GROUPS > 1
    uint generation = (uint)(max(link->words[group], link->words[COOPERATIVE_GROUPS + group]) >> 32);
#else
    const uint generation = 0;
#endif
    barrier(CLK_LOCAL_MEM_FENCE);
    read_edges(graph, slot, (uint)COUNT_OF(share), (uint)EDGES_OF(share), &taken, mine_share);
    while (true) {
        volatile __global ulong *word = 0;
#if COOPERATIVE_GROUPS > 1
        generation++;
        if (step == COOPERATE)
            word = link->words + generation % 2 * COOPERATIVE_GROUPS;
#endif
        if (lid < STATE_WORDS)
            mine->saved[lid] = state[lid];
        slot ^= 1;
        share = push_edges(graph, slot, &taken, visited, arrays->parent, word ? word + group : 0,
                           generation, mine);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (EDGES_OF(share) <= ROOM) /* for the next level; overlaps with the code below */
            read_edges(graph, slot, (uint)COUNT_OF(share), (uint)EDGES_OF(share), &taken,
                       mine_share);
        ulong found = share;
        OFFSET most = 0;
#if COOPERATIVE_GROUPS > 1
        if (word)
            found = await_groups(generation, word, link, &most, mine_share);
#endif
        if (lid == 0)
            mine->runs = most <= ROOM && go_on(found, fewest, most_edges, schedule, mine);
        if (rows && lid == GROUP - 1) { /* not in work-item 0's warp, so that they overlap */
            if (levels) {
                const Row row = {PACK(mine->saved[FRONTIER_VERTICES], mine->saved[FRONTIER_EDGES]),
                                 chosen, decided, began, ended};
                write_row(rows, mine->saved[LEVEL] - 1, row);
                decided = began = ended;
            }
            chosen = mine->saved[CHOSEN];
            ended = read_clock();
            levels++;
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        if (!mine->runs) {
            decide(true, mine, found, schedule, 0, true);
            if (lid == 0) {
                const bool shrunk = step == COOPERATE && state[STEP] == ALONE;
                const bool goes_on =
                    state[STEP] == step || (shrunk && state[FRONTIER_EDGES] > fewest);
                mine->runs = goes_on && most <= ROOM;
                if (mine->runs) {
                    state[STEP] = step;
                    state[DONE] = mine->saved[DONE]; /* it is the same step */
                }
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (!mine->runs)
            break;
        q ^= 1;
    }
    ulong before = 0;
#if COOPERATIVE_GROUPS > 1
    for (uint i = 0; step == COOPERATE && i < group; i++)
        before += COOPERATIVE_FOUND(mine_share->words[i]);
#endif
    if (rows && lid == GROUP - 1) {
        ended = read_clock(); /* again: it includes waiting for others, and deciding */
        const Row row = {PACK(state[FRONTIER_VERTICES], state[FRONTIER_EDGES]), chosen, decided,
                         began, ended};
        write_row(rows, mine->saved[LEVEL], row);
        state[DECIDED] = state[BEGAN] = ended;
    }
    leave_share(slot, share, before, q ? arrays->queue0 : arrays->queue1,
                q ? arrays->offsets0 : arrays->offsets1, mine_share);
}

#endif
