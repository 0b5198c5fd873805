/* 64-bit atomics. No other kernel file has any.
 *
 * With -DINT64_ATOMICS the device has cl_khr_int64_base_atomics and cl_khr_int64_extended_atomics.
 * Otherwise 32-bit atomics do the same. Words are little-endian: the high word is second. An
 * addition without a result adds to both words, with a carry. All other functions lock the number:
 * they exchange its high word for LOCKED, which no number here has. So while one work-item may add
 * to a number by `add_long`, no other work-item may use another function on it.
 *
 * A lock is taken and released in one iteration of a loop that ends by a flag. Otherwise work-items
 * that run in lockstep could wait for each other; Mesa's drivers hang if the loop ends by `break`.
 * Locked words are accessed only by atomics, since caches may keep old values. */

#ifdef INT64_ATOMICS
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#pragma OPENCL EXTENSION cl_khr_int64_extended_atomics : enable

#define DEFINE_LONG_ATOMICS(space, suffix, fence)                                                  \
    static void add_long##suffix(volatile space ulong *address, ulong value)                       \
    {                                                                                              \
        atom_add(address, value);                                                                  \
    }                                                                                              \
    static ulong lower_long##suffix(volatile space ulong *address, ulong value)                    \
    {                                                                                              \
        return atom_min(address, value);                                                           \
    }

/* Add; return the old number. */
static ulong fetch_add_long(volatile __global ulong *address, ulong value)
{
    return atom_add(address, value);
}

/* Read a number that other work-items may change meanwhile. */
static ulong read_long(volatile __global ulong *address) { return atom_add(address, (ulong)0); }

/* Write a number that other work-items may read meanwhile. */
static void write_long(volatile __global ulong *address, ulong value) { atom_xchg(address, value); }

static ulong compare_exchange_long(volatile __global ulong *address, ulong old, ulong new)
{
    return atom_cmpxchg(address, old, new);
}
#else
#define LOCKED 0xfffffffeu

/* Read and write a number that a lock elsewhere protects from other work-items. Its value may
 * contain LOCKED. */
static ulong read_protected(volatile __global ulong *address)
{
    volatile __global uint *words = (volatile __global uint *)address;
    return (ulong)atomic_or(words + 1, 0) << 32 | atomic_or(words, 0);
}
static void write_protected(volatile __global ulong *address, ulong value)
{
    volatile __global uint *words = (volatile __global uint *)address;
    atomic_xchg(words, (uint)value);
    atomic_xchg(words + 1, (uint)(value >> 32));
}

/* Lock the number at `address`, store it in `before`, and replace it by `after`. */
#define REPLACE_LONG(space, fence, address, before, after)                                         \
    volatile space uint *words = (volatile space uint *)(address);                                 \
    ulong before = 0;                                                                              \
    bool waits = true;                                                                             \
    while (waits) {                                                                                \
        const uint high = atomic_xchg(words + 1, LOCKED);                                          \
        if (high != LOCKED) {                                                                      \
            mem_fence(fence);                                                                      \
            before = (ulong)high << 32 | atomic_or(words, 0);                                      \
            const ulong replacement = after;                                                       \
            atomic_xchg(words, (uint)replacement);                                                 \
            mem_fence(fence);                                                                      \
            atomic_xchg(words + 1, (uint)(replacement >> 32));                                     \
            waits = false;                                                                         \
        }                                                                                          \
    }

#define DEFINE_LONG_ATOMICS(space, suffix, fence)                                                  \
    static void add_long##suffix(volatile space ulong *address, ulong value)                       \
    {                                                                                              \
        volatile space uint *words = (volatile space uint *)address;                               \
        const uint low = (uint)value, before = atomic_add(words, low);                             \
        const uint high = (uint)(value >> 32) + (before + low < low);                              \
        if (high)                                                                                  \
            atomic_add(words + 1, high);                                                           \
    }                                                                                              \
    static ulong lower_long##suffix(volatile space ulong *address, ulong value)                    \
    {                                                                                              \
        REPLACE_LONG(space, fence, address, before, min(before, value))                            \
        return before;                                                                             \
    }

static ulong fetch_add_long(volatile __global ulong *address, ulong value)
{
    REPLACE_LONG(__global, CLK_GLOBAL_MEM_FENCE, address, before, before + value)
    return before;
}

/* Repeat until the high word is the same before and after the low word is read, and not LOCKED. */
static ulong read_long(volatile __global ulong *address)
{
    volatile __global uint *words = (volatile __global uint *)address;
    uint high = atomic_or(words + 1, 0), low = 0;
    bool waits = true;
    while (waits) {
        low = atomic_or(words, 0);
        const uint again = atomic_or(words + 1, 0);
        waits = again != high || again == LOCKED;
        high = again;
    }
    return (ulong)high << 32 | low;
}
#endif

/* `add_long` adds. `lower_long` stores the smaller number, and returns the old one. */
DEFINE_LONG_ATOMICS(__global, , CLK_GLOBAL_MEM_FENCE)
DEFINE_LONG_ATOMICS(__local, _local, CLK_LOCAL_MEM_FENCE)
