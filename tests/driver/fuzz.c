// Random sequences of calls with random handles, addresses and sizes: no crash, and no device memory is lost. fuzz SEED ROUNDS
// Pointers of the host are good or null: others crash any driver.
#include "driver.h"

enum { KEPT = 24, RANGES = 3, STEP = 2 << 20, STEPS = 4 };
static CUdeviceptr ranges[RANGES], physicals[RANGES];

CUresult cuMemAddressReserve(CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long);
CUresult cuMemAddressFree(CUdeviceptr, size_t);
CUresult cuMemCreate(CUdeviceptr *, size_t, const void *, unsigned long long);
CUresult cuMemRelease(CUdeviceptr);
CUresult cuMemMap(CUdeviceptr, size_t, size_t, CUdeviceptr, unsigned long long);
CUresult cuMemUnmap(CUdeviceptr, size_t);
CUresult cuMemSetAccess(CUdeviceptr, size_t, const void *, size_t);
CUresult cuMemRetainAllocationHandle(CUdeviceptr *, void *);
CUresult cuIpcGetMemHandle(void *, CUdeviceptr);
CUresult cuIpcCloseMemHandle(CUdeviceptr);

static unsigned long long handles[KEPT];
static CUdeviceptr memory[KEPT];
static uint64_t state;
static char host[1 << 16];

static uint64_t next(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 20;
}

static uint64_t any_number(void) {
    static const uint64_t odd[] = {0, 1, 2, 3, 4, 7, 8, 16, 31, 32, 64, 255, 1000, 4096, 65536, 0x7fffffff, 0xffffffff, 1ull << 40, ~0ull};
    return next() % 3 ? odd[next() % (sizeof odd / sizeof *odd)] : next();
}

// A handle that was made some time, perhaps of another kind, or any number.
static void *any_handle(void) {
    return next() % 8 ? (void *)handles[next() % KEPT] : (void *)any_number();
}

// Reserved addresses, or any.
static CUdeviceptr any_range(void) { return ranges[next() % RANGES] + (next() % 8 ? next() % STEPS * STEP : any_number()); }

static size_t steps(void) { return next() % 16 ? (1 + next() % 2) * STEP : any_number(); }

static CUdeviceptr any_address(void) {
    if (next() % 8 == 0) return any_range() + next() % 2 * 8;
    return next() % 8 ? memory[next() % KEPT] + (next() % 4 ? 0 : next() % 300) : any_number();
}

static size_t any_size(void) { return next() % 4 ? next() % 5000 : any_number(); }

// Sizes of the host's side fit its buffer.
static size_t host_size(void) { return next() % sizeof host; }

// Graphs and libraries belong to no context: whoever made them ends them.
static void forget(int i) {
    cuGraphExecDestroy((CUgraphExec)handles[i]);
    cuGraphDestroy((CUgraph)handles[i]);
    cuLibraryUnload((CUlibrary)handles[i]);
    while (!cuMemRelease(handles[i]));
    handles[i] = 0;
}

static void keep(void *handle) {
    int i = (int)(next() % KEPT);
    forget(i);
    handles[i] = (unsigned long long)handle;
}

static void call(void) {
    void *handle = 0;
    CUdeviceptr address = 0;
    size_t size = 0;
    int number = 0;
    float ms;
    CUdeviceptr x = any_address();
    uint32_t n = (uint32_t)any_number(), k = 1;
    void *params[] = {&x, &n, &k};
    int prop[8] = {1, (int)(next() % 2), 1, 0}, access[3] = {1, 0, (int)(next() % 3 ? 3 : next() % 5)};
    switch (next() % 56) {
    case 44: {
        CUdeviceptr *range = &ranges[next() % RANGES];
        if (!*range && cuMemAddressReserve(range, STEPS * STEP, next() % 4 ? 0 : any_number(), any_number(), 0)) *range = 0;
        break;
    }
    case 45:
    case 46: if (!cuMemCreate(&address, steps(), prop, next() % 8 == 0)) {
            CUdeviceptr *one = &physicals[next() % RANGES];
            cuMemRelease(*one);
            *one = address;
        }
        break;
    case 47:
    case 48:
    case 49: cuMemMap(any_range(), steps(), next() % 4 ? 0 : STEP, next() % 4 ? physicals[next() % RANGES] : (CUdeviceptr)any_handle(), 0); break;
    case 50:
    case 51: cuMemSetAccess(any_range(), steps(), next() % 16 ? access : 0, 1); break;
    case 52: cuMemUnmap(any_range(), steps()); break;
    case 53: cuMemRelease((CUdeviceptr)any_handle()); break;
    case 54: if (!cuMemRetainAllocationHandle(&address, (void *)any_range())) keep((void *)address); break;
    case 55: if (next() % 2) cuIpcGetMemHandle(next() % 8 ? host : 0, any_address()); else cuIpcCloseMemHandle(any_address()); break;
    case 0: cuCtxGetCurrent((CUcontext *)&handle); break;
    case 1: if (!cuStreamCreate((CUstream *)&handle, (unsigned)any_number())) keep(handle); break;
    case 2: cuStreamDestroy_v2(any_handle()); break;
    case 3: if (!cuEventCreate((CUevent *)&handle, (unsigned)(next() % 8))) keep(handle); break;
    case 4: cuEventDestroy_v2(any_handle()); break;
    case 5: cuEventRecord(any_handle(), any_handle()); break;
    case 6: cuEventQuery(any_handle()); break;
    case 7: cuEventElapsedTime(next() % 8 ? &ms : 0, any_handle(), any_handle()); break;
    case 8: cuStreamWaitEvent(any_handle(), any_handle(), (unsigned)(next() % 3)); break;
    case 9: cuStreamSynchronize(any_handle()); break;
    case 10: cuStreamQuery(any_handle()); break;
    case 11:
    case 12: if (!cuMemAlloc_v2(next() % 16 ? &address : 0, any_size())) {
            unsigned i = (unsigned)(next() % KEPT);
            cuMemFree_v2(memory[i]);
            memory[i] = address;
        }
        break;
    case 13: cuMemFree_v2(any_address()); break;
    case 14: cuMemcpyHtoD_v2(any_address(), next() % 16 ? host : 0, host_size()); break;
    case 15: cuMemcpyDtoH_v2(next() % 16 ? host : 0, any_address(), host_size()); break;
    case 16: cuMemcpyDtoD_v2(any_address(), any_address(), any_size()); break;
    case 17: cuMemcpyHtoDAsync_v2(any_address(), host, host_size(), any_handle()); break;
    case 18: cuMemcpyDtoHAsync_v2(host, any_address(), host_size(), any_handle()); break;
    case 19: cuMemsetD8_v2(any_address(), 3, any_size()); break;
    case 20: cuMemsetD32_v2(any_address(), 3, any_size()); break;
    case 21: cuMemsetD32Async(any_address(), 3, any_size(), any_handle()); break;
    case 22: cuMemsetD2D32_v2(any_address(), any_size(), 3, any_size(), any_size()); break;
    case 23: if (!cuModuleLoadData((CUmodule *)&handle, KERNELS)) keep(handle); break;
    case 24: cuModuleUnload(any_handle()); break;
    case 25:
    case 26: if (!cuModuleGetFunction((CUfunction *)&handle, any_handle(), next() % 4 ? "step" : "other")) keep(handle); break;
    case 27: cuModuleGetGlobal_v2(&address, &size, any_handle(), "table"); break;
    case 28:
    case 29: {
        // A launch that may miss its memory would end the context: only ranges that are there.
        size_t left = 0;
        n = !cuMemGetAddressRange_v2(&address, &left, x) ? (uint32_t)((left - (x - address)) / 4) : 0;
        if (x % 4 || n > 2000) n = 0;
        cuLaunchKernel(any_handle(), 8, 1, 1, 256, 1, 1, (unsigned)any_number() % 100000, any_handle(), next() % 16 ? params : 0, 0);
        break;
    }
    case 30: cuFuncGetAttribute(&number, (int)(next() % 20), any_handle()); break;
    case 31: cuFuncSetAttribute(any_handle(), (int)(next() % 20), (int)any_number()); break;
    case 32: cuPointerGetAttribute(host, (int)(next() % 25), any_address()); break;
    case 33: cuMemGetAddressRange_v2(&address, &size, any_address()); break;
    case 34: cuDeviceGetAttribute(&number, (int)any_number(), (CUdevice)any_number()); break;
    case 35: cuStreamBeginCapture_v2(any_handle(), (int)(next() % 4)); break;
    case 36: if (!cuStreamEndCapture(any_handle(), (CUgraph *)&handle)) keep(handle); break;
    case 37: if (!cuGraphCreate((CUgraph *)&handle, (unsigned)(next() % 2))) keep(handle); break;
    case 38: cuGraphDestroy(any_handle()); break;
    case 39: if (!cuGraphInstantiate_v2((CUgraphExec *)&handle, any_handle(), 0, 0, 0)) keep(handle); break;
    case 40: cuGraphLaunch(any_handle(), any_handle()); break;
    case 41: cuGraphExecDestroy(any_handle()); break;
    case 42: if (!cuLibraryLoadData((CUlibrary *)&handle, KERNELS, 0, 0, 0, 0, 0, 0)) keep(handle); break;
    case 43: if (!cuLibraryGetKernel((CUkernel *)&handle, any_handle(), "step")) keep(handle); else cuLibraryUnload(any_handle()); break;
    }
}

int main(int argc, char **argv) {
    TRUE(argc == 3);
    state = (uint64_t)atoll(argv[1]);
    OK(cuInit(0));
    for (long round = atol(argv[2]); round > 0; round--) {
        CUcontext context;
        size_t before, after, total;
        OK(cuCtxCreate_v2(&context, 0, 0));
        OK(cuMemGetInfo_v2(&before, &total));
        for (int i = 0; i < 400; i++) call();
        CUresult end = cuCtxSynchronize();
        // What was freed while work that was given before used it ends the context, as on a GPU.
        TRUE(end == 0 || end == 1 || end == 700 || end == 900);
        OK(cuCtxDestroy_v2(context));
        memset(memory, 0, sizeof memory);
        for (int i = 0; i < RANGES; i++) {
            for (int k = 0; k < STEPS; k++)
                for (int n = 1; n <= 2; n++) cuMemUnmap(ranges[i] + k * STEP, n * STEP);
            EXPECT(ranges[i] ? 0 : 1, cuMemAddressFree(ranges[i], STEPS * STEP));
            ranges[i] = 0;
            while (!cuMemRelease(physicals[i]));
            physicals[i] = 0;
        }
        for (int i = 0; i < KEPT; i++) forget(i);
        OK(cuCtxCreate_v2(&context, 0, 0));
        OK(cuMemGetInfo_v2(&after, &total));
        OK(cuCtxDestroy_v2(context));
        TRUE(before == after);
    }
    puts("ok");
    return 0;
}
