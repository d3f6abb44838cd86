// Programs for `handloom exec --check`: each mode has one fault, or none. Memory that is used after it was freed, work of streams that nothing orders with an
// allocation or a free, copies of what nobody wrote; kernels that race, that race or stop with some seeds only, that never end; programs that wait, and that leave
// a child behind.
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver.h"

#define HEAD "(.param .u64 a, .param .u64 b)\n{\n.reg .b32 %r<5>; .reg .b64 %d<5>; .reg .pred %p;\nld.param.u64 %d0, [a]; ld.param.u64 %d1, [b]; mov.u32 %r0, %tid.x;\n" \
             "mul.wide.u32 %d2, %r0, 4; add.u64 %d3, %d0, %d2; add.u64 %d4, %d1, %d2;\n"

static const char FAULTS[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry put" HEAD "st.global.u32 [%d3], %r0;\nret;\n}\n"
    ".visible .entry get" HEAD "ld.global.u32 %r1, [%d3];\nst.global.u32 [%d4], %r1;\nret;\n}\n"
    // A thread reads what one of another warp writes.
    ".visible .entry racy" HEAD
    "xor.b32 %r1, %r0, 32; mul.wide.u32 %d2, %r1, 4; add.u64 %d2, %d0, %d2;\nst.global.u32 [%d3], %r0;\nld.global.u32 %r2, [%d2];\nst.global.u32 [%d4], %r2;\nret;\n}\n"
    // Block 1 takes a word, and block 0 races or stops if it comes after it.
    ".visible .entry late" HEAD
    "mov.u32 %r1, %ctaid.x; atom.relaxed.gpu.global.exch.b32 %r2, [%d0], %r1;\nsetp.eq.u32 %p, %r1, 1;\n@%p st.global.u32 [%d1], %r1;\n"
    "setp.eq.u32 %p, %r2, 1;\n@%p st.global.u32 [%d1], %r1;\nret;\n}\n"
    ".visible .entry stop" HEAD
    "mov.u32 %r1, %ctaid.x; atom.relaxed.gpu.global.exch.b32 %r2, [%d0], %r1;\nsetp.eq.u32 %p, %r2, 1;\n@%p trap;\nret;\n}\n"
    // The first half of the constants, and one of which memory says which.
    ".const .align 4 .b32 table[64];\n"
    ".visible .entry constants" HEAD
    "mov.u64 %d2, table; mul.wide.u32 %d1, %r0, 4; add.u64 %d2, %d2, %d1;\nld.const.u32 %r1, [%d2];\nst.global.u32 [%d4], %r1;\nret;\n}\n"
    ".visible .entry picks" HEAD
    "ld.global.u32 %r1, [%d3]; and.b32 %r1, %r1, 31; mov.u64 %d2, table; mul.wide.u32 %d1, %r1, 4; add.u64 %d2, %d2, %d1;\nld.const.u32 %r1, [%d2];\nst.global.u32 [%d4], %r1;\nret;\n}\n"
    ".visible .entry endless" HEAD "again:\natom.relaxed.gpu.global.add.u32 %r1, [%d0], 1;\nsetp.ne.u32 %p, %r1, 0xffffffff;\n@%p bra again;\nret;\n}\n";

typedef struct {
    CUfunction func;
    unsigned grid[3], block[3], shared;
    void **params, **extra;
    void *kernel, *context;
} KernelNode;

CUresult cuGetExportTable(const void **table, const void *id);
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr, CUdeviceptr, size_t, CUstream);
CUresult cuGraphAddKernelNode_v2(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const KernelNode *);

static CUmodule module;

static void launch(const char *kernel, unsigned blocks, unsigned threads, CUstream stream, CUdeviceptr a, CUdeviceptr b) {
    CUfunction function;
    void *params[] = {&a, &b};
    OK(cuModuleGetFunction(&function, module, kernel));
    OK(cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, stream, params, 0));
}

static CUdeviceptr memory(void) {
    CUdeviceptr p;
    OK(cuMemAlloc_v2(&p, 256));
    return p;
}

static CUstream stream(void) {
    CUstream s;
    OK(cuStreamCreate(&s, 1));
    return s;
}

// A node of a graph that launches a kernel of 64 threads.
static CUgraphNode node(CUgraph graph, const char *kernel, const CUgraphNode *after, size_t n, CUdeviceptr a, CUdeviceptr b) {
    CUgraphNode made;
    void *params[] = {&a, &b};
    KernelNode what = {.grid = {1, 1, 1}, .block = {64, 1, 1}, .params = params};
    OK(cuModuleGetFunction(&what.func, module, kernel));
    OK(cuGraphAddKernelNode_v2(&made, graph, after, n, &what));
    return made;
}

// A kernel writes `a`, two read it into `b` and `c`, and one writes `a` again: after both, or only after the first.
static CUgraphExec fork_and_join(CUdeviceptr a, CUdeviceptr b, CUdeviceptr c, int joins_both) {
    CUgraph graph;
    CUgraphExec exec;
    CUgraphNode nodes[3];
    OK(cuGraphCreate(&graph, 0));
    nodes[0] = node(graph, "put", 0, 0, a, b);
    nodes[1] = node(graph, "get", nodes, 1, a, b);
    nodes[2] = node(graph, "get", nodes, 1, a, c);
    node(graph, "put", nodes + 1, joins_both ? 2 : 1, a, b);
    OK(cuGraphInstantiate_v2(&exec, graph, 0, 0, 0));
    OK(cuGraphDestroy(graph));
    return exec;
}

static void give_back(CUdeviceptr p) { OK(cuMemFree_v2(p)); }

int main(int n, char **words) {
    const char *mode = n > 1 ? words[1] : "";
#define IS(word) if (!strcmp(mode, word))
    IS("child") {
        if (!fork()) {
            signal(SIGTERM, SIG_IGN);
            for (;;) sleep(1);
        }
    }
    IS("processes") {
        for (int i = 0; i < 2; i++) {
            if (!fork()) {
                execl(words[0], words[0], "racy", (char *)0);
                _exit(9);
            }
        }
        for (int i = 0, status; i < 2; i++) TRUE(wait(&status) > 0 && status == 0);
        printf("ok\n");
        return 0;
    }
    CUcontext context;
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    OK(cuModuleLoadData(&module, FAULTS));
    CUdeviceptr a = memory(), b = memory(), c;
    uint32_t numbers[64];
    OK(cuMemsetD8_v2(b, 0, 256));
    IS("unwritten") OK(cuMemcpyDtoH_v2(numbers, a, 256));
    IS("unwritten pinned") {
        void *pinned;
        OK(cuMemAllocHost_v2(&pinned, 256));
        OK(cuMemcpyDtoHAsync_v2(pinned, a + 128, 128, 0));
        OK(cuCtxSynchronize());
    }
    // As the static runtime library, which asks for private tables.
    IS("static") {
        const void *table;
        for (int i = 0; i < 2; i++) EXPECT(801, cuGetExportTable(&table, FAULTS));
    }
    // An image of a newer device.
    IS("refused") EXPECT(218, cuModuleLoadData(&module, ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\nret;\n}\n"));
    IS("partly") {
        OK(cuMemsetD8_v2(a + 4, 0, 4));
        OK(cuMemcpyDtoH_v2(numbers, a, 256));
    }
    OK(cuMemsetD8_v2(a, 0, 256));
    CUstream s = stream(), t = stream();
    CUevent event;
    OK(cuEventCreate(&event, 2));
    IS("clean") launch("get", 1, 64, 0, a, b);
    IS("racy") launch("racy", 1, 64, 0, a, b);
    IS("late") launch("late", 2, 1, 0, a, b);
    IS("stop") launch("stop", 2, 1, 0, a, b);
    IS("freed") {
        give_back(a);
        launch("get", 1, 64, 0, a, b);
    }
    IS("freed later") {
        OK(cuMemAllocAsync(&c, 256, s));
        launch("put", 1, 64, s, c, b);
        OK(cuMemFreeAsync(c, s));
        launch("put", 1, 64, s, c, b);
    }
    IS("twice") {
        OK(cuMemAllocAsync(&c, 256, s));
        OK(cuMemFreeAsync(c, s));
        EXPECT(1, cuMemFreeAsync(c, s));
    }
    IS("allocated apart") {
        OK(cuMemAllocAsync(&c, 256, s));
        launch("put", 1, 64, t, c, b);
    }
    IS("freed apart") {
        OK(cuMemAllocAsync(&c, 256, s));
        OK(cuStreamSynchronize(s));
        launch("put", 1, 64, t, c, b);
        // The launch is over by then, but nobody has asked.
        sleep(1);
        OK(cuMemFreeAsync(c, s));
    }
    IS("in order") {
        for (int i = 0; i < 3; i++) {
            OK(cuMemAllocAsync(&c, 256, s));
            OK(cuEventRecord(event, s));
            OK(cuStreamWaitEvent(t, event, 0));
            launch("put", 1, 64, t, c, b);
            OK(cuEventRecord(event, t));
            OK(cuStreamWaitEvent(s, event, 0));
            OK(cuMemFreeAsync(c, s));
        }
        OK(cuMemAllocAsync(&c, 256, s));
        OK(cuCtxSynchronize());
        launch("put", 1, 64, t, c, b);
        OK(cuCtxSynchronize());
        OK(cuMemFreeAsync(c, s));
    }
    if (strstr(mode, "graph") || strstr(mode, "gone")) OK(cuCtxSynchronize());
    // An executable graph comes after all launches of it before, in whatever stream.
    IS("graph") {
        CUgraphExec exec = fork_and_join(a, b, c = memory(), 1);
        launch("put", 1, 64, s, b, a);
        OK(cuEventRecord(event, s));
        OK(cuStreamWaitEvent(t, event, 0));
        for (int i = 0; i < 4; i++) OK(cuGraphLaunch(exec, i & 1 ? s : t));
        launch("put", 1, 64, s, c, b);
        OK(cuGraphLaunch(exec, s));
        OK(cuEventRecord(event, s));
        OK(cuStreamWaitEvent(t, event, 0));
        launch("get", 1, 64, t, c, b);
        OK(cuStreamSynchronize(t));
        launch("get", 1, 64, 0, b, c);
    }
    IS("graph forks") OK(cuGraphLaunch(fork_and_join(a, b, memory(), 0), s));
    IS("graph apart") {
        OK(cuEventRecord(event, s));
        OK(cuGraphLaunch(fork_and_join(a, b, memory(), 1), s));
        OK(cuStreamWaitEvent(t, event, 0));
        launch("get", 1, 32, t, b, a + 128);
    }
    // Constants are read, and copied meanwhile: all of them, or those that nobody reads; or in order.
    if (strstr(mode, "constant")) {
        CUdeviceptr table;
        size_t bytes;
        OK(cuModuleGetGlobal_v2(&table, &bytes, module, "table"));
        OK(cuCtxSynchronize());
        launch(strstr(mode, "picked") ? "picks" : "constants", 1, 32, s, a, b);
        if (strstr(mode, "in order")) {
            OK(cuEventRecord(event, s));
            OK(cuStreamWaitEvent(t, event, 0));
        }
        OK(cuMemcpyDtoDAsync_v2(strstr(mode, "half") ? table + 128 : table, c = memory(), strstr(mode, "half") ? 128 : 256, t));
    }
    // The host waits for no copy inside the device, and for a free only if it is one of such memory.
    IS("copied inside") {
        OK(cuCtxSynchronize());
        OK(cuMemcpyDtoD_v2(a, b, 256));
        launch("get", 1, 64, t, a, c = memory());
    }
    IS("copied inside and waited for") {
        OK(cuCtxSynchronize());
        OK(cuMemcpyDtoD_v2(a, b, 256));
        launch("get", 1, 64, 0, a, c = memory());
        OK(cuCtxSynchronize());
        launch("get", 1, 64, t, a, c);
    }
    IS("freed otherwise") EXPECT(1, cuMemFreeHost((void *)a));
    // A stream that is gone has work under way until somebody has waited for it.
    IS("gone") {
        launch("put", 1, 64, s, a, b);
        OK(cuStreamDestroy_v2(s));
        launch("put", 1, 64, t, a, b);
    }
    IS("gone and waited for") {
        launch("put", 1, 64, s, a, b);
        OK(cuEventRecord(event, s));
        OK(cuStreamDestroy_v2(s));
        OK(cuStreamWaitEvent(t, event, 0));
        launch("put", 1, 64, t, a, b);
        OK(cuStreamDestroy_v2(t));
        OK(cuCtxSynchronize());
        OK(cuStreamCreate(&s, 0));
        launch("put", 1, 64, s, a, b);
        OK(cuStreamDestroy_v2(s));
        launch("get", 1, 64, 0, a, b);
    }
    int is_racy = !strcmp(mode, "racy and endless") || !strcmp(mode, "racy and waiting");
    if (is_racy) {
        launch("racy", 1, 64, 0, a, b);
        OK(cuCtxSynchronize());
    }
    IS("racy and endless") launch("endless", 1, 1, 0, a, b);
    IS("endless") launch("endless", 1, 1, 0, a, b);
    if (!strcmp(mode, "racy and waiting") || !strcmp(mode, "waiting") || !strcmp(mode, "child")) sleep(60);
    // Many programs do not look at what calls return.
    (void)cuCtxSynchronize();
    printf("ok\n");
    return 0;
}
