/* Receivers go through their messages one by one, as in collected.py. This file replaces
 * messages.cl. A work-item takes a whole list, so long lists do not wait. */

/* Collect the messages to all receivers in a pull; in a push, to those that are touched. */
static void pull(ulong *scanned, ulong *received, BACKWARD, GRAPH, SHARED, STATE)
{
    const long iteration = loop[ITERATION];
    const bool touches = loop[MODE] == PUSH;
    for (uint v = get_global_id(0); v < searched; v += get_global_size(0)) {
        if (touches && touched[v] != iteration + 1)
            continue;
        const OFFSET begin = backward_indptr[v], back_begin = indptr[v];
        OFFSET count = 0, back_count = 0;
        if (receives(v, iteration, STATE_NAMES)) {
            (*received)++;
            count = backward_indptr[v + 1] - begin;
            if (SENDS_BACK)
                back_count = indptr[v + 1] - back_begin;
            *scanned += count + back_count;
        }
        const int flag = collect(MESSAGES_NAMES);
        combined[v] = flag;
#if !ALL_ACTIVE
        if (flag)
            touched_items[take_place(counters, TOUCHED_COUNT)] = v;
#endif
    }
}

/* Mark the receivers of active vertices in `touched`. */
static void touch_receivers(ulong *scanned, BACKWARD, GRAPH, SHARED, STATE)
{
    const int mark = (int)loop[ITERATION] + 1;
    __global const uint *items = next + (loop[SIDES] & NEXT_BIT ? n : 0);
    for (uint i = get_global_id(0); i < (uint)loop[LISTED]; i += get_global_size(0)) {
        const uint u = items[i];
        if (ACTIVE_APPLY)
            atomic_xchg(touched + u, mark);
        for (OFFSET k = indptr[u]; k < indptr[u + 1]; k++)
            atomic_xchg(touched + neighbours[k], mark);
        *scanned += indptr[u + 1] - indptr[u];
#if SENDS_BACK
        for (OFFSET k = backward_indptr[u]; k < backward_indptr[u + 1]; k++)
            atomic_xchg(touched + backward_neighbours[k], mark);
        *scanned += backward_indptr[u + 1] - backward_indptr[u];
#endif
    }
}

/* After `touch_receivers`, collect the messages. */
static void collect_touched(GRAPH, BACKWARD, SHARED, STATE)
{
    ulong scanned = 0, received = 0;
    if (loop[MODE] != PUSH)
        return;
    pull(&scanned, &received, BACKWARD_NAMES, GRAPH_NAMES, SHARED_NAMES, STATE_NAMES);
    if (scanned)
        add_long(counters + SCANNED, scanned);
}
