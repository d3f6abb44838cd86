// What bad input and bad kernels get: codes, never a crash; a fault ends its context and no other; a forked child is refused.
#include "driver.h"
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
    CUcontext first, second, popped;
    CUdeviceptr x;
    const char *text;
    EXPECT(3, cuMemAlloc_v2(&x, 4));
    EXPECT(1, cuInit(1));
    OK(cuInit(0));
    EXPECT(201, cuMemAlloc_v2(&x, 4));
    EXPECT(101, cuCtxCreate_v2(&first, 0, 7));
    EXPECT(1, cuCtxCreate_v2(&first, 0x1000, 0));
    EXPECT(1, cuCtxCreate_v2(0, 0, 0));
    OK(cuCtxCreate_v2(&first, 0, 0));
    OK(cuCtxCreate_v2(&second, 0, 0));
    OK(cuGetErrorName(700, &text));
    TRUE(strcmp(text, "CUDA_ERROR_ILLEGAL_ADDRESS") == 0);
    OK(cuGetErrorString(1, &text));
    TRUE(strcmp(text, "invalid argument") == 0);
    EXPECT(1, cuGetErrorString(4711, &text));

    // Memory.
    char host[64] = {0};
    size_t bytes;
    CUdeviceptr base;
    EXPECT(1, cuMemAlloc_v2(&x, 0));
    EXPECT(1, cuMemAlloc_v2(0, 4));
    EXPECT(2, cuMemAlloc_v2(&x, (size_t)1 << 60));
    OK(cuMemAlloc_v2(&x, 64));
    EXPECT(1, cuMemcpyHtoD_v2(x, host, 65));
    EXPECT(1, cuMemcpyHtoD_v2(x + 64, host, 1));
    EXPECT(1, cuMemcpyHtoD_v2(12, host, 1));
    EXPECT(1, cuMemcpyHtoD_v2(x, 0, 1));
    OK(cuMemcpyHtoD_v2(0, 0, 0));
    EXPECT(1, cuMemsetD32_v2(x + 2, 0, 1));
    EXPECT(1, cuMemsetD32_v2(x, 0, (size_t)1 << 62));
    EXPECT(1, cuMemsetD2D32_v2(x, 8, 0, 4, 2));
    EXPECT(1, cuMemFree_v2(x + 8));
    OK(cuMemGetAddressRange_v2(&base, &bytes, x + 8));
    TRUE(base == x && bytes == 64);
    OK(cuMemFree_v2(x));
    EXPECT(1, cuMemFree_v2(x));
    EXPECT(1, cuMemcpyDtoH_v2(host, x, 1));
    EXPECT(500, cuMemGetAddressRange_v2(&base, &bytes, x));
    OK(cuMemFree_v2(0));
    OK(cuMemHostRegister_v2(host, 64, 0));
    EXPECT(712, cuMemHostRegister_v2(host + 8, 8, 0));
    OK(cuMemHostUnregister(host));
    EXPECT(713, cuMemHostUnregister(host));

    // Handles of nothing, of something else, and of what was destroyed.
    CUstream stream;
    CUevent event;
    OK(cuStreamCreate(&stream, 0));
    OK(cuEventCreate(&event, 0));
    EXPECT(400, cuStreamSynchronize((CUstream)event));
    EXPECT(400, cuEventRecord((CUevent)stream, 0));
    EXPECT(400, cuStreamSynchronize((CUstream)0x1234));
    EXPECT(400, cuEventElapsedTime((float *)host, event, event));
    OK(cuEventDestroy_v2(event));
    EXPECT(400, cuEventDestroy_v2(event));
    EXPECT(201, cuCtxPushCurrent_v2((CUcontext)stream));
    EXPECT(1, cuStreamCreate(&stream, 2));

    // A fault is told by the next call that waits, and stays; the context below goes on.
    CUmodule module;
    CUfunction miss;
    OK(cuModuleLoadData(&module, KERNELS));
    OK(cuModuleGetFunction(&miss, module, "miss"));
    OK(cuLaunchKernel(miss, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0));
    EXPECT(700, cuCtxSynchronize());
    EXPECT(700, cuMemAlloc_v2(&x, 4));
    EXPECT(700, cuLaunchKernel(miss, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0));
    OK(cuCtxPopCurrent_v2(&popped));
    TRUE(popped == second);
    OK(cuMemAlloc_v2(&x, 4));
    OK(cuCtxSynchronize());
    OK(cuCtxDestroy_v2(second));
    EXPECT(201, cuCtxDestroy_v2(second));
    EXPECT(201, cuCtxSetCurrent(second));

    // A context that another stack still holds.
    OK(cuCtxPushCurrent_v2(first));
    OK(cuCtxPushCurrent_v2(first));
    OK(cuCtxDestroy_v2(first));
    EXPECT(709, cuCtxSynchronize());
    OK(cuCtxPopCurrent_v2(0));

    // The primary context is the same for ever, and fresh after a reset.
    CUcontext primary, again;
    OK(cuDevicePrimaryCtxRetain(&primary, 0));
    OK(cuCtxSetCurrent(primary));
    EXPECT(201, cuCtxDestroy_v2(primary));
    OK(cuModuleLoadData(&module, KERNELS));
    OK(cuModuleGetFunction(&miss, module, "miss"));
    OK(cuLaunchKernel(miss, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0));
    EXPECT(700, cuStreamSynchronize(0));
    OK(cuDevicePrimaryCtxReset_v2(0));
    OK(cuMemAlloc_v2(&x, 4));
    EXPECT(400, cuModuleUnload(module));
    OK(cuDevicePrimaryCtxRelease_v2(0));
    EXPECT(201, cuDevicePrimaryCtxRelease_v2(0));
    OK(cuDevicePrimaryCtxRetain(&again, 0));
    TRUE(again == primary);

    // A child is refused, at once.
    pid_t child = fork();
    if (child == 0) _exit(cuInit(0) == 3 && cuMemAlloc_v2(&x, 4) == 3 && cuCtxSynchronize() == 3 ? 0 : 1);
    int status;
    waitpid(child, &status, 0);
    TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    OK(cuMemAlloc_v2(&x, 4));
    puts("ok");
    return 0;
}
