/* The edge array, cut into NUM_PARTS buffers of 2^PART_SHIFT edges (partition.py; Zhang et al.
 * 2018, section 4.3).
 *
 * EDGE_PARAMS declares the parts as kernel parameters, LOAD_EDGE(target, edge) reads one edge
 * wherever it lies. With one part both cost nothing.
 */

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

#define PART(i) __global const uint *restrict part##i
#define PARAMS_1 PART(0)
#define PARAMS_2 PARAMS_1, PART(1)
#define PARAMS_3 PARAMS_2, PART(2)
#define PARAMS_4 PARAMS_3, PART(3)
#define PARAMS_5 PARAMS_4, PART(4)
#define PARAMS_6 PARAMS_5, PART(5)
#define PARAMS_7 PARAMS_6, PART(6)
#define PARAMS_8 PARAMS_7, PART(7)
#define PARAMS_9 PARAMS_8, PART(8)
#define PARAMS_10 PARAMS_9, PART(9)
#define PARAMS_11 PARAMS_10, PART(10)
#define PARAMS_12 PARAMS_11, PART(11)
#define PARAMS_13 PARAMS_12, PART(12)
#define PARAMS_14 PARAMS_13, PART(13)
#define PARAMS_15 PARAMS_14, PART(14)
#define PARAMS_16 PARAMS_15, PART(15)
#define PARAMS_17 PARAMS_16, PART(16)
#define PARAMS_18 PARAMS_17, PART(17)
#define PARAMS_19 PARAMS_18, PART(18)
#define PARAMS_20 PARAMS_19, PART(19)
#define PARAMS_21 PARAMS_20, PART(20)
#define PARAMS_22 PARAMS_21, PART(21)
#define PARAMS_23 PARAMS_22, PART(22)
#define PARAMS_24 PARAMS_23, PART(23)
#define PARAMS_25 PARAMS_24, PART(24)
#define PARAMS_26 PARAMS_25, PART(25)
#define PARAMS_27 PARAMS_26, PART(26)
#define PARAMS_28 PARAMS_27, PART(27)
#define PARAMS_29 PARAMS_28, PART(28)
#define PARAMS_30 PARAMS_29, PART(29)
#define PARAMS_31 PARAMS_30, PART(30)
#define PARAMS_32 PARAMS_31, PART(31)
#define EDGE_PARAMS JOIN(PARAMS_, NUM_PARTS)

#define SELECT(i) base_ = part_ == i ? part##i : base_;
#define SELECTS_2 SELECT(1)
#define SELECTS_3 SELECTS_2 SELECT(2)
#define SELECTS_4 SELECTS_3 SELECT(3)
#define SELECTS_5 SELECTS_4 SELECT(4)
#define SELECTS_6 SELECTS_5 SELECT(5)
#define SELECTS_7 SELECTS_6 SELECT(6)
#define SELECTS_8 SELECTS_7 SELECT(7)
#define SELECTS_9 SELECTS_8 SELECT(8)
#define SELECTS_10 SELECTS_9 SELECT(9)
#define SELECTS_11 SELECTS_10 SELECT(10)
#define SELECTS_12 SELECTS_11 SELECT(11)
#define SELECTS_13 SELECTS_12 SELECT(12)
#define SELECTS_14 SELECTS_13 SELECT(13)
#define SELECTS_15 SELECTS_14 SELECT(14)
#define SELECTS_16 SELECTS_15 SELECT(15)
#define SELECTS_17 SELECTS_16 SELECT(16)
#define SELECTS_18 SELECTS_17 SELECT(17)
#define SELECTS_19 SELECTS_18 SELECT(18)
#define SELECTS_20 SELECTS_19 SELECT(19)
#define SELECTS_21 SELECTS_20 SELECT(20)
#define SELECTS_22 SELECTS_21 SELECT(21)
#define SELECTS_23 SELECTS_22 SELECT(22)
#define SELECTS_24 SELECTS_23 SELECT(23)
#define SELECTS_25 SELECTS_24 SELECT(24)
#define SELECTS_26 SELECTS_25 SELECT(25)
#define SELECTS_27 SELECTS_26 SELECT(26)
#define SELECTS_28 SELECTS_27 SELECT(27)
#define SELECTS_29 SELECTS_28 SELECT(28)
#define SELECTS_30 SELECTS_29 SELECT(29)
#define SELECTS_31 SELECTS_30 SELECT(30)
#define SELECTS_32 SELECTS_31 SELECT(31)

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
