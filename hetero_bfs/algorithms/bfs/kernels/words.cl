/* Messages between ranks, one word each: a top-down level of a rank sends and receives them.
 * Twin of ranks.py, which describes them. Only a rank's program needs this. */

#ifdef RANKS

typedef struct {
    __global const uint *owner_of_line, *first_column;
    __global ulong *words;          /* for other ranks, starting at each rank's first column */
    volatile __global uint *counts; /* number of words for each rank */
} Sent;

/* Convert the other ranks' vertices among the targets of a tile's edges to words, and remove them;
 * the whole work-group calls this. Own vertices are below `n`. There are four functions with
 * barriers between them, since drivers fail on a function that has a barrier and takes a private
 * array. */
static void clear_counts(__local uint *counts)
{
    for (uint rank = get_local_id(0); rank < RANKS; rank += GROUP)
        counts[rank] = 0;
}

/* Find each target's owner (RANKS for this rank) and its position among the work-group's words for
 * that owner. */
static void count_words(const Sent *sent, uint n, const uint *target, uint *owner, uint *place,
                        __local uint *counts)
{
#pragma unroll
    for (uint k = 0; k < ITEMS; k++) {
        owner[k] = RANKS;
        if (target[k] != NO_VERTEX && target[k] >= n) {
            owner[k] = sent->owner_of_line[target[k] >> LINE_SHIFT];
            place[k] = atomic_inc(&counts[owner[k]]);
        }
    }
}

/* Replace the counts by the positions where the work-group's words begin. */
static void place_words(const Sent *sent, __local uint *counts)
{
    for (uint rank = get_local_id(0); rank < RANKS; rank += GROUP)
        if (counts[rank])
            counts[rank] = atomic_add(&sent->counts[rank], counts[rank]);
}

static void write_words(const Sent *sent, uint *target, const uint *source, const uint *owner,
                        const uint *place, __local const uint *counts)
{
#pragma unroll
    for (uint k = 0; k < ITEMS; k++)
        if (owner[k] < RANKS) {
            const uint first = sent->first_column[owner[k]];
            sent->words[first + counts[owner[k]] + place[k]] =
                (ulong)(target[k] - first) << 32 | source[k];
            target[k] = NO_VERTEX;
        }
}

/* Visit the vertices that another rank found; its columns begin at `first`. The next frontier
 * already has `before` (packed) vertices and edges; `counter` counts those that are added. */
__kernel GROUP_SIZE void receive_words(const uint count, const uint first, const ulong before,
                                       __global const ulong *restrict words,
                                       __global const uint *restrict degree,
                                       __global uint *visited, __global uint *parent,
                                       __global uint *queue, __global OFFSET *offsets,
                                       volatile __global ulong *counter)
{
    __local ulong scratch[SCAN_SIZE], base;
    const uint lid = get_local_id(0);
    for (uint chunk = get_group_id(0) * GROUP; chunk < count; chunk += get_global_size(0)) {
        uint v = 0, length = 0;
        ulong packed = 0, total;
        if (chunk + lid < count) {
            v = words[chunk + lid] >> 32;
            if (!(atomic_or(&visited[v >> 5], 1u << (v & 31)) >> (v & 31) & 1)) {
                parent[v] = first + (uint)words[chunk + lid];
                length = degree[v];
                packed = QUEUEABLE(length) ? PACK(1, length) : 0;
            }
        }
        const ulong others = group_scan(packed, scratch, &total);
        if (lid == 0)
            base = before + (total ? fetch_add_long(counter, total) : 0);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (packed) {
            queue[COUNT_OF(base + others)] = v;
            offsets[COUNT_OF(base + others)] = (OFFSET)EDGES_OF(base + others);
        }
    }
}
#endif
