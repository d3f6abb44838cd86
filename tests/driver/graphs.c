// Nodes of any kind by one structure, graphs in graphs, what is said of edges, attributes of launches, names.
#include "driver.h"
#include <unistd.h>

enum { N = 256 };

typedef struct {
    CUfunction func;
    unsigned grid[3], block[3], shared;
    void **params, **extra;
    CUkernel kern;
    CUcontext ctx;
} Kernel;
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
    int type, reserved0[3];
    union {
        long long words[29];
        Kernel kernel;
        struct {
            int flags, reserved;
            CUcontext ctx;
            Copy copy;
        } copy;
        struct {
            CUdeviceptr dst;
            size_t pitch;
            unsigned value, element;
            size_t width, height;
            CUcontext ctx;
        } fill;
        struct {
            void (*call)(void *);
            void *data;
        } host;
        struct {
            CUgraph graph;
            int ownership;
        } child;
        CUevent event;
        struct {
            int alloc_type, handle_types, location_type, location;
            void *security;
            size_t max_size;
            unsigned char rest[56];
            const void *access;
            size_t accesses, bytes;
            CUdeviceptr address;
        } alloc;
        CUdeviceptr free;
    };
    long long reserved2;
} Params;
typedef struct {
    unsigned char from_port, to_port, type, reserved[5];
} Edge;
typedef union {
    char pad[64];
    int word;
    unsigned dim[3];
} Value;

CUresult cuGraphAddNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, Params *);
CUresult cuGraphAddNode_v2(CUgraphNode *, CUgraph, const CUgraphNode *, const Edge *, size_t, Params *);
CUresult cuGraphNodeSetParams(CUgraphNode, Params *);
CUresult cuGraphNodeGetParams(CUgraphNode, Params *);
CUresult cuGraphExecNodeSetParams(CUgraphExec, CUgraphNode, Params *);
CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode, CUgraph *);
CUresult cuGraphNodeGetContainingGraph(CUgraphNode, CUgraph *);
CUresult cuGraphNodeGetLocalId(CUgraphNode, unsigned *);
CUresult cuGraphGetId(CUgraph, unsigned *);
CUresult cuGraphExecGetId(CUgraphExec, unsigned *);
CUresult cuGraphDebugDotPrint(CUgraph, const char *, unsigned);
CUresult cuGraphKernelNodeGetAttribute(CUgraphNode, int, Value *);
CUresult cuGraphKernelNodeSetAttribute(CUgraphNode, int, const Value *);
CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode, CUgraphNode);
CUresult cuGraphGetEdges(CUgraph, CUgraphNode *, CUgraphNode *, size_t *);
CUresult cuGraphGetEdges_v2(CUgraph, CUgraphNode *, CUgraphNode *, Edge *, size_t *);
CUresult cuGraphNodeGetDependencies(CUgraphNode, CUgraphNode *, size_t *);
CUresult cuGraphNodeGetDependencies_v2(CUgraphNode, CUgraphNode *, Edge *, size_t *);
CUresult cuGraphRemoveDependencies_v2(CUgraph, const CUgraphNode *, const CUgraphNode *, const Edge *, size_t);
CUresult cuGraphAddDependencies_v2(CUgraph, const CUgraphNode *, const CUgraphNode *, const Edge *, size_t);
CUresult cuGraphClone(CUgraph *, CUgraph);
CUresult cuGraphAddChildGraphNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUgraph);
CUresult cuGraphDestroyNode(CUgraphNode);

static CUfunction step;

static void add_one(void *data) { ++*(int *)data; }

static Params launch(CUdeviceptr *x, uint32_t *n, uint32_t *k, void **list) {
    list[0] = x, list[1] = n, list[2] = k;
    return (Params){.type = 0, .kernel = {.func = step, .grid = {1, 1, 1}, .block = {N, 1, 1}, .params = list}};
}

int main(void) {
    CUcontext context;
    OK(cuInit(0));
    OK(cuCtxCreate_v2(&context, 0, 0));
    CUmodule module;
    OK(cuModuleLoadData(&module, KERNELS));
    OK(cuModuleGetFunction(&step, module, "step"));
    CUstream stream;
    OK(cuStreamCreate(&stream, 1));
    CUevent event, other;
    OK(cuEventCreate(&event, 0));
    OK(cuEventCreate(&other, 0));

    // One node of each kind, in a row.
    CUgraph graph;
    CUgraphExec exec;
    CUgraphNode alloc_node, fill_node, kernel_node, copy_node, host_node, record_node, free_node, empty_node;
    uint32_t host[N], n = N, k = 4;
    int calls = 0;
    void *list[3];
    OK(cuGraphCreate(&graph, 0));
    Params p = {.type = 10, .alloc = {.alloc_type = 1, .location_type = 1, .bytes = sizeof host}};
    OK(cuGraphAddNode(&alloc_node, graph, 0, 0, &p));
    CUdeviceptr x = p.alloc.address;
    TRUE(x != 0);
    p = (Params){.type = 2, .fill = {.dst = x, .value = 1, .element = 4, .width = N, .height = 1}};
    OK(cuGraphAddNode_v2(&fill_node, graph, &alloc_node, 0, 1, &p));
    p = launch(&x, &n, &k, list);
    OK(cuGraphAddNode_v2(&kernel_node, graph, &fill_node, 0, 1, &p));
    p = (Params){.type = 1, .copy = {.copy = {.src_type = 2, .src = x, .dst_type = 1, .dst_host = host, .width = sizeof host, .height = 1, .depth = 1}}};
    OK(cuGraphAddNode(&copy_node, graph, &kernel_node, 1, &p));
    p = (Params){.type = 3, .host = {add_one, &calls}};
    OK(cuGraphAddNode(&host_node, graph, &copy_node, 1, &p));
    p = (Params){.type = 7, .event = event};
    OK(cuGraphAddNode(&record_node, graph, &host_node, 1, &p));
    p = (Params){.type = 5};
    OK(cuGraphAddNode(&empty_node, graph, &record_node, 1, &p));
    p = (Params){.type = 11, .free = x};
    OK(cuGraphAddNode(&free_node, graph, &empty_node, 1, &p));

    // What is refused: semaphores of others by their kind, words that are not zero, kinds that there are not, null.
    CUgraphNode none;
    p = (Params){.type = 8};
    EXPECT(801, cuGraphAddNode(&none, graph, 0, 0, &p));
    p = (Params){.type = 99};
    EXPECT(1, cuGraphAddNode(&none, graph, 0, 0, &p));
    p = (Params){.type = 5, .reserved0 = {0, 1, 0}};
    EXPECT(1, cuGraphAddNode(&none, graph, 0, 0, &p));
    EXPECT(1, cuGraphAddNode(&none, graph, 0, 0, 0));
    p = (Params){.type = 5};
    EXPECT(1, cuGraphAddNode(&none, graph, (CUgraphNode[]){host_node, host_node}, 2, &p));
    size_t count = 0;
    OK(cuGraphGetNodes(graph, 0, &count));
    TRUE(count == 8);

    // What nodes were told is told back, and may be set again.
    for (int i = 0; i < 8; i++) {
        CUgraphNode all[] = {alloc_node, fill_node, kernel_node, copy_node, host_node, record_node, empty_node, free_node};
        int kinds[] = {10, 2, 0, 1, 3, 7, 5, 11};
        OK(cuGraphNodeGetParams(all[i], &p));
        TRUE(p.type == kinds[i] && !p.reserved0[0] && !p.reserved2);
        EXPECT(kinds[i] >= 10 ? 801 : 0, cuGraphNodeSetParams(all[i], &p));
    }
    OK(cuGraphNodeGetParams(alloc_node, &p));
    TRUE(p.alloc.address == x && p.alloc.bytes == sizeof host);
    OK(cuGraphNodeGetParams(copy_node, &p));
    TRUE(p.copy.copy.src == x && p.copy.copy.dst_host == host && p.copy.copy.width == sizeof host);
    OK(cuGraphNodeGetParams(kernel_node, &p));
    TRUE(p.kernel.func == step && p.kernel.block[0] == N && *(uint32_t *)p.kernel.params[2] == 4);
    p = (Params){.type = 7, .event = other};
    EXPECT(1, cuGraphNodeSetParams(host_node, &p));
    OK(cuGraphInstantiate_v2(&exec, graph, 0, 0, 0));
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    TRUE(host[0] == 7 && host[N - 1] == 7 && calls == 1);
    k = 9;
    p = launch(&x, &n, &k, list);
    OK(cuGraphExecNodeSetParams(exec, kernel_node, &p));
    p = (Params){.type = 2, .fill = {.dst = x, .value = 2, .element = 4, .width = N, .height = 1}};
    OK(cuGraphExecNodeSetParams(exec, fill_node, &p));
    EXPECT(1, cuGraphExecNodeSetParams(exec, kernel_node, &p));
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    TRUE(host[0] == 15 && calls == 2);
    OK(cuGraphExecDestroy(exec));

    // Attributes belong to the node: other parameters leave them as they are.
    Value value, told;
    memset(&value, 0, sizeof value);
    OK(cuGraphKernelNodeGetAttribute(kernel_node, 2, &told));
    TRUE(told.word == 0);
    value.word = 1;
    OK(cuGraphKernelNodeSetAttribute(kernel_node, 2, &value));
    value.word = -3;
    OK(cuGraphKernelNodeSetAttribute(kernel_node, 8, &value));
    p = launch(&x, &n, &k, list);
    OK(cuGraphNodeSetParams(kernel_node, &p));
    OK(cuGraphKernelNodeGetAttribute(kernel_node, 2, &told));
    TRUE(told.word == 1);
    OK(cuGraphKernelNodeGetAttribute(kernel_node, 8, &told));
    TRUE(told.word == -3);
    OK(cuGraphKernelNodeGetAttribute(kernel_node, 4, &told));
    TRUE(told.dim[0] == 1 && told.dim[1] == 1 && told.dim[2] == 1);
    EXPECT(1, cuGraphKernelNodeGetAttribute(copy_node, 2, &told));
    EXPECT(1, cuGraphKernelNodeSetAttribute(kernel_node, 99, &value));
    EXPECT(1, cuGraphKernelNodeGetAttribute(kernel_node, 2, 0));

    // What is said of an edge stays with it, and is not lost in silence.
    Edge early = {1, 0, 1, {0}}, plain = {0}, edges[16];
    Edge wrong = {0, 1, 0, {0}};
    CUgraphNode second, from[16], to[16];
    EXPECT(1, cuGraphAddNode_v2(&second, graph, &kernel_node, &wrong, 1, &p));
    OK(cuGraphAddNode_v2(&second, graph, &kernel_node, &early, 1, &p));
    OK(cuGraphKernelNodeCopyAttributes(second, kernel_node));
    OK(cuGraphKernelNodeGetAttribute(second, 8, &told));
    TRUE(told.word == -3);
    count = 16;
    EXPECT(402, cuGraphGetEdges(graph, from, to, &count));
    count = 16;
    OK(cuGraphGetEdges_v2(graph, from, to, edges, &count));
    TRUE(count == 8);
    int found = 0;
    for (size_t i = 0; i < count; i++) {
        if (to[i] == second) found += from[i] == kernel_node && !memcmp(&edges[i], &early, sizeof early);
        else TRUE(!memcmp(&edges[i], &plain, sizeof plain));
    }
    TRUE(found == 1);
    count = 4;
    EXPECT(402, cuGraphNodeGetDependencies(second, from, &count));
    count = 4;
    OK(cuGraphNodeGetDependencies_v2(second, from, edges, &count));
    TRUE(count == 1 && from[0] == kernel_node && edges[0].type == 1);
    OK(cuGraphRemoveDependencies_v2(graph, &kernel_node, &second, &early, 1));
    OK(cuGraphAddDependencies_v2(graph, &kernel_node, &second, 0, 1));
    count = 16;
    OK(cuGraphGetEdges(graph, from, to, &count));
    TRUE(count == 8);
    OK(cuGraphDestroyNode(second));
    OK(cuGraphDestroy(graph));

    // A graph in a graph: a copy, which can be changed until the graph around it is made ready.
    CUdeviceptr y;
    OK(cuMemAlloc_v2(&y, sizeof host));
    OK(cuMemsetD32_v2(y, 1, N));
    OK(cuCtxSynchronize());
    CUgraph inner, outer, embedded, again, copy;
    CUgraphNode inside, child, parts[2];
    uint32_t one = 1;
    OK(cuGraphCreate(&inner, 0));
    OK(cuGraphCreate(&outer, 0));
    p = launch(&y, &n, &one, list);
    OK(cuGraphAddNode(&inside, inner, 0, 0, &p));
    p = (Params){.type = 4, .child = {inner, 0}};
    OK(cuGraphAddNode(&child, outer, 0, 0, &p));
    OK(cuGraphChildGraphNodeGetGraph(child, &embedded));
    TRUE(embedded != inner && embedded != outer);
    OK(cuGraphNodeGetParams(child, &p));
    TRUE(p.type == 4 && p.child.graph == embedded && p.child.ownership == -1);
    EXPECT(1, cuGraphDestroy(embedded));
    OK(cuGraphDestroy(inner));
    count = 2;
    OK(cuGraphGetNodes(embedded, parts, &count));
    TRUE(count == 1);
    OK(cuGraphNodeGetContainingGraph(parts[0], &again));
    TRUE(again == embedded);
    OK(cuGraphInstantiate_v2(&exec, outer, 0, 0, 0));
    // 3 * 1 + 1, also when the graph is changed afterwards: twice after that, 3 * 4 + 1 and 3 * 13 + 1.
    p = launch(&y, &n, &one, list);
    OK(cuGraphAddNode(&parts[1], embedded, parts, 1, &p));
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuMemcpyDtoH_v2(host, y, sizeof host));
    TRUE(host[3] == 4);
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphClone(&copy, outer));
    OK(cuGraphDestroy(outer));
    EXPECT(1, cuGraphGetNodes(embedded, parts, &count));
    OK(cuGraphInstantiate_v2(&exec, copy, 0, 0, 0));
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuMemcpyDtoH_v2(host, y, sizeof host));
    TRUE(host[3] == 40);
    OK(cuGraphExecDestroy(exec));
    // A graph that is given away belongs to the node; no graph holds itself.
    OK(cuGraphCreate(&inner, 0));
    p = (Params){.type = 4, .child = {inner, 1}};
    OK(cuGraphAddNode(&child, copy, 0, 0, &p));
    EXPECT(1, cuGraphDestroy(inner));
    EXPECT(1, cuGraphAddNode(&child, copy, 0, 0, &p));
    p.child.graph = copy;
    EXPECT(1, cuGraphAddNode(&none, inner, 0, 0, &p));

    // Names, and a drawing.
    unsigned first, last, id;
    OK(cuGraphGetId(copy, &first));
    OK(cuGraphGetId(inner, &last));
    TRUE(first != last);
    OK(cuGraphNodeGetLocalId(child, &id));
    char path[] = "/tmp/handloom-dot-XXXXXX", text[4096] = {0}, name[64];
    int file = mkstemp(path);
    TRUE(file >= 0);
    OK(cuGraphDebugDotPrint(copy, path, 1));
    TRUE(read(file, text, sizeof text - 1) > 0);
    unlink(path);
    TRUE(!strncmp(text, "digraph", 7) && strstr(text, "KERNEL step of 1x1x1 blocks of 256x1x1 threads") && strstr(text, "->"));
    snprintf(name, sizeof name, "graph_%u_node_%u", first, id);
    TRUE(strstr(text, name) != 0);
    EXPECT(304, cuGraphDebugDotPrint(copy, "/nowhere/at/all", 0));
    EXPECT(1, cuGraphDebugDotPrint(copy, 0, 0));
    EXPECT(1, cuGraphGetId(graph, &id));

    // A graph that is launched into a captured stream becomes a node with a graph in it.
    OK(cuGraphInstantiate_v2(&exec, copy, 0, 0, 0));
    OK(cuGraphExecGetId(exec, &id));
    TRUE(id != first);
    OK(cuStreamBeginCapture_v2(stream, 2));
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamEndCapture(stream, &outer));
    count = 2;
    OK(cuGraphGetNodes(outer, parts, &count));
    TRUE(count == 1);
    OK(cuGraphChildGraphNodeGetGraph(parts[0], &embedded));
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphInstantiate_v2(&exec, outer, 0, 0, 0));
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuMemcpyDtoH_v2(host, y, sizeof host));
    TRUE(host[3] == 364);
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(outer));
    OK(cuGraphDestroy(copy));
    OK(cuCtxDestroy_v2(context));
    puts("ok");
    return 0;
}
