// Memory that a program allocates and that nobody, or somebody, has written when a checked kernel reads it; calls that name memory that is not there, and
// memory that is never freed. The mode names what is done.
#include "driver.h"

#define HEAD ".reg .b32 %r<5>; .reg .b64 %d<5>; .reg .pred %p;\nld.param.u64 %d0, [a]; ld.param.u64 %d1, [b]; mov.u32 %r0, %tid.x;\n" \
             "mul.wide.u32 %d2, %r0, 4; add.u64 %d3, %d0, %d2; add.u64 %d4, %d1, %d2;\n"

static const char READERS[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry put(.param .u64 a, .param .u64 b)\n{\n" HEAD "st.global.u32 [%d3], %r0;\nret;\n}\n"
    ".visible .entry copy(.param .u64 a, .param .u64 b)\n{\n" HEAD "ld.global.u32 %r1, [%d3];\nst.global.u32 [%d4], %r1;\nret;\n}\n"
    ".visible .entry count(.param .u64 a, .param .u64 b)\n{\n" HEAD "red.relaxed.gpu.global.add.u32 [%d0], 1;\nret;\n}\n"
    // Only those whose word of `b` is odd write.
    ".visible .entry odd(.param .u64 a, .param .u64 b)\n{\n" HEAD
    "ld.global.u32 %r1, [%d4]; and.b32 %r1, %r1, 1; setp.eq.u32 %p, %r1, 1;\n@%p st.global.u32 [%d3], %r0;\nret;\n}\n"
    // The word of `a` that `b` names, where `b` is; its own word is read again.
    ".visible .entry find(.param .u64 a, .param .u64 b)\n{\n" HEAD
    "ld.global.u32 %r1, [%d4]; mul.wide.u32 %d2, %r1, 4; add.u64 %d3, %d0, %d2;\nld.global.u32 %r2, [%d3]; setp.eq.u32 %p, %r2, 99;\n"
    "@%p trap;\nret;\n}\n"
    // Each thread writes its word, and reads that of another one behind a barrier.
    ".visible .entry turn(.param .u64 a, .param .u64 b)\n{\n" HEAD
    "st.global.u32 [%d3], %r0;\nbar.sync 0;\nxor.b32 %r1, %r0, 32; mul.wide.u32 %d2, %r1, 4; add.u64 %d3, %d0, %d2;\n"
    "ld.global.u32 %r1, [%d3];\nst.global.u32 [%d4], %r1;\nret;\n}\n";

static CUmodule module;

static CUdeviceptr memory(void) {
    CUdeviceptr p;
    OK(cuMemAlloc_v2(&p, 256));
    return p;
}

static void launch(const char *kernel, CUdeviceptr a, CUdeviceptr b) {
    CUfunction function;
    void *params[] = {&a, &b};
    OK(cuModuleGetFunction(&function, module, kernel));
    OK(cuLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, 0, params, 0));
}

int main(int n, char **words) {
    const char *mode = n > 1 ? words[1] : "";
    CUcontext context;
    uint32_t numbers[64];
    for (uint32_t i = 0; i < 64; i++) numbers[i] = i;
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    OK(cuModuleLoadData(&module, READERS));
    CUdeviceptr a = memory(), b = memory(), c = memory();
    if (!strcmp(mode, "written")) {
        // By a kernel, a fill, copies of the host and of the device, in a launch, in parts; and what is read is somewhere in it.
        launch("put", a, b);
        launch("copy", a, b);
        OK(cuMemsetD32_v2(a, 0, 64));
        launch("count", a, b);
        OK(cuMemcpyHtoD_v2(c, numbers, sizeof numbers));
        launch("copy", c, a);
        OK(cuMemcpyDtoD_v2(a, c, 256));
        launch("find", a, c);
        OK(cuMemFree_v2(b));
        b = memory();
        launch("turn", b, a);
        launch("copy", b, a);
        OK(cuMemFree_v2(b));
        b = memory();
        OK(cuMemsetD32_v2(b, 0, 32));
        OK(cuMemcpyHtoD_v2(b + 128, numbers, 128));
        launch("odd", b, c);
        launch("copy", b, a);
    }
    if (!strcmp(mode, "copy")) launch("copy", a, b);
    if (!strcmp(mode, "count")) launch("count", a, b);
    if (!strcmp(mode, "odd")) {
        OK(cuMemcpyHtoD_v2(c, numbers, sizeof numbers));
        launch("odd", a, c);
        OK(cuCtxSynchronize());
        launch("copy", a, b);
    }
    if (!strcmp(mode, "find")) {
        OK(cuMemcpyHtoD_v2(c, numbers, sizeof numbers));
        OK(cuMemsetD32_v2(a, 0, 63));
        launch("find", a, c);
    }
    if (!strcmp(mode, "copied")) {
        OK(cuMemsetD32_v2(a, 0, 16));
        OK(cuMemcpyDtoD_v2(b, a, 256));
        launch("copy", b, c);
    }
    if (!strcmp(mode, "freed")) {
        OK(cuMemsetD32_v2(a, 0, 64));
        OK(cuMemFree_v2(a));
        a = memory();
        launch("copy", a, b);
    }
    if (!strcmp(mode, "past")) {
        // Many programs do not look at what calls return.
        EXPECT(1, cuMemcpyHtoD_v2(a + 4, numbers, sizeof numbers));
        EXPECT(1, cuMemcpyDtoH_v2(numbers, b, 260));
        EXPECT(1, cuMemsetD32_v2(c, 0, 65));
        EXPECT(1, cuMemFree_v2(c + 16));
    }
    if (!strcmp(mode, "twice")) {
        OK(cuMemFree_v2(a));
        EXPECT(1, cuMemFree_v2(a));
        EXPECT(1, cuMemcpyDtoH_v2(numbers, a, 256));
        EXPECT(1, cuMemFree_v2(a + (1 << 24)));
    }
    if (strcmp(mode, "left")) {
        if (strcmp(mode, "twice")) OK(cuMemFree_v2(a));
        OK(cuMemFree_v2(b));
        OK(cuMemFree_v2(0));
    }
    OK(cuCtxSynchronize());
    printf("ok\n");
    return 0;
}
