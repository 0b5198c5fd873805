/* Types, arrays, lists and counters that the phases of a shortest-path search on a device share.
 * relax.cl has the phases, loop.cl the loop.
 *
 * Built with -DWEIGHT=int, float or double, and -DOFFSET=uint or ulong for the type of `indptr`. A
 * distance is stored as the BITS of a WEIGHT of at least 0. These compare like signed integers.
 * INFINITE has those of infinity.
 *
 *     distance    BITS (n,)   INFINITE where none is known
 *     relaxed     BITS (n,)   distance with which the vertex relaxed edges last; -1 before that
 *     position    uint (n,)   number of entries that it relaxed then
 *     queued      int (n,)    last round in whose queue the vertex was put
 *     listed      int (n,)    whether a vertex is in the active list
 *     queue       uint (2 n,) vertices within the window; one half is read, the other written
 *     active      uint (2 n,) as in relax.py, also in halves
 *     chunk_vertices, chunk_firsts   uint, ulong: pieces of long runs (relax.cl)
 *     counters    ulong       see loop.cl */

#if defined(IS_DOUBLE)
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define BITS long
#define TO_BITS(x) as_long(x)
#define TO_WEIGHT(x) as_double(x)
/* Distances are at least 0, so they compare like unsigned integers. */
#define LOWER(address, bits) ((BITS)lower_long((volatile __global ulong *)(address), (ulong)(bits)))
#define LOWER_LOCAL(address, bits) lower_long_local((volatile __local ulong *)(address), (ulong)(bits))
#define READ(address) ((BITS)read_long((volatile __global ulong *)(address)))
#else
#define BITS int
#define LOWER(address, bits) atomic_min(address, bits)
#define LOWER_LOCAL(address, bits) atomic_min(address, bits)
#define READ(address) atomic_or(address, 0)
#if defined(IS_FLOAT)
#define TO_BITS(x) as_int(x)
#define TO_WEIGHT(x) as_float(x)
#else
#define TO_WEIGHT(x) (x)
#endif
#endif

/* Read a distance that other work-items may lower meanwhile. Before an atomic minimum, a stale
 * value costs only the atomic. If the vertex is being relaxed, whoever lowers its distance queues
 * it again. The read is atomic with -DATOMIC_PEEK, for a checker of races, and where a distance has
 * two words. */
#if defined(ATOMIC_PEEK) || (defined(IS_DOUBLE) && !defined(INT64_ATOMICS))
#define PEEK(address) READ(address)
#else
#define PEEK(address) (*(address))
#endif

#define LISTS                                                                                      \
    __global const OFFSET *indptr, __global const uint *neighbours, __global const WEIGHT *weights
#define BACKWARD                                                                                   \
    __global const OFFSET *backward_indptr, __global const uint *backward_neighbours,              \
        __global const WEIGHT *backward_weights, __global const uint *backward_order
#define SEARCH                                                                                     \
    const uint n, volatile __global BITS *distance, __global BITS *relaxed,                        \
        __global uint *position, volatile __global int *queued, volatile __global int *listed,     \
        __global uint *queue, __global uint *active, __global uint *chunk_vertices,                \
        __global ulong *chunk_firsts, volatile __global ulong *counters
#define LISTS_NAMES indptr, neighbours, weights
#define BACKWARD_NAMES backward_indptr, backward_neighbours, backward_weights, backward_order
#define SEARCH_NAMES                                                                               \
    n, distance, relaxed, position, queued, listed, queue, active, chunk_vertices, chunk_firsts,   \
        counters

/* Entry k, by rising weight, of the neighbour list that begins at `begin`. */
#if DIRECTED
#define BY_WEIGHT(begin, k) ((begin) + backward_order[k])
#else
#define BY_WEIGHT(begin, k) (k)
#endif

/* Local memory of a work-group. */
typedef struct {
    uint ends[GROUP];
    OFFSET firsts[GROUP];
    BITS froms[GROUP];
    ulong sums[3]; /* SCANNED, LEFT, FRESH */
    BITS lowest;   /* smallest distance that waits for a later window */
    BITS best;     /* of a vertex that the whole group pulls */
    long now[NOW_WORDS];
    uint alright; /* see grid.cl */
} Shared;

/* Counts of a work-item in a phase. */
typedef struct {
    ulong scanned, left, fresh;
    BITS lowest;
} Counts;

static volatile __global uint *step_counter(__local const long *now, uint which,
                                            volatile __global ulong *counters)
{
    return (volatile __global uint *)(counters + now[NUMBER] % 3 * STEP_COUNTERS + which);
}

static volatile __global ulong *window_counters(__local const long *now,
                                                volatile __global ulong *counters)
{
    return counters + 3 * STEP_COUNTERS + now[WINDOW] % 3 * WINDOW_COUNTERS;
}

/* Return the distance at the end of an edge, INFINITE if it exceeds the type. */
static BITS behind(BITS from, WEIGHT weight)
{
#ifdef TO_BITS
    return TO_BITS(TO_WEIGHT(from) + weight);
#else
    return weight >= INFINITE - from ? INFINITE : from + weight;
#endif
}

/* Return the weight of entry k of a neighbour list, or of the last entry if k is beyond it. */
static WEIGHT weight_at(OFFSET begin, OFFSET k, OFFSET last, BACKWARD)
{
    const OFFSET in_list = min(k, max(last, (OFFSET)1) - 1);
    return backward_weights[BY_WEIGHT(begin, in_list)];
}

static bool is_infinite(WEIGHT weight)
{
#ifdef TO_BITS
    return isinf(weight);
#else
    return false;
#endif
}

static void note_overflow(__local const long *now, volatile __global ulong *counters)
{
    atomic_or(step_counter(now, OVERFLOW, counters), 1);
}

/* Append a vertex to a list unless its mark says that it is there. Marks of a queue are not cleared
 * while others may set them: a device may reorder one work-item's atomics on two addresses. */
static void append_once(uint v, int mark, volatile __global int *marks,
                        volatile __global uint *counter, __global uint *list)
{
    if (atomic_xchg(marks + v, mark) != mark)
        list[next_place(counter)] = v;
}

static __global uint *written(__global uint *pair, uint n, long side)
{
    return pair + (side ? 0 : n);
}

static __global const uint *read_of(__global const uint *pair, uint n, long side)
{
    return pair + (side ? n : 0);
}
