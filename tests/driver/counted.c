// Launches that are counted: one kernel in two shapes, another kernel of the same name, and one that nobody launches. With a word, the process ends without
// a word to its libraries.
#include <unistd.h>

#include "driver.h"

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"

static const char *FIRST =
    HEAD
    ".visible .entry k(.param .u64 x) {\n"
    " .reg .pred %p; .reg .b32 %t; .reg .b64 %x;\n"
    " mov.u32 %t, %tid.x;\n"
    " setp.lt.u32 %p, %t, 40;\n"
    " ld.param.u64 %x, [x];\n"
    " @%p red.global.add.u32 [%x], 1;\n"
    " ret;\n}\n";
static const char *SECOND =
    HEAD
    ".visible .entry k(.param .u64 x) {\n"
    " .reg .b64 %x;\n"
    " ld.param.u64 %x, [x];\n"
    " red.global.add.u32 [%x], 100;\n"
    " ret;\n}\n";
static const char *THIRD = HEAD ".visible .entry unused() { ret; }\n";

static CUfunction kernel(const char *text, const char *name) {
    CUmodule module;
    CUfunction function;
    OK(cuModuleLoadData(&module, text));
    OK(cuModuleGetFunction(&function, module, name));
    return function;
}

static void launch(CUfunction function, unsigned grid, unsigned block, CUdeviceptr x) {
    void *params[] = {&x};
    OK(cuLaunchKernel(function, grid, 1, 1, block, 1, 1, 0, 0, params, 0));
}

int main(int argc, char **argv) {
    (void)argv;
    CUcontext context;
    CUdeviceptr x;
    uint32_t sum = 0;
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    CUfunction first = kernel(FIRST, "k"), second = kernel(SECOND, "k");
    kernel(THIRD, "unused");
    OK(cuMemAlloc_v2(&x, 4));
    OK(cuMemsetD32_v2(x, 0, 1));
    for (int i = 0; i < 3; i++) launch(first, 2, 64, x);
    launch(first, 1, 32, x);
    launch(second, 1, 64, x);
    OK(cuMemcpyDtoH_v2(&sum, x, 4));
    TRUE(sum == 3 * 2 * 40 + 32 + 64 * 100);
    printf("ok\n");
    if (argc > 1) {
        fflush(stdout);
        // What is written soon after the last launch is written by then.
        usleep(300000);
        _exit(0);
    }
    return 0;
}
