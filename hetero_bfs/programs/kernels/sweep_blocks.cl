/* Marks the blocks whose neighbour lists a visit reads; the host sends them (device_sweeps.py). */

/* Mark the blocks from s1 to s2 whose neighbour lists a phase, s0, reads. These have vertices that
 * are initially active (STARTS), dirty and receiving (GATHERS), or gathered in visit s3 (APPLIES).
 * If all vertices are initially active, mark them all as dirty, and no block. */
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
