// Kernels that are checked while they run: `racy` reads what a thread of another warp writes, `clean` waits for it, `count` adds one in each thread,
// `spin` waits until a word is not 0, `put` writes a word in each thread. With -DRUNTIME they are launched as a program of nvcc does it.
#include "driver.h"

static const char CHECKED[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry racy(.param .u64 out)\n{\n"
    ".reg .b32 %r<4>; .reg .b64 %d<4>;\nld.param.u64 %d0, [out]; mov.u32 %r0, %tid.x;\n"
    "mul.wide.u32 %d1, %r0, 4; add.u64 %d1, %d0, %d1;\nxor.b32 %r1, %r0, 32; mul.wide.u32 %d2, %r1, 4; add.u64 %d2, %d0, %d2;\n"
    "st.global.u32 [%d1], %r0;\nld.global.u32 %r2, [%d2];\nst.global.u32 [%d1+256], %r2;\nret;\n}\n"
    ".visible .entry clean(.param .u64 out)\n{\n"
    ".reg .b32 %r<4>; .reg .b64 %d<4>;\nld.param.u64 %d0, [out]; mov.u32 %r0, %tid.x;\n"
    "mul.wide.u32 %d1, %r0, 4; add.u64 %d1, %d0, %d1;\nxor.b32 %r1, %r0, 32; mul.wide.u32 %d2, %r1, 4; add.u64 %d2, %d0, %d2;\n"
    "st.global.u32 [%d1], %r0;\nbar.sync 0;\nld.global.u32 %r2, [%d2];\nst.global.u32 [%d1+256], %r2;\nret;\n}\n"
    ".visible .entry count(.param .u64 out)\n{\n"
    ".reg .b64 %d;\nld.param.u64 %d, [out];\nred.relaxed.gpu.global.add.u32 [%d], 1;\nret;\n}\n"
    ".visible .entry spin(.param .u64 flag)\n{\n.reg .b32 %r; .reg .b64 %rd; .reg .pred %p;\nld.param.u64 %rd, [flag];\n"
    "again:\nld.acquire.sys.global.u32 %r, [%rd];\nsetp.eq.u32 %p, %r, 0;\n@%p bra again;\nret;\n}\n"
    ".visible .entry put(.param .u64 out)\n{\n"
    ".reg .b32 %r; .reg .b64 %d<2>;\nld.param.u64 %d0, [out]; mov.u32 %r, %tid.x;\nmul.wide.u32 %d1, %r, 4; add.u64 %d1, %d0, %d1;\nst.global.u32 [%d1], %r;\nret;\n}\n";

static const char *const NAMES[] = {"racy", "clean", "count", "spin", "put"};
enum { RACY, CLEAN, COUNT, SPIN, PUT, N_KERNELS };

#ifdef RUNTIME
#include "fat_binary.h"

int cudaLaunchKernel(const void *stub, dim3 grid, dim3 block, void **args, size_t shared, CUstream stream);
int cudaMalloc(CUdeviceptr *p, size_t n);
int cudaMemset(CUdeviceptr p, int v, size_t n);
int cudaMemcpy(void *to, CUdeviceptr from, size_t n, int kind);
int cudaStreamCreate(CUstream *s);
int cudaDeviceSynchronize(void);

static char stubs[N_KERNELS];

static void start(void) {
    static struct { int magic, version; const void *data; void *list; } wrapper = {0x466243b1, 1, 0, 0};
    wrapper.data = container(CHECKED, sizeof CHECKED);
    void **handle = __cudaRegisterFatBinary(&wrapper);
    for (int i = 0; i < N_KERNELS; i++) __cudaRegisterFunction(handle, &stubs[i], 0, NAMES[i], -1, 0, 0, 0, 0, 0);
    __cudaRegisterFatBinaryEnd(handle);
}

// As `kernel<<<grid, block, 0, stream>>>(out)`.
static void launch(int kernel, unsigned grid, unsigned block, CUstream stream, CUdeviceptr out) {
    OK(__cudaPushCallConfiguration((dim3){grid, 1, 1}, (dim3){block, 1, 1}, 0, stream));
    dim3 g, b;
    size_t shared;
    void *args[] = {&out};
    OK(__cudaPopCallConfiguration(&g, &b, &shared, &stream));
    OK(cudaLaunchKernel(&stubs[kernel], g, b, args, shared, stream));
}

static CUdeviceptr zeros(size_t bytes) {
    CUdeviceptr p;
    OK(cudaMalloc(&p, bytes));
    OK(cudaMemset(p, 0, bytes));
    return p;
}

static void finish(void) { OK(cudaDeviceSynchronize()); }
static void fetch(void *to, CUdeviceptr from, size_t bytes) { OK(cudaMemcpy(to, from, bytes, 2)); }
static CUstream stream(void) {
    CUstream s;
    OK(cudaStreamCreate(&s));
    return s;
}
#else
static CUfunction functions[N_KERNELS];

static void start(void) {
    CUcontext context;
    CUmodule module;
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    OK(cuModuleLoadData(&module, CHECKED));
    for (int i = 0; i < N_KERNELS; i++) OK(cuModuleGetFunction(&functions[i], module, NAMES[i]));
}

static void launch(int kernel, unsigned grid, unsigned block, CUstream stream, CUdeviceptr out) {
    void *params[] = {&out};
    OK(cuLaunchKernel(functions[kernel], grid, 1, 1, block, 1, 1, 0, stream, params, 0));
}

static CUdeviceptr zeros(size_t bytes) {
    CUdeviceptr p;
    OK(cuMemAlloc_v2(&p, bytes));
    OK(cuMemsetD8_v2(p, 0, bytes));
    return p;
}

static void finish(void) { OK(cuCtxSynchronize()); }
static void fetch(void *to, CUdeviceptr from, size_t bytes) { OK(cuMemcpyDtoH_v2(to, from, bytes)); }
static CUstream stream(void) {
    CUstream s;
    OK(cuStreamCreate(&s, 1));
    return s;
}

// Work of two streams on the same bytes, in order: by events, by the host, by the default stream, by atomics; or of other bytes.
static void ordered(void) {
    CUstream a = stream(), b = stream(), c;
    CUevent event;
    uint32_t words[64];
    CUdeviceptr one = zeros(512), two = one + 256;
    OK(cuStreamCreate(&c, 0));
    OK(cuEventCreate(&event, 2));
    finish();
    launch(PUT, 1, 64, a, one);
    launch(PUT, 1, 64, b, two);
    OK(cuEventRecord(event, a));
    OK(cuStreamWaitEvent(b, event, 0));
    launch(PUT, 1, 64, b, one);
    OK(cuStreamSynchronize(b));
    launch(PUT, 1, 64, a, two);
    finish();
    OK(cuMemcpyHtoDAsync_v2(one, words, sizeof words, a));
    OK(cuMemcpyDtoHAsync_v2(words, one, sizeof words, a));
    OK(cuEventRecord(event, a));
    OK(cuEventSynchronize(event));
    OK(cuMemsetD32Async(one, 0, 64, b));
    launch(PUT, 1, 64, b, one);
    while (cuStreamQuery(b)) {}
    launch(PUT, 1, 64, c, one);
    launch(PUT, 1, 64, 0, one);
    launch(PUT, 1, 64, c, one);
    finish();
    fetch(words, one, sizeof words);
    for (int i = 0; i < 4; i++) launch(COUNT, 1, 64, i % 2 ? a : b, one);
    finish();
}

// The same without: two launches, a launch and a copy, a launch and a fill, a launch and a copy of the host, and an event that comes too early.
static void unordered(int which) {
    CUstream a = stream(), b = stream();
    CUevent event;
    uint32_t words[64] = {0};
    CUdeviceptr one = zeros(512);
    OK(cuEventCreate(&event, 2));
    finish();
    launch(PUT, 1, 64, a, one);
    if (which == 0) launch(PUT, 1, 64, b, one + 128);
    if (which == 1) OK(cuMemcpyHtoDAsync_v2(one, words, sizeof words, b));
    if (which == 2) OK(cuMemsetD32Async(one + 252, 0, 64, b));
    if (which == 3) fetch(words, one, sizeof words);
    if (which == 4) {
        OK(cuEventRecord(event, a));
        launch(PUT, 1, 64, a, one);
        OK(cuStreamWaitEvent(b, event, 0));
        launch(PUT, 1, 64, b, one);
    }
    finish();
}
#endif

int main(int n, char **words) {
    const char *mode = n > 1 ? words[1] : "";
    start();
    CUdeviceptr out = zeros(512);
    if (strstr(mode, "racy")) {
        for (int i = 0; i < 3; i++) launch(RACY, 1, 64, 0, out);
        finish();
    }
    if (strstr(mode, "clean")) {
        launch(CLEAN, 1, 64, 0, out);
        uint32_t words[128];
        fetch(words, out, sizeof words);
        for (uint32_t i = 0; i < 64; i++) TRUE(words[i] == i && words[64 + i] == (i ^ 32));
        // Kernels of two streams add to one word: no sum is lost, and atomics are no race.
        CUdeviceptr sum = zeros(4);
        finish();
        CUstream a = stream(), b = stream();
        for (int i = 0; i < 8; i++) launch(COUNT, 4, 64, i % 2 ? a : b, sum);
        finish();
        fetch(words, sum, 4);
        TRUE(words[0] == 8 * 256);
    }
#ifndef RUNTIME
    if (!strncmp(mode, "ordered", 7)) ordered();
    if (!strncmp(mode, "unordered", 9)) unordered(mode[9] - '0');
#endif
    if (strstr(mode, "left")) {
        launch(SPIN, 1, 32, stream(), out);
        printf("left\n");
        fflush(stdout);
        _Exit(0);
    }
    printf("ok\n");
    return 0;
}
