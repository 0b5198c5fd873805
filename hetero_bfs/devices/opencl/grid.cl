/* A barrier across all work-groups of a launch. It works only if the device runs all of them at the
 * same time; `probe` finds out whether it does.
 *
 * If hundreds of work-groups polled the same word, they would block each other and that part of the
 * cache. So there are SPREAD words of each kind, each in its own cache line, and each serves every
 * SPREADth work-group. `sync` first has the longs that say how the last barrier ended, then the
 * uints for arrivals, then GAVE_UP. */

#define TURN ((ulong)1 << 63) /* which changes from barrier to barrier */
#ifndef PROBE_ROUNDS /* fewer where work-items are simulated */
#define PROBE_ROUNDS 64
#endif

#ifdef NVIDIA
/* Reads that the compiler cannot move out of loops, and that pass the multiprocessor's cache.
 * Writes and additions that others see only after everything that was written before. */
static uint poll(volatile __global uint *address)
{
    uint value;
    asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
    return value;
}
static ulong poll_long(volatile __global ulong *address)
{
    ulong value;
    asm volatile("ld.acquire.gpu.u64 %0, [%1];" : "=l"(value) : "l"(address) : "memory");
    return value;
}
static void post_long(volatile __global ulong *address, ulong value)
{
    asm volatile("st.release.gpu.u64 [%0], %1;" ::"l"(address), "l"(value) : "memory");
}
static void arrive(volatile __global uint *address, uint value)
{
    asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
}
#if COOPERATIVE_GROUPS > 1
/* For words that stand alone (tell_groups): other accesses are not ordered. */
static void post_word(volatile __global ulong *address, ulong value)
{
    asm volatile("st.relaxed.gpu.u64 [%0], %1;" ::"l"(address), "l"(value) : "memory");
}
static ulong poll_word(volatile __global ulong *address)
{
    ulong value;
    asm volatile("ld.relaxed.gpu.u64 %0, [%1];" : "=l"(value) : "l"(address) : "memory");
    return value;
}
#endif
/* Nanoseconds. */
static ulong read_clock(void)
{
    ulong value;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(value)::"memory");
    return value;
}
#else
static uint poll(volatile __global uint *address)
{
    const uint value = atomic_or(address, 0);
    mem_fence(CLK_GLOBAL_MEM_FENCE);
    return value;
}
static ulong poll_long(volatile __global ulong *address)
{
    const ulong value = atom_add(address, 0);
    mem_fence(CLK_GLOBAL_MEM_FENCE);
    return value;
}
static void post_long(volatile __global ulong *address, ulong value)
{
    mem_fence(CLK_GLOBAL_MEM_FENCE);
    atom_xchg(address, value);
}
static void arrive(volatile __global uint *address, uint value)
{
    mem_fence(CLK_GLOBAL_MEM_FENCE);
    atomic_add(address, value);
}
#define post_word post_long
#define poll_word poll_long
static ulong read_clock(void)
{
    return 0;
}
#endif

/* The word that tells work-group `group` how the last barrier ended. */
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
 * polls. Work-groups add to the words of arrivals. Work-items of work-group 0 poll these side by
 * side. Then they write to as many words that the barrier has ended. Such a word has `turn`, which
 * changes with each barrier and is the same in every work-item, and the value of `counter`.
 * Work-item 0 of each work-group gets that value in `found`. */
static bool grid_barrier(volatile __global uint *sync, uint group, uint groups, uint patience,
                         volatile __global ulong *counter, ulong *turn, ulong *found,
                         __local uint *alright)
{
    const uint lid = get_local_id(0);
    *turn ^= TURN;
    if (lid == 0)
        *alright = 1;
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (group == 0) {
        if (lid < SPREAD) {
            const uint others = (groups + SPREAD - 1 - (lid ? lid : SPREAD)) / SPREAD;
            const uint wanted = *turn ? others : 0;
            while (poll(sync + ARRIVALS + lid * LINE) != wanted)
                if (!is_patient(&patience, sync)) {
                    atomic_xchg(sync + GAVE_UP, 1);
                    *alright = 0;
                    break;
                }
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        if (lid < SPREAD && *alright) {
            *found = poll_long(counter) & ~TURN;
            post_long(end_word(sync, lid), *turn | *found);
        }
    } else if (lid == 0) {
        arrive(sync + ARRIVALS + group % SPREAD * LINE, *turn ? 1 : -1);
        ulong word = poll_long(end_word(sync, group));
        while ((word & TURN) != *turn && is_patient(&patience, sync))
            word = poll_long(end_word(sync, group));
        if (patience == 0) {
            /* If others have gone on meanwhile, this one sees it now, or they see at their end
             * that this one gave up. */
            atomic_xchg(sync + GAVE_UP, 1);
            word = poll_long(end_word(sync, group));
            *alright = (word & TURN) == *turn;
        }
        *found = word & ~TURN;
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    return *alright;
}

#ifdef ONE_LAUNCH
/* Tell whether work-groups make progress at the same time, and after a barrier see what others
 * wrote before it. In `cells` each work-group writes the number of the round. */
static bool probe(__global uint *cells, volatile __global uint *sync, uint group, uint groups,
                  uint patience, volatile __global ulong *counter, ulong *turn,
                  __local uint *alright)
{
    ulong found;
    for (uint round = 1; round <= PROBE_ROUNDS; round++) {
        barrier(CLK_LOCAL_MEM_FENCE); /* all have read how the last barrier ended */
        if (get_local_id(0) == 0)
            cells[group] = round;
        if (!grid_barrier(sync, group, groups, patience, counter, turn, &found, alright))
            return false;
        for (uint i = get_local_id(0); i < groups; i += GROUP)
            if (cells[i] != round)
                atomic_xchg(sync + GAVE_UP, 1);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (!grid_barrier(sync, group, groups, patience, counter, turn, &found, alright))
            return false;
    }
    return true;
}
#endif
