// Modules, both ways to pass parameters, variables, libraries, logs, entry points, the default stream of a thread.
#include "driver.h"

enum { N = 1000 };

static void check(CUdeviceptr x, uint32_t want) {
    static uint32_t host[N];
    OK(cuMemcpyDtoH_v2(host, x, sizeof host));
    for (int i = 0; i < N; i++) TRUE(host[i] == want);
}

// A kernel that launches another one `n` times.
static const char *NESTED =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".extern .func (.param .b64 r) cudaGetParameterBufferV2(.param .b64 f, .param .align 4 .b8 g[12], .param .align 4 .b8 b[12], .param .b32 s);\n"
    ".extern .func (.param .b32 r) cudaLaunchDeviceV2(.param .b64 p, .param .b64 s);\n"
    ".visible .entry add(.param .u64 x) { .reg .b64 %p; ld.param.u64 %p, [x]; red.global.add.u32 [%p], 1; ret; }\n"
    ".visible .entry parent(.param .u64 x, .param .u32 n) {\n"
    " .reg .b64 %x, %f, %b; .reg .b32 %n; .reg .pred %q;\n"
    " .param .b64 f; .param .align 4 .b8 g[12]; .param .align 4 .b8 b[12]; .param .b32 s; .param .b64 p; .param .b64 t; .param .b32 r;\n"
    " ld.param.u64 %x, [x]; ld.param.u32 %n, [n]; mov.u64 %f, add;\n"
    "L: st.param.b64 [f], %f; st.param.b32 [g], 1; st.param.b32 [g+4], 1; st.param.b32 [g+8], 1;\n"
    " st.param.b32 [b], 2; st.param.b32 [b+4], 1; st.param.b32 [b+8], 1; st.param.b32 [s], 0;\n"
    " call (p), cudaGetParameterBufferV2, (f, g, b, s); ld.param.b64 %b, [p]; st.u64 [%b], %x;\n"
    " st.param.b64 [t], 0; call (r), cudaLaunchDeviceV2, (p, t);\n"
    " sub.u32 %n, %n, 1; setp.ne.u32 %q, %n, 0; @%q bra L; ret; }\n";

// Launches of the device, and the limit of those that wait.
static void nested(void) {
    CUmodule module;
    CUfunction parent;
    CUdeviceptr x;
    uint32_t n = 5, sum = 0;
    OK(cuModuleLoadData(&module, NESTED));
    OK(cuModuleGetFunction(&parent, module, "parent"));
    OK(cuMemAlloc_v2(&x, 4));
    OK(cuMemsetD32_v2(x, 0, 1));
    void *params[] = {&x, &n};
    OK(cuLaunchKernel(parent, 1, 1, 1, 1, 1, 1, 0, 0, params, 0));
    OK(cuMemcpyDtoH_v2(&sum, x, 4));
    TRUE(sum == 10);
    OK(cuCtxSetLimit(4, 3));
    OK(cuLaunchKernel(parent, 1, 1, 1, 1, 1, 1, 0, 0, params, 0));
    OK(cuMemcpyDtoH_v2(&sum, x, 4));
    TRUE(sum == 16);
    OK(cuCtxSetLimit(4, 2048));
    OK(cuMemFree_v2(x));
    OK(cuModuleUnload(module));
}

static const char DEEP[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".func (.param .b32 sum) down(.param .b32 n)\n{\n"
    ".local .align 4 .b8 own[256];\n.reg .pred %p;\n.reg .b32 %r<4>;\n"
    "ld.param.b32 %r0, [n];\nst.local.u32 [own], %r0;\nmov.u32 %r1, 0;\nsetp.eq.u32 %p, %r0, 0;\n@%p bra up;\nsub.u32 %r2, %r0, 1;\n"
    "{\n.param .b32 a;\n.param .b32 s;\nst.param.b32 [a], %r2;\ncall (s), down, (a);\nld.param.b32 %r1, [s];\n}\n"
    "up:\nld.local.u32 %r3, [own];\nadd.u32 %r1, %r1, %r3;\nst.param.b32 [sum], %r1;\nret;\n}\n"
    ".visible .entry k(.param .u64 out)\n{\n.reg .b32 %r<2>;\n.reg .b64 %d;\n"
    "{\n.param .b32 a;\n.param .b32 s;\nst.param.b32 [a], 1200;\ncall (s), down, (a);\nld.param.b32 %r1, [s];\n}\n"
    "ld.param.u64 %d, [out];\nst.global.u32 [%d], %r1;\nret;\n}\n";

// A recursion of 1200 calls with 256 bytes each, in a stack that is large enough and in one that is not.
static void stacks(void) {
    CUmodule module;
    CUfunction deep;
    CUdeviceptr x;
    uint32_t sum = 0;
    size_t size;
    OK(cuModuleLoadData(&module, DEEP));
    OK(cuModuleGetFunction(&deep, module, "k"));
    OK(cuMemAlloc_v2(&x, 4));
    EXPECT(1, cuCtxSetLimit(0, 1 << 20));
    OK(cuCtxSetLimit(0, 400000));
    OK(cuCtxGetLimit(&size, 0));
    TRUE(size == 400000);
    void *params[] = {&x};
    OK(cuLaunchKernel(deep, 1, 1, 1, 40, 1, 1, 0, 0, params, 0));
    OK(cuMemcpyDtoH_v2(&sum, x, 4));
    TRUE(sum == 1200 * 1201 / 2);
    OK(cuCtxSetLimit(0, 1024));
    OK(cuLaunchKernel(deep, 1, 1, 1, 40, 1, 1, 0, 0, params, 0));
    EXPECT(714, cuCtxSynchronize());
}

static const char HEAP[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".extern .func (.param .b64 p) malloc(.param .b64 n);\n.extern .func free(.param .b64 p);\n"
    ".visible .entry fill(.param .u64 out, .param .u64 bytes)\n{\n.reg .b64 %o, %n, %p, %last;\n.reg .b32 %c;\n.reg .pred %q;\n"
    "ld.param.u64 %o, [out];\nld.param.u64 %n, [bytes];\nmov.u32 %c, 0;\nmov.u64 %last, 0;\n"
    "more:\n{\n.param .b64 a;\n.param .b64 r;\nst.param.b64 [a], %n;\ncall.uni (r), malloc, (a);\nld.param.b64 %p, [r];\n}\n"
    "setp.eq.u64 %q, %p, 0;\n@%q bra full;\nst.u64 [%p], %last;\nmov.u64 %last, %p;\nadd.u32 %c, %c, 1;\nbra.uni more;\n"
    "full:\nst.global.u32 [%o], %c;\nst.global.u64 [%o+8], %last;\nret;\n}\n"
    ".visible .entry drain(.param .u64 out)\n{\n.reg .b64 %o, %p, %last;\n.reg .pred %q;\nld.param.u64 %o, [out];\nld.global.u64 %last, [%o+8];\n"
    "more:\nsetp.eq.u64 %q, %last, 0;\n@%q ret;\nld.u64 %p, [%last];\n{\n.param .b64 a;\nst.param.b64 [a], %last;\ncall.uni free, (a);\n}\n"
    "mov.u64 %last, %p;\nbra.uni more;\n}\n";

// How many blocks of a size a kernel gets from `malloc`; their list lies at `x`.
static uint32_t filled(CUfunction fill, CUdeviceptr x, uint64_t bytes) {
    uint32_t n;
    void *params[] = {&x, &bytes};
    OK(cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, 0, params, 0));
    OK(cuMemcpyDtoH_v2(&n, x, 4));
    return n;
}

// `malloc` of kernels has a heap in each context, as large as its limit.
static void heaps(void) {
    CUcontext fresh;
    CUmodule module;
    CUfunction fill, drain;
    CUdeviceptr x, y;
    size_t size;
    OK(cuModuleLoadData(&module, HEAP));
    OK(cuModuleGetFunction(&fill, module, "fill"));
    OK(cuModuleGetFunction(&drain, module, "drain"));
    OK(cuMemAlloc_v2(&x, 16));
    OK(cuMemAlloc_v2(&y, 16));
    OK(cuCtxGetLimit(&size, 2));
    TRUE(size == 8 << 20);
    TRUE(filled(fill, x, 1 << 18) == 32);
    TRUE(filled(fill, y, 1) == 0);
    void *params[] = {&x};
    OK(cuLaunchKernel(drain, 1, 1, 1, 1, 1, 1, 0, 0, params, 0));
    TRUE(filled(fill, x, 1 << 20) == 8);
    OK(cuCtxSetLimit(2, 264 << 20));
    OK(cuCtxGetLimit(&size, 2));
    TRUE(size == 264 << 20);
    TRUE(filled(fill, y, 100 << 20) == 2);
    OK(cuLaunchKernel(drain, 1, 1, 1, 1, 1, 1, 0, 0, params, 0));
    TRUE(filled(fill, x, 1 << 20) == 64);
    OK(cuCtxCreate_v2(&fresh, 0, 0));
    OK(cuModuleLoadData(&module, HEAP));
    OK(cuModuleGetFunction(&fill, module, "fill"));
    OK(cuMemAlloc_v2(&x, 16));
    TRUE(filled(fill, x, 4 << 20) == 2);
    OK(cuCtxDestroy_v2(fresh));
}

int main(void) {
    int version, count, value, status;
    OK(cuDriverGetVersion(&version));
    TRUE(version >= 13050);
    EXPECT(3, cuDeviceGetCount(&count));
    OK(cuInit(0));
    OK(cuDeviceGetCount(&count));
    TRUE(count == 1);
    OK(cuDeviceGetAttribute(&value, 75, 0));
    TRUE(value == 8);
    OK(cuDeviceGetAttribute(&value, 10, 0));
    TRUE(value == 32);
    char name[64];
    OK(cuDeviceGetName(name, sizeof name, 0));
    TRUE(strcmp(name, "Handloom (CPU), sm_89") == 0);

    CUcontext context;
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    CUmodule module;
    CUfunction step;
    OK(cuModuleLoadData(&module, KERNELS));
    OK(cuModuleGetFunction(&step, module, "step"));
    EXPECT(500, cuModuleGetFunction(&step, module, "stop"));
    OK(cuModuleGetFunction(&step, module, "step"));

    nested();
    CUdeviceptr x;
    OK(cuMemAlloc_v2(&x, 4 * N));
    OK(cuMemsetD32_v2(x, 5, N));
    uint32_t n = N, k = 2;
    void *params[] = {&x, &n, &k};
    OK(cuLaunchKernel(step, 4, 1, 1, 256, 1, 1, 0, 0, params, 0));
    check(x, 17);
    struct {
        CUdeviceptr x;
        uint32_t n, k;
    } block = {x, N, 1};
    size_t bytes = sizeof block;
    void *extra[] = {(void *)1, &block, (void *)2, &bytes, 0};
    OK(cuLaunchKernel(step, 4, 1, 1, 256, 1, 1, 0, 0, 0, extra));
    check(x, 52);
    OK(cuLaunchKernel_ptsz(step, 4, 1, 1, 256, 1, 1, 0, 0, params, 0));
    OK(cuStreamSynchronize((CUstream)2));
    OK(cuStreamSynchronize((CUstream)1));
    check(x, 158);
    EXPECT(1, cuLaunchKernel(step, 4, 1, 1, 256, 1, 1, 0, 0, params, extra));
    EXPECT(1, cuLaunchKernel(step, 4, 1, 1, 256, 1, 1, 0, 0, 0, 0));
    EXPECT(1, cuLaunchKernel(step, 0, 1, 1, 256, 1, 1, 0, 0, params, 0));
    EXPECT(1, cuLaunchKernel(step, 1, 1, 1, 2048, 1, 1, 0, 0, params, 0));
    EXPECT(1, cuLaunchKernel(step, 1, 1, 1, 32, 1, 1, 49 << 10, 0, params, 0));
    OK(cuFuncSetAttribute(step, 8, 64 << 10));
    OK(cuLaunchKernel(step, 1, 1, 1, 1, 1, 1, 49 << 10, 0, params, 0));
    bytes = 12;
    EXPECT(1, cuLaunchKernel(step, 4, 1, 1, 256, 1, 1, 0, 0, 0, extra));
    OK(cuFuncGetAttribute(&value, 0, step));
    TRUE(value == 1024);

    // A variable of the module.
    CUdeviceptr table;
    uint32_t four[4];
    OK(cuModuleGetGlobal_v2(&table, &bytes, module, "table"));
    TRUE(bytes == 16);
    OK(cuMemcpyDtoH_v2(four, table, 16));
    TRUE(four[0] == 1 && four[3] == 4);
    EXPECT(500, cuModuleGetGlobal_v2(&table, &bytes, module, "tables"));

    // A kernel of a library.
    CUlibrary library;
    CUkernel kernel;
    OK(cuLibraryLoadData(&library, KERNELS, 0, 0, 0, 0, 0, 0));
    OK(cuLibraryGetKernel(&kernel, library, "step"));
    OK(cuMemsetD32_v2(x, 1, N));
    OK(cuLaunchKernel((CUfunction)kernel, 4, 1, 1, 256, 1, 1, 0, 0, params, 0));
    check(x, 5);
    OK(cuLibraryUnload(library));
    EXPECT(400, cuLaunchKernel((CUfunction)kernel, 4, 1, 1, 256, 1, 1, 0, 0, params, 0));

    // What is no image, and what is wrong with a text.
    char log[4096] = "";
    int options[] = {5, 6};
    void *values[] = {log, (void *)(size_t)sizeof log};
    EXPECT(218, cuModuleLoadDataEx(&module, ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { frob; }\n", 2, options, values));
    TRUE(strstr(log, "frob"));
    TRUE((size_t)values[1] == strlen(log));
    EXPECT(218, cuModuleLoadData(&module, ".version 8.0\n.target sm_90\n.address_size 64\n"));
    EXPECT(1, cuModuleLoadData(&module, 0));
    EXPECT(1, cuModuleLoadDataEx(&module, KERNELS, 2, 0, 0));

    // Names, by version.
    void *address;
    OK(cuGetProcAddress_v2("cuMemAlloc", &address, 13050, 0, &status));
    TRUE(address == (void *)cuMemAlloc_v2 && status == 0);
    OK(cuGetProcAddress_v2("cuLaunchKernel", &address, 13050, 2, &status));
    TRUE(address == (void *)cuLaunchKernel_ptsz && status == 0);
    OK(cuGetProcAddress_v2("cuMemAllocAsync", &address, 10000, 0, &status));
    TRUE(!address && status == 2);
    OK(cuGetProcAddress_v2("cuNothing", &address, 13050, 0, &status));
    TRUE(!address && status == 1);
    EXPECT(1, cuGetProcAddress_v2(0, &address, 13050, 0, &status));

    // What is exported and does nothing yet.
    EXPECT(801, cuArrayGetPlane(0, 0, 0));
    OK(cuMemFree_v2(x));
    heaps();
    stacks();
    OK(cuDevicePrimaryCtxRelease_v2(0));
    puts("ok");
    return 0;
}
