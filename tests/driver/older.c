// Launches described call by call, events of whole contexts, modules of libraries, contexts that are attached, what atomics do.
#include "driver.h"
#include <unistd.h>

enum { N = 300 };

typedef struct {
    CUfunction function;
    unsigned grid[3], block[3], shared;
    CUstream stream;
    void **params;
} LaunchParams;

CUresult cuFuncSetBlockShape(CUfunction function, int x, int y, int z);
CUresult cuFuncSetSharedSize(CUfunction function, unsigned bytes);
CUresult cuFuncGetModule(CUmodule *module, CUfunction function);
CUresult cuParamSetSize(CUfunction function, unsigned bytes);
CUresult cuParamSeti(CUfunction function, int offset, unsigned value);
CUresult cuParamSetf(CUfunction function, int offset, float value);
CUresult cuParamSetv(CUfunction function, int offset, void *value, unsigned bytes);
CUresult cuLaunch(CUfunction function);
CUresult cuLaunchGrid(CUfunction function, int width, int height);
CUresult cuLaunchGridAsync(CUfunction function, int width, int height, CUstream stream);
CUresult cuLaunchCooperativeKernelMultiDevice(LaunchParams *list, unsigned n, unsigned flags);
CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library);
CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel);
CUresult cuCtxRecordEvent(CUcontext context, CUevent event);
CUresult cuCtxWaitEvent(CUcontext context, CUevent event);
CUresult cuCtxAttach(CUcontext *context, unsigned flags);
CUresult cuCtxDetach(CUcontext context);
CUresult cuCtxGetExecAffinity(void *to, int kind);
CUresult cuDeviceGetHostAtomicCapabilities(unsigned *to, const int *operations, unsigned n, CUdevice device);
CUresult cuDeviceGetP2PAtomicCapabilities(unsigned *to, const int *operations, unsigned n, CUdevice device, CUdevice peer);

// Variables in constant and in local memory, and at most 64 threads.
static const char SIZES[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n.const .align 8 .b8 table[256];\n.const .b8 last[3];\n"
    ".visible .entry sizes(.param .u64 x, .param .u32 i)\n.maxntid 64, 1, 1\n{\n.reg .b32 %r<4>; .reg .b64 %rd<5>; .local .align 4 .b8 own[4000];\n"
    "ld.param.u64 %rd1, [x]; ld.param.u32 %r1, [i];\nmov.u64 %rd2, own; mul.wide.u32 %rd3, %r1, 4; add.u64 %rd4, %rd2, %rd3;\n"
    "st.local.u32 [own], %r1; st.local.u32 [%rd4], 7; ld.local.u32 %r2, [own]; st.global.u32 [%rd1], %r2;\nret;\n}\n";

static CUdeviceptr x;
static uint32_t host[N];

static uint32_t first(void) {
    OK(cuMemcpyDtoH_v2(host, x, sizeof host));
    return host[0];
}

static void described_launches(CUfunction step) {
    EXPECT(1, cuLaunch(step)); // without a shape
    EXPECT(1, cuFuncSetBlockShape(step, 32, 0, 1));
    OK(cuFuncSetBlockShape(step, 32, 1, 1));
    OK(cuFuncSetSharedSize(step, 16));
    EXPECT(1, cuLaunch(step)); // without parameters
    OK(cuParamSetv(step, 0, &x, 8));
    OK(cuParamSeti(step, 8, N));
    OK(cuParamSeti(step, 12, 5));
    OK(cuParamSetSize(step, 12));
    EXPECT(1, cuLaunch(step));
    OK(cuParamSetSize(step, 16));
    OK(cuMemsetD32_v2(x, 1, N));
    OK(cuLaunch(step));
    TRUE(first() == 8 && host[31] == 8 && host[32] == 1);
    OK(cuLaunchGrid(step, (N + 31) / 32, 1));
    TRUE(first() == 29 && host[32] == 8 && host[N - 1] == 8);
    CUstream stream;
    OK(cuStreamCreate(&stream, 1));
    float one = 1;
    uint32_t bits;
    memcpy(&bits, &one, 4);
    OK(cuParamSetf(step, 12, one));
    OK(cuLaunchGridAsync(step, 1, 1, stream));
    OK(cuStreamSynchronize(stream));
    TRUE(first() == 29 * 3 + bits);
    EXPECT(1, cuLaunchGrid(step, 0, 1));
    EXPECT(1, cuParamSeti(step, -4, 1));
    EXPECT(1, cuParamSeti(step, 40000, 1));
    EXPECT(400, cuLaunch((CUfunction)16));
    OK(cuStreamDestroy_v2(stream));
}

static void events_of_contexts(CUcontext context, CUfunction step, CUfunction spin) {
    CUstream streams[3];
    CUevent all, other;
    CUdeviceptr flag;
    OK(cuMemAllocManaged(&flag, 4, 1));
    __atomic_store_n((uint32_t *)flag, 0, __ATOMIC_RELEASE);
    for (int i = 0; i < 3; i++) OK(cuStreamCreate(&streams[i], 1));
    OK(cuEventCreate(&all, 2));
    OK(cuEventCreate(&other, 0));
    // The event stands for the work of all streams.
    void *params[] = {&flag};
    OK(cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, streams[1], params, 0));
    OK(cuCtxRecordEvent(context, all));
    EXPECT(600, cuEventQuery(all));
    // All later work waits for it, also that of a stream that is made later.
    OK(cuMemcpyHtoD_v2(x, host, 4));
    OK(cuCtxWaitEvent(context, all));
    CUstream late;
    OK(cuStreamCreate(&late, 1));
    OK(cuMemsetD32Async(x, 11, 1, streams[2]));
    OK(cuMemsetD32Async(x + 4, 12, 1, late));
    usleep(20000);
    EXPECT(600, cuStreamQuery(streams[2]));
    EXPECT(600, cuStreamQuery(late));
    __atomic_store_n((uint32_t *)flag, 1, __ATOMIC_RELEASE);
    OK(cuEventSynchronize(all));
    OK(cuStreamSynchronize(streams[2]));
    OK(cuStreamSynchronize(late));
    TRUE(first() == 11 && host[1] == 12);
    // Not while a stream is captured, whose capture is lost.
    CUgraph graph;
    OK(cuStreamBeginCapture_v2(streams[0], 2));
    EXPECT(900, cuCtxRecordEvent(context, other));
    EXPECT(901, cuStreamEndCapture(streams[0], &graph));
    OK(cuStreamBeginCapture_v2(streams[0], 2));
    EXPECT(900, cuCtxWaitEvent(context, other));
    EXPECT(901, cuStreamEndCapture(streams[0], &graph));
    EXPECT(400, cuCtxRecordEvent(context, (CUevent)16));
    EXPECT(201, cuCtxRecordEvent((CUcontext)16, other));
    CUcontext second;
    CUevent theirs;
    OK(cuCtxCreate_v2(&second, 0, 0));
    OK(cuEventCreate(&theirs, 0));
    EXPECT(400, cuCtxRecordEvent(context, theirs));
    OK(cuCtxWaitEvent(context, theirs)); // not recorded: no work
    // A context that is used twice goes with the second detach.
    CUcontext same;
    EXPECT(1, cuCtxAttach(&same, 1));
    OK(cuCtxAttach(&same, 0));
    TRUE(same == second);
    EXPECT(201, cuCtxDetach(context));
    OK(cuCtxDetach(second));
    OK(cuCtxSynchronize());
    OK(cuCtxDetach(second));
    EXPECT(201, cuCtxDetach(second));
    OK(cuCtxSetCurrent(context));
    // A primary context stays.
    OK(cuCtxAttach(&same, 0));
    OK(cuCtxDetach(context));
    EXPECT(201, cuCtxDetach(context));
    OK(cuCtxSynchronize());
    EXPECT(224, cuCtxGetExecAffinity(host, 0));
    EXPECT(1, cuCtxGetExecAffinity(host, 9));
    (void)step;
    for (int i = 0; i < 3; i++) OK(cuStreamDestroy_v2(streams[i]));
    OK(cuMemFree_v2(flag));
}

static void sizes_of_functions(CUfunction step) {
    CUmodule module;
    CUfunction sizes;
    int n;
    OK(cuModuleLoadData(&module, SIZES));
    OK(cuModuleGetFunction(&sizes, module, "sizes"));
    OK(cuFuncGetAttribute(&n, 2, sizes));
    TRUE(n == 259);
    OK(cuFuncGetAttribute(&n, 3, sizes));
    TRUE(n == 4000);
    OK(cuFuncGetAttribute(&n, 2, step));
    TRUE(n == 0);
    OK(cuFuncGetAttribute(&n, 3, step));
    TRUE(n == 0);
    uint32_t i = 3;
    void *params[] = {&x, &i};
    OK(cuLaunchKernel(sizes, 1, 1, 1, 64, 1, 1, 0, 0, params, 0));
    TRUE(first() == 3);
    EXPECT(1, cuLaunchKernel(sizes, 1, 1, 1, 65, 1, 1, 0, 0, params, 0));
    void *three[] = {&x, &i, &i};
    EXPECT(1, cuLaunchKernel(step, 1, 1, 1, 2000, 1, 1, 0, 0, three, 0));
    OK(cuModuleUnload(module));
}

static void modules_of_libraries(void) {
    CUlibrary library;
    CUmodule module, again;
    CUkernel kernel;
    CUfunction step, of_kernel;
    OK(cuLibraryLoadData(&library, KERNELS, 0, 0, 0, 0, 0, 0));
    OK(cuLibraryGetModule(&module, library));
    OK(cuLibraryGetModule(&again, library));
    TRUE(module == again);
    OK(cuModuleGetFunction(&step, module, "step"));
    // The kernel and the variable are those of the module.
    CUdeviceptr table;
    size_t bytes;
    OK(cuModuleGetGlobal_v2(&table, &bytes, module, "table"));
    TRUE(bytes == 16);
    uint32_t n = 4, k = 0;
    void *params[] = {&table, &n, &k};
    OK(cuLaunchKernel(step, 1, 1, 1, 4, 1, 1, 0, 0, params, 0));
    OK(cuMemcpyDtoH_v2(host, table, 16));
    TRUE(host[0] == 3 && host[3] == 12);
    OK(cuLibraryGetKernel(&kernel, library, "step"));
    OK(cuKernelGetFunction(&of_kernel, kernel));
    OK(cuFuncGetModule(&again, of_kernel));
    TRUE(module == again);
    OK(cuFuncGetModule(&again, step));
    TRUE(module == again);
    EXPECT(800, cuModuleUnload(module));
    OK(cuLibraryUnload(library));
    EXPECT(400, cuModuleGetFunction(&step, module, "step"));
    EXPECT(400, cuLibraryGetModule(&module, library));
    EXPECT(400, cuLaunchKernel(step, 1, 1, 1, 4, 1, 1, 0, 0, params, 0));
}

static void launches_on_devices(int devices) {
    LaunchParams list[3];
    CUcontext contexts[3];
    CUdeviceptr at[3];
    CUstream streams[3];
    static uint32_t n = N, k = 2;
    static void *params[3][3];
    for (int d = 0; d < devices; d++) {
        CUmodule module;
        OK(cuDevicePrimaryCtxRetain(&contexts[d], d));
        OK(cuCtxSetCurrent(contexts[d]));
        OK(cuModuleLoadData(&module, KERNELS));
        OK(cuStreamCreate(&streams[d], 1));
        OK(cuMemAlloc_v2(&at[d], sizeof host));
        OK(cuMemsetD32Async(at[d], 4 + d, N, streams[d]));
        LaunchParams one = {0, {3, 1, 1}, {100, 1, 1}, 0, streams[d], params[d]};
        OK(cuModuleGetFunction(&one.function, module, "step"));
        params[d][0] = &at[d], params[d][1] = &n, params[d][2] = &k;
        list[d] = one;
    }
    for (unsigned flags = 0; flags < 4; flags++) OK(cuLaunchCooperativeKernelMultiDevice(list, devices, flags));
    for (int d = 0; d < devices; d++) {
        uint32_t want = 4 + d;
        for (int i = 0; i < 4; i++) want = 3 * want + 2;
        OK(cuCtxSetCurrent(contexts[d]));
        OK(cuStreamSynchronize(streams[d]));
        OK(cuMemcpyDtoH_v2(host, at[d], sizeof host));
        for (int i = 0; i < N; i++) TRUE(host[i] == want);
    }
    EXPECT(1, cuLaunchCooperativeKernelMultiDevice(list, 0, 0));
    EXPECT(1, cuLaunchCooperativeKernelMultiDevice(list, devices, 4));
    if (devices > 1) {
        list[1].grid[0] = 2;
        EXPECT(1, cuLaunchCooperativeKernelMultiDevice(list, devices, 0));
        list[1] = list[0]; // the same device twice
        EXPECT(1, cuLaunchCooperativeKernelMultiDevice(list, 2, 0));
        int operations[] = {0, 12};
        unsigned can[] = {9, 9};
        OK(cuDeviceGetP2PAtomicCapabilities(can, operations, 2, 0, 1));
        TRUE(can[0] == 0 && can[1] == 0);
    }
    list[0].stream = 0;
    EXPECT(1, cuLaunchCooperativeKernelMultiDevice(list, 1, 0));
    OK(cuCtxSetCurrent(contexts[0]));
}

int main(void) {
    CUcontext context;
    CUmodule module;
    CUfunction step, spin;
    int devices;
    OK(cuInit(0));
    OK(cuDeviceGetCount(&devices));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    OK(cuModuleLoadData(&module, KERNELS));
    OK(cuModuleGetFunction(&step, module, "step"));
    OK(cuModuleGetFunction(&spin, module, "spin"));
    OK(cuMemAlloc_v2(&x, sizeof host));
    described_launches(step);
    events_of_contexts(context, step, spin);
    sizes_of_functions(step);
    modules_of_libraries();
    launches_on_devices(devices);
    // Sums of integers of 32 and 64 bits; least floats are not there.
    int operations[] = {0, 9, 11};
    unsigned can[3];
    OK(cuDeviceGetHostAtomicCapabilities(can, operations, 3, 0));
    TRUE(can[0] == 31 && (can[1] & 24) == 24 && can[2] == 0);
    operations[2] = 13;
    EXPECT(1, cuDeviceGetHostAtomicCapabilities(can, operations, 3, 0));
    EXPECT(1, cuDeviceGetHostAtomicCapabilities(can, operations, 0, 0));
    EXPECT(101, cuDeviceGetHostAtomicCapabilities(can, operations, 1, 99));
    EXPECT(101, cuDeviceGetP2PAtomicCapabilities(can, operations, 1, 0, 0));
    puts("ok");
    return 0;
}
