/* The steps of a search: its state, the choice of the next step, and the work of a step.
 *
 * The state is STATE_WORDS ulongs. schema.py names the first ones, steps.py the others. The first
 * launch gets it as an argument. After that it is in `report`, which has two slots for states, used
 * alternately. After these `report` has one row of ROW_WORDS ulongs for each level since the host
 * last read them: the packed counts of the level, its candidate, and the clock when the candidate
 * was chosen, when the level began, and when it ended. */

typedef struct {
    ulong words[STATE_WORDS];
} State;

#define NO_CHOICE ((ulong)-1)

/* A work-group's shares of the cooperating groups' frontier and of the next frontier, in two slots
 * used alternately. A share has at most ROOM edges, and so finds at most ROOM vertices. */
typedef struct {
    uint vertex[2][ROOM];
    OFFSET begin[2][ROOM]; /* its first edge, as an index into the edges of the share */
    OFFSET shift[2][ROOM]; /* edge in the share + shift = edge in the graph */
#if COOPERATIVE_GROUPS > 1
    ushort entry[2][ROOM];           /* index of each edge's vertex: lists are short here */
    ulong words[COOPERATIVE_GROUPS]; /* counts of each work-group */
#endif
} Share;

/* The arrays that a search writes; see level.py. */
typedef struct {
    __global uint *parent, *visited0, *visited1, *queue0, *queue1;
    __global OFFSET *offsets0, *offsets1;
    volatile __global ulong *counters;
} Arrays;

/* The two words in which step number `done` counts: its finds, and the lists that it leaves. */
#define COUNTER(counters, done) ((counters) + (done) % NUM_COUNTERS * COUNTER_WORDS)

/* Clear the counter of the step after step number `done`. Nothing reads or writes it meanwhile. */
static void clear_next_counter(volatile __global ulong *counters, ulong done)
{
    for (uint i = 0; i < COUNTER_WORDS; i++)
        COUNTER(counters, done + 1)[i] = 0;
}

typedef struct {
    ulong state[STATE_WORDS], saved[STATE_WORDS];
    ulong scratch[SCAN_SIZE];
    ulong base;
    uint alright, runs, bounds[2];
    REAL policy[COPY_SIZE];
    Question question;
    union {
        TopDown top_down;
        BottomUp bottom_up;
#ifdef ONE_LAUNCH
        Share share;
#endif
    } level;
} Shared;

/* The report on a level for the host. */
typedef struct {
    ulong found, chosen, decided, began, ended;
} Row;

static void write_row(__global ulong *rows, ulong level, Row row)
{
    *(__global Row *)(rows + (uint)level % LOG_ROWS * ROW_WORDS) = row;
}

/* Advance the state by the counts of the last step; see `advance` in schema.py. */
static void consume(__local ulong *state, ulong last, ulong found, ulong now, __global ulong *rows)
{
    const ulong vertices = COUNT_OF(found), edges = EDGES_OF(found);
    if (last == TO_QUEUE) {
        state[FRONTIER_VERTICES] = vertices;
        state[FRONTIER_EDGES] = edges;
        state[REPRESENTATION] = 0;
        return;
    }
    if (last != PUSH && last != ALONE && last != COOPERATE && last != PULL)
        return;
    if (rows) {
        const Row row = {found, state[CHOSEN], state[DECIDED], state[BEGAN], now};
        write_row(rows, state[LEVEL], row);
    }
    state[VISITED_INDEX] ^= last == PULL;
    state[QUEUE_INDEX] ^= last != PULL;
    state[REPRESENTATION] = last == PULL ? BITMAP : 0;
    state[PREVIOUS_EDGES] = state[FRONTIER_EDGES];
    state[FRONTIER_VERTICES] = vertices;
    state[FRONTIER_EDGES] = edges;
    state[UNVISITED_VERTICES] -= vertices;
    state[UNVISITED_EDGES] -= edges;
    state[LEVEL]++;
    state[CHOSEN] = NO_CHOICE;
}

/* One number that combines a frontier's representation with the side of each jump of the
 * predictions on which its level is (`steps_of` in policy.py). */
#define KIND_OF_LEVEL(policy, edges, unvisited_vertices, representation)                         \
    ((representation) +                                                                          \
     2 * (ulong)steps_of((policy)[NUM_VERTICES], edges, unvisited_vertices))

/* Whether a model would choose the same as for the last level for which it was evaluated.
 * `vertices`, `edges` and `kind` are the frontier's, `unvisited` is the number of unvisited
 * edges. */
#define IS_ALIKE(state, vertices, edges, unvisited, kind)                                        \
    ((kind) == (state)[MODELLED_REPRESENTATION] &&                                               \
     is_near(vertices, (state)[MODELLED_VERTICES], as_float((uint)(state)[MODELLED_WITHIN])) &&  \
     is_near(edges, (state)[MODELLED_EDGES], as_float((uint)(state)[MODELLED_WITHIN])) &&        \
     is_near(unvisited, (state)[MODELLED_UNVISITED], as_float((uint)(state)[MODELLED_WITHIN])))

/* The candidate for the next level. If a model must be evaluated, the return value has no meaning.
 * `before` is the candidate of the last level, or NO_CHOICE if that did not run here. */
static uint choose_level(__local ulong *state, ulong before, __local const REAL *policy,
                         __global const REAL *schedule, __local Question *question)
{
    const uint level = (uint)state[LEVEL], interval = (uint)policy[INTERVAL];
    if (before != NO_CHOICE && interval > 1 && level % interval)
        return (uint)before;
    if (policy[RULE] == MODEL) {
        const ulong kind = KIND_OF_LEVEL(policy, state[FRONTIER_EDGES], state[UNVISITED_VERTICES],
                                         state[REPRESENTATION]);
        if (before != NO_CHOICE &&
            IS_ALIKE(state, state[FRONTIER_VERTICES], state[FRONTIER_EDGES],
                     state[UNVISITED_EDGES], kind))
            return (uint)before;
        state[MODELLED_VERTICES] = state[FRONTIER_VERTICES];
        state[MODELLED_EDGES] = state[FRONTIER_EDGES];
        state[MODELLED_UNVISITED] = state[UNVISITED_EDGES];
        state[MODELLED_REPRESENTATION] = kind;
    }
    REAL features[RECORD_STATE];
#pragma unroll
    for (uint i = 0; i < RECORD_STATE; i++)
        features[i] = (REAL)state[i];
    if (!level)
        features[PREVIOUS_EDGES] = max(features[FRONTIER_EDGES], (REAL)1) / policy[MEAN_DEGREE];
    return choose(policy, schedule, features, question);
}

/* The step for the next level, whose candidate is chosen. */
static ulong next_step(__local ulong *state, __local const REAL *policy, bool may_cooperate)
{
    const uint chosen = (uint)state[CHOSEN];
    const bool top_down = policy[IS_TOP_DOWN(chosen)] != 0;
    if (top_down && state[REPRESENTATION] == BITMAP)
        return TO_QUEUE; /* here also for the host */
    if (policy[ON_DEVICE(chosen)] == 0) {
        state[STATUS] = LEAVES;
        return state[FLAGS] & INVALIDATES ? INVALIDATE : DECIDE;
    }
    if (!top_down)
        return PULL;
    /* After the first level there are often too many edges for cooperating groups, and rejoining
     * the other work-groups takes time. */
    if (!may_cooperate || state[LEVEL] == 0)
        return PUSH;
    if (state[FRONTIER_EDGES] <= SINGLE_GROUP_EDGES)
        return ALONE;
    return state[FRONTIER_EDGES] <= COOPERATIVE_EDGES ? COOPERATE : PUSH;
}

/* Advance the state by the last step, which counted `found`, and decide what to do now; one
 * work-item calls this. Return whether that is a level. Then its candidate is chosen, or a model
 * must be evaluated. */
static bool look(__local Shared *mine, ulong found, ulong now, __global const REAL *schedule,
                 __global ulong *rows)
{
    __local ulong *state = mine->state;
    const ulong last = state[STEP], before = state[CHOSEN];
    state[STEP] = DECIDE;
    if (last == BEGIN)
        state[SOURCE] = NO_VERTEX;
    if (state[STATUS] != RUNNING)
        return false;
    if (last == PULL && found & HAS_REST) {
        state[HELD] = found ^ HAS_REST;
        state[STEP] = PULL_REST;
        return false;
    }
    consume(state, last == PULL_REST ? PULL : last, found + state[HELD], now, rows);
    state[HELD] = 0;
    const bool over = state[FRONTIER_EDGES] == 0 || state[UNVISITED_VERTICES] == 0;
    if (state[SOURCE] != NO_VERTEX) {
        state[STEP] = BEGIN;
    } else if (state[FLAGS] & CONVERTS) {
        state[STEP] = last == TO_QUEUE ? DECIDE : TO_QUEUE;
        state[STATUS] = last == TO_QUEUE ? ENDED : RUNNING;
        state[BEGAN] = last == TO_QUEUE ? now : state[BEGAN];
        state[DECIDED] = last == TO_QUEUE ? state[DECIDED] : now;
    } else if (over || state[LEVEL] >= state[LIMIT]) {
        state[STATUS] = ENDED;
        if (state[FLAGS] & INVALIDATES)
            state[STEP] = INVALIDATE;
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

/* Decide the next step, if `due`; the whole work-group calls this. In work-item 0 `found` has the
 * counts of the last step. No barrier is inside a condition, for PoCL's compiler. */
static void decide(bool due, __local Shared *mine, ulong found, __global const REAL *schedule,
                   __global ulong *rows, bool may_cooperate)
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
        if (mine->question.asked) {
            REAL within;
            state[CHOSEN] = least(mine->policy, &mine->question, &within);
            state[MODELLED_WITHIN] = as_uint(within);
        }
        if (is_level)
            state[STEP] = next_step(state, mine->policy, may_cooperate);
        state[DONE] += state[STEP] != DECIDE;
    }
}

/* Return the data of a step. The state says which of the `arrays` belong to the frontier. */
static Step step_of(uint group, uint groups, const Arrays *arrays, __local Shared *mine)
{
    const bool v = mine->state[VISITED_INDEX], q = mine->state[QUEUE_INDEX];
    volatile __global ulong *counter = COUNTER(arrays->counters, mine->state[DONE]);
    const Step step = {group,
                       groups,
                       arrays->parent,
                       v ? arrays->visited1 : arrays->visited0,
                       v ? arrays->visited0 : arrays->visited1,
                       q ? arrays->queue1 : arrays->queue0,
                       q ? arrays->queue0 : arrays->queue1,
                       q ? arrays->offsets1 : arrays->offsets0,
                       q ? arrays->offsets0 : arrays->offsets1,
                       counter,
                       arrays->queue0, /* a bottom-up level needs no queue */
                       arrays->offsets0,
                       arrays->offsets1,
                       mine->scratch,
                       &mine->base};
    return step;
}

/* The four functions below run work-group `group`'s share of a step, if it is `due`. Otherwise the
 * work-group passes the same barriers, since compilers fail on a barrier within a condition. */

/* Begin a search, convert its bitmap into a queue, or end it. */
static void run_other(bool due, uint group, uint groups, const Graph *graph,
                      const Arrays *arrays, __local Shared *mine)
{
    __local const ulong *state = mine->state;
    const Step step = step_of(group, groups, arrays, mine);
    if (due && state[STEP] == BEGIN)
        start(&step, graph->words, (uint)state[SOURCE]);
    else if (due && state[STEP] == INVALIDATE)
        invalidate_stale_parents(&step, graph->n, graph->words);
    bitmap_to_queue(&step, due && state[STEP] == TO_QUEUE ? graph->words : 0, graph->degree,
                    graph->word_degree);
}

static void run_push(bool due, uint group, uint groups, const Graph *graph,
                     const Arrays *arrays, __local Shared *mine)
{
    const Step step = step_of(group, groups, arrays, mine);
    top_down(&step, graph, due ? (uint)mine->state[FRONTIER_VERTICES] : 0,
             due ? (OFFSET)mine->state[FRONTIER_EDGES] : 0, &mine->level.top_down);
}

static void run_pull(bool due, uint group, uint groups, const Graph *graph,
                     const Arrays *arrays, __local Shared *mine)
{
    __local const ulong *state = mine->state;
    const Step step = step_of(group, groups, arrays, mine);
    const bool has_cache = mine->policy[VARIANT(due ? (uint)state[CHOSEN] : 0)] != 0;
    bottom_up(&step, graph, due ? graph->words : 0, state[UNVISITED_VERTICES],
              own_edges(state[FRONTIER_EDGES], state[UNVISITED_EDGES]),
              has_cache ? CACHED_WORDS : 0, &mine->level.bottom_up);
}

/* The lists that a bottom-up level left. They are not in `run_pull`, since they took registers from
 * the level: small levels took 7.3 us, without them 6.4 (H200, 2026-11-27). */
static void run_rest(bool due, uint group, uint groups, const Graph *graph,
                     const Arrays *arrays, __local Shared *mine)
{
    const Step step = step_of(group, groups, arrays, mine);
    pull_left_lists(&step, graph,
                    due ? COUNTER(arrays->counters, mine->state[DONE] - 1)[1] : 0);
}

#ifdef ONE_LAUNCH
/* Run the share of work-group `group` of a step that is not for cooperating groups. */
static void run_step(uint group, uint groups, const Graph *graph, const Arrays *arrays,
                     __local Shared *mine)
{
    const uint doing = (uint)mine->state[STEP];
    if (doing == PULL)
        run_pull(true, group, groups, graph, arrays, mine);
    else if (doing == PULL_REST)
        run_rest(true, group, groups, graph, arrays, mine);
    else if (doing == PUSH)
        run_push(true, group, groups, graph, arrays, mine);
    else
        run_other(true, group, groups, graph, arrays, mine);
}
#endif
