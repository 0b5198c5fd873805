/* Features of one vendor's compiler, with a plain form for all others. No other kernel file depends
 * on a vendor. This file follows atomics.cl at the beginning of all programs.
 *
 * Built with -DNVIDIA for NVIDIA's compiler. Then HAS_SHUFFLES is defined: work-items are in warps
 * of 32, in order, and work-items of a warp can read each other's values. Algorithms that use this
 * also have a plain form. */

/* Limits an index that may be stale to an array of `size` items. Mesa's llvmpipe enters a loop once
 * more after its end, with no work-item active. Even then it reads at addresses that all work-items
 * share. */
#define IN_RANGE(index, size) min((uint)(index), max((uint)(size), 1u) - 1)

#ifdef NVIDIA
#define HAS_SHUFFLES

/* Empty: NVIDIA's compiler would ignore a limit of registers with this attribute. */
#define GROUP_SIZE

/* The value of another work-item in the same warp: the one `distance` before, the one `distance`
 * after, or number `lane`. `ballot` returns the answers of all as bits. */
static uint shuffle_up(uint value, uint distance)
{
    asm volatile("shfl.sync.up.b32 %0, %0, %1, 0, 0xffffffff;" : "+r"(value) : "r"(distance));
    return value;
}
static uint shuffle_down(uint value, uint distance)
{
    asm volatile("shfl.sync.down.b32 %0, %0, %1, 0x1f, 0xffffffff;" : "+r"(value) : "r"(distance));
    return value;
}
static uint shuffle_from(uint value, uint lane)
{
    asm volatile("shfl.sync.idx.b32 %0, %0, %1, 0x1f, 0xffffffff;" : "+r"(value) : "r"(lane));
    return value;
}
static uint ballot(bool answer)
{
    uint bits;
    asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p, %1, 0;\n"
                 "vote.sync.ballot.b32 %0, p, 0xffffffff;\n}"
                 : "=r"(bits)
                 : "r"((uint)answer));
    return bits;
}

/* Return the next free position of a list. Work-items of a warp that call it together do a single
 * atomic. */
static uint next_place(volatile __global uint *counter)
{
    uint together, lane, place = 0;
    asm volatile("activemask.b32 %0;" : "=r"(together));
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    const uint leader = 31 - clz(together);
    if (lane == leader)
        place = atomic_add(counter, popcount(together));
    asm volatile("shfl.sync.idx.b32 %0, %1, %2, 31, %3;"
                 : "=r"(place)
                 : "r"(place), "r"(leader), "r"(together));
    return place + popcount(together & ((1u << lane) - 1));
}

/* Nanoseconds; 0 if there is no clock. */
static ulong read_clock(void)
{
    ulong value;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(value)::"memory");
    return value;
}

#ifdef ONE_LAUNCH
/* `poll` reads. The compiler cannot move it out of loops, and it bypasses the multiprocessor's
 * cache. `post` writes and `arrive` adds. Others see that only after all earlier writes. */
static uint poll(volatile __global uint *address)
{
    uint value;
    asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
    return value;
}
static ulong poll_long(volatile __global ulong *address)
{
    ulong value;
    asm volatile("ld.acquire.gpu.u64 %0, [%1];" : "=l"(value) : "l"(address) : "memory");
    return value;
}
static void post_long(volatile __global ulong *address, ulong value)
{
    asm volatile("st.release.gpu.u64 [%0], %1;" ::"l"(address), "l"(value) : "memory");
}
static void arrive(volatile __global uint *address, uint value)
{
    asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
}

/* For words that are independent of other data (post_to_groups): other accesses are not ordered. */
static void post_word(volatile __global ulong *address, ulong value)
{
    asm volatile("st.relaxed.gpu.u64 [%0], %1;" ::"l"(address), "l"(value) : "memory");
}
static ulong poll_word(volatile __global ulong *address)
{
    ulong value;
    asm volatile("ld.relaxed.gpu.u64 %0, [%1];" : "=l"(value) : "l"(address) : "memory");
    return value;
}
#endif
#else
#define GROUP_SIZE __attribute__((reqd_work_group_size(GROUP, 1, 1)))

static uint next_place(volatile __global uint *counter) { return atomic_inc(counter); }
static ulong read_clock(void) { return 0; }

#ifdef ONE_LAUNCH
static uint poll(volatile __global uint *address)
{
    const uint value = atomic_or(address, 0);
    mem_fence(CLK_GLOBAL_MEM_FENCE);
    return value;
}
static ulong poll_long(volatile __global ulong *address)
{
    const ulong value = read_long(address);
    mem_fence(CLK_GLOBAL_MEM_FENCE);
    return value;
}
static void post_long(volatile __global ulong *address, ulong value)
{
    mem_fence(CLK_GLOBAL_MEM_FENCE);
    write_long(address, value);
}
static void arrive(volatile __global uint *address, uint value)
{
    mem_fence(CLK_GLOBAL_MEM_FENCE);
    atomic_add(address, value);
}
#define post_word post_long
#define poll_word poll_long
#endif
#endif
