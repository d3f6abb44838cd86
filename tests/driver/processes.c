// Events and memory pools of several processes: the program starts itself once more.
#define _GNU_SOURCE
#include "driver.h"
#include <sys/wait.h>
#include <unistd.h>

enum { N = 500 };

typedef struct {
    char reserved[64];
} Handle;
typedef struct {
    int alloc_type, handle_types, location_type, location;
    void *security;
    size_t max_size;
    unsigned short usage;
    unsigned char reserved[54];
} PoolProps;
typedef void *Pool;

CUresult cuIpcGetEventHandle(Handle *handle, CUevent event);
CUresult cuIpcOpenEventHandle(CUevent *event, Handle handle);
CUresult cuCtxWaitEvent(CUcontext context, CUevent event);
CUresult cuMemPoolCreate(Pool *pool, const PoolProps *props);
CUresult cuMemPoolDestroy(Pool pool);
CUresult cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t bytes, Pool pool, CUstream stream);
CUresult cuMemPoolExportToShareableHandle(void *handle, Pool pool, int type, unsigned long long flags);
CUresult cuMemPoolImportFromShareableHandle(Pool *pool, void *handle, int type, unsigned long long flags);
CUresult cuMemPoolExportPointer(Handle *data, CUdeviceptr address);
CUresult cuMemPoolImportPointer(CUdeviceptr *address, Pool pool, Handle *data);

typedef struct {
    Handle made, read, memory[2];
} Sent;

static CUfunction step, spin;

static void run(CUfunction kernel, CUdeviceptr x, uint32_t k, CUstream stream) {
    uint32_t n = N;
    void *params[] = {&x, &n, &k};
    OK(cuLaunchKernel(kernel, kernel == spin ? 1 : 4, 1, 1, kernel == spin ? 1 : 128, 1, 1, 0, stream, params, 0));
}

static void tell(int to) { TRUE(write(to, "1", 1) == 1); }
static void hear(int from) {
    char byte;
    TRUE(read(from, &byte, 1) == 1);
}

static int child(CUcontext context, int file, int from, int to) {
    Sent sent;
    CUevent made, back;
    CUstream stream;
    Pool pool;
    CUdeviceptr x[2];
    uint32_t host[N];
    TRUE(read(from, &sent, sizeof sent) == sizeof sent);
    OK(cuIpcOpenEventHandle(&made, sent.made));
    OK(cuIpcOpenEventHandle(&back, sent.read));
    OK(cuMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)file, 1, 0));
    close(file);
    for (int i = 0; i < 2; i++) OK(cuMemPoolImportPointer(&x[i], pool, &sent.memory[i]));
    EXPECT(1, cuMemAllocFromPoolAsync(&x[1], 4, pool, 0));
    // The other process computes, held up by a kernel that spins, and this one waits for it in a stream.
    OK(cuStreamCreate(&stream, 1));
    EXPECT(600, cuEventQuery(made));
    OK(cuStreamWaitEvent(stream, made, 0));
    run(step, x[0], 1, stream);
    OK(cuEventRecord(back, stream));
    EXPECT(600, cuEventQuery(back));
    tell(to);
    OK(cuEventSynchronize(made));
    OK(cuStreamSynchronize(stream));
    OK(cuEventQuery(back));
    OK(cuMemcpyDtoH_v2(host, x[0], sizeof host));
    for (int i = 0; i < N; i++) TRUE(host[i] == (3 * 7 + 2) * 3 + 1);
    OK(cuMemsetD32_v2(x[1], 77, N));
    // Memory of a pool goes by both ways of freeing.
    OK(cuMemFree_v2(x[0]));
    OK(cuMemFreeAsync(x[1], stream));
    EXPECT(1, cuMemFree_v2(x[1]));
    tell(to);
    hear(from);
    // Recorded once more; this time all streams of the context wait.
    OK(cuCtxWaitEvent(context, made));
    OK(cuStreamSynchronize(stream));
    OK(cuEventDestroy_v2(made));
    OK(cuEventDestroy_v2(back));
    OK(cuMemPoolDestroy(pool));
    puts("ok");
    return 0;
}

int main(int argc, char **argv) {
    CUcontext context;
    CUmodule module;
    OK(cuInit(0));
    OK(cuCtxCreate_v2(&context, 0, 0));
    OK(cuModuleLoadData(&module, KERNELS));
    OK(cuModuleGetFunction(&step, module, "step"));
    OK(cuModuleGetFunction(&spin, module, "spin"));
    if (argc > 3) return child(context, atoi(argv[1]), atoi(argv[2]), atoi(argv[3]));

    Sent sent;
    Handle other;
    CUevent made, back, plain;
    CUstream stream;
    Pool pool, closed;
    CUdeviceptr x[2], flag, own;
    int has, file;
    OK(cuDeviceGetAttribute(&has, 125, 0));
    TRUE(has == 1);
    OK(cuDeviceGetAttribute(&has, 119, 0));
    TRUE(has & 1);
    EXPECT(1, cuEventCreate(&made, 4)); // with a time
    OK(cuEventCreate(&made, 6));
    OK(cuEventCreate(&back, 6));
    OK(cuEventCreate(&plain, 2));
    EXPECT(400, cuIpcGetEventHandle(&other, plain));
    OK(cuIpcGetEventHandle(&sent.made, made));
    OK(cuIpcGetEventHandle(&sent.read, back));
    OK(cuIpcGetEventHandle(&other, made));
    TRUE(!memcmp(&other, &sent.made, sizeof other) && memcmp(&other, &sent.read, sizeof other));
    OK(cuEventQuery(made));
    OK(cuEventSynchronize(made));

    PoolProps props = {1, 1, 1, 0};
    OK(cuMemPoolCreate(&pool, &props));
    props.handle_types = 0;
    OK(cuMemPoolCreate(&closed, &props));
    EXPECT(1, cuMemPoolExportToShareableHandle(&file, closed, 1, 0));
    EXPECT(801, cuMemPoolExportToShareableHandle(&file, pool, 8, 0));
    EXPECT(1, cuMemPoolExportToShareableHandle(&file, pool, 1, 1));
    OK(cuMemPoolExportToShareableHandle(&file, pool, 1, 0));
    OK(cuStreamCreate(&stream, 1));
    OK(cuMemAllocFromPoolAsync(&own, 64, closed, stream));
    EXPECT(1, cuMemPoolExportPointer(&other, own));
    for (int i = 0; i < 2; i++) {
        OK(cuMemAllocFromPoolAsync(&x[i], 4 * N, pool, stream));
        OK(cuMemPoolExportPointer(&sent.memory[i], x[i]));
    }
    // A pool of this process has its memory here already.
    EXPECT(1, cuMemPoolImportPointer(&own, pool, &sent.memory[0]));
    EXPECT(1, cuMemPoolImportFromShareableHandle(&closed, (void *)9999, 1, 0));

    OK(cuMemAllocManaged(&flag, 4, 1));
    __atomic_store_n((uint32_t *)flag, 0, __ATOMIC_RELEASE);
    OK(cuMemsetD32Async(x[0], 7, N, stream));
    run(spin, flag, 0, stream);
    run(step, x[0], 2, stream);
    OK(cuEventRecord(made, stream));
    EXPECT(600, cuEventQuery(made));
    OK(cuIpcOpenEventHandle(&plain, sent.made)); // in the same process it is the same event
    EXPECT(600, cuEventQuery(plain));

    int down[2], up[2];
    TRUE(pipe(down) == 0 && pipe(up) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        char names[3][16];
        snprintf(names[0], 16, "%d", dup(file));
        snprintf(names[1], 16, "%d", down[0]);
        snprintf(names[2], 16, "%d", up[1]);
        execl(argv[0], argv[0], names[0], names[1], names[2], (char *)0);
        _exit(9);
    }
    close(up[1]);
    TRUE(write(down[1], &sent, sizeof sent) == sizeof sent);
    hear(up[0]);
    __atomic_store_n((uint32_t *)flag, 1, __ATOMIC_RELEASE);
    // What the other process recorded is waited for here.
    OK(cuStreamWaitEvent(stream, back, 0));
    uint32_t host[N];
    OK(cuMemcpyDtoHAsync_v2(host, x[0], sizeof host, stream));
    OK(cuStreamSynchronize(stream));
    for (int i = 0; i < N; i++) TRUE(host[i] == (3 * 7 + 2) * 3 + 1);
    OK(cuEventQuery(plain));
    hear(up[0]);
    OK(cuMemcpyDtoH_v2(host, x[1], sizeof host));
    TRUE(host[0] == 77 && host[N - 1] == 77);
    OK(cuEventRecord(made, stream));
    tell(down[1]);
    int status;
    TRUE(waitpid(pid, &status, 0) == pid && status == 0);
    // Whoever is gone keeps nobody waiting.
    OK(cuEventSynchronize(back));
    for (int i = 0; i < 2; i++) OK(cuMemFreeAsync(x[i], stream));
    OK(cuStreamSynchronize(stream));
    OK(cuMemPoolDestroy(pool));
    puts("ok");
    return 0;
}
