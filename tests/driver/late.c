// Calls that come late: from destructors of objects of a thread (C++'s `thread_local`), of keys of a thread, and from exit handlers, which the main thread comes to after
// the destructors of its own objects. They do what they do at any other time.
#include "driver.h"
#include "fat_binary.h"
#include <pthread.h>
#include <unistd.h>

int cudaLaunchKernel(const void *stub, dim3 grid, dim3 block, void **args, size_t shared, CUstream stream);
int cudaLaunchKernel_ptsz(const void *stub, dim3 grid, dim3 block, void **args, size_t shared, CUstream stream);
int cudaMalloc(CUdeviceptr *p, size_t n);
int cudaFree(CUdeviceptr p);
int cudaMemset(CUdeviceptr p, int v, size_t n);
int cudaMemcpy(void *to, CUdeviceptr from, size_t n, int kind);
int cudaDeviceSynchronize(void);
int cudaStreamSynchronize_ptsz(CUstream s);
int cudaGetLastError(void);
int cuStreamBeginCapture_v2(CUstream stream, int mode);
int cuStreamGetCaptureInfo_v2(CUstream stream, int *status, uint64_t *id, CUgraph *graph, const CUgraphNode **after, size_t *n);

// What C++ calls for each object of a thread that has a destructor.
int __cxa_thread_atexit_impl(void (*destructor)(void *), void *object, void *library);
extern void *__dso_handle;

// `add`: adds 1 in each thread. `slow` comes to that after some time.
static const char ADD[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry add(.param .u64 x)\n{\n.reg .b64 %rd;\nld.param.u64 %rd, [x];\nred.global.add.u32 [%rd], 1;\nret;\n}\n"
    ".visible .entry slow(.param .u64 x)\n{\n.reg .b32 %n; .reg .b64 %rd; .reg .pred %p;\nld.param.u64 %rd, [x];\nmov.u32 %n, 0;\n"
    "again:\nred.global.add.u32 [%rd+4], 1;\nadd.u32 %n, %n, 1;\nsetp.lt.u32 %p, %n, 100000;\n@%p bra again;\nred.global.add.u32 [%rd], 1;\nret;\n}\n";

static char stubs[2];
static CUdeviceptr memory;
static CUfunction add;
static int calls;

typedef int Launch(const void *, dim3, dim3, void **, size_t, CUstream);

// As `kernel<<<2, 32>>>(memory)`, with another launch among its arguments.
static void launch(int kernel, Launch *by) {
    dim3 g, b;
    size_t shared;
    CUstream stream;
    void *args[] = {&memory};
    OK(__cudaPushCallConfiguration((dim3){2, 1, 1}, (dim3){32, 1, 1}, 0, 0));
    for (int i = 0; i < 2; i++) {
        if (i == 0) OK(__cudaPushCallConfiguration((dim3){1, 1, 1}, (dim3){1, 1, 1}, 0, 0));
        OK(__cudaPopCallConfiguration(&g, &b, &shared, &stream));
        TRUE(g.x == 1u + i);
        OK(by(&stubs[kernel], g, b, args, shared, stream));
    }
}

static unsigned count(void) {
    unsigned n;
    OK(cudaMemcpy(&n, memory, 4, 2));
    return n;
}

// `exit` in an exit handler is undefined, so what is wrong is told there by this.
#undef exit
#define exit(code) _exit(code)

static void all(void *data) {
    OK(cudaMemset(memory, 0, 8));
    // Each default stream, and the driver's own calls, for which the thread has a context still.
    launch(0, cudaLaunchKernel);
    TRUE(count() == 65);
    launch(0, cudaLaunchKernel_ptsz);
    OK(cudaStreamSynchronize_ptsz(0));
    TRUE(count() == 130);
    CUcontext context;
    CUdeviceptr other;
    CUstream stream;
    OK(cuCtxGetCurrent(&context));
    TRUE(context != 0);
    void *args[] = {&memory};
    OK(cuMemAlloc_v2(&other, 64));
    OK(cuMemsetD32_v2(other, 5, 16));
    OK(cuStreamCreate(&stream, 0));
    OK(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, stream, args, 0));
    OK(cuStreamSynchronize(stream));
    TRUE(count() == 131);
    OK(cuCtxPushCurrent_v2(context));
    OK(cuCtxPopCurrent_v2(&context));
    OK(cuCtxSynchronize());
    // Nodes that a capture names.
    const CUgraphNode *after;
    CUgraph graph;
    int status;
    size_t n;
    OK(cuStreamBeginCapture_v2(stream, 2));
    OK(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, stream, args, 0));
    OK(cuStreamGetCaptureInfo_v2(stream, &status, 0, 0, &after, &n));
    TRUE(n == 1 && after[0] != 0);
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuGraphDestroy(graph));
    OK(cuStreamDestroy_v2(stream));
    OK(cuMemFree_v2(other));
    OK(cudaGetLastError());
    calls++;
}

// What a thread gave its default stream before is done before what it gives it late.
static void order(void *data) {
    launch(0, cudaLaunchKernel_ptsz);
    OK(cudaStreamSynchronize_ptsz(0));
    // 65 of each of three.
    TRUE(count() == 195);
    calls++;
}

static void *has_object(void *data) {
    OK(__cxa_thread_atexit_impl(all, 0, &__dso_handle));
    all(0);
    return data;
}

static void *has_key(void *data) {
    static pthread_key_t key;
    OK(pthread_key_create(&key, all));
    OK(pthread_setspecific(key, &key));
    all(0);
    return data;
}

static void *gives_before(void *data) {
    OK(__cxa_thread_atexit_impl(order, 0, &__dso_handle));
    OK(cudaMemset(memory, 0, 8));
    OK(cudaDeviceSynchronize());
    launch(1, cudaLaunchKernel_ptsz);
    launch(0, cudaLaunchKernel_ptsz);
    return data;
}

static void handler(void) {
    all(0);
    TRUE(calls == 8);
    puts("ok");
    fflush(stdout);
}

int main(void) {
    // Both come after all destructors of what the libraries keep for this thread.
    atexit(handler);
    OK(__cxa_thread_atexit_impl(all, 0, &__dso_handle));
    static struct { int magic, version; const void *data; void *list; } wrapper = {0x466243b1, 1, 0, 0};
    wrapper.data = container(ADD, sizeof ADD);
    void **handle = __cudaRegisterFatBinary(&wrapper);
    __cudaRegisterFunction(handle, &stubs[0], 0, "add", -1, 0, 0, 0, 0, 0);
    __cudaRegisterFunction(handle, &stubs[1], 0, "slow", -1, 0, 0, 0, 0, 0);
    __cudaRegisterFatBinaryEnd(handle);
    OK(cudaMalloc(&memory, 64));
    CUmodule module;
    OK(cuModuleLoadData(&module, ADD));
    OK(cuModuleGetFunction(&add, module, "add"));
    all(0);
    void *(*threads[])(void *) = {has_object, has_key, gives_before};
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        OK(pthread_create(&thread, 0, threads[i], 0));
        OK(pthread_join(thread, 0));
    }
    TRUE(calls == 6);
    return 0;
}
