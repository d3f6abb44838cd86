// Programs that end while work is under way: in a function that a stream calls, with another thread that waits, with a kernel that never ends. Each ends with status 7.
#include "driver.h"
#include "fat_binary.h"
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

void __cudaUnregisterFatBinary(void **handle);
int cudaLaunchKernel(const void *stub, dim3 grid, dim3 block, void **args, size_t shared, CUstream stream);
int cudaMalloc(CUdeviceptr *p, size_t n);
int cudaFree(CUdeviceptr p);
int cudaDeviceSynchronize(void);
int cudaStreamCreate(CUstream *s);
int cudaStreamSynchronize(CUstream s);
int cudaGetDevice(int *device);

static const char ENDLESS[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry endless(.param .u64 x)\n{\n.reg .b32 %r; .reg .b64 %rd; .reg .pred %p;\nld.param.u64 %rd, [x];\n"
    "again:\nld.volatile.global.u32 %r, [%rd];\nadd.u32 %r, %r, 1;\nand.b32 %r, %r, 255;\nst.volatile.global.u32 [%rd], %r;\n"
    "setp.ne.u32 %p, %r, 256;\n@%p bra again;\nret;\n}\n";

static char stub;
static void **handle;
static const char *how;
static CUstream stream;
static CUdeviceptr memory;

static void unregister(void) { __cudaUnregisterFatBinary(handle); }

// What a program of nvcc does before `main`.
__attribute__((constructor)) static void registers(void) {
    static struct { int magic, version; const void *data; void *list; } wrapper = {0x466243b1, 1, 0, 0};
    wrapper.data = container(ENDLESS, sizeof ENDLESS);
    handle = __cudaRegisterFatBinary(&wrapper);
    __cudaRegisterFunction(handle, &stub, 0, "endless", -1, 0, 0, 0, 0, 0);
    __cudaRegisterFatBinaryEnd(handle);
    atexit(unregister);
}

// As destructors of objects: a call that would wait for what never ends says that it does not.
static void destructor(void) {
    if (strstr(how, "handler") == 0) return;
    int codes[] = {cudaStreamSynchronize(stream), cudaDeviceSynchronize(), cudaFree(memory)};
    for (int i = 0; i < 3; i++) {
        if (codes[i] != 800) _exit(8);
    }
}

static void ends(void *data) {
    usleep(20000);
    if (!strcmp(how, "quick")) quick_exit(7);
    exit(7);
}

static void calls_back(CUstream at, CUresult code, void *data) { ends(data); }

static void *thread_ends(void *data) {
    ends(data);
    return 0;
}

// Undefined in C, and what programs do that somebody interrupts.
static void interrupted(int signal) { exit(7); }

static void lasts(void *data) { sleep(1000); }

static void waits(void *data) {
    int device;
    EXPECT(800, cudaStreamSynchronize(stream));
    EXPECT(800, cudaDeviceSynchronize());
    EXPECT(800, cudaFree(memory));
    OK(cudaGetDevice(&device));
    *(int *)data = 1;
}

static void launch_endless(void) {
    void *args[] = {&memory};
    OK(cudaLaunchKernel(&stub, (dim3){1, 1, 1}, (dim3){32, 1, 1}, args, 0, stream));
}

int main(int argc, char **argv) {
    TRUE(argc == 2);
    how = argv[1];
    static int waited;
    pthread_t thread;
    // Before the libraries know of the program, as a static object: it comes after they know that the program ends.
    atexit(destructor);
    OK(cudaStreamCreate(&stream));
    OK(cudaMalloc(&memory, 64));
    if (strstr(how, "function") || !strcmp(how, "quick")) {
        // The kernel is loaded, and comes after the end.
        OK(cuLaunchHostFunc(stream, ends, 0));
        launch_endless();
    } else if (!strcmp(how, "callback")) {
        OK(cuStreamAddCallback(stream, calls_back, 0, 0));
        launch_endless();
    } else if (!strcmp(how, "signal")) {
        signal(SIGALRM, interrupted);
        ualarm(20000, 0);
        for (int i = 0;; i++) {
            OK(cuMemsetD32Async(memory, 0, 1, stream));
            if (i % 8 == 0) OK(cuStreamSynchronize(stream));
        }
    } else if (!strcmp(how, "lasting")) {
        OK(cuLaunchHostFunc(stream, lasts, 0));
        return 7;
    } else if (!strcmp(how, "waits")) {
        OK(cuLaunchHostFunc(stream, waits, &waited));
        OK(cudaStreamSynchronize(stream));
        TRUE(waited);
        OK(cudaFree(memory));
        return 7;
    } else {
        launch_endless();
        if (!strcmp(how, "kernel") || !strcmp(how, "kernel handler")) return 7;
        TRUE(pthread_create(&thread, 0, thread_ends, 0) == 0);
    }
    cudaDeviceSynchronize();
    return 9;
}
