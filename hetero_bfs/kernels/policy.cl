/* Choosing a strategy: a policy is data, evaluated by one function. Twin of policy.py, which
 * explains rules and columns; `pack_policy` there lays the data out as read here.
 *
 * REAL is double where the device has it, else float. Called by one work-item.
 */

#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double REAL;
#else
typedef float REAL;
#endif

#define RULE 0
#define CANDIDATES 1
#define SCHEDULE_SIZE 2
#define INTERVAL 3
#define LOOKS_AHEAD 4
#define ALPHA 5
#define BETA 6
#define NUM_VERTICES 7
#define NUM_EDGES 8
#define MEAN_DEGREE 9
#define MOVES 10
#define NUM_COLUMNS 8
#define CANDIDATE(s) (MOVES + 6 * NUM_COLUMNS + (s) * CANDIDATE_SIZE)
#define CANDIDATE_SIZE (NUM_COLUMNS + 3)
#define MOST_CANDIDATES 8
#define POLICY_SIZE CANDIDATE(MOST_CANDIDATES) /* then the schedule, of any length */
#define ON_DEVICE(s) (CANDIDATE(s) + NUM_COLUMNS) /* 1 on the device, 0 on the host */
#define IS_TOP_DOWN(s) (CANDIDATE(s) + NUM_COLUMNS + 1)
#define IS_CACHED(s) (CANDIDATE(s) + NUM_COLUMNS + 2)

#define FIXED 0
#define DIRECTION 1
#define SWITCH 1
#define CONVERT 2

#define MOST_LEVELS 1000
#define SLOWEST_GROWTH ((REAL)1.05)
#define MIXED ((REAL)0.8)
#define LARGEST_SHARE ((REAL)0.999999)
#define SETTLE_EXAMINED 2

/* What a policy looks at, as level.py has it; `form` 1 for a bitmap. */
typedef struct {
    REAL frontier_vertices, frontier_edges, unvisited_vertices, unvisited_edges, previous_edges;
    uint form, level;
} Level;

static REAL found_share(REAL share, REAL mean_degree)
{
    return -expm1(mean_degree * log1p(-min(share, LARGEST_SHARE)));
}

/* Neighbours that bottom-up will look at, and vertices that the level finds. */
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

static REAL dot_columns(__local const REAL *weights, const REAL *columns)
{
    REAL total = 0;
    for (uint i = 0; i < NUM_COLUMNS; i++)
        total += weights[i] * columns[i];
    return total;
}

static REAL levels_left(REAL frontier_edges, REAL growth, REAL unvisited_edges)
{
    const REAL rate = log(max(max(growth, 1 / max(growth, (REAL)1e-9)), SLOWEST_GROWTH));
    const REAL ratio = growth >= 1 ? max(unvisited_edges / frontier_edges, (REAL)1)
                                   : frontier_edges + 1;
    return min(max(log(ratio) / rate, (REAL)1), (REAL)MOST_LEVELS);
}

/* What follows this level, for a search that stands on the host, on the device after it. */
static void rest_of_search(__local const REAL *policy, const REAL *columns, REAL growth,
                           REAL *on_host, REAL *on_device)
{
    REAL last[NUM_COLUMNS], small[2], settle[2], stay[2];
    const REAL left = max(columns[4] - columns[7], (REAL)0);
    const REAL edges = columns[5] * left / max(columns[4], (REAL)1);
    last[0] = columns[0];
    last[1] = columns[1];
    last[2] = last[4] = last[7] = left;
    last[3] = last[5] = edges;
    last[6] = min(SETTLE_EXAMINED * left, edges);
    small[0] = small[1] = settle[0] = settle[1] = INFINITY;
    for (uint s = 0; s < (uint)policy[CANDIDATES]; s++) {
        const uint kind = (uint)policy[ON_DEVICE(s)];
        const REAL now = dot_columns(policy + CANDIDATE(s), columns);
        const REAL then = dot_columns(policy + CANDIDATE(s), last);
        if (kind) {
            small[1] = min(small[1], now);
            settle[1] = min(settle[1], then);
        } else {
            small[0] = min(small[0], now);
            settle[0] = min(settle[0], then);
        }
    }
    REAL move[2]; /* to the host, to the device */
    for (uint kind = 0; kind < 2; kind++)
        move[kind] = dot_columns(policy + MOVES + (2 * SWITCH + kind) * NUM_COLUMNS, columns);
    const REAL between = levels_left(columns[3], growth, columns[5]) - 1;
    for (uint kind = 0; kind < 2; kind++)
        stay[kind] = between * small[kind] + min(settle[kind], move[1 - kind] + settle[1 - kind]);
    *on_host = min(stay[0], move[1] + stay[1]);
    *on_device = min(stay[1], move[0] + stay[0]);
}

static uint choose_by_model(__local const REAL *policy, const Level *level)
{
    REAL columns[NUM_COLUMNS] = {1, policy[NUM_VERTICES], level->frontier_vertices,
                                 level->frontier_edges, level->unvisited_vertices,
                                 level->unvisited_edges};
    expectations(level, columns + 6, columns + 7);
    REAL on_host = 0, on_device = 0;
    if (policy[LOOKS_AHEAD] != 0)
        rest_of_search(policy, columns, level->frontier_edges / level->previous_edges, &on_host,
                       &on_device);
    const REAL convert = dot_columns(policy + MOVES + (2 * CONVERT + 1) * NUM_COLUMNS, columns);
    const REAL leave = dot_columns(policy + MOVES + (2 * SWITCH + 0) * NUM_COLUMNS, columns);
    uint best = 0;
    REAL least = INFINITY;
    for (uint s = 0; s < (uint)policy[CANDIDATES]; s++) {
        REAL seconds = dot_columns(policy + CANDIDATE(s), columns);
        if (policy[IS_TOP_DOWN(s)] != 0 && level->form)
            seconds += convert;
        seconds += policy[ON_DEVICE(s)] != 0 ? on_device : leave + on_host;
        if (seconds < least) {
            least = seconds;
            best = s;
        }
    }
    return best;
}

/* The number of the candidate for a level, for a search that stands on the device. */
static uint choose(__local const REAL *policy, __global const REAL *schedule, const Level *level)
{
    if (policy[RULE] == FIXED)
        return (uint)schedule[min(level->level, (uint)policy[SCHEDULE_SIZE] - 1)];
    if (policy[RULE] == DIRECTION) {
        const bool bottom_up =
            level->form ? level->frontier_vertices * policy[BETA] >= policy[NUM_VERTICES]
                        : level->frontier_edges * policy[ALPHA] > level->unvisited_edges;
        return (uint)schedule[bottom_up];
    }
    return choose_by_model(policy, level);
}

/* Copy what is read at every level; a barrier must follow. */
static void load_policy(__global const REAL *source, __local REAL *policy)
{
    for (uint i = get_local_id(0); i < POLICY_SIZE; i += get_local_size(0))
        policy[i] = source[i];
}

#ifdef TESTS
/* Choose for many levels at once. */
__kernel void choose_all(__global const REAL *policy, __global const REAL *levels,
                         __global uint *chosen)
{
    __local REAL copy[POLICY_SIZE];
    load_policy(policy, copy);
    barrier(CLK_LOCAL_MEM_FENCE);
    const size_t i = get_global_id(0);
    const Level level = {levels[7 * i],     levels[7 * i + 1], levels[7 * i + 2],
                         levels[7 * i + 3], levels[7 * i + 4], (uint)levels[7 * i + 5],
                         (uint)levels[7 * i + 6]};
    chosen[i] = choose(copy, policy + POLICY_SIZE, &level);
}
#endif
