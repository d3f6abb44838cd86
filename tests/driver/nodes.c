// Nodes of graphs: what they were told is told back, and can be changed; memory of graphs; words that streams write and wait for.
#include "driver.h"
#include <pthread.h>
#include <unistd.h>

enum { N = 256 };

typedef struct {
    CUfunction func;
    unsigned grid[3], block[3], shared;
    void **params, **extra;
    CUkernel kern;
    CUcontext ctx;
} KernelNode;
typedef struct {
    size_t src_x, src_y, src_z, src_lod;
    unsigned src_type;
    const void *src_host;
    CUdeviceptr src;
    void *src_array, *reserved0;
    size_t src_pitch, src_height, dst_x, dst_y, dst_z, dst_lod;
    unsigned dst_type;
    void *dst_host;
    CUdeviceptr dst;
    void *dst_array, *reserved1;
    size_t dst_pitch, dst_height, width, height, depth;
} Copy;
typedef struct {
    CUdeviceptr dst;
    size_t pitch;
    unsigned value, element;
    size_t width, height;
} Fill;
typedef struct {
    void (*call)(void *);
    void *data;
} Host;
typedef struct {
    int alloc_type, handle_types, location_type, location;
    void *security;
    size_t max_size;
    unsigned char rest[56];
    const void *access;
    size_t accesses, bytes;
    CUdeviceptr address;
} Alloc;
typedef union {
    struct {
        int operation;
        CUdeviceptr address;
        uint64_t value;
        unsigned flags;
        CUdeviceptr alias;
    } word;
    uint64_t pad[6];
} MemOp;
typedef struct {
    CUcontext ctx;
    unsigned count;
    MemOp *ops;
    unsigned flags;
} Batch;

CUresult cuGraphAddKernelNode_v2(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const KernelNode *);
CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode, KernelNode *);
CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec, CUgraphNode, const KernelNode *);
CUresult cuGraphAddMemcpyNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const Copy *, CUcontext);
CUresult cuGraphMemcpyNodeGetParams(CUgraphNode, Copy *);
CUresult cuGraphMemcpyNodeSetParams(CUgraphNode, const Copy *);
CUresult cuGraphAddMemsetNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const Fill *, CUcontext);
CUresult cuGraphMemsetNodeGetParams(CUgraphNode, Fill *);
CUresult cuGraphClone(CUgraph *, CUgraph);
typedef void *CUuserObject;
CUresult cuUserObjectCreate(CUuserObject *, void *, void (*)(void *), unsigned, unsigned);
CUresult cuUserObjectRetain(CUuserObject, unsigned);
CUresult cuUserObjectRelease(CUuserObject, unsigned);
CUresult cuGraphRetainUserObject(CUgraph, CUuserObject, unsigned, unsigned);
CUresult cuGraphReleaseUserObject(CUgraph, CUuserObject, unsigned);
CUresult cuGraphAddHostNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const Host *);
CUresult cuGraphHostNodeGetParams(CUgraphNode, Host *);
CUresult cuGraphAddEventRecordNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUevent);
CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode, CUevent *);
CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode, CUevent);
CUresult cuGraphAddMemAllocNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, Alloc *);
CUresult cuGraphMemAllocNodeGetParams(CUgraphNode, Alloc *);
CUresult cuGraphAddMemFreeNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUdeviceptr);
CUresult cuGraphMemFreeNodeGetParams(CUgraphNode, CUdeviceptr *);
CUresult cuGraphAddBatchMemOpNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const Batch *);
CUresult cuGraphBatchMemOpNodeGetParams(CUgraphNode, Batch *);
CUresult cuGraphNodeGetType(CUgraphNode, int *);
CUresult cuDeviceGetGraphMemAttribute(CUdevice, int, void *);
CUresult cuStreamWaitValue32_v2(CUstream, CUdeviceptr, uint32_t, unsigned);
CUresult cuStreamWriteValue32_v2(CUstream, CUdeviceptr, uint32_t, unsigned);
CUresult cuStreamWaitValue64_v2(CUstream, CUdeviceptr, uint64_t, unsigned);
CUresult cuStreamBatchMemOp_v2(CUstream, unsigned, MemOp *, unsigned);

static void add_one(void *data) { ++*(int *)data; }

static int type_of(CUgraphNode node) {
    int type = -1;
    OK(cuGraphNodeGetType(node, &type));
    return type;
}

static void gone(void *data) { __atomic_add_fetch((int *)data, 1, __ATOMIC_SEQ_CST); }

static void slow(void *data) {
    usleep(30000);
    // The object is there as long as the work is.
    *(int *)data = ((int *)data)[1];
}

// Objects live until the last reference has gone, those of graphs and of work that runs included.
static void objects_of_the_program(CUstream stream) {
    int ended = 0;
    CUuserObject object;
    EXPECT(1, cuUserObjectCreate(&object, &ended, gone, 1, 0));
    EXPECT(1, cuUserObjectCreate(&object, &ended, gone, 0, 1));
    EXPECT(1, cuUserObjectCreate(&object, &ended, 0, 1, 1));
    OK(cuUserObjectCreate(&object, &ended, gone, 2, 1));
    OK(cuUserObjectRetain(object, 1));
    OK(cuUserObjectRelease(object, 2));
    EXPECT(1, cuUserObjectRelease(object, 2));
    TRUE(ended == 0);
    OK(cuUserObjectRelease(object, 1));
    TRUE(ended == 1);
    EXPECT(1, cuUserObjectRetain(object, 1));

    CUgraph graph, copy;
    CUgraphNode node;
    CUgraphExec exec;
    int seen[2] = {0, 0};
    Host host = {slow, seen};
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphAddHostNode(&node, graph, 0, 0, &host));
    OK(cuUserObjectCreate(&object, &seen[1], gone, 1, 1));
    // The reference becomes the graph's.
    OK(cuGraphRetainUserObject(graph, object, 1, 1));
    EXPECT(1, cuGraphRetainUserObject(graph, object, 1, 2));
    OK(cuGraphRetainUserObject(graph, object, 2, 0));
    OK(cuGraphReleaseUserObject(graph, object, 2));
    EXPECT(1, cuGraphReleaseUserObject(graph, object, 2));
    OK(cuGraphClone(&copy, graph));
    OK(cuGraphInstantiate_v2(&exec, graph, 0, 0, 0));
    OK(cuGraphDestroy(graph));
    TRUE(seen[1] == 0);
    OK(cuGraphLaunch(exec, stream));
    OK(cuGraphDestroy(copy));
    OK(cuGraphExecDestroy(exec));
    OK(cuStreamSynchronize(stream));
    TRUE(seen[0] == 0);
    for (int i = 0; i < 1000 && __atomic_load_n(&seen[1], __ATOMIC_SEQ_CST) == 0; i++) usleep(1000);
    TRUE(seen[1] == 1);
    EXPECT(1, cuUserObjectRelease(object, 1));
}

int main(void) {
    CUcontext context;
    OK(cuInit(0));
    OK(cuCtxCreate_v2(&context, 0, 0));
    CUmodule module;
    CUfunction step, spin;
    OK(cuModuleLoadData(&module, KERNELS));
    OK(cuModuleGetFunction(&step, module, "step"));
    OK(cuModuleGetFunction(&spin, module, "spin"));
    CUstream a, b;
    OK(cuStreamCreate(&a, 1));
    OK(cuStreamCreate(&b, 1));

    // Memory of the graph, a fill of it, a kernel, a copy to the host, a call, an event, and the end of the memory.
    CUgraph graph;
    CUgraphExec exec;
    CUgraphNode alloc_node, fill_node, kernel_node, copy_node, host_node, event_node, free_node;
    CUevent event, other;
    uint32_t host[N];
    int calls = 0;
    OK(cuEventCreate(&event, 0));
    OK(cuEventCreate(&other, 0));
    OK(cuGraphCreate(&graph, 0));
    Alloc alloc = {.alloc_type = 1, .location_type = 1, .bytes = sizeof host};
    OK(cuGraphAddMemAllocNode(&alloc_node, graph, 0, 0, &alloc));
    TRUE(alloc.address != 0);
    Fill fill = {.dst = alloc.address, .value = 1, .element = 4, .width = N, .height = 1};
    OK(cuGraphAddMemsetNode(&fill_node, graph, &alloc_node, 1, &fill, context));
    uint32_t n = N, k = 4;
    void *params[] = {&alloc.address, &n, &k};
    KernelNode kernel = {.func = step, .grid = {1, 1, 1}, .block = {N, 1, 1}, .params = params};
    OK(cuGraphAddKernelNode_v2(&kernel_node, graph, &fill_node, 1, &kernel));
    Copy copy = {.src_type = 2, .src = alloc.address, .dst_type = 1, .dst_host = host, .width = sizeof host, .height = 1, .depth = 1};
    OK(cuGraphAddMemcpyNode(&copy_node, graph, &kernel_node, 1, &copy, context));
    Host call = {add_one, &calls};
    OK(cuGraphAddHostNode(&host_node, graph, &copy_node, 1, &call));
    OK(cuGraphAddEventRecordNode(&event_node, graph, &host_node, 1, other));
    OK(cuGraphEventRecordNodeSetEvent(event_node, event));
    OK(cuGraphAddMemFreeNode(&free_node, graph, &copy_node, 1, alloc.address));
    EXPECT(1, cuGraphAddMemFreeNode(&free_node, graph, 0, 0, alloc.address + 4));
    TRUE(type_of(alloc_node) == 10 && type_of(free_node) == 11 && type_of(kernel_node) == 0 && type_of(event_node) == 7);

    // What is told back.
    KernelNode told;
    OK(cuGraphKernelNodeGetParams_v2(kernel_node, &told));
    TRUE(told.func == step && told.block[0] == N && told.grid[2] == 1 && !told.extra);
    TRUE(*(CUdeviceptr *)told.params[0] == alloc.address && *(uint32_t *)told.params[1] == N && *(uint32_t *)told.params[2] == 4);
    Copy told_copy;
    OK(cuGraphMemcpyNodeGetParams(copy_node, &told_copy));
    TRUE(told_copy.src == alloc.address && told_copy.src_type == 2 && told_copy.dst_host == host && told_copy.dst_type == 1);
    TRUE(told_copy.width == sizeof host && told_copy.height == 1 && told_copy.depth == 1);
    // It can be set as it was told.
    OK(cuGraphMemcpyNodeSetParams(copy_node, &told_copy));
    Fill told_fill;
    OK(cuGraphMemsetNodeGetParams(fill_node, &told_fill));
    TRUE(told_fill.dst == alloc.address && told_fill.value == 1 && told_fill.element == 4 && told_fill.width == N);
    Host told_host;
    OK(cuGraphHostNodeGetParams(host_node, &told_host));
    TRUE(told_host.call == add_one && told_host.data == &calls);
    CUevent told_event;
    OK(cuGraphEventRecordNodeGetEvent(event_node, &told_event));
    TRUE(told_event == event);
    Alloc told_alloc;
    OK(cuGraphMemAllocNodeGetParams(alloc_node, &told_alloc));
    TRUE(told_alloc.address == alloc.address && told_alloc.bytes == sizeof host && told_alloc.alloc_type == 1);
    CUdeviceptr told_free;
    OK(cuGraphMemFreeNodeGetParams(free_node, &told_free));
    TRUE(told_free == alloc.address);
    EXPECT(1, cuGraphKernelNodeGetParams_v2(copy_node, &told));
    EXPECT(1, cuGraphMemcpyNodeGetParams(kernel_node, &told_copy));

    // Runs, also with another number for the kernel.
    uint64_t used = 0;
    OK(cuDeviceGetGraphMemAttribute(0, 0, &used));
    TRUE(used == sizeof host);
    OK(cuGraphInstantiate_v2(&exec, graph, 0, 0, 0));
    for (int i = 0; i < 3; i++) {
        memset(host, 0, sizeof host);
        OK(cuGraphLaunch(exec, a));
        OK(cuStreamSynchronize(a));
        TRUE(host[0] == 7 && host[N - 1] == 7 && calls == i + 1);
        OK(cuEventSynchronize(event));
    }
    k = 10;
    OK(cuGraphExecKernelNodeSetParams_v2(exec, kernel_node, &kernel));
    OK(cuGraphLaunch(exec, a));
    OK(cuStreamSynchronize(a));
    TRUE(host[5] == 13);
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
    OK(cuDeviceGetGraphMemAttribute(0, 0, &used));
    TRUE(used == 0);

    // Memory that a captured stream allocates, and that outlives the graph, since nothing freed it.
    CUdeviceptr kept;
    OK(cuStreamBeginCapture_v2(a, 2));
    OK(cuMemAllocAsync(&kept, 64, a));
    OK(cuMemsetD32Async(kept, 5, 16, a));
    OK(cuStreamEndCapture(a, &graph));
    OK(cuGraphInstantiate_v2(&exec, graph, 0, 0, 0));
    OK(cuGraphLaunch(exec, a));
    OK(cuStreamSynchronize(a));
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
    OK(cuMemcpyDtoH_v2(host, kept, 64));
    TRUE(host[15] == 5);
    OK(cuMemFree_v2(kept));
    EXPECT(1, cuMemFree_v2(kept));

    objects_of_the_program(a);

    // A stream waits for a word that another one writes; the same by a batch.
    CUdeviceptr words;
    OK(cuMemAlloc_v2(&words, 64));
    OK(cuMemsetD32_v2(words, 0, 16));
    // The other streams do not wait for the default one.
    OK(cuCtxSynchronize());
    for (int i = 0; i < 4; i++) {
        OK(cuStreamWaitValue32_v2(a, words, i + 1, i % 2));
        OK(cuStreamWriteValue32_v2(a, words + 4, 10 + i, 0));
        usleep(2000);
        EXPECT(600, cuStreamQuery(a));
        OK(cuStreamWriteValue32_v2(b, words, i + 1, 0));
        OK(cuStreamSynchronize(a));
        OK(cuMemcpyDtoH_v2(host, words, 8));
        TRUE(host[1] == 10u + i);
    }
    EXPECT(1, cuStreamWaitValue32_v2(a, words + 2, 0, 0));
    EXPECT(1, cuStreamWaitValue32_v2(a, words, 0, 5));
    EXPECT(1, cuStreamWaitValue64_v2(a, words + 4, 0, 0));
    MemOp ops[3] = {{.word = {4, words + 8, (uint64_t)1 << 40, 2, 0}}, {.word = {5, words + 16, (uint64_t)-2, 0, 0}}, {.word = {2, words + 24, 3, 0, 0}}};
    OK(cuStreamBatchMemOp_v2(a, 3, ops, 0));
    Batch batch = {context, 1, &(MemOp){.word = {5, words + 8, (uint64_t)3 << 40, 0, 0}}, 0}, told_batch;
    CUgraphNode batch_node;
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphAddBatchMemOpNode(&batch_node, graph, 0, 0, &batch));
    OK(cuGraphBatchMemOpNodeGetParams(batch_node, &told_batch));
    TRUE(type_of(batch_node) == 12 && told_batch.count == 1 && told_batch.ops[0].word.operation == 5);
    TRUE(told_batch.ops[0].word.address == words + 8 && told_batch.ops[0].word.value == (uint64_t)3 << 40);
    OK(cuGraphInstantiate_v2(&exec, graph, 0, 0, 0));
    OK(cuGraphLaunch(exec, b));
    OK(cuStreamSynchronize(a));
    OK(cuMemcpyDtoH_v2(host, words, 32));
    TRUE(host[4] == (uint32_t)-2 && host[5] == (uint32_t)-1 && host[6] == 3);
    ops[0].word.operation = 77;
    EXPECT(1, cuStreamBatchMemOp_v2(a, 1, ops, 0));

    // Work that waits for what nobody will ever write ends as a launch that takes too long.
    OK(cuMemsetD32_v2(words, 0, 16));
    OK(cuCtxSynchronize());
    if (getenv("WAIT_BY") && !strcmp(getenv("WAIT_BY"), "stream")) {
        OK(cuStreamWaitValue32_v2(a, words, 1, 1));
    } else {
        void *to_spin[] = {&words};
        OK(cuLaunchKernel(spin, 2, 1, 1, 64, 1, 1, 0, a, to_spin, 0));
    }
    OK(cuEventRecord(event, a));
    const char *by = getenv("WAIT_BY");
    if (by && (!strcmp(by, "query") || !strcmp(by, "event"))) {
        // A program that only asks is told as well.
        int code;
        while ((code = *by == 'q' ? cuStreamQuery(a) : cuEventQuery(event)) == 600) usleep(500);
        EXPECT(702, code);
    }
    EXPECT(702, cuStreamSynchronize(a));
    EXPECT(702, cuCtxSynchronize());
    OK(cuCtxDestroy_v2(context));
    puts("ok");
    return 0;
}
