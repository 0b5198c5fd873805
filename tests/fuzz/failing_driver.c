/* Lets a call of an OpenCL driver fail, hang, or end the process, or lets it read wrong bytes.

   A loader calls a driver through a table, to which the first word of the driver's platform points
   (extension cl_khr_icd). `install` puts this file's functions into that table. They count calls
   and forward them until the armed call comes. No header is needed: all arguments are integers or
   pointers, so they are forwarded as words, as many as the longest call has.

   A loader may also load this file as a driver. Then $FAILING_DRIVER names the library of the driver
   behind it, and $FAILING_CALL the fault, as `arm` takes it: "name number kind code for_good". */

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

enum { ERROR, HANG, ABORT, WRONG };

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
    if (fault.which < 0 || fault.kind == WRONG) return 0;
    if (which != fault.which || number != fault.number)
        return fault.came && fault.for_good && names[which][0] != 'R';
    fault.came = 1;
    if (fault.kind == ABORT) abort();
    while (fault.kind == HANG) pause();
    return 1;
}

/* Change what EnqueueReadBuffer has read, if that is the fault; small reads are of control data. */
static word spoiled(int which, word result, word num_bytes, unsigned char *read)
{
    if (fault.kind == WRONG && fault.which == which && num_bytes >= 512) read[0] ^= 1, fault.came = 1;
    return result;
}

#define X(name, at, error_at)                                                               \
    static word call_##name(word a, word b, word c, word d, word e, word f, word g, word h, \
                            word i, word j, word k, word l)                                 \
    {                                                                                       \
        if (!fails(_##name))                                                                \
            return spoiled(_##name, forwarded[_##name](a, b, c, d, e, f, g, h, i, j, k, l), \
                           e, (unsigned char *)f);                                          \
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

typedef int32_t list_platforms(uint32_t, void **, uint32_t *);

/* As a driver: the platforms of the driver behind, with the fault. */
int32_t clIcdGetPlatformIDsKHR(uint32_t most, void **platforms, uint32_t *count)
{
    uint32_t found = 0;
    void *driver = dlopen(getenv("FAILING_DRIVER"), RTLD_NOW | RTLD_LOCAL);
    void *(*find)(const char *) = driver ? dlsym(driver, "clGetExtensionFunctionAddress") : 0;
    list_platforms *list = find ? (list_platforms *)find("clIcdGetPlatformIDsKHR") : 0;
    int32_t error = list ? list(most, platforms, &found) : -1001;
    char name[64] = "";
    int which = 0, kind = 0, code = 0, for_good = 0;
    long number = 0;
    if (count) *count = found;
    if (error || !platforms) return error;
    for (uint32_t i = 0; i < found && i < most; ++i)
        if (install(platforms[i])) return -1001;
    sscanf(getenv("FAILING_CALL"), "%63s %ld %d %d %d", name, &number, &kind, &code, &for_good);
    while (which < NUM_CALLS && strcmp(names[which], name)) ++which;
    arm(which, number, kind, code, for_good);
    return 0;
}

/* Loaders look these up by name. */
word clGetPlatformInfo(word platform, word name, word size, word value, word returned)
{
    return call_GetPlatformInfo(platform, name, size, value, returned, 0, 0, 0, 0, 0, 0, 0);
}

void *clGetExtensionFunctionAddress(const char *name)
{
    if (!strcmp(name, "clIcdGetPlatformIDsKHR")) return (void *)clIcdGetPlatformIDsKHR;
    return strcmp(name, "clGetPlatformInfo") ? 0 : (void *)clGetPlatformInfo;
}
