/* Shortest paths on a device: windows of distances with a far pile, as FULL in relax.py.
 *
 * Built with -DWEIGHT=int, float or double, and -DOFFSET=uint or ulong for the type of `indptr`. A
 * distance is stored as the BITS of a WEIGHT of at least 0, which are in the order of signed
 * integers.
 *
 *     distance    BITS (n,)   INFINITE where none is known
 *     queued      int (n,)    the last round in whose queue the vertex was put; each launch that
 *                             queues vertices is a round
 *     piled       int (n,)    whether a vertex is in the far pile
 *     counters    ulong (8,)  see below
 */

#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable

#if defined(IS_DOUBLE)
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL EXTENSION cl_khr_int64_extended_atomics : enable
#define BITS long
#define TO_BITS(x) as_long(x)
#define TO_WEIGHT(x) as_double(x)
#define INFINITE 0x7ff0000000000000L
#define LOWER(address, bits) atom_min(address, bits)
#define READ(address) atom_add(address, (BITS)0)
#elif defined(IS_FLOAT)
#define BITS int
#define TO_BITS(x) as_int(x)
#define TO_WEIGHT(x) as_float(x)
#define INFINITE 0x7f800000
#define LOWER(address, bits) atomic_min(address, bits)
#define READ(address) atomic_or(address, 0)
#else
#define BITS int
#define TO_BITS(x) (x)
#define TO_WEIGHT(x) (x)
#define INFINITE 0x7fffffff
#define LOWER(address, bits) atomic_min(address, bits)
#define READ(address) atomic_or(address, 0)
#endif

/* A look at a distance that others may lower meanwhile. Before an atomic minimum a stale one only
 * costs the atomic; of a vertex whose list is relaxed, whoever lowers it has queued it again. With
 * -DATOMIC_PEEK, for a checker of races, it is atomic too. */
#ifdef ATOMIC_PEEK
#define PEEK(address) READ(address)
#else
#define PEEK(address) (*(address))
#endif

/* Counters: entries of the next queue, of the next far pile, of the list of heavy vertices; whether
 * a distance was beyond the type; the least distance in the far pile; edges relaxed. */
enum { NEXT, PILE, HEAVY, OVERFLOW, LOWEST, EDGES };

__kernel void start(const uint n, const uint source, __global BITS *distance,
                    __global int *queued, __global int *piled)
{
    for (uint v = get_global_id(0); v < n; v += get_global_size(0)) {
        distance[v] = v == source ? 0 : INFINITE;
        queued[v] = 0;
        piled[v] = 0;
    }
}

/* Append a vertex to a list unless its mark says that it is there. No mark of a queue is cleared
 * while others may set it: a device may do atomics of one work-item on two addresses in any order. */
static void append_once(uint v, int mark, uint counter, __global uint *list,
                        volatile __global int *marks, volatile __global ulong *counters)
{
    if (atomic_xchg(marks + v, mark) != mark)
        list[atomic_inc((volatile __global uint *)(counters + counter))] = v;
}

static void relax_edge(uint v, WEIGHT from, WEIGHT weight, BITS end, int round,
                       __global uint *queue, __global uint *pile, volatile __global BITS *distance,
                       volatile __global int *queued, volatile __global int *piled,
                       volatile __global ulong *counters)
{
#if defined(IS_FLOAT) || defined(IS_DOUBLE)
    const WEIGHT sum = from + weight;
    if (isinf(sum)) {
        if (!isinf(weight))
            atomic_or((volatile __global uint *)(counters + OVERFLOW), 1);
        return;
    }
#else
    if (weight >= INFINITE - from) {
        atomic_or((volatile __global uint *)(counters + OVERFLOW), 1);
        return;
    }
    const int sum = from + weight;
#endif
    const BITS bits = TO_BITS(sum);
    if (bits >= PEEK(distance + v) || LOWER(distance + v, bits) <= bits)
        return;
    if (bits < end) {
        append_once(v, round, NEXT, queue, queued, counters);
    } else {
        LOWER((volatile __global BITS *)(counters + LOWEST), bits);
        append_once(v, 1, PILE, pile, piled, counters);
    }
}

/* Relax the lists of queued vertices. A work-group takes GROUP of them, and its work-items share
 * all their edges; lists of over HEAVY_EDGES wait for the whole grid (`relax_heavy`). */
__kernel void relax(const uint count, const BITS end, const int round,
                    __global const OFFSET *indptr, __global const uint *neighbours,
                    __global const WEIGHT *weights, __global const uint *queue,
                    __global uint *next, __global uint *pile, __global uint *heavy,
                    volatile __global BITS *distance, volatile __global int *queued,
                    volatile __global int *piled, volatile __global ulong *counters)
{
    __local uint ends[GROUP];
    __local OFFSET firsts[GROUP];
    __local WEIGHT froms[GROUP];
    const uint lid = get_local_id(0);
    for (uint tile = get_group_id(0) * GROUP; tile < count; tile += get_num_groups(0) * GROUP) {
        uint degree = 0;
        if (tile + lid < count) {
            const uint u = queue[tile + lid];
            froms[lid] = TO_WEIGHT(PEEK(distance + u));
            firsts[lid] = indptr[u];
            degree = (uint)(indptr[u + 1] - indptr[u]);
            if (degree > HEAVY_EDGES) {
                heavy[atomic_inc((volatile __global uint *)(counters + HEAVY))] = u;
                degree = 0;
            }
        }
        ends[lid] = degree;
        const uint total = running_sums(ends);
        if (lid == 0 && total)
            atom_add(counters + EDGES, (ulong)total);
        for (uint e = lid; e < total; e += GROUP) {
            const uint owner = owner_of(ends, e);
            const OFFSET k = firsts[owner] + place_in_list(ends, owner, e);
            relax_edge(neighbours[k], froms[owner], weights[k], end, round, next, pile, distance,
                       queued, piled, counters);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

/* Relax the long lists that `relax` left, by the whole grid. */
__kernel void relax_heavy(const BITS end, const int round, __global const OFFSET *indptr,
                          __global const uint *neighbours, __global const WEIGHT *weights,
                          __global uint *next, __global uint *pile, __global const uint *heavy,
                          volatile __global BITS *distance, volatile __global int *queued,
                          volatile __global int *piled, volatile __global ulong *counters)
{
    const uint count = (uint)counters[HEAVY];
    for (uint i = 0; i < count; i++) {
        const uint u = heavy[i];
        const WEIGHT from = TO_WEIGHT(PEEK(distance + u));
        const OFFSET first = indptr[u], last = indptr[u + 1];
        if (get_global_id(0) == 0)
            atom_add(counters + EDGES, (ulong)(last - first));
        for (OFFSET k = first + get_global_id(0); k < last; k += get_global_size(0))
            relax_edge(neighbours[k], from, weights[k], end, round, next, pile, distance, queued,
                       piled, counters);
    }
}

/* Take the vertices of the window [begin, end) from the far pile; leave out settled ones. */
__kernel void select_window(const uint count, const BITS begin, const BITS end, const int round,
                            __global const uint *old_pile, __global uint *next,
                            __global uint *pile, volatile __global BITS *distance,
                            volatile __global int *queued, volatile __global int *piled,
                            volatile __global ulong *counters)
{
    for (uint i = get_global_id(0); i < count; i += get_global_size(0)) {
        const uint v = old_pile[i];
        const BITS bits = distance[v];
        if (bits >= end) {
            LOWER((volatile __global BITS *)(counters + LOWEST), bits);
            pile[atomic_inc((volatile __global uint *)(counters + PILE))] = v;
            continue;
        }
        piled[v] = 0;
        if (bits >= begin)
            append_once(v, round, NEXT, next, queued, counters);
    }
}
