/* The edge array, cut into buffers of 2^PART_SHIFT edges (partition.py; Zhang et al. 2018, section
 * 4.3). NUM_PARTS is a power of two up to 32; buffers past the last part are never read.
 *
 * EDGE_PARAMS declares the parts as kernel parameters, LOAD_EDGE(target, edge) reads one edge
 * wherever it lies. With one part both cost nothing.
 */

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

#define PART(i) __global const uint *restrict part##i
#define PARAMS_1 PART(0)
#define PARAMS_2 PARAMS_1, PART(1)
#define PARAMS_4 PARAMS_2, PART(2), PART(3)
#define PARAMS_8 PARAMS_4, PART(4), PART(5), PART(6), PART(7)
#define PARAMS_16 PARAMS_8, PART(8), PART(9), PART(10), PART(11), PART(12), PART(13), PART(14), \
    PART(15)
#define PARAMS_32 PARAMS_16, PART(16), PART(17), PART(18), PART(19), PART(20), PART(21), \
    PART(22), PART(23), PART(24), PART(25), PART(26), PART(27), PART(28), PART(29), PART(30), \
    PART(31)
#define EDGE_PARAMS JOIN(PARAMS_, NUM_PARTS)

#define SELECT(i) base_ = part_ == i ? part##i : base_;
#define SELECTS_2 SELECT(1)
#define SELECTS_4 SELECTS_2 SELECT(2) SELECT(3)
#define SELECTS_8 SELECTS_4 SELECT(4) SELECT(5) SELECT(6) SELECT(7)
#define SELECTS_16 SELECTS_8 SELECT(8) SELECT(9) SELECT(10) SELECT(11) SELECT(12) SELECT(13) \
    SELECT(14) SELECT(15)
#define SELECTS_32 SELECTS_16 SELECT(16) SELECT(17) SELECT(18) SELECT(19) SELECT(20) SELECT(21) \
    SELECT(22) SELECT(23) SELECT(24) SELECT(25) SELECT(26) SELECT(27) SELECT(28) SELECT(29) \
    SELECT(30) SELECT(31)

/* Selecting the part's address, rather than branching to one load per part, leaves one load
 * instruction for neighbouring work-items to share. */
#if NUM_PARTS == 1
#define LOAD_EDGE(target, edge) target = part0[edge]
#else
#define LOAD_EDGE(target, edge)                                         \
    do {                                                                \
        const OFFSET edge_ = (edge);                                    \
        const uint part_ = (uint)(edge_ >> PART_SHIFT);                 \
        __global const uint *base_ = part0;                             \
        JOIN(SELECTS_, NUM_PARTS)                                       \
        target = base_[edge_ & (((OFFSET)1 << PART_SHIFT) - 1)];        \
    } while (0)
#endif
