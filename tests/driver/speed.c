// How long calls take. Prints, and checks nothing: figures depend on the machine.
#include "driver.h"
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

#define TIME(what, n, call)                                              \
    do {                                                                 \
        double start = now();                                            \
        for (int i = 0; i < (n); i++) OK(call);                          \
        printf("%-32s %8.1f ns\n", what, (now() - start) / (n) * 1e9);   \
    } while (0)

int main(void) {
    CUcontext context;
    int value;
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    CUmodule module;
    CUfunction empty;
    OK(cuModuleLoadData(&module, KERNELS));
    OK(cuModuleGetFunction(&empty, module, "empty"));
    TIME("cuCtxGetCurrent", 1000000, cuCtxGetCurrent(&context));
    TIME("cuCtxSetCurrent", 1000000, cuCtxSetCurrent(context));
    TIME("cuDeviceGetAttribute", 1000000, cuDeviceGetAttribute(&value, 75, 0));
    CUstream stream;
    OK(cuStreamCreate(&stream, 1));
    OK(cuLaunchKernel(empty, 1, 1, 1, 32, 1, 1, 0, stream, 0, 0));
    OK(cuStreamSynchronize(stream));
    double start = now();
    for (int i = 0; i < 100000; i++) OK(cuLaunchKernel(empty, 1, 1, 1, 32, 1, 1, 0, stream, 0, 0));
    double given = now();
    OK(cuStreamSynchronize(stream));
    printf("%-32s %8.1f ns given, %.1f ns in all\n", "cuLaunchKernel", (given - start) * 1e4, (now() - start) * 1e4);
    size_t bytes = 1 << 20;
    for (; bytes <= (64 << 20); bytes *= 8) {
        CUdeviceptr x;
        char *host = malloc(bytes), *other = malloc(bytes);
        memset(host, 1, bytes);
        memset(other, 1, bytes);
        OK(cuMemAlloc_v2(&x, bytes));
        OK(cuMemsetD8_v2(x, 1, bytes));
        int n = (int)((256 << 20) / bytes);
        double begin = now();
        for (int i = 0; i < n; i++) memcpy(other, host, bytes);
        double plain = now() - begin;
        begin = now();
        for (int i = 0; i < n; i++) OK(cuMemcpyHtoD_v2(x, host, bytes));
        double to = now() - begin;
        begin = now();
        for (int i = 0; i < n; i++) OK(cuMemcpyDtoH_v2(other, x, bytes));
        double from = now() - begin;
        printf("%zu MiB: to the device %.2f, from it %.2f of memcpy's speed\n", bytes >> 20, plain / to, plain / from);
        OK(cuMemFree_v2(x));
        free(host);
        free(other);
    }
    return 0;
}
