/* A barrier across all work-groups of a launch. It works only if the device runs all of them at the
 * same time; `probe` finds out whether it does.
 *
 * If hundreds of work-groups polled the same word, they would block each other and that part of the
 * cache. So there are SPREAD words of each kind, each in its own cache line, and each serves every
 * SPREADth work-group. `sync` has the ulongs that say how the last barrier ended, then the uints
 * for arrivals, then GAVE_UP.
 *
 * Needs vendor.cl. It is used by programs that run in one launch, which need 64-bit atomics. */

#ifdef ONE_LAUNCH

#define GENERATION ((ulong)1 << 63) /* a bit that changes with each barrier */
#ifndef PROBE_ROUNDS /* simulators define fewer */
#define PROBE_ROUNDS 64
#endif

/* The word in which work-group `group` reads how the last barrier ended. */
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

/* Wait until all work-groups of the grid have arrived; false if they have not within `patience`
 * polls. Work-groups add to the words of arrivals. SPREAD work-items of work-group 0 poll one of
 * these words each, and then write to an end word that the barrier has ended. An end word holds
 * `generation`, which changes with each barrier and is the same in every work-item, and the value of
 * `counter`. Work-item 0 of each work-group gets that value in `found`. */
static bool grid_barrier(volatile __global uint *sync, uint group, uint groups, uint patience,
                         volatile __global ulong *counter, ulong *generation, ulong *found,
                         __local uint *alright)
{
    const uint lid = get_local_id(0);
    *generation ^= GENERATION;
    if (lid == 0)
        *alright = 1;
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (group == 0) {
        if (lid < SPREAD) {
            const uint others = (groups + SPREAD - 1 - (lid ? lid : SPREAD)) / SPREAD;
            const uint wanted = *generation ? others : 0;
            while (poll(sync + ARRIVALS + lid * LINE) != wanted)
                if (!is_patient(&patience, sync)) {
                    atomic_xchg(sync + GAVE_UP, 1);
                    *alright = 0;
                    break;
                }
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        if (lid < SPREAD && *alright) {
            *found = poll_long(counter) & ~GENERATION;
            post_long(end_word(sync, lid), *generation | *found);
        }
    } else if (lid == 0) {
        arrive(sync + ARRIVALS + group % SPREAD * LINE, *generation ? 1 : -1);
        ulong word = poll_long(end_word(sync, group));
        while ((word & GENERATION) != *generation && is_patient(&patience, sync))
            word = poll_long(end_word(sync, group));
        if (patience == 0) {
            /* If other work-groups have gone on meanwhile, this one sees it now, or they see
             * GAVE_UP at their end. */
            atomic_xchg(sync + GAVE_UP, 1);
            word = poll_long(end_word(sync, group));
            *alright = (word & GENERATION) == *generation;
        }
        *found = word & ~GENERATION;
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    return *alright;
}

/* Return whether work-groups make progress at the same time, and after a barrier see the
 * numbers that others wrote before it. Each work-group writes the number of the round to its item
 * of `cells`. */
static bool probe(__global uint *cells, volatile __global uint *sync, uint group, uint groups,
                  uint patience, volatile __global ulong *counter, ulong *generation,
                  __local uint *alright)
{
    ulong found;
    for (uint round = 1; round <= PROBE_ROUNDS; round++) {
        barrier(CLK_LOCAL_MEM_FENCE); /* all have read how the last barrier ended */
        if (get_local_id(0) == 0)
            cells[group] = round;
        if (!grid_barrier(sync, group, groups, patience, counter, generation, &found, alright))
            return false;
        for (uint i = get_local_id(0); i < groups; i += GROUP)
            if (cells[i] != round)
                atomic_xchg(sync + GAVE_UP, 1);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (!grid_barrier(sync, group, groups, patience, counter, generation, &found, alright))
            return false;
    }
    return true;
}
#endif
