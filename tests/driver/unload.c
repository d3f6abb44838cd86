// A program that opens the library by itself, and closes it: with streams that are there, with work under way, in its exit handlers, on another thread.
#include "driver.h"
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

static void *library;

#define GET(name)                                            \
    __typeof__(&name) p_##name = (__typeof__(&name))dlsym(library, #name); \
    TRUE(p_##name != 0)

// Work that lasts: a kernel that waits for a word that nobody writes, or a function of the host.
static void slow(void *data) { usleep(*(int *)data); }

static void work(CUdeviceptr *flag, CUstream *stream, int spins) {
    GET(cuInit);
    GET(cuCtxCreate_v2);
    GET(cuModuleLoadData);
    GET(cuModuleGetFunction);
    GET(cuMemAlloc_v2);
    GET(cuMemsetD32_v2);
    GET(cuCtxSynchronize);
    GET(cuStreamCreate);
    GET(cuLaunchKernel);
    GET(cuLaunchHostFunc);
    CUcontext context;
    CUmodule module;
    CUfunction spin;
    OK(p_cuInit(0));
    OK(p_cuCtxCreate_v2(&context, 0, 0));
    OK(p_cuModuleLoadData(&module, KERNELS));
    OK(p_cuModuleGetFunction(&spin, module, "spin"));
    OK(p_cuMemAlloc_v2(flag, 64));
    OK(p_cuMemsetD32_v2(*flag, !spins, 16));
    OK(p_cuCtxSynchronize());
    OK(p_cuStreamCreate(stream, 1));
    void *params[] = {flag};
    OK(p_cuLaunchKernel(spin, 1, 1, 1, 32, 1, 1, 0, *stream, params, 0));
    static int microseconds = 20000;
    for (int i = 0; i < 8; i++) OK(p_cuLaunchHostFunc(*stream, slow, &microseconds));
    if (!spins) OK(p_cuLaunchKernel(spin, 1, 1, 1, 32, 1, 1, 0, *stream, params, 0));
}

static void close_it(void) { dlclose(library); }

static void *elsewhere(void *data) {
    CUdeviceptr flag;
    CUstream stream;
    work(&flag, &stream, 0);
    close_it();
    return data;
}

int main(int argc, char **argv) {
    TRUE(argc == 3);
    const char *name = argv[1], *how = argv[2];
    CUdeviceptr flag;
    CUstream stream;
    library = dlopen(name, RTLD_NOW);
    TRUE(library != 0);
    if (!strcmp(how, "unused")) {
        close_it();
    } else if (!strcmp(how, "again")) {
        // What was there goes on when the library is opened once more.
        for (int i = 0; i < 5; i++) {
            work(&flag, &stream, 0);
            close_it();
            library = dlopen(name, RTLD_NOW);
            GET(cuStreamSynchronize);
            GET(cuStreamDestroy_v2);
            OK(p_cuStreamSynchronize(stream));
            OK(p_cuStreamDestroy_v2(stream));
        }
        close_it();
    } else if (!strcmp(how, "running")) {
        work(&flag, &stream, 1);
        close_it();
    } else if (!strcmp(how, "handler")) {
        atexit(close_it);
        work(&flag, &stream, 1);
    } else if (!strcmp(how, "thread")) {
        pthread_t thread;
        TRUE(pthread_create(&thread, 0, elsewhere, 0) == 0);
        TRUE(pthread_join(thread, 0) == 0);
    } else {
        // The program ends while another thread still gives work.
        pthread_t thread;
        TRUE(pthread_create(&thread, 0, elsewhere, 0) == 0);
        usleep(strcmp(how, "early") ? 100000 : 1000);
    }
    puts("ok");
    return 0;
}
