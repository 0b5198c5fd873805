/* A pull in which each receiver goes through its messages one by one, as in collected.py. It
 * replaces messages.cl. A work-item takes a whole list, so long lists do not wait. */

static void pull(ulong *scanned, ulong *received, BACKWARD, GRAPH, SHARED, STATE)
{
    const long iteration = loop[ITERATION];
    for (uint v = get_global_id(0); v < searched; v += get_global_size(0)) {
        const OFFSET first = backward_indptr[v], back_first = indptr[v];
        OFFSET count = 0, back_count = 0;
        if (receives(v, iteration, STATE_NAMES)) {
            (*received)++;
            count = backward_indptr[v + 1] - first;
            if (SENDS_BACK)
                back_count = indptr[v + 1] - back_first;
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
