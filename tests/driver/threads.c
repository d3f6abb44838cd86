// Threads with streams of their own do random work; each result is known. threads SEED SECONDS
#include "driver.h"
#include <pthread.h>
#include <time.h>

enum { THREADS = 16, N = 512 };
static CUcontext context;
static CUfunction step;
static time_t deadline;
static unsigned seed;
static unsigned long done;

static unsigned next(unsigned *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static void *work(void *number) {
    unsigned state = seed * 31 + (unsigned)(size_t)number;
    OK(cuCtxSetCurrent(context));
    do {
        CUstream stream;
        CUevent event;
        CUdeviceptr x;
        uint32_t host[N], n = N, k, want = next(&state);
        OK(cuStreamCreate(&stream, next(&state) % 2));
        OK(cuEventCreate(&event, 0));
        OK(cuMemAlloc_v2(&x, sizeof host));
        OK(cuMemsetD32Async(x, want, N, stream));
        void *params[] = {&x, &n, &k};
        for (unsigned i = next(&state) % 8; i > 0; i--) {
            switch (next(&state) % 4) {
            case 0:
                OK(cuEventRecord(event, stream));
                OK(cuStreamWaitEvent(stream, event, 0));
                break;
            case 1:
                OK(cuMemcpyDtoHAsync_v2(host, x, sizeof host, stream));
                OK(cuMemcpyHtoDAsync_v2(x, host, sizeof host, stream));
                break;
            default:
                k = next(&state);
                want = 3 * want + k;
                OK(cuLaunchKernel(step, N / 64, 1, 1, 64, 1, 1, 0, stream, params, 0));
            }
        }
        if (next(&state) % 2) {
            OK(cuMemcpyDtoHAsync_v2(host, x, sizeof host, stream));
            OK(cuStreamSynchronize(stream));
        } else {
            OK(cuStreamSynchronize(stream));
            OK(cuMemcpyDtoH_v2(host, x, sizeof host));
        }
        for (int i = 0; i < N; i++) TRUE(host[i] == want);
        OK(cuMemFree_v2(x));
        OK(cuEventDestroy_v2(event));
        OK(cuStreamDestroy_v2(stream));
        __atomic_fetch_add(&done, 1, __ATOMIC_RELAXED);
    } while (time(0) < deadline);
    return 0;
}

int main(int argc, char **argv) {
    TRUE(argc == 3);
    seed = (unsigned)atoi(argv[1]);
    deadline = time(0) + atoi(argv[2]);
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    CUmodule module;
    OK(cuModuleLoadData(&module, KERNELS));
    OK(cuModuleGetFunction(&step, module, "step"));
    size_t before, after, total;
    OK(cuMemGetInfo_v2(&before, &total));
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) TRUE(!pthread_create(&threads[i], 0, work, (void *)i));
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], 0);
    OK(cuMemGetInfo_v2(&after, &total));
    printf("%lu rounds\n", done);
    TRUE(before == after);
    puts("ok");
    return 0;
}
