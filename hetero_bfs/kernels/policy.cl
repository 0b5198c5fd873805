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
#define COPY_SIZE (POLICY_SIZE + MOST_CANDIDATES) /* what is in local memory */
#define ON_DEVICE(s) (CANDIDATE(s) + NUM_COLUMNS) /* 1 on the device, 0 on the host */
#define IS_TOP_DOWN(s) (CANDIDATE(s) + NUM_COLUMNS + 1)
#define IS_CACHED(s) (CANDIDATE(s) + NUM_COLUMNS + 2)

#define FIXED 0
#define DIRECTION 1
#define SWITCH 1
#define CONVERT 2

#define MOST_LEVELS 1000
#define SLOWEST_GROWTH ((REAL)1.05)
#define SETTLE_EXAMINED 2

/* What a policy looks at, as level.py has it; `form` 1 for a bitmap. */
typedef struct {
    REAL frontier_vertices, frontier_edges, unvisited_vertices, unvisited_edges, previous_edges;
    uint form, level;
} Level;

static REAL expected_examined(const Level *level, REAL num_edges)
{
    const REAL vertices = level->unvisited_vertices, edges = level->unvisited_edges;
    if (vertices == 0 || edges == 0)
        return 0;
    const REAL share = 1 - edges / num_edges;
    if (share <= 0)
        return edges;
    return vertices * (1 - pow(1 - share, edges / vertices)) / share;
}

static REAL expected_found(const Level *level, REAL num_edges)
{
    const REAL vertices = level->unvisited_vertices;
    if (vertices == 0 || num_edges == 0)
        return 0;
    const REAL share = min(level->frontier_edges / num_edges, (REAL)1);
    return vertices * (1 - pow(1 - share, level->unvisited_edges / vertices));
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
    const REAL num_edges = policy[NUM_EDGES];
    const REAL columns[NUM_COLUMNS] = {
        1, policy[NUM_VERTICES], level->frontier_vertices, level->frontier_edges,
        level->unvisited_vertices, level->unvisited_edges, expected_examined(level, num_edges),
        expected_found(level, num_edges)};
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
    if (policy[RULE] == FIXED) {
        const uint item = min(level->level, (uint)policy[SCHEDULE_SIZE] - 1);
        return (uint)(item < MOST_CANDIDATES ? policy[POLICY_SIZE + item] : schedule[item]);
    }
    if (policy[RULE] == DIRECTION) {
        const bool bottom_up =
            level->form ? level->frontier_vertices * policy[BETA] >= policy[NUM_VERTICES]
                        : level->frontier_edges * policy[ALPHA] > level->unvisited_edges;
        return (uint)policy[POLICY_SIZE + bottom_up];
    }
    return choose_by_model(policy, level);
}

/* Copy what is read at every level, the schedule's beginning too; a barrier must follow. */
static void load_policy(__global const REAL *source, __local REAL *policy)
{
    for (uint i = get_local_id(0); i < COPY_SIZE; i += get_local_size(0))
        policy[i] = source[i];
}

#ifdef TESTS
/* Choose for many levels at once. */
__kernel void choose_all(__global const REAL *policy, __global const REAL *levels,
                         __global uint *chosen)
{
    __local REAL copy[COPY_SIZE];
    load_policy(policy, copy);
    barrier(CLK_LOCAL_MEM_FENCE);
    const size_t i = get_global_id(0);
    const Level level = {levels[7 * i],     levels[7 * i + 1], levels[7 * i + 2],
                         levels[7 * i + 3], levels[7 * i + 4], (uint)levels[7 * i + 5],
                         (uint)levels[7 * i + 6]};
    chosen[i] = choose(copy, policy + POLICY_SIZE, &level);
}
#endif
