/* A search on an OpenCL device, from the first level to the last, without the host.
 *
 * A search is a state machine. Each step first decides what to do, from the state and the counts of
 * the last step. Then the whole grid does it. Every work-group decides by itself, from the same
 * numbers. Only cooperating groups (cooperative.cl) also decide for all others.
 *
 * All work-groups must finish a step before the next one begins. If all work-groups make progress
 * at the same time (`probe`), one launch of `search` runs all steps, with a barrier across the
 * work-groups between them. Otherwise a launch runs at most one step. The host queues `step` until
 * the state says that the search is over or that the host must continue. Compilers for CPUs fail on
 * a kernel of that size. For CPUs the host queues `push_step`, `pull_step` and `other_step`; each
 * of them runs if the next step is of its kind.
 *
 * The state and its steps are in steps.cl, the barrier in grid.cl. */

#ifdef DIRECTED
#define GRAPH_PARAMS PARAMS(forward), PARAMS(backward)
#define DECLARE_LISTS DECLARE_EDGES(forward) DECLARE_EDGES(backward)
#else
#define GRAPH_PARAMS PARAMS(forward)
#define DECLARE_LISTS DECLARE_EDGES(forward) const Edges backward = forward;
#endif

#ifdef MASKED
#define MASK_PARAM , __global const uint *restrict mask
#define MASK , mask
#else
#define MASK_PARAM
#define MASK
#endif

#ifdef RANKS
#define RANK_PARAMS                                                                              \
    , __global const uint *restrict owner_of_line, __global const uint *restrict first_column,    \
        __global ulong *sent, volatile __global uint *sent_counts
#define SENT , {owner_of_line, first_column, sent, sent_counts}
#else
#define RANK_PARAMS
#define SENT
#endif

/* If `first` is set, the state is `initial`. `begin` is the number of the first step. */
#define SEARCH_PARAMS                                                                            \
    const uint n, const uint words, __global const OFFSET *restrict indptr,                       \
        __global const OFFSET *restrict backward_indptr, __global const uint *restrict degree,    \
        __global const uint *restrict word_degree, __global const uint *restrict first_neighbour, \
        GRAPH_PARAMS MASK_PARAM RANK_PARAMS, __global uint *parent, __global uint *visited0,      \
        __global uint *visited1,                                                                  \
        __global uint *queue0, __global uint *queue1, __global OFFSET *offsets0,                  \
        __global OFFSET *offsets1, __global const REAL *restrict policy,                          \
        volatile __global ulong *counters, __global ulong *report, const State initial,           \
        const uint first, const uint begin

#define DECLARE_SEARCH                                                                          \
    __local Shared mine;                                                                        \
    DECLARE_LISTS                                                                               \
    const Graph graph = {n, words, indptr, backward_indptr, degree, word_degree,                \
                         first_neighbour, forward, backward MASK SENT};                         \
    const Arrays arrays = {parent,  visited0, visited1, queue0, queue1, offsets0, offsets1,     \
                           counters};                                                           \
    const uint lid = get_local_id(0), group = get_group_id(0), groups = get_num_groups(0);      \
    __global ulong *rows = group == 0 ? report + ROWS : 0;                                      \
    __global const ulong *before = report + begin % 2 * STATE_WORDS;                             \
    __global ulong *after = report + (begin + 1) % 2 * STATE_WORDS;                              \
    load_policy(policy, mine.policy);                                                           \
    if (lid < STATE_WORDS)                                                                       \
        mine.state[lid] = first ? initial.words[lid] : before[lid];                             \
    barrier(CLK_LOCAL_MEM_FENCE);

static bool is_over(__local const ulong *state)
{
    return state[STATUS] != RUNNING && state[STEP] == DECIDE;
}

static void copy_state(__local const ulong *state, __global ulong *target)
{
    for (uint i = 0; i < STATE_WORDS; i++)
        target[i] = state[i];
}

#ifndef ONE_LAUNCH
/* Return whether the pending step is of one of the `kinds` (a bit each), and clear `PENDING` if so.
 * One work-item calls this. Work-group 0 passes the state on to the next launch. */
static bool take_step(uint kinds, volatile __global ulong *counters, __global ulong *rows,
                      __global ulong *after, __local ulong *state)
{
    const bool runs = state[PENDING] && kinds >> state[STEP] & 1;
    if (runs)
        state[PENDING] = 0;
    if (rows)
        copy_state(state, after);
    if (rows && runs)
        clear_next_counter(counters, state[DONE]);
    return runs;
}

#define STEP_KERNEL(name, kinds, run)                                                           \
    __kernel GROUP_SIZE void name(SEARCH_PARAMS)                                                \
    {                                                                                           \
        DECLARE_SEARCH                                                                          \
        const bool due = lid == 0 && !is_over(mine.state) && !mine.state[PENDING];              \
        const ulong found = due ? *COUNTER(counters, mine.state[DONE]) : 0;                     \
        decide(due, &mine, found, policy + POLICY_SIZE, rows, false);                           \
        if (lid == 0) {                                                                         \
            if (due)                                                                            \
                mine.state[PENDING] = mine.state[STEP] != DECIDE;                               \
            mine.runs = take_step(kinds, counters, rows, after, mine.state);                    \
        }                                                                                       \
        barrier(CLK_LOCAL_MEM_FENCE);                                                           \
        const bool runs = mine.runs;                                                            \
        run;                                                                                    \
    }

#define OTHERS (1 << BEGIN | 1 << TO_QUEUE | 1 << INVALIDATE)
#define PULLS (1 << PULL | 1 << PULL_REST)
#define RUN(step, due) run_##step(due, group, groups, &graph, &arrays, &mine)
#define IS_OF(kinds) (runs && (kinds) >> mine.state[STEP] & 1)
#ifdef ONE_STEP
STEP_KERNEL(step, 1 << PUSH | PULLS | OTHERS, RUN(push, IS_OF(1 << PUSH));
            RUN(pull, IS_OF(1 << PULL)); RUN(rest, IS_OF(1 << PULL_REST)); RUN(other, IS_OF(OTHERS)))
#else
STEP_KERNEL(push_step, 1 << PUSH, RUN(push, runs))
STEP_KERNEL(pull_step, PULLS, RUN(pull, IS_OF(1 << PULL)); RUN(rest, IS_OF(1 << PULL_REST)))
STEP_KERNEL(other_step, OTHERS, RUN(other, runs))
#endif
#else
/* Run steps until the search is over or the host must continue. A barrier across the work-groups
 * gives up after `patience` polls. */
__kernel GROUP_SIZE void search(SEARCH_PARAMS, volatile __global uint *sync, __global uint *cells,
                               const uint patience)
{
    DECLARE_SEARCH
    /* The state after levels of cooperating groups. It has two slots, used alternately: a late
     * work-group may still read one while the next cooperating groups write the other. */
    volatile __global ulong *found_words = counters + NUM_COUNTERS * COUNTER_WORDS;
    volatile __global ulong *shared = found_words + 2 * COOPERATIVE_GROUPS;
    const Link link = {found_words, sync, patience};
    uint rounds = 0;
    ulong generation = poll_long(end_word(sync, group)) & GENERATION;
    ulong found = lid ? 0 : *COUNTER(counters, mine.state[DONE]);
    bool reload = false;
    if (mine.state[FLAGS] & PROBES) {
        const bool passed =
            probe(cells, sync, group, groups, patience, counters, &generation, &mine.alright);
        if (group == 0 && lid == 0)
            after[STATUS] = passed ? ENDED : FAILED;
        return;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    while (true) {
        if (reload && lid < STATE_WORDS)
            mine.state[lid] = shared[rounds % 2 * STATE_WORDS + lid];
        decide(!reload, &mine, found, policy + POLICY_SIZE, rows, true);
        barrier(CLK_LOCAL_MEM_FENCE);
        const uint doing = (uint)mine.state[STEP];
        if (doing == DECIDE)
            break;
        volatile __global ulong *counter = COUNTER(counters, mine.state[DONE]);
        if (group == 0 && lid == 0)
            clear_next_counter(counters, mine.state[DONE]);
        const uint cooperating = doing == ALONE ? 1 : doing == COOPERATE ? COOPERATIVE_GROUPS : 0;
        reload = cooperating > 0;
        rounds += reload;
        if (group < cooperating) {
            run_cooperative(group, cooperating, &graph, &arrays, policy + POLICY_SIZE, rows, &link,
                            &mine);
            barrier(CLK_LOCAL_MEM_FENCE);
            if (group == 0 && lid < STATE_WORDS)
                shared[rounds % 2 * STATE_WORDS + lid] = mine.state[lid];
        } else if (!reload) {
            run_step(group, groups, &graph, &arrays, &mine);
        }
        if (doing == INVALIDATE) /* the last step */
            break;
        if (!grid_barrier(sync, group, groups, patience, counter, &generation, &found,
                          &mine.alright)) {
            if (lid == 0)
                mine.state[STATUS] = FAILED;
            break;
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (group == 0 && lid == 0) {
        if (mine.state[STEP] == INVALIDATE)
            mine.state[STEP] = DECIDE;
        if (poll(sync + GAVE_UP))
            mine.state[STATUS] = FAILED;
        copy_state(mine.state, after);
    }
}
#endif
