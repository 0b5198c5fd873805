/* Shared by the phases of a shortest-path search on a device: types, arrays, lists and counters.
 * relax.cl has the phases, loop.cl the loop.
 *
 * Built with -DWEIGHT=int, float or double, and -DOFFSET=uint or ulong for the type of `indptr`. A
 * distance is stored as the BITS of a WEIGHT of at least 0, which are in the order of signed
 * integers.
 *
 *     distance    BITS (n,)   INFINITE where none is known
 *     relaxed     BITS (n,)   the distance with which the vertex relaxed edges last; -1 before it did
 *     position    uint (n,)   how many entries of its list it relaxed then
 *     queued      int (n,)    the last round in whose queue the vertex was put
 *     listed      int (n,)    whether a vertex is in the list of active ones
 *     queue       uint (2 n,) vertices within the window: one half is read, the other one written
 *     active      uint (2 n,) as in relax.py, in halves too
 *     chunk_vertices, chunk_firsts   uint, ulong: pieces of long lists (relax.cl)
 *     counters    ulong       loop.cl lists them */

#if defined(IS_DOUBLE)
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define BITS long
#define TO_BITS(x) as_long(x)
#define TO_WEIGHT(x) as_double(x)
#define INFINITE 0x7ff0000000000000L
/* Distances are at least 0, so they have the order of unsigned integers. */
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
#define INFINITE 0x7f800000
#else
#define TO_WEIGHT(x) (x)
#define INFINITE 0x7fffffff
#endif
#endif

/* Read a distance that others may lower meanwhile. Before an atomic minimum a stale one only costs
 * the atomic. If it is that of a vertex whose list is relaxed, whoever lowers it queues the vertex
 * again. With -DATOMIC_PEEK, for a checker of races, it is atomic too, and where two words make a
 * distance. */
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

/* Entry k of a list that begins at `begin`, by rising weight. */
#if DIRECTED
#define BY_WEIGHT(begin, k) ((begin) + backward_order[k])
#else
#define BY_WEIGHT(begin, k) (k)
#endif

/* What a work-group shares in local memory. */
typedef struct {
    uint ends[GROUP];
    OFFSET firsts[GROUP];
    BITS froms[GROUP];
    ulong sums[3]; /* SCANNED, LEFT, FRESH */
    BITS lowest;   /* least distance that waits for a later window */
    BITS best;     /* of a vertex that the whole group pulls */
    long now[NOW_WORDS];
    uint alright; /* see grid.cl */
} Shared;

/* What a work-item counts in a phase. */
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

/* Return the distance behind an edge, INFINITE if the type does not hold it. */
static BITS behind(BITS from, WEIGHT weight)
{
#ifdef TO_BITS
    return TO_BITS(TO_WEIGHT(from) + weight);
#else
    return weight >= INFINITE - from ? INFINITE : from + weight;
#endif
}

/* Return the weight of entry k of a list, or of the last entry if k is behind it. */
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

/* Append a vertex to a list unless its mark says that it is there. No mark of a queue is cleared
 * while others may set it: a device may do atomics of one work-item on two addresses in any order. */
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
