// Virtual memory, and memory between processes: what is mapped at several addresses, who may access it, and what goes when.
#define _GNU_SOURCE
#include "driver.h"
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

typedef unsigned long long Handle;
typedef struct {
    int type, handle_types, location_type, location;
    void *security;
    unsigned char compression, rdma;
    unsigned short usage;
    unsigned char reserved[4];
} Prop;
typedef struct {
    int location_type, location;
} Location;
typedef struct {
    Location location;
    int flags;
} Access;
typedef struct {
    char reserved[64];
} Ipc;

CUresult cuMemAddressReserve(CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long);
CUresult cuMemAddressFree(CUdeviceptr, size_t);
CUresult cuMemCreate(Handle *, size_t, const Prop *, unsigned long long);
CUresult cuMemRelease(Handle);
CUresult cuMemMap(CUdeviceptr, size_t, size_t, Handle, unsigned long long);
CUresult cuMemUnmap(CUdeviceptr, size_t);
CUresult cuMemSetAccess(CUdeviceptr, size_t, const Access *, size_t);
CUresult cuMemGetAccess(unsigned long long *, const Location *, CUdeviceptr);
CUresult cuMemGetAllocationGranularity(size_t *, const Prop *, int);
CUresult cuMemGetAllocationPropertiesFromHandle(Prop *, Handle);
CUresult cuMemRetainAllocationHandle(Handle *, void *);
CUresult cuMemExportToShareableHandle(void *, Handle, int, unsigned long long);
CUresult cuMemImportFromShareableHandle(Handle *, void *, int);
CUresult cuIpcGetMemHandle(Ipc *, CUdeviceptr);
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *, Ipc, unsigned);
CUresult cuIpcCloseMemHandle(CUdeviceptr);

enum { MIB = 1 << 20, STEP = 2 * MIB, N = 1000 };

static const Prop PLAIN = {.type = 1, .location_type = 1};
static const Access BOTH = {{1, 0}, 3}, READ = {{1, 0}, 1}, NOBODY = {{1, 0}, 0};

static size_t free_bytes(void) {
    size_t free, total;
    OK(cuMemGetInfo_v2(&free, &total));
    return free;
}

static uint32_t word(CUdeviceptr at) {
    uint32_t value;
    OK(cuMemcpyDtoH_v2(&value, at, 4));
    return value;
}

static void step(CUfunction kernel, CUdeviceptr x, uint32_t n, uint32_t k) {
    void *params[] = {&x, &n, &k};
    OK(cuLaunchKernel(kernel, (n + 255) / 256, 1, 1, 256, 1, 1, 0, 0, params, 0));
}

static void mapped(CUfunction kernel) {
    size_t unit;
    OK(cuMemGetAllocationGranularity(&unit, &PLAIN, 0));
    TRUE(unit == STEP);
    EXPECT(1, cuMemGetAllocationGranularity(&unit, &PLAIN, 2));
    Prop odd = PLAIN;
    odd.location = 9;
    Handle a, b, again;
    EXPECT(101, cuMemCreate(&a, STEP, &odd, 0));
    EXPECT(1, cuMemCreate(&a, STEP + 4096, &PLAIN, 0));
    EXPECT(1, cuMemCreate(&a, 0, &PLAIN, 0));
    EXPECT(2, cuMemCreate(&a, (size_t)1 << 46, &PLAIN, 0));
    size_t before = free_bytes();
    OK(cuMemCreate(&a, STEP, &PLAIN, 0));
    OK(cuMemCreate(&b, 2 * STEP, &PLAIN, 0));
    TRUE(free_bytes() + 3 * STEP <= before + MIB);
    Prop told;
    OK(cuMemGetAllocationPropertiesFromHandle(&told, b));
    TRUE(told.type == 1 && told.location_type == 1 && told.location == 0 && told.handle_types == 0);

    CUdeviceptr at;
    EXPECT(1, cuMemAddressReserve(&at, STEP + 1, 0, 0, 0));
    EXPECT(1, cuMemAddressReserve(&at, STEP, 3, 0, 0));
    EXPECT(2, cuMemAddressReserve(&at, (size_t)1 << 50, 0, 0, 0));
    OK(cuMemAddressReserve(&at, 8 * STEP, 4 * STEP, 0, 0));
    TRUE(at % (4 * STEP) == 0);
    // Nothing lies there yet.
    EXPECT(1, cuMemsetD32_v2(at, 1, 1));
    EXPECT(1, cuMemSetAccess(at, STEP, &BOTH, 1));
    OK(cuMemMap(at, STEP, 0, a, 0));
    EXPECT(1, cuMemMap(at, STEP, 0, b, 0));
    EXPECT(1, cuMemMap(at + 8 * STEP, STEP, 0, b, 0));
    EXPECT(1, cuMemMap(at + STEP, STEP, 0, a + 8, 0));
    EXPECT(1, cuMemMap(at + STEP, 2 * STEP, 0, a, 0));
    OK(cuMemMap(at + STEP, 2 * STEP, 0, b, 0));
    EXPECT(1, cuMemsetD32_v2(at, 1, 1));
    unsigned long long flags = 7;
    Location here = {1, 0};
    OK(cuMemGetAccess(&flags, &here, at));
    TRUE(flags == 0);
    EXPECT(1, cuMemSetAccess(at, 4 * STEP, &BOTH, 1));
    OK(cuMemSetAccess(at, 3 * STEP, &BOTH, 1));
    OK(cuMemGetAccess(&flags, &here, at + 2 * STEP));
    TRUE(flags == 3);

    // One piece for copies and kernels, over the border of the two.
    CUdeviceptr across = at + STEP - 4 * (N / 2);
    uint32_t host[N], back[N];
    for (int i = 0; i < N; i++) host[i] = i;
    OK(cuMemcpyHtoD_v2(across, host, sizeof host));
    step(kernel, across, N, 5);
    OK(cuMemcpyDtoH_v2(back, across, sizeof back));
    for (int i = 0; i < N; i++) TRUE(back[i] == 3 * host[i] + 5);
    CUdeviceptr base;
    size_t bytes;
    OK(cuMemGetAddressRange_v2(&base, &bytes, at + STEP + 4));
    TRUE(base == at + STEP && bytes == 2 * STEP);
    int value = -1;
    OK(cuPointerGetAttribute(&value, 2, at));
    TRUE(value == 2);
    EXPECT(1, cuMemFree_v2(at));

    // The same memory at a second address, with an offset.
    CUdeviceptr twin;
    OK(cuMemAddressReserve(&twin, STEP, 0, 0, 0));
    OK(cuMemMap(twin, STEP, STEP, b, 0));
    OK(cuMemSetAccess(twin, STEP, &READ, 1));
    OK(cuMemsetD32_v2(at + 2 * STEP, 77, 4));
    TRUE(word(twin + 12) == 77);

    // It lives as long as it is mapped; an address leads back to its handle.
    OK(cuMemRelease(a));
    EXPECT(1, cuMemRelease(a));
    OK(cuMemRetainAllocationHandle(&again, (void *)(at + 4096)));
    TRUE(again == a);
    OK(cuMemRelease(a));
    EXPECT(1, cuMemRetainAllocationHandle(&again, (void *)(at + 5 * STEP)));
    EXPECT(1, cuMemAddressFree(at, 8 * STEP));
    EXPECT(1, cuMemUnmap(at + STEP, STEP));
    OK(cuMemUnmap(at, STEP));
    EXPECT(1, cuMemUnmap(at, STEP));
    EXPECT(1, cuMemcpyDtoH_v2(back, at, 4));
    TRUE(word(at + 2 * STEP) == 77);
    OK(cuMemMap(at, STEP, 0, b, 0));
    EXPECT(1, cuMemcpyDtoH_v2(back, at, 4));
    OK(cuMemUnmap(at, 3 * STEP));
    EXPECT(1, cuMemAddressFree(at, STEP));
    OK(cuMemAddressFree(at, 8 * STEP));
    EXPECT(1, cuMemAddressFree(at, 8 * STEP));
    OK(cuMemRelease(b));
    TRUE(word(twin) == 77);
    OK(cuMemSetAccess(twin, STEP, &NOBODY, 1));
    EXPECT(1, cuMemcpyDtoH_v2(back, twin, 4));
    OK(cuMemUnmap(twin, STEP));
    OK(cuMemAddressFree(twin, STEP));
    EXPECT(1, cuMemRetainAllocationHandle(&again, (void *)twin));
    TRUE(free_bytes() + MIB >= before);
}

// A kernel that may only read is stopped where it writes.
static void guarded(void) {
    CUcontext context;
    OK(cuCtxCreate_v2(&context, 0, 0));
    CUmodule module;
    CUfunction kernel;
    OK(cuModuleLoadData(&module, KERNELS));
    OK(cuModuleGetFunction(&kernel, module, "step"));
    Handle a;
    CUdeviceptr at;
    OK(cuMemCreate(&a, STEP, &PLAIN, 0));
    OK(cuMemAddressReserve(&at, STEP, 0, 0, 0));
    OK(cuMemMap(at, STEP, 0, a, 0));
    OK(cuMemSetAccess(at, STEP, &READ, 1));
    step(kernel, at, 32, 1);
    EXPECT(700, cuCtxSynchronize());
    OK(cuCtxDestroy_v2(context));
    OK(cuMemUnmap(at, STEP));
    OK(cuMemRelease(a));
    OK(cuMemAddressFree(at, STEP));
}

// Maps the file of another process.
static CUdeviceptr adopt(int file, Handle *handle) {
    CUdeviceptr at;
    OK(cuMemImportFromShareableHandle(handle, (void *)(intptr_t)file, 1));
    OK(cuMemAddressReserve(&at, STEP, 0, 0, 0));
    OK(cuMemMap(at, STEP, 0, *handle, 0));
    OK(cuMemSetAccess(at, STEP, &BOTH, 1));
    return at;
}

// The other process: gets a file and handles, adds to what is there, and says when.
static int child(CUfunction kernel, int file, int from, int to) {
    Ipc handles[3];
    TRUE(read(from, handles, sizeof handles) == sizeof handles);
    Handle memory;
    CUdeviceptr shared = adopt(file, &memory), opened[3];
    TRUE(word(shared) == 11);
    step(kernel, shared, 1, 0);
    for (int i = 0; i < 3; i++) OK(cuIpcOpenMemHandle_v2(&opened[i], handles[i], 1));
    TRUE(opened[0] % 512 == 0 && opened[1] != opened[0]);
    CUdeviceptr again;
    OK(cuIpcOpenMemHandle_v2(&again, handles[0], 1));
    TRUE(again == opened[0]);
    CUdeviceptr base;
    size_t bytes;
    OK(cuMemGetAddressRange_v2(&base, &bytes, opened[1] + 8));
    TRUE(base == opened[1] && bytes == 4 * N);
    EXPECT(1, cuMemFree_v2(opened[1]));
    EXPECT(1, cuMemsetD32_v2(opened[1] + 4 * N, 1, 1));
    for (int i = 0; i < 3; i++) {
        TRUE(word(opened[i] + 4 * (N - 1)) == 100u + i);
        step(kernel, opened[i], N, i);
    }
    OK(cuCtxSynchronize());
    TRUE(write(to, "1", 1) == 1);
    // The first process writes, and this one sees it.
    char go;
    TRUE(read(from, &go, 1) == 1);
    TRUE(word(opened[2]) == 4242);
    Ipc broken = handles[0];
    broken.reserved[0] ^= 1;
    EXPECT(1, cuIpcOpenMemHandle_v2(&again, broken, 1));
    broken = handles[0];
    broken.reserved[24] ^= 1;
    EXPECT(205, cuIpcOpenMemHandle_v2(&again, broken, 1));
    OK(cuIpcCloseMemHandle(opened[0]));
    TRUE(word(opened[0]) == 3 * 100);
    OK(cuIpcCloseMemHandle(opened[0]));
    EXPECT(1, cuIpcCloseMemHandle(opened[0]));
    EXPECT(1, cuMemcpyDtoH_v2(&go, opened[0], 1));
    OK(cuIpcCloseMemHandle(opened[1]));
    OK(cuMemUnmap(shared, STEP));
    OK(cuMemRelease(memory));
    puts("ok");
    return 0;
}

static void between_processes(CUfunction kernel, char *program) {
    Prop prop = PLAIN;
    Handle memory, own, plain;
    int file, other;
    OK(cuMemCreate(&plain, STEP, &PLAIN, 0));
    EXPECT(1, cuMemExportToShareableHandle(&file, plain, 1, 0));
    OK(cuMemRelease(plain));
    prop.handle_types = 8;
    EXPECT(801, cuMemCreate(&memory, STEP, &prop, 0));
    prop.handle_types = 1;
    OK(cuMemCreate(&memory, STEP, &prop, 0));
    OK(cuMemExportToShareableHandle(&file, memory, 1, 0));
    OK(cuMemExportToShareableHandle(&other, memory, 1, 0));
    TRUE(other != file);
    // It can be taken back in this process too.
    CUdeviceptr shared = adopt(file, &own);
    close(other);
    EXPECT(1, cuMemImportFromShareableHandle(&own, (void *)(intptr_t)9999, 1));
    other = open("/dev/null", O_RDWR);
    EXPECT(1, cuMemImportFromShareableHandle(&own, (void *)(intptr_t)other, 1));
    OK(cuMemsetD32_v2(shared, 11, 4));

    // Neighbours in one page, one of them shared only later.
    CUdeviceptr a[3], pinned, managed;
    Ipc handles[3], same;
    for (int i = 0; i < 3; i++) {
        OK(cuMemAlloc_v2(&a[i], 4 * N));
        OK(cuMemsetD32_v2(a[i], 100 + i, N));
    }
    for (int i = 2; i >= 0; i--) OK(cuIpcGetMemHandle(&handles[i], a[i]));
    OK(cuIpcGetMemHandle(&same, a[0]));
    TRUE(!memcmp(&same, &handles[0], sizeof same) && memcmp(&same, &handles[1], sizeof same));
    OK(cuMemAllocHost_v2((void **)&pinned, 64));
    OK(cuMemAllocManaged(&managed, 64, 1));
    EXPECT(1, cuIpcGetMemHandle(&same, pinned));
    EXPECT(1, cuIpcGetMemHandle(&same, managed));
    EXPECT(1, cuIpcGetMemHandle(&same, 64));
    EXPECT(201, cuIpcOpenMemHandle_v2(&managed, handles[0], 1));

    int down[2], up[2];
    TRUE(pipe(down) == 0 && pipe(up) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        char names[3][16];
        int inherited = dup(file);
        snprintf(names[0], 16, "%d", inherited);
        snprintf(names[1], 16, "%d", down[0]);
        snprintf(names[2], 16, "%d", up[1]);
        execl(program, program, names[0], names[1], names[2], (char *)0);
        _exit(9);
    }
    TRUE(write(down[1], handles, sizeof handles) == sizeof handles);
    close(up[1]);
    char done;
    TRUE(read(up[0], &done, 1) == 1);
    TRUE(word(shared) == 33);
    for (int i = 0; i < 3; i++) {
        uint32_t host[N];
        OK(cuMemcpyDtoH_v2(host, a[i], sizeof host));
        for (int k = 0; k < N; k++) TRUE(host[k] == 3u * (100 + i) + i);
    }
    OK(cuMemsetD32_v2(a[2], 4242, 1));
    OK(cuCtxSynchronize());
    TRUE(write(down[1], "1", 1) == 1);
    int status;
    TRUE(waitpid(pid, &status, 0) == pid && status == 0);
    // What was shared is freed as all memory is, and comes back as zeros, or poisoned.
    OK(cuMemFree_v2(a[1]));
    TRUE(word(a[0]) == 300 && word(a[2]) == 4242);
    for (int i = 0; i < 200; i++) {
        CUdeviceptr next;
        OK(cuMemAlloc_v2(&next, 1 << 20));
        TRUE(next % 4096 == 0);
        uint32_t first = word(next), last = word(next + (1 << 20) - 4);
        TRUE(first == last && (first == 0 || first == 0xfafafafa));
        OK(cuMemsetD32_v2(next, 5, 1 << 18));
        if (i % 20 == 0) OK(cuIpcGetMemHandle(&same, next));
        OK(cuMemFree_v2(next));
    }
    OK(cuMemFree_v2(a[0]));
    OK(cuMemFree_v2(a[2]));
}

int main(int argc, char **argv) {
    CUcontext context;
    OK(cuInit(0));
    OK(cuCtxCreate_v2(&context, 0, 0));
    CUmodule module;
    CUfunction kernel;
    OK(cuModuleLoadData(&module, KERNELS));
    OK(cuModuleGetFunction(&kernel, module, "step"));
    if (argc > 3) return child(kernel, atoi(argv[1]), atoi(argv[2]), atoi(argv[3]));
    int has = 0;
    OK(cuDeviceGetAttribute(&has, 102, 0));
    TRUE(has == 1);
    mapped(kernel);
    guarded();
    OK(cuCtxSetCurrent(context));
    between_processes(kernel, argv[0]);
    OK(cuCtxDestroy_v2(context));
    puts("ok");
    return 0;
}
