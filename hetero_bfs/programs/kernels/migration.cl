/* Packs and unpacks the arrays of a run that migrates (device_stay.py), for all programs. */

/* Append the vertices for which `test` holds to `items`, in any order, and add them to `count`. */
#define LIST_IF(test)                                                                              \
    __local uint taken, base;                                                                      \
    const uint lid = get_local_id(0);                                                              \
    for (uint tile = get_group_id(0) * GROUP; tile < n; tile += get_num_groups(0) * GROUP) {       \
        const uint v = tile + lid;                                                                 \
        const bool is_listed = v < n && (test);                                                    \
        uint place = 0;                                                                            \
        if (lid == 0)                                                                              \
            taken = 0;                                                                             \
        barrier(CLK_LOCAL_MEM_FENCE);                                                              \
        if (is_listed)                                                                             \
            place = atomic_inc(&taken);                                                            \
        barrier(CLK_LOCAL_MEM_FENCE);                                                              \
        if (lid == 0 && taken)                                                                     \
            base = atomic_add(count, taken);                                                       \
        barrier(CLK_LOCAL_MEM_FENCE);                                                              \
        if (is_listed)                                                                             \
            items[base + place] = v;                                                               \
        barrier(CLK_LOCAL_MEM_FENCE);                                                              \
    }

__kernel void list_marked(const uint n, __global const uchar *marks, const uchar mark,
                          __global uint *items, volatile __global uint *count)
{
    LIST_IF(marks[v] == mark)
}

__kernel void list_bits(const uint n, __global const uint *bits, const uint first,
                        __global uint *all_items, volatile __global uint *count)
{
    __global uint *items = all_items + first;
    LIST_IF(bits[v / 32] >> v % 32 & 1)
}

__kernel void set_bits(const uint num_items, const uint first, __global const uint *items,
                       volatile __global uint *bits)
{
    for (uint i = get_global_id(0); i < num_items; i += get_global_size(0)) {
        const uint v = items[first + i];
        atomic_or(bits + v / 32, 1u << v % 32);
    }
}

/* Copy a field's values, of BYTES each, to and from a dense array. */
#define GATHER_AND_SCATTER(BYTES, TYPE)                                                            \
    __kernel void gather_##BYTES(const uint num_items, const uint first,                           \
                                 __global const uint *items, __global const TYPE *field,           \
                                 __global TYPE *values)                                            \
    {                                                                                              \
        for (uint i = get_global_id(0); i < num_items; i += get_global_size(0))                    \
            values[i] = field[items[first + i]];                                                   \
    }                                                                                              \
    __kernel void scatter_##BYTES(const uint num_items, const uint first,                          \
                                  __global const uint *items, __global TYPE *field,                \
                                  __global const TYPE *values)                                     \
    {                                                                                              \
        for (uint i = get_global_id(0); i < num_items; i += get_global_size(0))                    \
            field[items[first + i]] = values[i];                                                   \
    }
GATHER_AND_SCATTER(1, uchar)
GATHER_AND_SCATTER(4, uint)
GATHER_AND_SCATTER(8, ulong)
