/* Tells the host which lists a turn of a sweep reads, to send them (device_sweeps.py). */

/* Mark the blocks from s1 to s2 whose lists a phase, s0, reads: those of vertices that are active at
 * the start, that are dirty and receive, or that gathered in turn s3. If all are active at the start,
 * all are dirty, and no list is read. */
__kernel void choose_in_sweep(const uint4 phase, __global const uint *firsts,
                              __global uchar *chosen, LISTS, SWEEP, STATE)
{
    __local uint marked;
    const bool all = phase.s0 == STARTS && counters[ACTIVE] == n;
    for (uint block = phase.s1 + get_group_id(0); block < phase.s2; block += get_num_groups(0)) {
        bool wanted = false;
        for (uint v = firsts[block] + get_local_id(0); v < firsts[block + 1]; v += GROUP) {
            if (all)
                dirty[v] = 1;
            else if (phase.s0 == STARTS)
                wanted |= sent[v];
            else if (phase.s0 == GATHERS && !receives(v, loop[ITERATION], STATE_NAMES))
                dirty[v] = 0;
            else if (phase.s0 == GATHERS)
                wanted |= dirty[v];
            else
                wanted |= gathered[v] == (int)phase.s3;
        }
        mark_block(wanted, &marked, chosen + block);
    }
}
