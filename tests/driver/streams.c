// Streams and events, pinned and managed memory, functions of the host, capture and graphs.
#include "driver.h"

enum { N = 4096 };

static void add_one(void *data) { ++*(int *)data; }
static void note(CUstream stream, CUresult code, void *data) {
    (void)stream;
    *(int *)data = 100 + code;
}

int main(void) {
    CUcontext context, current;
    OK(cuInit(0));
    OK(cuCtxCreate_v2(&context, 0, 0));
    OK(cuCtxGetCurrent(&current));
    TRUE(current == context);
    CUmodule module;
    CUfunction step, spin;
    OK(cuModuleLoadData(&module, KERNELS));
    OK(cuModuleGetFunction(&step, module, "step"));
    OK(cuModuleGetFunction(&spin, module, "spin"));

    // A stream goes on while the host waits to let it: pinned memory is the same for both.
    uint32_t *flag, *host;
    OK(cuMemAllocHost_v2((void **)&flag, 8));
    OK(cuMemAllocHost_v2((void **)&host, 4 * N));
    *flag = 0;
    CUstream a, b;
    CUevent start, end;
    OK(cuStreamCreate(&a, 1));
    OK(cuStreamCreate(&b, 1));
    OK(cuEventCreate(&start, 0));
    OK(cuEventCreate(&end, 0));
    CUdeviceptr x;
    OK(cuMemAlloc_v2(&x, 4 * N));
    uint32_t n = N, k = 0;
    void *to_spin[] = {&flag}, *to_step[] = {&x, &n, &k};
    OK(cuEventRecord(start, a));
    OK(cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, a, to_spin, 0));
    OK(cuMemsetD32Async(x, 1, N, a));
    OK(cuEventRecord(end, a));
    EXPECT(600, cuEventQuery(end));
    EXPECT(600, cuStreamQuery(a));
    OK(cuStreamWaitEvent(b, end, 0));
    for (int i = 0; i < 5; i++) OK(cuLaunchKernel(step, N / 256, 1, 1, 256, 1, 1, 0, b, to_step, 0));
    OK(cuMemcpyDtoHAsync_v2(host, x, 4 * N, b));
    int calls = 0, noted = 0;
    OK(cuLaunchHostFunc(b, add_one, &calls));
    OK(cuStreamAddCallback(b, note, &noted, 0));
    EXPECT(600, cuStreamQuery(b));
    __atomic_store_n((uint32_t *)flag, 1, __ATOMIC_RELEASE);
    OK(cuStreamSynchronize(b));
    TRUE(calls == 1 && noted == 100);
    for (int i = 0; i < N; i++) TRUE(host[i] == 243);
    float ms = -1;
    OK(cuEventElapsedTime(&ms, start, end));
    TRUE(ms >= 0);
    OK(cuStreamQuery(a));

    // Memory that is allocated and freed in the order of a stream; a copy from memory that is used again at once.
    uint32_t words[64];
    CUdeviceptr y;
    OK(cuMemAllocAsync(&y, sizeof words, a));
    for (int i = 0; i < 64; i++) words[i] = 7;
    OK(cuMemcpyHtoDAsync_v2(y, words, sizeof words, a));
    memset(words, 0, sizeof words);
    OK(cuMemcpyDtoHAsync_v2(words, y, sizeof words, a));
    TRUE(words[0] == 7 && words[63] == 7);
    OK(cuMemFreeAsync(y, a));
    EXPECT(1, cuMemFreeAsync(y, a));

    // Managed memory.
    CUdeviceptr managed;
    OK(cuMemAllocManaged(&managed, 4 * N, 1));
    uint32_t *m = (uint32_t *)managed;
    for (int i = 0; i < N; i++) m[i] = 2;
    k = 4;
    to_step[0] = &managed;
    OK(cuLaunchKernel(step, N / 256, 1, 1, 256, 1, 1, 0, 0, to_step, 0));
    OK(cuCtxSynchronize());
    for (int i = 0; i < N; i++) TRUE(m[i] == 10);
    int type = 0;
    OK(cuPointerGetAttribute(&type, 2, managed));
    TRUE(type == 2);
    OK(cuPointerGetAttribute(&type, 2, (CUdeviceptr)host));
    TRUE(type == 1);

    // A capture over two streams, launched twice.
    CUgraph graph;
    CUgraphExec exec;
    int status;
    to_step[0] = &x;
    k = 1;
    OK(cuStreamBeginCapture_v2(a, 1));
    OK(cuStreamIsCapturing(a, &status));
    TRUE(status == 1);
    OK(cuMemsetD32Async(x, 1, N, a));
    OK(cuEventRecord(start, a));
    OK(cuStreamWaitEvent(b, start, 0));
    OK(cuLaunchKernel(step, N / 256, 1, 1, 256, 1, 1, 0, b, to_step, 0));
    OK(cuLaunchHostFunc(b, add_one, &calls));
    OK(cuEventRecord(end, b));
    OK(cuStreamWaitEvent(a, end, 0));
    OK(cuMemcpyDtoHAsync_v2(host, x, 4 * N, a));
    OK(cuStreamEndCapture(a, &graph));
    TRUE(calls == 1);
    size_t nodes = 0;
    OK(cuGraphGetNodes(graph, 0, &nodes));
    TRUE(nodes == 4);
    OK(cuGraphInstantiate_v2(&exec, graph, 0, 0, 0));
    for (int i = 0; i < 2; i++) {
        memset(host, 0, 4 * N);
        OK(cuGraphLaunch(exec, a));
        OK(cuStreamSynchronize(a));
        TRUE(calls == 2 + i && host[0] == 4 && host[N - 1] == 4);
    }
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
    EXPECT(1, cuGraphLaunch(exec, a));

    // A capture cannot be waited for, and one that is not joined fails.
    OK(cuStreamBeginCapture_v2(a, 0));
    EXPECT(900, cuStreamSynchronize(a));
    EXPECT(901, cuStreamEndCapture(a, &graph));
    OK(cuStreamBeginCapture_v2(a, 2));
    OK(cuEventRecord(start, a));
    OK(cuStreamWaitEvent(b, start, 0));
    OK(cuMemsetD32Async(x, 1, N, b));
    EXPECT(904, cuStreamEndCapture(a, &graph));
    EXPECT(900, cuStreamBeginCapture_v2(0, 0));

    OK(cuStreamDestroy_v2(a));
    EXPECT(400, cuStreamDestroy_v2(a));
    EXPECT(400, cuStreamSynchronize(a));
    OK(cuCtxDestroy_v2(context));
    OK(cuCtxGetCurrent(&current));
    TRUE(!current);
    EXPECT(201, cuCtxSynchronize());
    puts("ok");
    return 0;
}
