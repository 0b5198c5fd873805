/* Operations that Python and C define differently; scalars.py does the same.
 *
 * Floats are rounded after each operation: nothing is contracted to multiply-add. */

#pragma OPENCL FP_CONTRACT OFF

#define DEFINE_EXTREMES(type)                                                                      \
    static type lesser_##type(type left, type right) { return right < left ? right : left; }       \
    static type greater_##type(type left, type right) { return right > left ? right : left; }

/* Division rounded down, and its remainder. C leaves them undefined for division by zero, and of
 * the least integer by -1. PoCL's built-in abs of the least integer is undefined, too. */
#define DEFINE_SIGNED(type, bits)                                                                  \
    static type absolute_##type(type value)                                                        \
    {                                                                                              \
        return value < 0 ? (type)(0 - (u##type)value) : value;                                     \
    }                                                                                              \
    static type floor_divide_##type(type left, type right)                                         \
    {                                                                                              \
        if (right == 0)                                                                            \
            return 0;                                                                              \
        if (right == -1)                                                                           \
            return (type)(0 - (u##type)left);                                                      \
        const type quotient = left / right;                                                        \
        return quotient - (left % right != 0 && (left % right < 0) != (right < 0));                \
    }                                                                                              \
    static type modulo_##type(type left, type right)                                               \
    {                                                                                              \
        if (right == 0 || right == -1)                                                             \
            return 0;                                                                              \
        const type remainder = left % right;                                                       \
        return remainder != 0 && (remainder < 0) != (right < 0) ? remainder + right : remainder;   \
    }                                                                                              \
    static type shift_left_##type(type value, type count)                                          \
    {                                                                                              \
        return count < 0 || count >= bits ? 0 : (type)((u##type)value << count);                   \
    }                                                                                              \
    static type shift_right_##type(type value, type count)                                         \
    {                                                                                              \
        return value >> (count < 0 || count >= bits ? bits - 1 : count);                           \
    }

#define DEFINE_UNSIGNED(type, bits)                                                                \
    static type floor_divide_##type(type left, type right)                                         \
    {                                                                                              \
        return right == 0 ? 0 : left / right;                                                      \
    }                                                                                              \
    static type modulo_##type(type left, type right) { return right == 0 ? 0 : left % right; }     \
    static type shift_left_##type(type value, type count)                                          \
    {                                                                                              \
        return count >= bits ? 0 : value << count;                                                 \
    }                                                                                              \
    static type shift_right_##type(type value, type count)                                         \
    {                                                                                              \
        return count >= bits ? 0 : value >> count;                                                 \
    }

/* Floats to integers towards zero, within limits. NaN, which the standard leaves open, gives 0. */
#define DEFINE_CONVERSION(integer, fraction)                                                       \
    static integer integer##_of_##fraction(fraction value)                                         \
    {                                                                                              \
        return isnan(value) ? 0 : convert_##integer##_sat_rtz(value);                              \
    }

#define DEFINE_CONVERSIONS(fraction)                                                               \
    DEFINE_CONVERSION(int, fraction)                                                               \
    DEFINE_CONVERSION(uint, fraction)                                                              \
    DEFINE_CONVERSION(long, fraction)                                                              \
    DEFINE_CONVERSION(ulong, fraction)

DEFINE_EXTREMES(int)
DEFINE_EXTREMES(uint)
DEFINE_EXTREMES(long)
DEFINE_EXTREMES(ulong)
DEFINE_EXTREMES(float)
DEFINE_CONVERSIONS(float)
DEFINE_SIGNED(int, 32)
DEFINE_SIGNED(long, 64)
DEFINE_UNSIGNED(uint, 32)
DEFINE_UNSIGNED(ulong, 64)
#ifdef HAS_DOUBLE
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
DEFINE_EXTREMES(double)
DEFINE_CONVERSIONS(double)
#endif
