/* Shared by all kernels of a vertex program on a device: arrays, lists and sums.
 * host.py explains the lists. schema.py has the numbers of words, counters and modes.
 *
 * The program's own code comes first (device_code.py): types, adapters, and the macros
 *
 *     MESSAGE, BITS       type of messages, and the integer of its size; WIDE if that is long
 *     OFFSET, WEIGHT      types of `indptr` and of weights
 *     TOTAL               type of totals: double where the device has it
 *     NO_TOTALS           the totals of no vertex, for initialisers; `add_share` adds to total i
 *     STATE               parameters of each kernel for the program's own arrays
 *     STATE_NAMES         the same as arguments
 *
 * An iteration has four phases: expand, expand_long, apply_messages, advance. `advance` decides the
 * next step, and writes it to `loop`, so the host need not take part. If phases are launches, the
 * host queues many iterations at once and then reads `loop`. Launches after the end of the run do
 * nothing.
 *
 *     combined    MESSAGE (n,)    messages combined so far; IDENTITY between iterations
 *     outgoing    MESSAGE (n,)    the message of an active vertex, if it does not depend on weights
 *     active_in   int (n,)        the last iteration in which a vertex was active
 *     touched     int (n,)        1 + the last iteration in which a vertex was listed; at first 0
 *     waiting     uchar (n,)      as in host.py
 *     next, far   uint (2 n,)     pairs of lists; `touched_items` uint (n,)
 *     heavy       uint (any,)     rows (below) of vertices with long lists; in a pull one for each
 *                                 piece of a list
 *     changed     uchar (n,)      1 if the vertex's state was written, if the run has TRACKS
 *     position, begun, order      of monotone programs (monotone.cl)
 *     counters    ulong (any,)    counts of a launch: `Counter`
 *     sums        TOTAL (groups, NUM_TOTALS)
 *     loop        long (any,)     `Word`
 *     limits      float (any,)    END and WIDTH of the bucket, then costs (program_decision.py)
 *     records     long (any, 4)   a row for each iteration: mode, vertices, edges, receivers. The
 *                                 first PLANNED rows have planned modes at the start; the last one
 *                                 is for all later iterations
 */

#define ARRAYS                                                                                     \
    volatile __global BITS *combined, __global MESSAGE *outgoing, __global int *active_in,         \
        volatile __global int *touched, __global uchar *waiting, __global uint *next,              \
        __global uint *far, __global uint *touched_items, __global uint *heavy,                    \
        __global uchar *changed, __global uint *position, __global uchar *begun,                   \
        __global const uint *order, volatile __global ulong *counters, __global TOTAL *sums,       \
        __global long *loop, __global float *limits, STATE
#define COMMON                                                                                     \
   __global const OFFSET *indptr, __global const uint *neighbours, __global const WEIGHT *weights, \
        const uint searched, const uint n, ARRAYS
#define BACKWARD                                                                                   \
    __global const OFFSET *backward_indptr, __global const uint *backward_neighbours,              \
        __global const WEIGHT *backward_weights
#define BACKWARD_NAMES backward_indptr, backward_neighbours, backward_weights
#define ARRAY_NAMES                                                                                \
    combined, outgoing, active_in, touched, waiting, next, far, touched_items, heavy, changed,     \
        position, begun, order, counters, sums, loop, limits, STATE_NAMES
#define COMMON_NAMES indptr, neighbours, weights, searched, n, ARRAY_NAMES

/* `expand` and `expand_long` go through rows: items of `next` in a push, receivers in a pull.
 *
 * With -DSTREAMED the host launches them for parts of the graph, and rows are the vertices of a
 * part's blocks, which choose_blocks marks. A block is GROUP consecutive vertices. Row r is vertex
 * r % GROUP of block r / GROUP. `blocks` has each block's number, and its first entry in the part's
 * neighbours and weights. */
#ifdef STREAMED
#define PART __global const uint2 *blocks, const uint num_blocks,
#define PART_NAMES blocks, num_blocks,
#define ROWS(unstreamed) (num_blocks * GROUP)
#define VERTEX_OF(row) (blocks[(row) / GROUP].x * GROUP + (row) % GROUP)
#define SHIFT(row, offsets)                                                                        \
    (offsets[IN_RANGE(blocks[(row) / GROUP].x * GROUP, n)] - blocks[(row) / GROUP].y)
#define SENDER(row) VERTEX_OF(row)
#define IS_SENDER(row) (SENDER(row) < searched && active_in[SENDER(row)] == iteration)
#define ROW_OF(row, vertex) (row)
#else
#define PART
#define PART_NAMES
#define ROWS(unstreamed) (unstreamed)
#define VERTEX_OF(row) (row)
#define SHIFT(row, offsets) 0
#define SENDER(row) items[row]
#define IS_SENDER(row) ((row) < rows)
#define ROW_OF(row, vertex) (vertex)
#endif

/* Rows that a work-group takes at once. ONE_LAUNCH has small tiles, so that all groups get some. */
#ifdef ONE_LAUNCH
#define TILE_ROWS(rows)                                                                            \
    clamp(((rows) + (uint)get_num_groups(0) - 1) / (uint)get_num_groups(0), 1u, (uint)GROUP)
#else
#define TILE_ROWS(rows) GROUP
#endif

/* Counts of a work-item. */
typedef struct {
    ulong active, edges, scanned, received, left, fresh, pending;
} Counts;

#if !COLLECTS
/* Return the message that `u` sends along entry `k`. In a monotone program `u` may be a vertex that
 * waits. Then `outgoing` may have an earlier message: a vertex whose only edge leads back to its
 * sender is not listed. */
static MESSAGE message_along(uint u, OFFSET k, int iteration, __global const WEIGHT *weights,
                             __global const MESSAGE *outgoing, STATE)
{
#if PREPARED && !MONOTONE
    return outgoing[u];
#elif WEIGHTED
    return send(u, iteration, weights[k], STATE_NAMES);
#else
    return send(u, iteration, 0, STATE_NAMES);
#endif
}
#endif

static uint take_place(volatile __global ulong *counters, uint which)
{
    return atomic_inc((volatile __global uint *)(counters + which));
}

/* List a row of a pull for work-groups of its own, one for each piece if SPLITS. */
static void list_pieces(uint row, uint length, __global uint *heavy,
                        volatile __global ulong *counters)
{
    const uint pieces = SPLITS ? (length - 1) / PIECE_EDGES + 1 : 1;
    const uint place = atomic_add((volatile __global uint *)(counters + HEAVY_COUNT), pieces);
    for (uint i = 0; i < pieces; i++)
        heavy[place + i] = row;
}

/* Store all messages to a vertex combined, which no other work-item does; list it for `apply`. */
static void store(uint v, MESSAGE total, ARRAYS)
{
    if (!ALL_ACTIVE && HAS_IDENTITY && total == IDENTITY)
        return;
    combined[v] = TO_BITS(total);
    if (!ALL_ACTIVE)
        touched_items[take_place(counters, TOUCHED_COUNT)] = v;
}

/* Floats as integers in the same order, for an atomic minimum. */
static int ordered(float value)
{
    const int bits = as_int(value);
    return bits < 0 ? bits ^ 0x7fffffff : bits;
}

static float from_ordered(int bits)
{
    return as_float(bits < 0 ? bits ^ 0x7fffffff : bits);
}

#if !WIDE
#define COMPARE_EXCHANGE(address, old, new) atomic_cmpxchg(address, old, new)
#define EXCHANGE(address, new) atomic_xchg(address, new)
#elif defined(INT64_ATOMICS)
#define AS_LONGS(address) (volatile __global ulong *)(address)
#define COMPARE_EXCHANGE(address, old, new)                                                        \
    (BITS)compare_exchange_long(AS_LONGS(address), (ulong)(old), (ulong)(new))
#define EXCHANGE(address, new) write_long(AS_LONGS(address), (ulong)(new))
#else
#define LOCKS_MESSAGES
#endif

#ifdef LOCKS_MESSAGES
/* Combine a message into `combined`; if that changes it, list the vertex for `apply`. While
 * `touched` is LOCKED, other work-items wait. */
static void deliver(uint v, MESSAGE message, int iteration, ARRAYS)
{
    volatile __global uint *lock = (volatile __global uint *)(touched + v);
    volatile __global ulong *held = (volatile __global ulong *)(combined + v);
    bool waits = true, lists = false;
    while (waits) {
        const uint last = atomic_xchg(lock, LOCKED);
        if (last != LOCKED) {
            mem_fence(CLK_GLOBAL_MEM_FENCE);
            const BITS before = (BITS)read_protected(held);
#if HAS_IDENTITY
            const BITS new = TO_BITS(combine(FROM_BITS(before), message));
            const bool changes = new != before;
#else
            const BITS new = TO_BITS(message);
            const bool changes = true;
#endif
            if (changes)
                write_protected(held, (ulong)new);
            mem_fence(CLK_GLOBAL_MEM_FENCE);
            lists = changes && last != (uint)(iteration + 1);
            atomic_xchg(lock, changes ? (uint)(iteration + 1) : last);
            waits = false;
        }
    }
    if (lists && !ALL_ACTIVE)
        touched_items[take_place(counters, TOUCHED_COUNT)] = v;
}
#else
/* Read a message that others may replace meanwhile: a stale value costs another attempt. With
 * -DATOMIC_PEEK, for a race checker, the read is atomic. */
#ifdef ATOMIC_PEEK
#define PEEK(address) COMPARE_EXCHANGE(address, 0, 0)
#else
#define PEEK(address) (*(address))
#endif

/* Combine a message into `combined`; return whether that changed it. */
static bool merge(uint v, MESSAGE message, volatile __global BITS *combined)
{
#if !HAS_IDENTITY
    EXCHANGE(combined + v, TO_BITS(message));
    return true;
#else
    BITS before = PEEK(combined + v);
    while (true) {
        const BITS new = TO_BITS(combine(FROM_BITS(before), message));
        if (new == before)
            return false;
        const BITS seen = COMPARE_EXCHANGE(combined + v, before, new);
        if (seen == before)
            return true;
        before = seen;
    }
#endif
}

/* Combine a message into `combined`; if that changes it, list the vertex for `apply`. */
static void deliver(uint v, MESSAGE message, int iteration, ARRAYS)
{
    if (merge(v, message, combined) && !ALL_ACTIVE &&
        atomic_xchg(touched + v, iteration + 1) != iteration + 1)
        touched_items[take_place(counters, TOUCHED_COUNT)] = v;
}
#endif

/* Add two counts to two counters, with one atomic per work-group. All work-items call it. */
static void add_counts(ulong first, ulong second, uint which_first, uint which_second,
                       __local ulong *shared, volatile __global ulong *counters)
{
    const uint lid = get_local_id(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lid < 2)
        shared[lid] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (first)
        add_long_local(shared, first);
    if (second)
        add_long_local(shared + 1, second);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lid == 0) {
        if (shared[0])
            add_long(counters + which_first, shared[0]);
        if (shared[1])
            add_long(counters + which_second, shared[1]);
    }
}

/* Total i of a work-group's shares, in a fixed order. All work-items call it. */
static TOTAL group_total(uint i, TOTAL share, __local TOTAL *shared)
{
    const uint lid = get_local_id(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    shared[lid] = share;
    for (uint half_size = GROUP / 2; half_size; half_size /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lid < half_size)
            shared[lid] = add_share(i, shared[lid], shared[lid + half_size]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    return shared[0];
}

/* Memory for `group_total`; none if there are no totals, since compilers fail on unused memory. */
#if NUM_TOTALS
#define TOTALS_MEMORY(name) __local TOTAL name[GROUP];
#else
#define TOTALS_MEMORY(name) __local TOTAL *const name = 0;
#endif

#if HAS_PRIORITY
/* Make a vertex wait for the bucket that contains `due`. */
static void wait_for(uint v, float due, uint n, ARRAYS)
{
    atomic_min((volatile __global int *)(counters + LOWEST), ordered(due));
    if (waiting[v] == NOT_LISTED)
        far[(loop[SIDES] & FAR_BIT ? 0 : n) + take_place(counters, FAR_COUNT)] = v;
    waiting[v] = WAITING;
}
#endif

/* List a vertex that is active in a later iteration; return its edges if it is in the bucket. */
static ulong activate(uint v, int iteration, COMMON)
{
#if PREPARED
    outgoing[v] = send(v, iteration, 0, STATE_NAMES);
#endif
    if (v >= searched)
        return 0;
    const long sides = loop[SIDES];
#if MONOTONE
    begun[v] |= CHANGED;
#endif
#if HAS_PRIORITY
    const float due = (float)priority(v, STATE_NAMES);
    if (due >= limits[END] && limits[END] < INFINITY) {
        wait_for(v, due, n, ARRAY_NAMES);
        return 0;
    }
    if (waiting[v] == WAITING)
        waiting[v] = RUN;
#endif
    active_in[v] = iteration;
    next[(sides & NEXT_BIT ? 0 : n) + take_place(counters, NEXT_COUNT)] = v;
    return indptr[v + 1] - indptr[v];
}
