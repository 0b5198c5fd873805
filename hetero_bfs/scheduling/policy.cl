/* Chooses a strategy: a policy is data, and one function evaluates it, as in policy.py, which
 * explains rules and columns, lays out the data, and lists the functions that come from Python. The
 * twins of `choose_level` and `_is_alike` are in steps.cl. CAUTION concerns levels on the host
 * only. A level is an array of RECORD_STATE numbers (schema.py).
 *
 * The search waits for the choice, so it must be fast. REAL is float, since seconds need no more
 * digits. Each work-item predicts one candidate, and one of them does the rest. Data that is read
 * at every level is in local memory. */

typedef float REAL;

#define CANDIDATE(s) (MIGRATIONS + 6 * MIGRATION_COLUMNS + (s) * CANDIDATE_SIZE)
#define CANDIDATE_SIZE (2 * NUM_COLUMNS + 3)
/* Its weights for small or for large levels, then its traits. */
#define WEIGHTS(s, size) (CANDIDATE(s) + (size) * NUM_COLUMNS)
/* The cost-to-go table, or a schedule's stretches (device_policy.py), follow. */
#define POLICY_SIZE CANDIDATE(MOST_CANDIDATES)
/* Items in local memory. */
#define COPY_SIZE (POLICY_SIZE + MOST_COST_TO_GO_ROWS * (1 + MOST_CANDIDATES))
#define ON_DEVICE(s) (CANDIDATE(s) + 2 * NUM_COLUMNS) /* 1 on the device, 0 on the host */
#define IS_TOP_DOWN(s) (CANDIDATE(s) + 2 * NUM_COLUMNS + 1)
#define VARIANT(s) (CANDIDATE(s) + 2 * NUM_COLUMNS + 2)

static REAL dot_columns(__local const REAL *weights, __local const REAL *columns, uint count)
{
    REAL total = 0;
#pragma unroll
    for (uint i = 0; i < count; i++)
        total += weights[i] * columns[i];
    return total;
}

static REAL migration_seconds(__local const REAL *policy, uint migration, uint to_device,
                              __local const REAL *columns)
{
    const uint row = 2 * migration + to_device;
    return dot_columns(policy + MIGRATIONS + row * MIGRATION_COLUMNS, columns, MIGRATION_COLUMNS);
}

/* The seconds of a transition from a frontier on the device; see columns.py. */
static REAL transition_seconds(__local const REAL *policy, bool is_bitmap, uint s,
                               __local const REAL *columns)
{
    REAL seconds = 0;
    if (policy[IS_TOP_DOWN(s)] != 0 && is_bitmap)
        seconds += migration_seconds(policy, CONVERT, 1, columns);
    if (policy[ON_DEVICE(s)] == 0)
        seconds += migration_seconds(policy, SWITCH, 0, columns);
    return seconds;
}

/* The row of the cost-to-go table whose first item is nearest to `left`, as a ratio. First items
 * fall from row to row. */
static uint find_row(__local const REAL *cost_to_go, uint cost_to_go_rows, uint row, REAL left)
{
    uint low = 0, high = cost_to_go_rows;
    while (low < high) {
        const uint middle = (low + high) / 2;
        if (cost_to_go[middle * row] >= left)
            low = middle + 1;
        else
            high = middle;
    }
    const uint above = max(low, 1u) - 1, below = min(low, cost_to_go_rows - 1);
    const REAL between = cost_to_go[above * row] * cost_to_go[below * row];
    return low == cost_to_go_rows || left * left >= between ? above : low;
}

/* A model's input for a level, and its output. Each work-item predicts one candidate. */
typedef struct {
    REAL columns[NUM_COLUMNS];
    REAL seconds[MOST_CANDIDATES];
    uint asked, is_bitmap, size;
    uint cost_to_go; /* index of the cost-to-go row in the policy; 0 if there is none */
} Question;

static void ask(__local const REAL *policy, const REAL *level, __local Question *question)
{
    fill_columns(question->columns, policy[NUM_VERTICES], level);
    const uint rows = (uint)policy[COST_TO_GO_ROWS], row = 1 + (uint)policy[CANDIDATES];
    const REAL left = share_left(level[UNVISITED_EDGES], policy[NUM_EDGES]);
    question->cost_to_go = 0;
    if (rows)
        question->cost_to_go =
            POLICY_SIZE + row * find_row(policy + POLICY_SIZE, rows, row, left);
    question->is_bitmap = level[REPRESENTATION] != 0;
    question->size = (uint)size_of(level[FRONTIER_EDGES]);
    question->asked = 1;
}

/* The predicted seconds of the rest of the search after a level of candidate `s`. The policy is
 * read in any case, since PoCL 6 fails to compile a read that a condition guards. */
static REAL seconds_to_go(__local const REAL *policy, __local const Question *question, uint s)
{
    const REAL seconds = policy[question->cost_to_go + 1 + s];
    return question->cost_to_go ? seconds : 0;
}

/* Predict the seconds of candidate `s`, with migration to it and the rest of the search. */
static REAL predict(__local const REAL *policy, __local const Question *question, uint s)
{
    __local const REAL *columns = question->columns;
    const uint weights = WEIGHTS(s, question->size);
    const REAL seconds = dot_columns(policy + weights, columns, NUM_COLUMNS) +
                         transition_seconds(policy, question->is_bitmap, s, columns);
    return seconds + seconds_to_go(policy, question, s);
}

/* The seconds of a candidate without the rest of the search. */
static REAL level_seconds(__local const REAL *policy, __local const Question *question, uint s)
{
    return question->seconds[s] - seconds_to_go(policy, question, s);
}

/* The candidate of least seconds; `within` becomes the ratio up to which it suits other levels. */
static uint least(__local const REAL *policy, __local const Question *question, REAL *within)
{
    const uint count = (uint)policy[CANDIDATES];
    uint best = 0;
    for (uint s = 1; s < count; s++)
        best = question->seconds[s] < question->seconds[best] ? s : best;
    const REAL mine = level_seconds(policy, question, best);
    REAL lead = MOST_ALIKE - 1;
    for (uint s = 0; s < count; s++) {
        const REAL both = mine + level_seconds(policy, question, s);
        if (s != best)
            lead = min(lead, native_divide(question->seconds[s] - question->seconds[best],
                                           max(both, LEAST_SECONDS)));
    }
    *within = max(1 + lead, LEAST_ALIKE);
    return best;
}

/* An item of a schedule, which may have more than fit into local memory. */
#define ITEM(item)                                                                               \
    (POLICY_SIZE + (item) < COPY_SIZE ? policy[POLICY_SIZE + (item)] : schedule[item])

/* The number of the candidate that a schedule has for a level. */
static uint scheduled(__local const REAL *policy, __global const REAL *schedule, REAL level)
{
    uint low = 0, high = (uint)policy[STRETCHES] - 1;
    while (low < high) {
        const uint middle = (low + high) / 2;
        if (level >= ITEM(2 * middle + 1))
            low = middle + 1;
        else
            high = middle;
    }
    return (uint)ITEM(2 * low);
}

/* The number of the candidate for a level, for a search that is on the device. With rule MODEL it
 * only prepares the question, and the return value has no meaning. */
static uint choose(__local const REAL *policy, __global const REAL *schedule, const REAL *level,
                   __local Question *question)
{
    if (policy[RULE] == FIXED)
        return scheduled(policy, schedule, level[LEVEL]);
    if (policy[RULE] == DIRECTION)
        return (uint)policy[POLICY_SIZE + choose_direction(policy[ALPHA], policy[BETA],
                                                           policy[NUM_VERTICES], level)];
    if (policy[RULE] == SPEEDS)
        return (uint)policy[POLICY_SIZE + is_faster_bottom_up(policy[ALPHA], level)];
    ask(policy, level, question);
    return 0;
}

/* Copy the data that is read at every level, except the end of a long schedule. A barrier must
 * follow. */
static void load_policy(__global const REAL *source, __local REAL *policy)
{
    for (uint i = get_local_id(0); i < COPY_SIZE; i += get_local_size(0))
        policy[i] = source[i];
}

#ifdef TESTS
/* Choose for many levels, one per work-group of one work-item. */
__kernel void choose_all(__global const REAL *policy, __global const REAL *levels,
                         __global uint *chosen, __global REAL *within)
{
    __local REAL copy[COPY_SIZE];
    __local Question question;
    load_policy(policy, copy);
    barrier(CLK_LOCAL_MEM_FENCE);
    const size_t i = get_group_id(0);
    REAL level[RECORD_STATE];
    for (uint k = 0; k < RECORD_STATE; k++)
        level[k] = levels[i * RECORD_STATE + k];
    question.asked = 0;
    chosen[i] = choose(copy, policy + POLICY_SIZE, level, &question);
    for (uint s = 0; question.asked && s < (uint)copy[CANDIDATES]; s++)
        question.seconds[s] = predict(copy, &question, s);
    if (question.asked) {
        REAL ratio;
        chosen[i] = least(copy, &question, &ratio);
        within[i] = ratio;
    }
}
#endif
