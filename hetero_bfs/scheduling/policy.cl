/* Chooses a strategy: a policy is data, and one function evaluates it, as in policy.py, which
 * explains rules and columns. packed_policy.py lays out the data. The twins of `choose_level` and
 * `is_alike` are in steps.cl. CAUTION concerns levels on the host only.
 *
 * The search waits for the choice, so it must be fast. REAL is float, since seconds need no more
 * digits. Each work-item predicts one candidate, and one of them does the rest. Data that is read
 * at every level is in local memory. */

typedef float REAL;

#define CANDIDATE(s) (MIGRATIONS + 6 * MIGRATION_COLUMNS + (s) * CANDIDATE_SIZE)
#define CANDIDATE_SIZE (NUM_COLUMNS + 3)
/* The cost-to-go table, or a schedule of any length, follows. */
#define POLICY_SIZE CANDIDATE(MOST_CANDIDATES)
/* Items in local memory. */
#define COPY_SIZE (POLICY_SIZE + MOST_COST_TO_GO_ROWS * (1 + MOST_CANDIDATES))
#define ON_DEVICE(s) (CANDIDATE(s) + NUM_COLUMNS) /* 1 on the device, 0 on the host */
#define IS_TOP_DOWN(s) (CANDIDATE(s) + NUM_COLUMNS + 1)
#define VARIANT(s) (CANDIDATE(s) + NUM_COLUMNS + 2)

/* A policy's input; see schema.py. `representation` is 1 for a bitmap. */
typedef struct {
    REAL frontier_vertices, frontier_edges, unvisited_vertices, unvisited_edges, previous_edges;
    uint representation, level;
} Level;

/* 1 - (1 - share)^mean_degree, to four digits. The precise functions take longer. */
static REAL found_share(REAL share, REAL mean_degree)
{
    share = min(share, LARGEST_SHARE);
    const REAL logarithm = share < SMALL ? -share * (1 + share * (0.5f + share / 3))
                                         : native_log(1 - share);
    const REAL x = mean_degree * logarithm;
    return x > -SMALL ? -x * (1 + x * (0.5f + x / 6)) : 1 - native_exp(x);
}

/* Expected numbers: neighbours that bottom-up scans, and vertices that the level finds. */
static void expectations(const Level *level, REAL *expected_examined, REAL *expected_found)
{
    const REAL unvisited = level->unvisited_vertices, edges = level->unvisited_edges;
    const REAL found = level->frontier_vertices, frontier = level->frontier_edges;
    *expected_examined = *expected_found = 0;
    if (unvisited <= 0 || edges <= 0)
        return;
    const REAL left_before = edges + frontier, before = unvisited + found;
    const REAL came = level->previous_edges / (left_before + level->previous_edges);
    const REAL free = max(frontier - came * left_before, (REAL)0);
    const REAL share = free / (free + edges);
    REAL mixed = 1;
    if (level->level) {
        const REAL found_if_mixed = before * found_share(came, left_before / before);
        if (found < MIXED * found_if_mixed)
            mixed = found / (MIXED * found_if_mixed);
    }
    const REAL reached_share = found_share(share, edges / unvisited);
    *expected_examined = edges;
    if (reached_share <= 0)
        return;
    const REAL reached = unvisited * reached_share;
    const REAL by_chance = min(reached / share, edges);
    const REAL at_once = min(reached + (1 - reached_share) * edges, by_chance);
    const REAL first = min(max(frontier * unvisited / (found * edges) - 1, (REAL)0), (REAL)1);
    const REAL near = by_chance + first * (at_once - by_chance);
    *expected_examined = mixed * near + (1 - mixed) * edges;
    *expected_found = min(mixed * reached, frontier);
}

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

/* The seconds of a transition from a frontier on the device; see transitions.py. */
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
    uint asked, is_bitmap;
    uint cost_to_go; /* index of the cost-to-go row in the policy; 0 if there is none */
} Question;

static bool is_dense_push(__local const REAL *policy, REAL frontier_edges, REAL unvisited_vertices)
{
    return frontier_edges >= LEAST_DENSE_PUSH_EDGES &&
           frontier_edges * DENSE_PUSH_SHARE > policy[NUM_VERTICES] &&
           frontier_edges < DENSE_PUSH_CROWD * unvisited_vertices;
}

/* Bits: on which side of each point where predictions jump a level is. */
static uint steps_of(__local const REAL *policy, REAL frontier_edges, REAL unvisited_vertices)
{
    return is_dense_push(policy, frontier_edges, unvisited_vertices) +
           2 * (frontier_edges >= LEAST_SHARED_EDGES);
}

static void ask(__local const REAL *policy, const Level *level, __local Question *question)
{
    __local REAL *columns = question->columns;
    REAL edges_scanned, found;
    expectations(level, &edges_scanned, &found);
    columns[0] = 1;
    columns[1] = policy[NUM_VERTICES];
    columns[2] = level->frontier_vertices;
    columns[3] = level->frontier_edges;
    columns[4] = level->unvisited_vertices;
    columns[5] = level->unvisited_edges;
    columns[6] = edges_scanned;
    columns[7] = found;
    columns[8] = edges_scanned / max(level->unvisited_vertices, (REAL)1);
    const bool dense_push = is_dense_push(policy, level->frontier_edges, level->unvisited_vertices);
    columns[9] = dense_push ? 0 : found;
    columns[10] = dense_push ? policy[NUM_VERTICES] : 0;
    columns[11] = level->frontier_edges >= LEAST_SHARED_EDGES;
    const uint rows = (uint)policy[COST_TO_GO_ROWS], row = 1 + (uint)policy[CANDIDATES];
    const REAL visited = max(policy[NUM_EDGES] - level->unvisited_edges, (REAL)1);
    question->cost_to_go = 0;
    if (rows)
        question->cost_to_go = POLICY_SIZE + row * find_row(policy + POLICY_SIZE, rows, row,
                                                            level->unvisited_edges / visited);
    question->is_bitmap = level->representation;
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
    const REAL seconds = dot_columns(policy + CANDIDATE(s), columns, NUM_COLUMNS) +
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

/* The number of the candidate for a level, for a search that is on the device. With rule MODEL it
 * only prepares the question, and the return value has no meaning. */
static uint choose(__local const REAL *policy, __global const REAL *schedule, const Level *level,
                   __local Question *question)
{
    if (policy[RULE] == FIXED) {
        const uint item = min(level->level, (uint)policy[SCHEDULE_SIZE] - 1);
        return (uint)(POLICY_SIZE + item < COPY_SIZE ? policy[POLICY_SIZE + item] : schedule[item]);
    }
    if (policy[RULE] == DIRECTION) {
        const bool bottom_up =
            level->representation ? level->frontier_vertices * policy[BETA] >= policy[NUM_VERTICES]
                        : level->frontier_edges * policy[ALPHA] > level->unvisited_edges;
        return (uint)policy[POLICY_SIZE + bottom_up];
    }
    ask(policy, level, question);
    return 0;
}

static bool is_near(REAL now, REAL then, REAL ratio)
{
    return now <= ratio * then && then <= ratio * now;
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
    const Level level = {levels[7 * i],     levels[7 * i + 1], levels[7 * i + 2],
                         levels[7 * i + 3], levels[7 * i + 4], (uint)levels[7 * i + 5],
                         (uint)levels[7 * i + 6]};
    question.asked = 0;
    chosen[i] = choose(copy, policy + POLICY_SIZE, &level, &question);
    for (uint s = 0; question.asked && s < (uint)copy[CANDIDATES]; s++)
        question.seconds[s] = predict(copy, &question, s);
    if (question.asked) {
        REAL ratio;
        chosen[i] = least(copy, &question, &ratio);
        within[i] = ratio;
    }
}
#endif
