/* A search on an OpenCL device, from the first level to the last, without the host.
 *
 * A search is a state machine: each step decides what comes next, from the state and what the last
 * step counted, and does it with the whole grid. Every work-group decides for itself, from the
 * same numbers. Between two steps all work-groups must be done, which happens in one of two ways.
 * Where a grid is known to make progress together (`probe`), one launch of `search` runs all
 * steps, with a barrier across the work-groups between them. Elsewhere each launch runs one step
 * at most: the host queues `push_step`, `pull_step` and `other_step` by turns, of which each runs
 * if it is the one decided for, until one says that the search is over or wants the host.
 *
 * The state is STATE_SIZE ulongs, named below; the first ones are level.py's. It comes as an
 * argument for the first launch and lies in `report` after it, in one of two places by turns. Then
 * `report` has one row of ROW_SIZE ulongs for each level since the host last looked: the packed
 * counter of what it found, the candidate that ran, and the clock when that was decided, when the
 * level began, and at its end.
 *
 * In `search`, while the frontier is small, work-group 0 runs levels alone (ALONE), with barriers
 * of its own; the others wait for the end of the step.
 */

#define FRONTIER_VERTICES 0
#define FRONTIER_EDGES 1
#define UNVISITED_VERTICES 2
#define UNVISITED_EDGES 3
#define PREVIOUS_EDGES 4
#define ROOT 5
#define FORM 6
#define LEVEL 7
#define VISITED_INDEX 8
#define QUEUE_INDEX 9
#define CHOSEN 10
#define STEP 11
#define STATUS 12
#define LIMIT 13
#define FLAGS 14
#define BEGAN 15   /* the clock when the level began */
#define DONE 16    /* number of the last step, which names its counter */
#define PENDING 17 /* STEP is decided and not run yet */
#define DECIDED 18 /* the clock when the level was decided on; turning a bitmap follows */
#define STATE_SIZE 19

typedef struct {
    ulong words[STATE_SIZE];
} State;

#define NO_CHOICE ((ulong)-1)
#define BITMAP 1

/* STEP: what the coming, or the last, step does. */
#define DECIDE 0
#define BEGIN 1
#define TO_QUEUE 2
#define PUSH 3
#define ALONE 4
#define PULL 5
#define FORGET 6

/* STATUS */
#define RUNNING 0
#define ENDED 1  /* nothing left to find, or LIMIT levels are done */
#define LEAVES 2 /* the host's turn: CHOSEN runs there */
#define FAILED 3 /* the grid did not make progress together */

/* FLAGS */
#define FORGETS 1  /* leave no stale parents at the end */
#define CONVERTS 2 /* only turn the bitmap into a queue */
#define PROBES 4   /* find out whether the grid makes progress together, and do nothing else */

#define ROWS (2 * STATE_SIZE) /* in `report` */
#define ROW_SIZE 5

/* `sync`: words far enough apart to lie in cache lines of their own, then one for each work-group. */
#define GENERATION 0
#define GAVE_UP 64
#define ARRIVALS 128

#define NUM_COUNTERS 3
#define PROBE_ROUNDS 64

#ifdef NVIDIA
/* A write that others see after all before it, and a read that loops cannot lose and that drops what
 * the multiprocessor has cached. */
static void post(volatile __global uint *address, uint value)
{
    asm volatile("st.release.gpu.u32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
}
static uint poll(volatile __global uint *address)
{
    uint value;
    asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
    return value;
}
/* Nanoseconds. */
static ulong read_clock(void)
{
    ulong value;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(value)::"memory");
    return value;
}
#else
static void post(volatile __global uint *address, uint value)
{
    mem_fence(CLK_GLOBAL_MEM_FENCE);
    atomic_xchg(address, value);
}
static uint poll(volatile __global uint *address)
{
    const uint value = atomic_or(address, 0);
    mem_fence(CLK_GLOBAL_MEM_FENCE);
    return value;
}
static ulong read_clock(void)
{
    return 0;
}
#endif

/* Poll every GROUPth of `count` words, at most POLLED at once, until all are `wanted`; false if they
 * are not within `patience` polls. */
#define POLLED 4

static bool wait_for(volatile __global uint *sync, volatile __global uint *words, uint count,
                     uint wanted, uint patience)
{
    for (uint first = 0; first < count; first += POLLED * GROUP) {
        bool all = false;
        while (patience && !all) {
            all = true;
#pragma unroll
            for (uint k = 0; k < POLLED; k++)
                if (first + k * GROUP < count)
                    all &= poll(words + first + k * GROUP) == wanted;
            if (!all && !(--patience & 1023) && poll(sync + GAVE_UP))
                patience = 0;
        }
    }
    if (patience)
        return true;
    /* Who has gone on meanwhile either is seen here, or sees at its end that this one gave up. */
    atomic_xchg(sync + GAVE_UP, 1);
    return count == 1 && poll(words) == wanted;
}

/* Wait for all work-groups of the grid; false if they did not come within `patience` polls. Each
 * posts its arrival in a word of its own, work-group 0 looks at all of them side by side and posts
 * the next generation. `generation`: the last one, the same in every work-item. */
static bool grid_barrier(volatile __global uint *sync, uint group, uint groups, uint patience,
                         uint *generation, __local uint *alright)
{
    const uint lid = get_local_id(0), next = ++*generation;
    if (lid == 0)
        *alright = 1;
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (group) {
        if (lid == 0) {
            post(sync + ARRIVALS + group, next);
            *alright = wait_for(sync, sync + GENERATION, 1, next, patience);
        }
    } else if (1 + lid < groups &&
               !wait_for(sync, sync + ARRIVALS + 1 + lid, groups - 1 - lid, next, patience)) {
        *alright = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (group == 0 && lid == 0 && *alright)
        post(sync + GENERATION, next);
    return *alright;
}

/* A frontier that one work-group keeps to itself, and the next one, by turns. */
#define ALONE_VERTICES (ALONE_EDGES / 2 + 1)
typedef struct {
    uint vertex[2][ALONE_VERTICES];
    OFFSET list[2][ALONE_VERTICES];  /* where the vertex's list begins */
    ushort begin[2][ALONE_VERTICES]; /* its first edge among the frontier's */
} Alone;

/* What a search writes; see kernels/bfs.py. */
typedef struct {
    __global uint *parent, *visited0, *visited1, *queue0, *queue1;
    __global OFFSET *offsets0, *offsets1;
} Arrays;

typedef struct {
    ulong state[STATE_SIZE], saved[STATE_SIZE];
    ulong scratch[SCAN_SIZE];
    ulong base;
    uint alright, runs;
    REAL policy[COPY_SIZE];
    union {
        TopDown top_down;
        BottomUp bottom_up;
        Alone alone;
    } level;
} Shared;

/* Move the state on by what the last step counted. See level.advance. */
static void consume(ulong *state, ulong last, ulong found, ulong now, __global ulong *rows)
{
    const ulong vertices = COUNT_OF(found), edges = EDGES_OF(found);
    if (last == TO_QUEUE) {
        state[FRONTIER_VERTICES] = vertices;
        state[FRONTIER_EDGES] = edges;
        state[FORM] = 0;
        return;
    }
    if (last != PUSH && last != ALONE && last != PULL)
        return;
    if (rows) {
        __global ulong *row = rows + (uint)state[LEVEL] % LOG_ROWS * ROW_SIZE;
        row[0] = found;
        row[1] = state[CHOSEN];
        row[2] = state[DECIDED];
        row[3] = state[BEGAN];
        row[4] = now;
    }
    if (last == PULL)
        state[VISITED_INDEX] ^= 1;
    else
        state[QUEUE_INDEX] ^= 1;
    state[FORM] = last == PULL ? BITMAP : 0;
    state[PREVIOUS_EDGES] = state[FRONTIER_EDGES];
    state[FRONTIER_VERTICES] = vertices;
    state[FRONTIER_EDGES] = edges;
    state[UNVISITED_VERTICES] -= vertices;
    state[UNVISITED_EDGES] -= edges;
    state[LEVEL]++;
    state[CHOSEN] = NO_CHOICE;
}

/* The candidate for the coming level; `before` is that of the level before, if it ran here. */
static uint choose_level(const ulong *state, ulong before, __local const REAL *policy,
                         __global const REAL *schedule)
{
    const uint level = (uint)state[LEVEL], interval = (uint)policy[INTERVAL];
    if (before != NO_CHOICE && interval > 1 && level % interval)
        return (uint)before;
    const Level features = {(REAL)state[FRONTIER_VERTICES],
                            (REAL)state[FRONTIER_EDGES],
                            (REAL)state[UNVISITED_VERTICES],
                            (REAL)state[UNVISITED_EDGES],
                            level ? (REAL)state[PREVIOUS_EDGES]
                                  : max((REAL)state[FRONTIER_EDGES], (REAL)1) / policy[MEAN_DEGREE],
                            (uint)state[FORM],
                            level};
    return choose(policy, schedule, &features);
}

/* The step for the coming level, chosen if it is not yet. */
static ulong next_step(ulong *state, ulong before, __local const REAL *policy,
                       __global const REAL *schedule, bool may_be_alone)
{
    if (state[CHOSEN] == NO_CHOICE)
        state[CHOSEN] = choose_level(state, before, policy, schedule);
    const uint chosen = (uint)state[CHOSEN];
    if (policy[ON_DEVICE(chosen)] == 0) {
        state[STATUS] = LEAVES;
        return state[FLAGS] & FORGETS ? FORGET : DECIDE;
    }
    if (policy[IS_TOP_DOWN(chosen)] == 0)
        return PULL;
    if (state[FORM] == BITMAP)
        return TO_QUEUE;
    /* After the first level there often are too many edges, and joining the others takes time. */
    may_be_alone &= state[LEVEL] > 0 && state[FRONTIER_EDGES] <= ALONE_EDGES &&
                    state[FRONTIER_VERTICES] <= ALONE_VERTICES;
    return may_be_alone ? ALONE : PUSH;
}

/* Say what comes next; one work-item. `found` is what the last step counted. */
static void decide(__local Shared *mine, ulong found, __global const REAL *schedule,
                   __global ulong *rows, bool may_be_alone)
{
    ulong state[STATE_SIZE]; /* in registers */
    for (uint i = 0; i < STATE_SIZE; i++)
        state[i] = mine->state[i];
    const ulong last = state[STEP], before = state[CHOSEN], now = read_clock();
    state[STEP] = DECIDE;
    if (last == BEGIN)
        state[ROOT] = NO_VERTEX;
    if (state[STATUS] == RUNNING) {
        consume(state, last, found, now, rows);
        const bool over = state[FRONTIER_EDGES] == 0 || state[UNVISITED_VERTICES] == 0;
        if (state[ROOT] != NO_VERTEX) {
            state[STEP] = BEGIN;
        } else if (state[FLAGS] & CONVERTS) {
            state[STEP] = last == TO_QUEUE ? DECIDE : TO_QUEUE;
            state[STATUS] = last == TO_QUEUE ? ENDED : RUNNING;
            state[last == TO_QUEUE ? BEGAN : DECIDED] = now;
        } else if (over || state[LEVEL] >= state[LIMIT]) {
            state[STATUS] = ENDED;
            if (state[FLAGS] & FORGETS)
                state[STEP] = FORGET;
        } else {
            state[STEP] = next_step(state, before, mine->policy, schedule, may_be_alone);
            state[BEGAN] = now;
            if (last != TO_QUEUE)
                state[DECIDED] = now;
        }
    }
    state[DONE] += state[STEP] != DECIDE;
    for (uint i = 0; i < STATE_SIZE; i++)
        mine->state[i] = state[i];
}

/* Begin a search, turn its bitmap into a queue, or end it: the share of work-group `group`. */
static void run_other(uint group, uint groups, const Graph *graph, const Arrays *arrays,
                      volatile __global ulong *counter, __local Shared *mine)
{
    __local const ulong *state = mine->state;
    const uint v = (uint)state[VISITED_INDEX], q = (uint)state[QUEUE_INDEX];
    __global uint *visited = v ? arrays->visited1 : arrays->visited0;
    __global uint *queue = q ? arrays->queue1 : arrays->queue0;
    __global OFFSET *offsets = q ? arrays->offsets1 : arrays->offsets0;
    if (state[STEP] == BEGIN)
        start(group, groups, graph->words, (uint)state[ROOT], visited, arrays->parent, queue,
              offsets);
    else if (state[STEP] == FORGET)
        forget_stale_parents(group, groups, graph->n, graph->words, visited, arrays->parent);
    bitmap_to_queue(group, groups, state[STEP] == TO_QUEUE ? graph->words : 0, visited,
                    v ? arrays->visited0 : arrays->visited1, graph->degree, graph->word_degree,
                    counter, queue, offsets, mine->scratch, &mine->base);
}

/* Run a top-down level: the share of work-group `group`. */
static void run_push(uint group, uint groups, const Graph *graph, const Arrays *arrays,
                     volatile __global ulong *counter, __local Shared *mine)
{
    __local const ulong *state = mine->state;
    const uint v = (uint)state[VISITED_INDEX], q = (uint)state[QUEUE_INDEX];
    top_down(group, groups, graph, (uint)state[FRONTIER_VERTICES], (OFFSET)state[FRONTIER_EDGES],
             q ? arrays->queue1 : arrays->queue0, q ? arrays->offsets1 : arrays->offsets0,
             v ? arrays->visited1 : arrays->visited0, arrays->parent, counter,
             q ? arrays->queue0 : arrays->queue1, q ? arrays->offsets0 : arrays->offsets1,
             &mine->level.top_down, mine->scratch, &mine->base);
}

/* Run a bottom-up level: the share of work-group `group`. */
static void run_pull(uint group, uint groups, const Graph *graph, const Arrays *arrays,
                     volatile __global ulong *counter, __local Shared *mine)
{
    __local const ulong *state = mine->state;
    const uint v = (uint)state[VISITED_INDEX];
    bottom_up(group, groups, graph, state[UNVISITED_VERTICES],
              v ? arrays->visited1 : arrays->visited0, v ? arrays->visited0 : arrays->visited1,
              arrays->parent, mine->policy[IS_CACHED(state[CHOSEN])] != 0 ? CACHED_WORDS : 0,
              counter,
              &mine->level.bottom_up, mine->scratch);
}

#ifdef DIRECTED
#define GRAPH_PARAMS PARAMS(forward), PARAMS(backward)
#define BACKWARD_ARGS ARGS(backward)
#else
#define GRAPH_PARAMS PARAMS(forward)
#define BACKWARD_ARGS ARGS(forward)
#endif

/* `first`: whether the state is `initial`. `begin`: the number of the first step. */
#define SEARCH_PARAMS                                                                            \
    const uint n, const uint words, __global const OFFSET *restrict indptr,                       \
        __global const OFFSET *restrict backward_indptr, __global const uint *restrict degree,    \
        __global const uint *restrict word_degree, __global const uint *restrict first_neighbour, \
        GRAPH_PARAMS, __global uint *parent, __global uint *visited0, __global uint *visited1,    \
        __global uint *queue0, __global uint *queue1, __global OFFSET *offsets0,                  \
        __global OFFSET *offsets1, __global const REAL *restrict policy,                          \
        volatile __global ulong *counters, __global ulong *report, const State initial,           \
        const uint first, const uint begin

#define DECLARE_SEARCH                                                                          \
    __local Shared mine;                                                                        \
    const Graph graph = {n, words, indptr, backward_indptr, degree, word_degree,                \
                         first_neighbour, {{ARGS(forward)}}, {{BACKWARD_ARGS}}};                \
    const Arrays arrays = {parent, visited0, visited1, queue0, queue1, offsets0, offsets1};     \
    const uint lid = get_local_id(0), group = get_group_id(0), groups = get_num_groups(0);      \
    __global ulong *rows = group == 0 ? report + ROWS : 0;                                      \
    __global const ulong *before = report + begin % 2 * STATE_SIZE;                             \
    __global ulong *after = report + (begin + 1) % 2 * STATE_SIZE;                              \
    load_policy(policy, mine.policy);                                                           \
    if (lid < STATE_SIZE)                                                                       \
        mine.state[lid] = first ? initial.words[lid] : before[lid];                             \
    barrier(CLK_LOCAL_MEM_FENCE);

static bool is_over(__local const ulong *state)
{
    return state[STATUS] != RUNNING && state[STEP] == DECIDE;
}

static void copy_state(__local const ulong *state, __global ulong *target)
{
    for (uint i = 0; i < STATE_SIZE; i++)
        target[i] = state[i];
}

/* Decide, if that is to be done, and tell whether the step is of one of the `kinds`, as bits; one
 * work-item. Work-group 0 brings the state on. */
static bool take_step(uint kinds, __global const REAL *schedule, volatile __global ulong *counters,
                      __global ulong *rows, __global ulong *after, __local Shared *mine)
{
    __local ulong *state = mine->state;
    if (!is_over(state) && !state[PENDING]) {
        decide(mine, counters[state[DONE] % NUM_COUNTERS], schedule, rows, false);
        state[PENDING] = state[STEP] != DECIDE;
    }
    const bool runs = state[PENDING] && kinds >> state[STEP] & 1;
    if (runs)
        state[PENDING] = 0;
    if (rows)
        copy_state(state, after);
    if (rows && runs)
        counters[(state[DONE] + 1) % NUM_COUNTERS] = 0;
    return runs;
}

#define STEP_KERNEL(name, kinds, run)                                                           \
    __kernel GROUP_SIZE void name(SEARCH_PARAMS)                                                \
    {                                                                                           \
        DECLARE_SEARCH                                                                          \
        if (lid == 0)                                                                           \
            mine.runs = take_step(kinds, policy + POLICY_SIZE, counters, rows, after, &mine);   \
        barrier(CLK_LOCAL_MEM_FENCE);                                                           \
        if (!mine.runs)                                                                         \
            return;                                                                             \
        volatile __global ulong *counter = counters + mine.state[DONE] % NUM_COUNTERS;          \
        run;                                                                                    \
    }

STEP_KERNEL(push_step, 1 << PUSH, run_push(group, groups, &graph, &arrays, counter, &mine))
STEP_KERNEL(pull_step, 1 << PULL, run_pull(group, groups, &graph, &arrays, counter, &mine))
STEP_KERNEL(other_step, 1 << BEGIN | 1 << TO_QUEUE | 1 << FORGET,
            run_other(group, groups, &graph, &arrays, counter, &mine))

#ifdef ONE_LAUNCH

/* Push the frontier of a work-group that is alone, whose `count` vertices have `edges` edges and lie
 * in slot `now`. What is found goes to the other slot as far as it has room, and to the queue for all
 * work-groups. A claim, and what is read of the vertex if it succeeds, are under way together.
 * Returns what was found. */
static ulong push_alone(const Graph *graph, uint now, uint count, uint edges,
                        __global uint *visited, __global uint *parent, __global uint *next_queue,
                        __global OFFSET *next_offsets, __local Alone *mine, __local ulong *scratch)
{
    const uint lid = get_local_id(0);
    ulong found = 0;
    uint top_step = 1;
    while (top_step < count)
        top_step <<= 1;
    for (uint round = 0; round < edges; round += TILE) {
        uint entry[ITEMS], target[ITEMS], length[ITEMS];
        OFFSET list[ITEMS];
        bool claimed[ITEMS];
#pragma unroll
        for (uint k = 0; k < ITEMS; k++)
            entry[k] = 0;
        for (uint step = top_step >> 1; step; step >>= 1) {
#pragma unroll
            for (uint k = 0; k < ITEMS; k++) {
                const uint next = entry[k] + step;
                if (next < count && mine->begin[now][next] <= round + k * GROUP + lid)
                    entry[k] = next;
            }
        }
#pragma unroll
        for (uint k = 0; k < ITEMS; k++) {
            const uint edge = round + k * GROUP + lid, e = entry[k];
            target[k] = NO_VERTEX;
            if (edge < edges)
                target[k] =
                    load_edge(&graph->forward, mine->list[now][e] + edge - mine->begin[now][e]);
        }
#pragma unroll
        for (uint k = 0; k < ITEMS; k++) {
            const uint v = target[k] == NO_VERTEX ? 0 : target[k];
            length[k] = graph->degree[v];
            list[k] = graph->indptr[v];
        }
#pragma unroll
        for (uint k = 0; k < ITEMS; k++) {
            const uint bit = 1u << (target[k] & 31);
            claimed[k] =
                target[k] != NO_VERTEX && !(atomic_or(&visited[target[k] >> 5], bit) & bit);
        }
        ulong packed = 0, total;
#pragma unroll
        for (uint k = 0; k < ITEMS; k++) {
            if (claimed[k])
                parent[target[k]] = mine->vertex[now][entry[k]];
            claimed[k] = claimed[k] && QUEUEABLE(length[k]);
            packed += claimed[k] ? PACK(1, length[k]) : 0;
        }
        const ulong before = found + group_scan(packed, scratch, &total);
        uint place = COUNT_OF(before);
        OFFSET offset = (OFFSET)EDGES_OF(before);
#pragma unroll
        for (uint k = 0; k < ITEMS; k++)
            if (claimed[k]) {
                next_queue[place] = target[k];
                next_offsets[place] = offset;
                if (place < ALONE_VERTICES) {
                    mine->vertex[now ^ 1][place] = target[k];
                    mine->list[now ^ 1][place] = list[k];
                    mine->begin[now ^ 1][place] = (ushort)offset;
                }
                place++;
                offset += length[k];
            }
        found += total;
    }
    return found;
}

/* Run levels by this work-group alone, as long as they are few edges top-down. It leaves the state as
 * it was before the last decision, and what the last level found in the step's counter, as if all
 * work-groups had run that level. */
static void run_alone(const Graph *graph, const Arrays *arrays, __global const REAL *schedule,
                      volatile __global ulong *counter, __global ulong *rows, __local Shared *mine)
{
    const uint lid = get_local_id(0);
    __local ulong *state = mine->state;
    uint q = (uint)state[QUEUE_INDEX], count = (uint)state[FRONTIER_VERTICES];
    uint edges = (uint)state[FRONTIER_EDGES];
    for (uint i = lid; i < count; i += GROUP) {
        const uint v = (q ? arrays->queue1 : arrays->queue0)[i];
        mine->level.alone.vertex[q][i] = v;
        mine->level.alone.list[q][i] = graph->indptr[v];
        mine->level.alone.begin[q][i] = (ushort)(q ? arrays->offsets1 : arrays->offsets0)[i];
    }
    while (true) {
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        const ulong found =
            push_alone(graph, q, count, edges,
                       state[VISITED_INDEX] ? arrays->visited1 : arrays->visited0, arrays->parent,
                       q ? arrays->queue0 : arrays->queue1, q ? arrays->offsets0 : arrays->offsets1,
                       &mine->level.alone, mine->scratch);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lid == 0) {
            for (uint i = 0; i < STATE_SIZE; i++)
                mine->saved[i] = state[i];
            decide(mine, found, schedule, rows, true);
            mine->runs = state[STEP] == ALONE;
            if (mine->runs)
                state[DONE] = mine->saved[DONE]; /* it is the same step */
            else
                *counter = found;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (!mine->runs)
            break;
        q ^= 1;
        count = (uint)COUNT_OF(found);
        edges = (uint)EDGES_OF(found);
    }
    if (lid < STATE_SIZE)
        state[lid] = mine->saved[lid];
}

/* Whether the grid makes progress together, and sees across a barrier what others wrote: `cells`,
 * one for each work-group, count the rounds. */
static bool probe(__global uint *cells, volatile __global uint *sync, uint group, uint groups,
                  uint patience, uint *generation, __local uint *alright)
{
    for (uint round = 1; round <= PROBE_ROUNDS; round++) {
        if (get_local_id(0) == 0)
            cells[group] = round;
        if (!grid_barrier(sync, group, groups, patience, generation, alright))
            return false;
        for (uint i = get_local_id(0); i < groups; i += GROUP)
            if (cells[i] != round)
                atomic_xchg(sync + GAVE_UP, 1);
        if (!grid_barrier(sync, group, groups, patience, generation, alright))
            return false;
    }
    return true;
}

/* Run steps until the search is over or wants the host. `patience`: polls after which a barrier
 * across the work-groups gives up. */
__kernel GROUP_SIZE void search(SEARCH_PARAMS, volatile __global uint *sync, __global uint *cells,
                               const uint patience)
{
    DECLARE_SEARCH
    /* After levels that ran alone. `before` is there too, which one launch for all does not read. */
    __global ulong *shared = report + begin % 2 * STATE_SIZE;
    uint generation = poll(sync + GENERATION);
    bool reload = false;
    if (mine.state[FLAGS] & PROBES) {
        const bool passed =
            probe(cells, sync, group, groups, patience, &generation, &mine.alright);
        if (group == 0 && lid == 0)
            after[STATUS] = passed ? ENDED : FAILED;
        return;
    }
    while (true) {
        if (lid == 0) {
            for (uint i = 0; reload && i < STATE_SIZE; i++)
                mine.state[i] = shared[i];
            decide(&mine, counters[mine.state[DONE] % NUM_COUNTERS], policy + POLICY_SIZE, rows,
                   true);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        const uint doing = (uint)mine.state[STEP];
        if (doing == DECIDE)
            break;
        volatile __global ulong *counter = counters + mine.state[DONE] % NUM_COUNTERS;
        if (group == 0 && lid == 0)
            counters[(mine.state[DONE] + 1) % NUM_COUNTERS] = 0;
        reload = doing == ALONE;
        if (reload && group == 0) {
            run_alone(&graph, &arrays, policy + POLICY_SIZE, counter, rows, &mine);
            barrier(CLK_LOCAL_MEM_FENCE);
            if (lid == 0)
                copy_state(mine.state, shared);
        } else if (doing == PULL) {
            run_pull(group, groups, &graph, &arrays, counter, &mine);
        } else if (doing == PUSH) {
            run_push(group, groups, &graph, &arrays, counter, &mine);
        } else if (!reload) {
            run_other(group, groups, &graph, &arrays, counter, &mine);
        }
        if (doing == FORGET) /* nothing comes after it */
            break;
        if (!grid_barrier(sync, group, groups, patience, &generation, &mine.alright)) {
            if (lid == 0)
                mine.state[STATUS] = FAILED;
            break;
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (group == 0 && lid == 0) {
        if (mine.state[STEP] == FORGET)
            mine.state[STEP] = DECIDE;
        if (poll(sync + GAVE_UP))
            mine.state[STATUS] = FAILED;
        copy_state(mine.state, after);
    }
}

#endif
