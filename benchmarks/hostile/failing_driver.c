/* Lets a call of an OpenCL driver fail, hang, or end the process.

   A loader calls a driver through a table, to which the first word of the driver's platform points
   (extension cl_khr_icd). `install` puts this file's functions into that table. They count calls
   and forward them until the armed call comes. No header is needed: all arguments are integers or
   pointers, so they are forwarded as words, as many as the longest call has. */

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

typedef intptr_t word;
typedef word call(word, word, word, word, word, word, word, word, word, word, word, word);

/* X(name, position in the table, position of the argument for the error code; -1: returned) */
#define CALLS(X)                                                                       \
    X(GetPlatformInfo, 1, -1) X(GetDeviceIDs, 2, -1) X(GetDeviceInfo, 3, -1)           \
    X(CreateContext, 4, 5) X(ReleaseContext, 7, -1) X(GetContextInfo, 8, -1)           \
    X(CreateCommandQueue, 9, 3) X(ReleaseCommandQueue, 11, -1)                         \
    X(GetCommandQueueInfo, 12, -1) X(CreateBuffer, 14, 4) X(ReleaseMemObject, 18, -1)  \
    X(GetMemObjectInfo, 20, -1) X(CreateProgramWithSource, 26, 4)                      \
    X(CreateProgramWithBinary, 27, 6) X(ReleaseProgram, 29, -1) X(BuildProgram, 30, -1) \
    X(GetProgramInfo, 32, -1) X(GetProgramBuildInfo, 33, -1) X(CreateKernel, 34, 2)    \
    X(ReleaseKernel, 37, -1) X(SetKernelArg, 38, -1) X(GetKernelInfo, 39, -1)          \
    X(GetKernelWorkGroupInfo, 40, -1) X(WaitForEvents, 41, -1) X(GetEventInfo, 42, -1) \
    X(ReleaseEvent, 44, -1) X(Flush, 46, -1) X(Finish, 47, -1)                         \
    X(EnqueueReadBuffer, 48, -1) X(EnqueueWriteBuffer, 49, -1)                         \
    X(EnqueueCopyBuffer, 50, -1) X(EnqueueMapBuffer, 56, 9)                            \
    X(EnqueueUnmapMemObject, 58, -1) X(EnqueueNDRangeKernel, 59, -1)                   \
    X(CreateSubBuffer, 82, 4) X(GetKernelArgInfo, 101, -1)                             \
    X(EnqueueFillBuffer, 102, -1) X(EnqueueMigrateMemObjects, 104, -1)                 \
    X(CreateCommandQueueWithProperties, 123, 3)

enum { ERROR, HANG, ABORT };

enum {
#define X(name, at, error_at) _##name,
    CALLS(X)
#undef X
    NUM_CALLS
};

static const char *const names[] = {
#define X(name, at, error_at) #name,
    CALLS(X)
#undef X
};

static call *forwarded[NUM_CALLS];
static int64_t counts[NUM_CALLS];
static struct {
    int which, kind, code, for_good, came;
    int64_t number;
} fault = {.which = -1};

int num_calls(void) { return NUM_CALLS; }
const char *call_name(int which) { return names[which]; }
int64_t call_count(int which) { return __atomic_load_n(&counts[which], __ATOMIC_SEQ_CST); }
int fault_came(void) { return fault.came; }

/* Let call `number` of a function fail, counted from now; -1 as `which`: none fails any more.
   For good: then all calls fail that do not release something. */
void arm(int which, int64_t number, int kind, int code, int for_good)
{
    for (int i = 0; i < NUM_CALLS; ++i) counts[i] = 0;
    fault.number = number, fault.kind = kind, fault.code = code;
    fault.for_good = for_good, fault.came = 0, fault.which = which;
}

static int fails(int which)
{
    int64_t number = __atomic_add_fetch(&counts[which], 1, __ATOMIC_SEQ_CST);
    if (fault.which < 0) return 0;
    if (which != fault.which || number != fault.number)
        return fault.came && fault.for_good && names[which][0] != 'R';
    fault.came = 1;
    if (fault.kind == ABORT) abort();
    while (fault.kind == HANG) pause();
    return 1;
}

#define X(name, at, error_at)                                                               \
    static word call_##name(word a, word b, word c, word d, word e, word f, word g, word h, \
                            word i, word j, word k, word l)                                 \
    {                                                                                       \
        if (!fails(_##name)) return forwarded[_##name](a, b, c, d, e, f, g, h, i, j, k, l); \
        if (error_at < 0) return fault.code;                                                \
        word arguments[] = {a, b, c, d, e, f, g, h, i, j};                                  \
        int32_t *error = (int32_t *)arguments[error_at < 0 ? 0 : error_at];                 \
        if (error) *error = fault.code;                                                     \
        return 0;                                                                           \
    }
CALLS(X)
#undef X

static int replace(call **table, int at, int which, call *own)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = (uintptr_t)(table + at) & -page;
    if (!table[at] || table[at] == own) return 0;
    if (forwarded[which] && forwarded[which] != table[at]) return -1; /* of another driver */
    if (mprotect((void *)start, page, PROT_READ | PROT_WRITE)) return -1;
    forwarded[which] = table[at];
    table[at] = own;
    return 0;
}

/* Put the functions into a platform's table; return 0, or -1 if that cannot be. */
int install(void *platform)
{
    call **table = *(call ***)platform;
#define X(name, at, error_at) if (replace(table, at, _##name, call_##name)) return -1;
    CALLS(X)
#undef X
    return 0;
}
