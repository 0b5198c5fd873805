/* The loop of a shortest-path search on a device; loop.py is the twin, phases.cl has the phases.
 *
 * A search is a sequence of steps. After a step, `decide` chooses the next one from the step's
 * counters. If all work-groups make progress at the same time, one launch of `search` runs all
 * steps, with a barrier across the work-groups after each step. Every work-group then decides for
 * itself from the same numbers. Otherwise the host launches the kernel of each step, and
 * `next_step` decides.
 *
 * `now` is the state of a step:
 *
 *     STEP            DONE, RELAX, ACTIVE, SELECT, FIND or PULL_LISTS
 *     COUNT           entries of the list that the step reads
 *     STRATEGY        of the window: PREFIX or FULL
 *     START, END      the window
 *     QUEUE_SIDE, ACTIVE_SIDE     which half of each list is read
 *     LISTED          entries of the list of active vertices
 *     ROUND, NUMBER, WINDOW       numbers of the step that queues vertices, the step, the window
 *     UNSETTLED       edges of vertices that have not relaxed any
 *     EDGES, LEFT, VERTICES, ROUNDS   sums of the window
 *     ROWS, BEGAN     records written; the clock when the window began, in nanoseconds
 *     BEYOND          whether a distance exceeded the type
 *     LOST            nanoseconds that windows lost here, by prediction (algorithm_decision.py)
 *     STATUS          RUNNING, ENDED, OVERFLOWED, MOVED (to the host) or FAILED
 *
 * The counters of a step exist three times, and the steps use them cyclically. During a step,
 * work-group 0 clears the next step's. All work-groups read these for the last time before
 * the last barrier. The counters of a window work the same way. */

#define ARGUMENTS                                                                                  \
    LISTS, BACKWARD, SEARCH, __global long *saved, __global long *records, const uint most_records, \
        const uint source, const int strategy, const WEIGHT prefix_width, const WEIGHT full_width,  \
        const float step_cost, const float window_cost, const float edge_cost,                     \
        const float leaving_cost

static void clear_counters(ulong number, ulong window, volatile __global ulong *counters)
{
    volatile __global ulong *step = counters + number % 3 * STEP_COUNTERS;
    volatile __global ulong *kept = counters + 3 * STEP_COUNTERS + window % 3 * WINDOW_COUNTERS;
    for (uint i = 0; i < STEP_COUNTERS; i++)
        step[i] = 0;
    kept[KEPT] = 0;
    *(volatile __global BITS *)(kept + LOWEST) = INFINITE;
}

static void open_window(BITS start, WEIGHT width, __local long *now)
{
    const BITS end = behind(start, width);
    now[START] = start;
    now[END] = end > start ? end : INFINITE; /* infinite if the type cannot hold the width */
    now[EDGES] = now[LEFT] = now[VERTICES] = now[ROUNDS] = 0;
}

/* Fill the arrays and the first `now`. */
static void reset(uint first, uint stride, const uint source, const int strategy, const WEIGHT width,
                  ulong edges, __local long *now, SEARCH)
{
    for (uint v = first; v < n; v += stride) {
        distance[v] = v == source ? 0 : INFINITE;
        relaxed[v] = -1;
        queued[v] = 0;
        listed[v] = 0;
    }
    if (first == 0) {
        queue[0] = source;
        for (uint i = 0; i < 3; i++)
            clear_counters(i, i, counters);
    }
    if (get_local_id(0) == 0) {
        for (uint i = 0; i < NOW_WORDS; i++)
            now[i] = 0;
        now[STEP] = RELAX;
        now[STATUS] = RUNNING;
        now[COUNT] = now[ROUND] = 1;
        now[SOURCE] = source;
        now[STRATEGY] = strategy;
        now[UNSETTLED] = edges;
        open_window(0, width, now);
        now[BEGAN] = read_clock();
    }
}

/* Write the record of a window or of the pull; the last row sums up all that do not fit. */
static void record(long strategy, __local long *now, __global long *records, uint most)
{
    const ulong clock = read_clock();
    if (records) {
        const long row = min(now[ROWS], (long)most - 1);
        __global long *to = records + row * RECORD_WIDTH;
        const bool adds = row < now[ROWS];
        const long values[] = {now[VERTICES], now[EDGES], now[ROUNDS], clock - now[BEGAN]};
        if (!adds) {
            to[0] = now[START];
            to[1] = strategy;
        }
        for (uint i = 0; i < 4; i++)
            to[2 + i] = values[i] + (adds ? to[2 + i] : 0);
    }
    now[ROWS]++;
    now[BEGAN] = clock;
    now[EDGES] = now[VERTICES] = now[ROUNDS] = 0;
}

static void next_window(BITS lowest, WEIGHT prefix_width, WEIGHT full_width, float edge_cost,
                        float leaving_cost, __local long *now)
{
    if (lowest >= INFINITE || now[BEYOND]) {
        now[STEP] = DONE;
        now[STATUS] = now[BEYOND] ? OVERFLOWED : ENDED;
        return;
    }
    if (now[STRATEGY] == FULL &&
        leaves_device(now[LOST], now[UNSETTLED], edge_cost, leaving_cost)) {
        now[START] = lowest;
        now[STEP] = DONE;
        now[STATUS] = MOVED;
        return;
    }
    now[WINDOW]++;
    now[ROUND]++;
    open_window(lowest, now[STRATEGY] == FULL ? full_width : prefix_width, now);
    now[STEP] = now[STRATEGY] == FULL ? SELECT : ACTIVE;
    now[COUNT] = now[LISTED];
}

/* Choose the next step, by one work-item. `records` is null unless it writes them. */
static void decide(const uint n, WEIGHT prefix_width, WEIGHT full_width, float step_cost,
                   float window_cost, float edge_cost, float leaving_cost, __local long *now,
                   volatile __global ulong *counters, __global long *records, uint most_records)
{
    volatile __global ulong *step = counters + now[NUMBER] % 3 * STEP_COUNTERS;
    volatile __global ulong *kept = window_counters(now, counters);
    const BITS lowest = *(volatile __global BITS *)(kept + LOWEST);
    const long done = now[STEP];
    now[NUMBER]++;
    now[EDGES] += step[SCANNED];
    now[BEYOND] |= step[OVERFLOW];
    if (done == FIND) {
        now[ACTIVE_SIDE] ^= 1;
        now[LISTED] = now[COUNT] = kept[KEPT];
        now[WINDOW]++;
        now[STEP] = PULL_LISTS;
    } else if (done == PULL_LISTS) {
        now[VERTICES] = now[LISTED];
        now[ROUNDS] = 1;
        record(PULL, now, records, most_records);
        next_window(lowest, prefix_width, full_width, edge_cost, leaving_cost, now);
    } else {
        now[LEFT] += step[LEFT_OVER];
        now[UNSETTLED] -= step[FRESH];
        now[VERTICES] += done == SELECT ? 0 : now[COUNT];
        now[ROUNDS] += done == RELAX;
        now[QUEUE_SIDE] ^= 1;
        now[COUNT] = step[NEXT];
        if (now[COUNT]) {
            now[STEP] = RELAX;
            now[ROUND]++;
            return;
        }
        /* All work-groups compute the same, so they leave together. */
        now[LOST] = (long)loss_after(now[LOST], now[ROUNDS], now[EDGES], step_cost, window_cost,
                                     edge_cost);
        record(now[STRATEGY], now, records, most_records);
        if (now[STRATEGY] == PREFIX && pulls_next(now[LEFT], now[UNSETTLED])) {
            now[STRATEGY] = FULL;
            now[WINDOW]++;
            now[COUNT] = n;
            now[STEP] = FIND;
            return;
        }
        now[ACTIVE_SIDE] ^= 1;
        now[LISTED] = kept[KEPT];
        next_window(lowest, prefix_width, full_width, edge_cost, leaving_cost, now);
    }
}

static void copy_words(__local const long *from, __global long *to)
{
    for (uint i = 0; i < NOW_WORDS; i++)
        to[i] = from[i];
}

#ifdef ONE_LAUNCH
/* Run the first half of a step; its chunks are the second half. */
static void run_lists(uint group, uint groups, __local Shared *mine, LISTS, BACKWARD, SEARCH)
{
    __local const long *now = mine->now;
    const uint first = get_global_id(0), stride = get_global_size(0);
    Counts counts = {0, 0, 0, INFINITE};
    if (now[STEP] == RELAX || now[STEP] == ACTIVE) {
        relax_lists(group, groups, mine, LISTS_NAMES, SEARCH_NAMES);
        return;
    }
    if (now[STEP] == SELECT)
        select_window(first, stride, now, &counts, SEARCH_NAMES);
    else if (now[STEP] == FIND)
        find_unsettled(first, stride, now, SEARCH_NAMES);
    else
        pull_lists(first, stride, now, &counts, BACKWARD_NAMES, SEARCH_NAMES);
    add_counts(&counts, mine, counters);
}

/* Search. If `probes`, only test whether the grid's work-groups make progress together. */
__kernel void search(ARGUMENTS, volatile __global uint *sync, __global uint *cells,
                     const uint patience, const uint probes)
{
    __local Shared mine;
    __local long *now = mine.now;
    const uint lid = get_local_id(0), group = get_group_id(0), groups = get_num_groups(0);
    ulong generation = poll_long(end_word(sync, group)) & GENERATION, found;
#define GRID_BARRIER(counter)                                                                      \
    grid_barrier(sync, group, groups, patience, counter, &generation, &found, &mine.alright)
    if (probes) {
        const bool passed =
            probe(cells, sync, group, groups, patience, counters, &generation, &mine.alright);
        if (group == 0 && lid == 0)
            saved[STATUS] = passed ? ENDED : FAILED;
        return;
    }
    reset(get_global_id(0), get_global_size(0), source, strategy,
          strategy == FULL ? full_width : prefix_width, indptr[n], now, SEARCH_NAMES);
    bool goes_on = GRID_BARRIER(counters);
    while (goes_on && now[STEP] != DONE) {
        volatile __global ulong *chunks =
            (volatile __global ulong *)step_counter(now, CHUNKS, counters);
        if (group == 0 && lid == 0)
            clear_counters(now[NUMBER] + 1, now[WINDOW] + 1, counters);
        run_lists(group, groups, &mine, LISTS_NAMES, BACKWARD_NAMES, SEARCH_NAMES);
        goes_on = GRID_BARRIER(chunks);
        if (lid == 0)
            mine.sums[0] = found;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (goes_on && mine.sums[0]) {
            if (now[STEP] == PULL_LISTS)
                pull_chunks(group, groups, &mine, BACKWARD_NAMES, SEARCH_NAMES);
            else
                relax_chunks(group, groups, &mine, LISTS_NAMES, SEARCH_NAMES);
            goes_on = GRID_BARRIER(chunks);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lid == 0)
            decide(n, prefix_width, full_width, step_cost, window_cost, edge_cost, leaving_cost,
                   now, counters, group ? (__global long *)0 : records, most_records);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (group == 0 && lid == 0) {
        if (!goes_on || poll(sync + GAVE_UP))
            now[STATUS] = FAILED;
        copy_words(now, saved);
    }
}
#else

#define STEP_KERNEL(name, run)                                                                     \
    __kernel void name(ARGUMENTS)                                                                  \
    {                                                                                              \
        __local Shared mine;                                                                       \
        __local const long *now = mine.now;                                                        \
        const uint group = get_group_id(0), groups = get_num_groups(0);                            \
        const uint first = get_global_id(0), stride = get_global_size(0);                          \
        Counts counts = {0, 0, 0, INFINITE};                                                       \
        for (uint i = get_local_id(0); i < NOW_WORDS; i += GROUP)                                  \
            mine.now[i] = saved[i];                                                                \
        barrier(CLK_LOCAL_MEM_FENCE);                                                              \
        run;                                                                                       \
    }
#define COUNTED(run)                                                                               \
    run;                                                                                           \
    add_counts(&counts, &mine, counters)

STEP_KERNEL(relax, relax_lists(group, groups, &mine, LISTS_NAMES, SEARCH_NAMES))
STEP_KERNEL(relax_long, relax_chunks(group, groups, &mine, LISTS_NAMES, SEARCH_NAMES))
STEP_KERNEL(take_window, COUNTED(select_window(first, stride, now, &counts, SEARCH_NAMES)))
STEP_KERNEL(find, COUNTED(find_unsettled(first, stride, now, SEARCH_NAMES)))
STEP_KERNEL(pull, COUNTED(pull_lists(first, stride, now, &counts, BACKWARD_NAMES, SEARCH_NAMES)))
STEP_KERNEL(pull_long, pull_chunks(group, groups, &mine, BACKWARD_NAMES, SEARCH_NAMES))

__kernel void start(ARGUMENTS)
{
    __local long now[NOW_WORDS];
    reset(get_global_id(0), get_global_size(0), source, strategy,
          strategy == FULL ? full_width : prefix_width, indptr[n], now, SEARCH_NAMES);
    if (get_global_id(0) == 0)
        copy_words(now, saved);
}

__kernel void next_step(ARGUMENTS)
{
    __local long now[NOW_WORDS];
    if (get_global_id(0))
        return;
    for (uint i = 0; i < NOW_WORDS; i++)
        now[i] = saved[i];
    decide(n, prefix_width, full_width, step_cost, window_cost, edge_cost, leaving_cost, now,
           counters, records, most_records);
    clear_counters(now[NUMBER] + 1, now[WINDOW] + 1, counters);
    copy_words(now, saved);
}
#endif
