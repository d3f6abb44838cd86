// Memory of the process that kernels use: what was registered, and with HANDLOOM_OPEN_ADDRESSES all of it.
#define _GNU_SOURCE
#include "driver.h"
#include <sys/mman.h>

enum { N = 1000 };

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *seen, void *address, unsigned flags);

static const uint32_t CONSTANT[N] = {7};
static uint32_t variable[N];
static CUfunction step, spin, miss;

static CUresult launch(const void *x, uint32_t n, uint32_t k) {
    void *params[] = {&x, &n, &k};
    return cuLaunchKernel(step, (N + 127) / 128, 1, 1, 128, 1, 1, 0, 0, params, 0);
}

static void fresh(void) {
    CUmodule module;
    OK(cuModuleLoadData(&module, KERNELS));
    OK(cuModuleGetFunction(&step, module, "step"));
    OK(cuModuleGetFunction(&spin, module, "spin"));
    OK(cuModuleGetFunction(&miss, module, "miss"));
}

// A kernel fails, and the context is made anew.
static void fails(const void *x, uint32_t n, CUresult why) {
    launch(x, n, 1);
    EXPECT(why, cuCtxSynchronize());
    OK(cuDevicePrimaryCtxReset_v2(0));
    fresh();
}

static void registered(void) {
    // No multiple of 16, and in the middle of a page.
    char *block = malloc(sizeof(uint32_t) * N + 64);
    for (int skip = 4; skip < 20; skip += 4) {
        uint32_t *x = (uint32_t *)(block + skip), *seen;
        for (uint32_t i = 0; i < N; i++) x[i] = i;
        OK(cuMemHostRegister_v2(x, sizeof(uint32_t) * N, 2));
        OK(cuMemHostGetDevicePointer_v2((CUdeviceptr *)&seen, x, 0));
        TRUE(seen == x);
        OK(launch(seen, N, skip));
        OK(launch(seen, N, 1));
        OK(cuCtxSynchronize());
        for (uint32_t i = 0; i < N; i++) TRUE(x[i] == (i * 3 + skip) * 3 + 1);
        OK(cuMemsetD32_v2((CUdeviceptr)x, 5, N - 1));
        TRUE(x[0] == 5 && x[N - 2] == 5 && x[N - 1] != 5);
        OK(cuMemHostUnregister(x));
    }
    // One byte more than was registered, and what is for reading only.
    uint32_t *x = (uint32_t *)(block + 4);
    OK(cuMemHostRegister_v2(x, sizeof(uint32_t) * N, 0));
    fails(x, N + 1, 700);
    OK(cuMemHostRegister_v2(x, sizeof(uint32_t) * N, 8));
    fails(x, N, 700);
    // Nobody registered it, and a context that ends takes back what was registered in it.
    fails(x, N, 700);
    free(block);
}

static void open_addresses(void) {
    int has;
    OK(cuDeviceGetAttribute(&has, 88, 0));
    TRUE(has == 1);
    uint32_t on_stack[N] = {0}, *heap = calloc(N, sizeof *heap), *large = mmap(0, 1 << 24, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint32_t *all[] = {on_stack, heap, large, variable, large + (1 << 22) - N};
    for (int i = 0; i < 5; i++) {
        CUdeviceptr seen;
        OK(cuPointerGetAttribute(&seen, 3, (CUdeviceptr)all[i]));
        TRUE(seen == (CUdeviceptr)all[i]);
        OK(launch(all[i], N, 4));
        // Nobody waits: the launch has ended.
        for (int j = 0; j < N; j++) TRUE(all[i][j] == 4);
        OK(cuMemsetD32_v2(seen, 6, N));
        TRUE(all[i][0] == 6 && all[i][N - 1] == 6);
    }
    // Mapped, used, unmapped, and mapped again elsewhere.
    for (int i = 0; i < 20; i++) {
        uint32_t *part = mmap(0, 1 << 16, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        OK(launch(part, N, i));
        TRUE(part[0] == (uint32_t)i && part[N - 1] == (uint32_t)i);
        munmap(part, 1 << 16);
    }
    // Memory of the device is what it was.
    CUdeviceptr device;
    OK(cuMemAlloc_v2(&device, 4 * N));
    OK(cuMemcpyHtoD_v2(device, heap, 4 * N));
    OK(launch((void *)device, N, 1));
    OK(cuMemcpyDtoH_v2(heap, device, 4 * N));
    TRUE(heap[0] == 19 && heap[N - 1] == 19);
    const char *bounds = getenv("HANDLOOM_BOUNDS");
    if (!bounds || strcmp(bounds, "contained")) fails((void *)device, N + 1, 700);
    // What the program may only read, what is not mapped any more, and nothing at all.
    fails(CONSTANT, N, 700);
    munmap(large, 1 << 24);
    fails(large, N, 700);
    launch((void *)64, N, 1);
    EXPECT(700, cuCtxSynchronize());
    free(heap);
}

int main(int n, char **args) {
    CUcontext context;
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    fresh();
    if (n > 1 && !strcmp(args[1], "open")) {
        open_addresses();
    } else {
        int has;
        OK(cuDeviceGetAttribute(&has, 88, 0));
        TRUE(has == 0);
        registered();
    }
    puts("ok");
    return 0;
}
