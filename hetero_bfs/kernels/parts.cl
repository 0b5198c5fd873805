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

#define CASE(target, offset, i) case i: target = part##i[offset]; break;
#define CASES_2(t, o) CASE(t, o, 1)
#define CASES_3(t, o) CASES_2(t, o) CASE(t, o, 2)
#define CASES_4(t, o) CASES_3(t, o) CASE(t, o, 3)
#define CASES_5(t, o) CASES_4(t, o) CASE(t, o, 4)
#define CASES_6(t, o) CASES_5(t, o) CASE(t, o, 5)
#define CASES_7(t, o) CASES_6(t, o) CASE(t, o, 6)
#define CASES_8(t, o) CASES_7(t, o) CASE(t, o, 7)
#define CASES_9(t, o) CASES_8(t, o) CASE(t, o, 8)
#define CASES_10(t, o) CASES_9(t, o) CASE(t, o, 9)
#define CASES_11(t, o) CASES_10(t, o) CASE(t, o, 10)
#define CASES_12(t, o) CASES_11(t, o) CASE(t, o, 11)
#define CASES_13(t, o) CASES_12(t, o) CASE(t, o, 12)
#define CASES_14(t, o) CASES_13(t, o) CASE(t, o, 13)
#define CASES_15(t, o) CASES_14(t, o) CASE(t, o, 14)
#define CASES_16(t, o) CASES_15(t, o) CASE(t, o, 15)
#define CASES_17(t, o) CASES_16(t, o) CASE(t, o, 16)
#define CASES_18(t, o) CASES_17(t, o) CASE(t, o, 17)
#define CASES_19(t, o) CASES_18(t, o) CASE(t, o, 18)
#define CASES_20(t, o) CASES_19(t, o) CASE(t, o, 19)
#define CASES_21(t, o) CASES_20(t, o) CASE(t, o, 20)
#define CASES_22(t, o) CASES_21(t, o) CASE(t, o, 21)
#define CASES_23(t, o) CASES_22(t, o) CASE(t, o, 22)
#define CASES_24(t, o) CASES_23(t, o) CASE(t, o, 23)
#define CASES_25(t, o) CASES_24(t, o) CASE(t, o, 24)
#define CASES_26(t, o) CASES_25(t, o) CASE(t, o, 25)
#define CASES_27(t, o) CASES_26(t, o) CASE(t, o, 26)
#define CASES_28(t, o) CASES_27(t, o) CASE(t, o, 27)
#define CASES_29(t, o) CASES_28(t, o) CASE(t, o, 28)
#define CASES_30(t, o) CASES_29(t, o) CASE(t, o, 29)
#define CASES_31(t, o) CASES_30(t, o) CASE(t, o, 30)
#define CASES_32(t, o) CASES_31(t, o) CASE(t, o, 31)

#if NUM_PARTS == 1
#define LOAD_EDGE(target, edge) target = part0[edge]
#else
#define LOAD_EDGE(target, edge)                                                  \
    do {                                                                         \
        const OFFSET edge_ = (edge);                                             \
        const OFFSET offset_ = edge_ & (((OFFSET)1 << PART_SHIFT) - 1);          \
        switch ((uint)(edge_ >> PART_SHIFT)) {                                   \
            JOIN(CASES_, NUM_PARTS)(target, offset_)                             \
            default: target = part0[offset_];                                    \
        }                                                                        \
    } while (0)
#endif
