/* A search on an OpenCL device, from the first level to the last, without the host.
 *
 * A search is a state machine: each step decides what comes next, from the state and what the last
 * step counted, and does it with the whole grid. Every work-group decides for itself, from the
 * same numbers; after a squad (below) all take over what that decided. Between two steps all
 * work-groups must be done, which happens in one of two ways. Where a grid is known to make progress
 * together (`probe`), one launch of `search` runs all steps, with a barrier across the work-groups
 * between them. Elsewhere each launch runs one step at most: the host queues `step` until it says that
 * the search is over or wants the host. A compiler for processors chokes on all in one kernel; there
 * `push_step`, `pull_step` and `other_step` are queued, of which each runs if its step is decided for.
 *
 * The state is STATE_SIZE ulongs, named below; the first ones are level.py's. It comes as an
 * argument for the first launch and lies in `report` after it, in one of two places by turns. Then
 * `report` has one row of ROW_SIZE ulongs for each level since the host last looked: the packed
 * counter of what it found, the candidate that ran, and the clock when that was decided, when the
 * level began, and at its end.
 *
 * In `search`, while the frontier is small, a few work-groups run levels as a squad, each with a share
 * of the frontier in its own local memory, and the others wait for the end of that step: one alone
 * (ALONE), with no barrier but its own, or SQUAD_GROUPS, which tell each other what they found (SQUAD).
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
#define MODELLED_VERTICES 19 /* the state of the last level that a model was asked about */
#define MODELLED_EDGES 20
#define MODELLED_UNVISITED 21 /* edges */
#define MODELLED_FORM 22
#define STATE_SIZE 23

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
#define SQUAD 7

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

/* `sync`: where the work-groups of a grid wait for each other, spread over SPREAD cache lines, since
 * hundreds of them polling one word would keep each other, and all else in that part of the cache,
 * waiting. First one long for each SPREADth work-group that says how the last barrier ended, then
 * one uint each for arrivals, then GAVE_UP. */
#define SPREAD 32
#define LINE 32 /* uints */
#define ARRIVALS 1024 /* SPREAD * LINE */
#define GAVE_UP 2048
#define TURN ((ulong)1 << 63) /* which changes from barrier to barrier */

#define NUM_COUNTERS 3
#define PROBE_ROUNDS 64

#ifdef NVIDIA
/* Reads that loops cannot lose, and drop what the multiprocessor has cached; writes and additions that
 * others see after all before them. */
static uint poll(volatile __global uint *address)
{
    uint value;
    asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
    return value;
}
static ulong poll_long(volatile __global ulong *address)
{
    ulong value;
    asm volatile("ld.acquire.gpu.u64 %0, [%1];" : "=l"(value) : "l"(address) : "memory");
    return value;
}
static void post_long(volatile __global ulong *address, ulong value)
{
    asm volatile("st.release.gpu.u64 [%0], %1;" ::"l"(address), "l"(value) : "memory");
}
static void arrive(volatile __global uint *address, uint value)
{
    asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
}
#if SQUAD_GROUPS > 1
/* For words that say all themselves (tell_squad): nothing else is ordered by these. */
static void post_word(volatile __global ulong *address, ulong value)
{
    asm volatile("st.relaxed.gpu.u64 [%0], %1;" ::"l"(address), "l"(value) : "memory");
}
static ulong poll_word(volatile __global ulong *address)
{
    ulong value;
    asm volatile("ld.relaxed.gpu.u64 %0, [%1];" : "=l"(value) : "l"(address) : "memory");
    return value;
}
#endif
/* Nanoseconds. */
static ulong read_clock(void)
{
    ulong value;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(value)::"memory");
    return value;
}
#else
static uint poll(volatile __global uint *address)
{
    const uint value = atomic_or(address, 0);
    mem_fence(CLK_GLOBAL_MEM_FENCE);
    return value;
}
static ulong poll_long(volatile __global ulong *address)
{
    const ulong value = atom_add(address, 0);
    mem_fence(CLK_GLOBAL_MEM_FENCE);
    return value;
}
static void post_long(volatile __global ulong *address, ulong value)
{
    mem_fence(CLK_GLOBAL_MEM_FENCE);
    atom_xchg(address, value);
}
static void arrive(volatile __global uint *address, uint value)
{
    mem_fence(CLK_GLOBAL_MEM_FENCE);
    atomic_add(address, value);
}
#define post_word post_long
#define poll_word poll_long
static ulong read_clock(void)
{
    return 0;
}
#endif

/* The word that tells work-group `group` how the last barrier ended. */
static volatile __global ulong *end_word(volatile __global uint *sync, uint group)
{
    return (volatile __global ulong *)(sync + group % SPREAD * LINE);
}

/* Whether to poll once more. */
static bool is_patient(uint *patience, volatile __global uint *sync)
{
    if (!(--*patience & 1023) && poll(sync + GAVE_UP))
        *patience = 0;
    return *patience > 0;
}

/* Wait until all work-groups of the grid have come; false if they have not within `patience` polls.
 * They add to words that work-group 0 looks at side by side, and it says in as many that the barrier
 * ended: by `turn`, the same in every work-item, which changes each time, and what `counter` holds
 * then, which work-item 0 gets in `found`. */
static bool grid_barrier(volatile __global uint *sync, uint group, uint groups, uint patience,
                         volatile __global ulong *counter, ulong *turn, ulong *found,
                         __local uint *alright)
{
    const uint lid = get_local_id(0);
    *turn ^= TURN;
    if (lid == 0)
        *alright = 1;
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (group == 0) {
        if (lid < SPREAD) {
            const uint others = (groups + SPREAD - 1 - (lid ? lid : SPREAD)) / SPREAD;
            const uint wanted = *turn ? others : 0;
            while (poll(sync + ARRIVALS + lid * LINE) != wanted)
                if (!is_patient(&patience, sync)) {
                    atomic_xchg(sync + GAVE_UP, 1);
                    *alright = 0;
                    break;
                }
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        if (lid < SPREAD && *alright) {
            *found = poll_long(counter);
            post_long(end_word(sync, lid), *turn | *found);
        }
    } else if (lid == 0) {
        arrive(sync + ARRIVALS + group % SPREAD * LINE, *turn ? 1 : -1);
        ulong word = poll_long(end_word(sync, group));
        while ((word & TURN) != *turn && is_patient(&patience, sync))
            word = poll_long(end_word(sync, group));
        if (patience == 0) {
            /* Who has gone on meanwhile is seen now, or sees at its end that this one gave up. */
            atomic_xchg(sync + GAVE_UP, 1);
            word = poll_long(end_word(sync, group));
            *alright = (word & TURN) == *turn;
        }
        *found = word & ~TURN;
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    return *alright;
}

/* A work-group's share of a squad's frontier, and of the next one, by turns. It has at most ROOM edges,
 * and so finds at most ROOM vertices. */
typedef struct {
    uint vertex[2][ROOM];
    OFFSET begin[2][ROOM]; /* its first edge among the share's */
    OFFSET shift[2][ROOM]; /* edge in the share + shift = edge in the graph */
#if SQUAD_GROUPS > 1
    ushort entry[2][ROOM];     /* whose each edge is: lists are short here */
    ulong words[SQUAD_GROUPS]; /* what each work-group found */
#endif
} Share;

/* What a search writes; see kernels/bfs.py. */
typedef struct {
    __global uint *parent, *visited0, *visited1, *queue0, *queue1;
    __global OFFSET *offsets0, *offsets1;
} Arrays;

typedef struct {
    ulong state[STATE_SIZE], saved[STATE_SIZE];
    ulong scratch[SCAN_SIZE];
    ulong base;
    uint alright, runs, bounds[2];
    REAL policy[COPY_SIZE];
    Question question;
    union {
        TopDown top_down;
        BottomUp bottom_up;
        Share share;
    } level;
} Shared;

/* What the host is told of a level. */
typedef struct {
    ulong found, chosen, decided, began, ended;
} Row;

static void write_row(__global ulong *rows, ulong level, Row row)
{
    *(__global Row *)(rows + (uint)level % LOG_ROWS * ROW_SIZE) = row;
}

/* Move the state on by what the last step counted. See level.advance. */
static void consume(__local ulong *state, ulong last, ulong found, ulong now, __global ulong *rows)
{
    const ulong vertices = COUNT_OF(found), edges = EDGES_OF(found);
    if (last == TO_QUEUE) {
        state[FRONTIER_VERTICES] = vertices;
        state[FRONTIER_EDGES] = edges;
        state[FORM] = 0;
        return;
    }
    if (last != PUSH && last != ALONE && last != SQUAD && last != PULL)
        return;
    if (rows) {
        const Row row = {found, state[CHOSEN], state[DECIDED], state[BEGAN], now};
        write_row(rows, state[LEVEL], row);
    }
    state[VISITED_INDEX] ^= last == PULL;
    state[QUEUE_INDEX] ^= last != PULL;
    state[FORM] = last == PULL ? BITMAP : 0;
    state[PREVIOUS_EDGES] = state[FRONTIER_EDGES];
    state[FRONTIER_VERTICES] = vertices;
    state[FRONTIER_EDGES] = edges;
    state[UNVISITED_VERTICES] -= vertices;
    state[UNVISITED_EDGES] -= edges;
    state[LEVEL]++;
    state[CHOSEN] = NO_CHOICE;
}

/* Whether a model would hardly predict otherwise than for the last level it was asked about, for a
 * frontier of so many vertices and edges, in `form`, and so many unvisited edges. */
#define IS_ALIKE(state, vertices, edges, unvisited, form)                                        \
    ((form) == (state)[MODELLED_FORM] && is_near(vertices, (state)[MODELLED_VERTICES]) &&        \
     is_near(edges, (state)[MODELLED_EDGES]) && is_near(unvisited, (state)[MODELLED_UNVISITED]))

/* The candidate for the coming level, unless a model is asked; `before` is that of the level before,
 * if it ran here. */
static uint choose_level(__local ulong *state, ulong before, __local const REAL *policy,
                         __global const REAL *schedule, __local Question *question)
{
    const uint level = (uint)state[LEVEL], interval = (uint)policy[INTERVAL];
    if (before != NO_CHOICE && interval > 1 && level % interval)
        return (uint)before;
    if (policy[RULE] == MODEL) {
        if (before != NO_CHOICE &&
            IS_ALIKE(state, state[FRONTIER_VERTICES], state[FRONTIER_EDGES],
                     state[UNVISITED_EDGES], state[FORM]))
            return (uint)before;
        state[MODELLED_VERTICES] = state[FRONTIER_VERTICES];
        state[MODELLED_EDGES] = state[FRONTIER_EDGES];
        state[MODELLED_UNVISITED] = state[UNVISITED_EDGES];
        state[MODELLED_FORM] = state[FORM];
    }
    const Level features = {(REAL)state[FRONTIER_VERTICES],
                            (REAL)state[FRONTIER_EDGES],
                            (REAL)state[UNVISITED_VERTICES],
                            (REAL)state[UNVISITED_EDGES],
                            level ? (REAL)state[PREVIOUS_EDGES]
                                  : max((REAL)state[FRONTIER_EDGES], (REAL)1) / policy[MEAN_DEGREE],
                            (uint)state[FORM],
                            level};
    return choose(policy, schedule, &features, question);
}

/* The step for the coming level, whose candidate is chosen. */
static ulong next_step(__local ulong *state, __local const REAL *policy, bool may_be_squad)
{
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
    if (!may_be_squad || state[LEVEL] == 0)
        return PUSH;
    if (state[FRONTIER_EDGES] <= ALONE_EDGES)
        return ALONE;
    return state[FRONTIER_EDGES] <= SQUAD_EDGES ? SQUAD : PUSH;
}

/* Move the state on by the last step, which counted `found`, and find out what is to do now; one
 * work-item. Returns whether it is a level, whose candidate is chosen or asked for. */
static bool look(__local Shared *mine, ulong found, ulong now, __global const REAL *schedule,
                 __global ulong *rows)
{
    __local ulong *state = mine->state;
    const ulong last = state[STEP], before = state[CHOSEN];
    state[STEP] = DECIDE;
    if (last == BEGIN)
        state[ROOT] = NO_VERTEX;
    if (state[STATUS] != RUNNING)
        return false;
    consume(state, last, found, now, rows);
    const bool over = state[FRONTIER_EDGES] == 0 || state[UNVISITED_VERTICES] == 0;
    if (state[ROOT] != NO_VERTEX) {
        state[STEP] = BEGIN;
    } else if (state[FLAGS] & CONVERTS) {
        state[STEP] = last == TO_QUEUE ? DECIDE : TO_QUEUE;
        state[STATUS] = last == TO_QUEUE ? ENDED : RUNNING;
        state[BEGAN] = last == TO_QUEUE ? now : state[BEGAN];
        state[DECIDED] = last == TO_QUEUE ? state[DECIDED] : now;
    } else if (over || state[LEVEL] >= state[LIMIT]) {
        state[STATUS] = ENDED;
        if (state[FLAGS] & FORGETS)
            state[STEP] = FORGET;
    } else {
        state[BEGAN] = now;
        if (last != TO_QUEUE)
            state[DECIDED] = now;
        if (state[CHOSEN] == NO_CHOICE)
            state[CHOSEN] =
                choose_level(state, before, mine->policy, schedule, &mine->question);
        return true;
    }
    return false;
}

/* Say what comes next, if `due`; the whole work-group. `found` is what the last step counted, in
 * work-item 0. Barriers are outside of conditions, for PoCL's compiler. */
static void decide(bool due, __local Shared *mine, ulong found, __global const REAL *schedule,
                   __global ulong *rows, bool may_be_squad)
{
    const uint lid = get_local_id(0);
    __local ulong *state = mine->state;
    bool is_level = false;
    if (lid == 0) {
        mine->question.asked = 0;
        if (due)
            is_level = look(mine, found, rows ? read_clock() : 0, schedule, rows);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (mine->question.asked && lid < (uint)mine->policy[CANDIDATES])
        mine->question.seconds[lid] = predict(mine->policy, &mine->question, lid);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lid == 0 && due) {
        if (mine->question.asked)
            state[CHOSEN] = least(mine->policy, &mine->question);
        if (is_level)
            state[STEP] = next_step(state, mine->policy, may_be_squad);
        state[DONE] += state[STEP] != DECIDE;
    }
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

#ifdef ONE_LAUNCH
#define ONE_STEP
#endif

#ifdef ONE_STEP
/* Run a step that is no squad's: the share of work-group `group`. */
static void run_step(uint group, uint groups, const Graph *graph, const Arrays *arrays,
                     volatile __global ulong *counter, __local Shared *mine)
{
    const uint doing = (uint)mine->state[STEP];
    if (doing == PULL)
        run_pull(group, groups, graph, arrays, counter, mine);
    else if (doing == PUSH)
        run_push(group, groups, graph, arrays, counter, mine);
    else
        run_other(group, groups, graph, arrays, counter, mine);
}
#endif

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

/* Tell whether the step is of one of the `kinds`, as bits, and then is no longer pending; one
 * work-item. Work-group 0 brings the state on. */
static bool take_step(uint kinds, volatile __global ulong *counters, __global ulong *rows,
                      __global ulong *after, __local ulong *state)
{
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
        const bool due = lid == 0 && !is_over(mine.state) && !mine.state[PENDING];              \
        const ulong found = due ? counters[mine.state[DONE] % NUM_COUNTERS] : 0;                \
        decide(due, &mine, found, policy + POLICY_SIZE, rows, false);                           \
        if (lid == 0) {                                                                         \
            if (due)                                                                            \
                mine.state[PENDING] = mine.state[STEP] != DECIDE;                               \
            mine.runs = take_step(kinds, counters, rows, after, mine.state);                    \
        }                                                                                       \
        barrier(CLK_LOCAL_MEM_FENCE);                                                           \
        if (!mine.runs)                                                                         \
            return;                                                                             \
        volatile __global ulong *counter = counters + mine.state[DONE] % NUM_COUNTERS;          \
        run;                                                                                    \
    }

#define OTHERS (1 << BEGIN | 1 << TO_QUEUE | 1 << FORGET)
#ifdef ONE_STEP
STEP_KERNEL(step, 1 << PUSH | 1 << PULL | OTHERS,
            run_step(group, groups, &graph, &arrays, counter, &mine))
#else
STEP_KERNEL(push_step, 1 << PUSH, run_push(group, groups, &graph, &arrays, counter, &mine))
STEP_KERNEL(pull_step, 1 << PULL, run_pull(group, groups, &graph, &arrays, counter, &mine))
STEP_KERNEL(other_step, OTHERS, run_other(group, groups, &graph, &arrays, counter, &mine))
#endif

#ifdef ONE_LAUNCH

/* Edges of a share that a work-item takes, all that there is room for. */
#define SHARE_ITEMS ((ROOM + GROUP - 1) / GROUP)

/* Find whose the share's edges are that this work-item takes. */
static void find_entries(uint now, uint count, uint edges, uint *entry, __local const Share *mine)
{
    const uint lid = get_local_id(0);
#if SQUAD_GROUPS > 1
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

/* Read the edges that this work-item takes of the share in slot `now`, `count` vertices with `edges`
 * edges: their ends, `target` and `source`; NO_VERTEX if there are not so many. Nothing that a search
 * writes is read. */
static void read_edges(const Graph *graph, uint now, uint count, uint edges, uint *target,
                       uint *source, __local const Share *mine)
{
    const uint lid = get_local_id(0);
    uint entry[SHARE_ITEMS];
    find_entries(now, count, edges, entry, mine);
#pragma unroll
    for (uint k = 0; k < SHARE_ITEMS; k++) {
        const uint edge = k * GROUP + lid;
        target[k] = NO_VERTEX;
        if (edge < edges) {
            target[k] = load_edge(&graph->forward, mine->shift[now][entry[k]] + edge);
            source[k] = mine->vertex[now][entry[k]];
        }
    }
}

/* Put a vertex into a share, at a place of its own. Of a share of more than ROOM edges nobody asks
 * whose they are. */
static void put(uint slot, uint place, uint v, OFFSET list, OFFSET begin, uint length,
                __local Share *mine)
{
    mine->vertex[slot][place] = v;
    mine->begin[slot][place] = begin;
    mine->shift[slot][place] = list - begin;
#if SQUAD_GROUPS > 1
    for (OFFSET edge = begin; edge < min(begin + length, (OFFSET)ROOM); edge++)
        mine->entry[slot][edge] = (ushort)place;
#endif
}

#if SQUAD_GROUPS > 1
/* A work-group of a squad says in one word what it found: the number of the level, vertices, edges. */
#define SQUAD_EDGE_BITS 20
#define MISSING (1u << SQUAD_EDGE_BITS) /* more than any has */
#define SQUAD_FOUND(word) \
    PACK((uint)(word) >> SQUAD_EDGE_BITS, (word) & (((ulong)1 << SQUAD_EDGE_BITS) - 1))

/* Tell the squad what this work-group found at level `turn`; one work-item. Others' claims come after
 * ours since the word depends on what ours returned, which hardware keeps to, though PTX's memory
 * model does not name it; a squad's work-groups hand each other nothing else. */
static void tell_squad(volatile __global ulong *word, uint turn, ulong found)
{
    post_word(word, (ulong)turn << 32 | COUNT_OF(found) << SQUAD_EDGE_BITS | EDGES_OF(found));
}

/* Wait for one work-group's word of the level `turn`; 0 if it does not come. */
static ulong await_word(volatile __global ulong *word, uint turn, volatile __global uint *sync,
                        uint patience)
{
    ulong value = poll_word(word);
    while (value >> 32 != turn) {
        if (!is_patient(&patience, sync)) {
            atomic_xchg(sync + GAVE_UP, 1);
            return 0;
        }
        value = poll_word(word);
    }
    return value;
}

/* Add what a word says, or that it is missing, to sums and to the most edges. */
static void add_word(ulong word, uint *vertices, uint *edges, uint *largest)
{
    const uint more = word ? (uint)EDGES_OF(SQUAD_FOUND(word)) : MISSING;
    *vertices += (uint)COUNT_OF(SQUAD_FOUND(word));
    *edges += more;
    *largest = max(*largest, more);
}

/* Wait for the words of all work-groups: a barrier for a squad. Words of two levels lie apart, since
 * who is slow may still read the one when who is fast writes the other. Returns to work-item 0 what
 * all found, and `most`, the edges of the one that has most; nothing and MISSING if some did not
 * come. The words are in `mine` after a barrier. */
static ulong hear_squad(uint turn, volatile __global ulong *words, volatile __global uint *sync,
                        uint patience, OFFSET *most, __local Share *mine)
{
    const uint lid = get_local_id(0);
    uint vertices = 0, edges = 0, largest = 0;
#ifdef NVIDIA
    if (lid >= 32)
        return 0;
    for (uint i = lid; i < SQUAD_GROUPS; i += 32) {
        mine->words[i] = await_word(words + i, turn, sync, patience);
        add_word(mine->words[i], &vertices, &edges, &largest);
    }
#pragma unroll
    for (uint distance = 16; distance; distance >>= 1) {
        vertices += shuffle_down(vertices, distance);
        edges += shuffle_down(edges, distance);
        largest = max(largest, shuffle_down(largest, distance));
    }
#else
    for (uint i = lid; i < SQUAD_GROUPS; i += GROUP)
        mine->words[i] = await_word(words + i, turn, sync, patience);
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    for (uint i = 0; i < SQUAD_GROUPS; i++)
        add_word(mine->words[i], &vertices, &edges, &largest);
#endif
    *most = largest;
    return largest < MISSING ? PACK(vertices, edges) : 0;
}
#endif

/* Claim the ends of edges that `read_edges` read, and put what is found into slot `next`; returns that
 * in number. A claim, and what is read of the vertex if it succeeds, are under way together. With
 * `word`, the squad is told (tell_squad) as soon as it is known. */
static ulong push_edges(const Graph *graph, uint next, const uint *target, const uint *source,
                        __global uint *visited, __global uint *parent,
                        volatile __global ulong *word, uint turn, __local Share *mine,
                        __local ulong *scratch)
{
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
    const ulong before = group_scan(packed, scratch, &total);
#if SQUAD_GROUPS > 1
    if (word && get_local_id(0) == 0)
        tell_squad(word, turn, total);
#endif
    uint place = COUNT_OF(before);
    OFFSET offset = (OFFSET)EDGES_OF(before);
#pragma unroll
    for (uint k = 0; k < SHARE_ITEMS; k++)
        if (claimed[k]) {
            put(next, place, target[k], list[k], offset, length[k], mine);
            place++;
            offset += length[k];
        }
    return total;
}

/* Put the share of work-group `group` of a frontier in the queue, cut by edges among `size`
 * work-groups, into slot 0; returns its vertices and edges. */
static ulong take_share(uint group, uint size, const Graph *graph, uint count, OFFSET edges,
                        __global const uint *queue, __global const OFFSET *offsets,
                        __local Share *mine, __local uint *bounds, __local ulong *scratch)
{
    const uint lid = get_local_id(0);
    uint first = 0, past = count;
    if (size > 1) { /* vertices whose first edge lies in [low, high) */
        const OFFSET low = (OFFSET)((ulong)edges * group / size);
        const OFFSET high = (OFFSET)((ulong)edges * (group + 1) / size);
        find_bounds(low, high, count, offsets, bounds, scratch);
        first = bounds[0] + (offsets[bounds[0]] < low);
        past = bounds[1] + (offsets[bounds[1]] < high);
    }
    const OFFSET begin = first < count ? offsets[first] : edges;
    const OFFSET end = past < count ? offsets[past] : edges;
    for (uint i = lid; first + i < past; i += GROUP) {
        const uint v = queue[first + i];
        put(0, i, v, graph->indptr[v], offsets[first + i] - begin, graph->degree[v], mine);
    }
    return PACK(past - first, end - begin);
}

/* Write this work-group's share to the queue for all, after what others have. */
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

/* Move the state on if the coming level surely is to be run as the last one by a squad, as `decide`
 * would find out at greater length; one work-item. */
static bool go_on(ulong found, ulong fewest, ulong most, __local Shared *mine)
{
    __local ulong *state = mine->state;
    const ulong edges = EDGES_OF(found), vertices = COUNT_OF(found), level = state[LEVEL] + 1;
    const ulong unvisited = state[UNVISITED_EDGES] - edges;
    const ulong unvisited_vertices = state[UNVISITED_VERTICES] - vertices;
    const uint rule = (uint)mine->policy[RULE];
    bool alike;
    if (rule == FIXED)
        alike = level >= (uint)mine->policy[SCHEDULE_SIZE];
    else if (rule == DIRECTION)
        alike = (REAL)(uint)edges * mine->policy[ALPHA] <= (REAL)unvisited;
    else
        alike = IS_ALIKE(state, vertices, edges, unvisited, 0);
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

/* Run levels as one of a squad's `size` work-groups, as long as they are few edges top-down. The
 * step that comes then is decided on already. `words`: where they tell each other what they found. */
static void run_squad(uint group, uint size, const Graph *graph, const Arrays *arrays,
                      __global const REAL *schedule, __global ulong *rows,
                      volatile __global ulong *words,
                      volatile __global uint *sync, uint patience, __local Shared *mine)
{
    const uint lid = get_local_id(0);
    __local ulong *state = mine->state;
    __local Share *mine_share = &mine->level.share;
    const ulong step = state[STEP];
    /* A squad stays one for few edges too: coming and going takes time. */
    const ulong fewest = step == SQUAD ? ALONE_EDGES / 2 : 0;
    const ulong most_edges = step == SQUAD ? SQUAD_EDGES : ALONE_EDGES;
    __global uint *visited = state[VISITED_INDEX] ? arrays->visited1 : arrays->visited0;
    uint q = (uint)state[QUEUE_INDEX], slot = 0, levels = 0;
    ulong chosen = 0, decided = state[DECIDED], began = state[BEGAN], ended = 0; /* of the last row */
    uint target[SHARE_ITEMS], source[SHARE_ITEMS];
    ulong share = take_share(group, size, graph, (uint)state[FRONTIER_VERTICES],
                             (OFFSET)state[FRONTIER_EDGES], q ? arrays->queue1 : arrays->queue0,
                             q ? arrays->offsets1 : arrays->offsets0, mine_share, mine->bounds,
                             mine->scratch);
#if SQUAD_GROUPS > 1
    uint turn = (uint)(max(words[group], words[SQUAD_GROUPS + group]) >> 32);
#else
    const uint turn = 0;
#endif
    barrier(CLK_LOCAL_MEM_FENCE);
    read_edges(graph, slot, (uint)COUNT_OF(share), (uint)EDGES_OF(share), target, source,
               mine_share);
    while (true) {
        volatile __global ulong *word = 0;
#if SQUAD_GROUPS > 1
        turn++;
        if (step == SQUAD)
            word = words + turn % 2 * SQUAD_GROUPS;
#endif
        if (lid < STATE_SIZE)
            mine->saved[lid] = state[lid];
        slot ^= 1;
        share = push_edges(graph, slot, target, source, visited, arrays->parent,
                           word ? word + group : 0, turn, mine_share, mine->scratch);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (EDGES_OF(share) <= ROOM) /* for the next level, beside what follows */
            read_edges(graph, slot, (uint)COUNT_OF(share), (uint)EDGES_OF(share), target, source,
                       mine_share);
        ulong found = share;
        OFFSET most = 0;
#if SQUAD_GROUPS > 1
        if (word)
            found = hear_squad(turn, word, sync, patience, &most, mine_share);
#endif
        if (lid == 0)
            mine->runs = most <= ROOM && go_on(found, fewest, most_edges, mine);
        if (rows && lid == GROUP - 1) { /* beside work-item 0, in another warp */
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
                const bool goes_on = state[STEP] == step || (step == SQUAD && state[STEP] == ALONE &&
                                                             state[FRONTIER_EDGES] > fewest);
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
#if SQUAD_GROUPS > 1
    for (uint i = 0; step == SQUAD && i < group; i++)
        before += SQUAD_FOUND(mine_share->words[i]);
#endif
    if (rows && lid == GROUP - 1) {
        ended = read_clock(); /* others may have been slower, and deciding belongs to the level */
        const Row row = {PACK(state[FRONTIER_VERTICES], state[FRONTIER_EDGES]), chosen, decided,
                         began, ended};
        write_row(rows, mine->saved[LEVEL], row);
        state[DECIDED] = state[BEGAN] = ended;
    }
    leave_share(slot, share, before, q ? arrays->queue0 : arrays->queue1,
                q ? arrays->offsets0 : arrays->offsets1, mine_share);
}

/* Whether the grid makes progress together, and sees across a barrier what others wrote: `cells`,
 * one for each work-group, count the rounds. */
static bool probe(__global uint *cells, volatile __global uint *sync, uint group, uint groups,
                  uint patience, volatile __global ulong *counter, ulong *turn,
                  __local uint *alright)
{
    ulong found;
    for (uint round = 1; round <= PROBE_ROUNDS; round++) {
        barrier(CLK_LOCAL_MEM_FENCE); /* all have read how the last barrier ended */
        if (get_local_id(0) == 0)
            cells[group] = round;
        if (!grid_barrier(sync, group, groups, patience, counter, turn, &found, alright))
            return false;
        for (uint i = get_local_id(0); i < groups; i += GROUP)
            if (cells[i] != round)
                atomic_xchg(sync + GAVE_UP, 1);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (!grid_barrier(sync, group, groups, patience, counter, turn, &found, alright))
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
    /* The state after a squad's levels, in one of two places by turns: who is late may still read the
     * one when the next squad writes the other. */
    volatile __global ulong *shared = counters + NUM_COUNTERS + 2 * SQUAD_GROUPS;
    uint squads = 0;
    ulong turn = poll_long(end_word(sync, group)) & TURN;
    ulong found = lid ? 0 : counters[mine.state[DONE] % NUM_COUNTERS];
    bool reload = false;
    if (mine.state[FLAGS] & PROBES) {
        const bool passed =
            probe(cells, sync, group, groups, patience, counters, &turn, &mine.alright);
        if (group == 0 && lid == 0)
            after[STATUS] = passed ? ENDED : FAILED;
        return;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    while (true) {
        if (reload && lid < STATE_SIZE)
            mine.state[lid] = shared[squads % 2 * STATE_SIZE + lid];
        decide(!reload, &mine, found, policy + POLICY_SIZE, rows, true);
        barrier(CLK_LOCAL_MEM_FENCE);
        const uint doing = (uint)mine.state[STEP];
        if (doing == DECIDE)
            break;
        volatile __global ulong *counter = counters + mine.state[DONE] % NUM_COUNTERS;
        if (group == 0 && lid == 0)
            counters[(mine.state[DONE] + 1) % NUM_COUNTERS] = 0;
        const uint squad = doing == ALONE ? 1 : doing == SQUAD ? SQUAD_GROUPS : 0;
        reload = squad > 0;
        squads += reload;
        if (group < squad) {
            run_squad(group, squad, &graph, &arrays, policy + POLICY_SIZE, rows,
                      counters + NUM_COUNTERS, sync, patience, &mine);
            barrier(CLK_LOCAL_MEM_FENCE);
            if (group == 0 && lid < STATE_SIZE)
                shared[squads % 2 * STATE_SIZE + lid] = mine.state[lid];
        } else if (!reload) {
            run_step(group, groups, &graph, &arrays, counter, &mine);
        }
        if (doing == FORGET) /* nothing comes after it */
            break;
        if (!grid_barrier(sync, group, groups, patience, counter, &turn, &found,
                          &mine.alright)) {
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
