// Nodes of graphs with a condition: if, else, while, switch, one in another, what is refused, and a fault in one.
#include "driver.h"

typedef unsigned long long Condition;
typedef struct {
    CUfunction func;
    unsigned grid[3], block[3], shared;
    void **params, **extra;
    CUkernel kern;
    CUcontext ctx;
} Kernel;
typedef struct {
    int type, reserved0[3];
    union {
        long long words[29];
        Kernel kernel;
        struct {
            void (*call)(void *);
            void *data;
        } host;
        struct {
            CUgraph graph;
            int ownership;
        } child;
        struct {
            Condition handle;
            int type;
            unsigned size;
            CUgraph *graphs;
            CUcontext ctx;
        } condition;
    };
    long long reserved2;
} Params;

enum { IF, WHILE, SWITCH, KERNEL = 0, HOST = 3, CHILD = 4, EMPTY, CONDITIONAL = 13 };

CUresult cuGraphConditionalHandleCreate(Condition *, CUgraph, CUcontext, unsigned, unsigned);
CUresult cuGraphAddNode_v2(CUgraphNode *, CUgraph, const CUgraphNode *, const void *, size_t, Params *);
CUresult cuGraphNodeGetParams(CUgraphNode, Params *);
CUresult cuGraphNodeSetParams(CUgraphNode, Params *);
CUresult cuGraphNodeGetType(CUgraphNode, int *);
CUresult cuGraphExecUpdate_v2(CUgraphExec, CUgraph, void *);
CUresult cuGraphClone(CUgraph *, CUgraph);
CUresult cuGraphAddChildGraphNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUgraph);
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr, CUdeviceptr, size_t, CUstream);
CUresult cuStreamBeginCaptureToGraph(CUstream, CUgraph, const CUgraphNode *, const void *, size_t, int);

// As nvcc writes a call of the device runtime. `count`: x[0] -= 1; x[1] += 1; the condition is x[0] > 0. `take`: the condition is x[at].
// `add`: x[at] += k. `fault`: a store through a null pointer.
static const char TEXT[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);\n"
    ".visible .entry count(.param .u64 c, .param .u64 x) {\n"
    ".reg .b64 %c, %x; .reg .b32 %n, %k; .reg .pred %p;\n"
    "ld.param.u64 %c, [c]; ld.param.u64 %x, [x]; ld.global.s32 %n, [%x]; ld.global.s32 %k, [%x+4];\n"
    "sub.s32 %n, %n, 1; add.s32 %k, %k, 1; st.global.s32 [%x], %n; st.global.s32 [%x+4], %k;\n"
    "setp.gt.s32 %p, %n, 0; selp.u32 %n, 1, 0, %p;\n"
    "{ .param .b64 a; .param .b32 b; st.param.b64 [a], %c; st.param.b32 [b], %n; call.uni cudaGraphSetConditional, (a, b); } ret; }\n"
    ".visible .entry take(.param .u64 c, .param .u64 x, .param .u32 at) {\n"
    ".reg .b64 %c, %x; .reg .b32 %n;\n"
    "ld.param.u64 %c, [c]; ld.param.u64 %x, [x]; ld.param.u32 %n, [at]; mad.wide.u32 %x, %n, 4, %x; ld.global.u32 %n, [%x];\n"
    "{ .param .b64 a; .param .b32 b; st.param.b64 [a], %c; st.param.b32 [b], %n; call.uni cudaGraphSetConditional, (a, b); } ret; }\n"
    ".visible .entry add(.param .u64 x, .param .u32 at, .param .u32 k) {\n"
    ".reg .b64 %x; .reg .b32 %n, %k;\n"
    "ld.param.u64 %x, [x]; ld.param.u32 %n, [at]; ld.param.u32 %k, [k]; mad.wide.u32 %x, %n, 4, %x;\n"
    "ld.global.u32 %n, [%x]; add.u32 %n, %n, %k; st.global.u32 [%x], %n; ret; }\n"
    ".visible .entry fault() { .reg .b64 %x; mov.u64 %x, 0; st.global.u32 [%x], 1; ret; }\n";

static CUfunction count, take, add, fault;
static CUdeviceptr x;
static CUstream stream;

static CUgraphNode launch(CUgraph graph, CUgraphNode after, CUfunction f, void **args) {
    CUgraphNode node;
    Params p = {.type = KERNEL, .kernel = {.func = f, .grid = {1, 1, 1}, .block = {1, 1, 1}, .params = args}};
    OK(cuGraphAddNode_v2(&node, graph, &after, 0, after != 0, &p));
    return node;
}

static CUgraphNode adds(CUgraph graph, CUgraphNode after, unsigned at, unsigned k) {
    return launch(graph, after, add, (void *[]){&x, &at, &k});
}

static CUgraphNode takes(CUgraph graph, CUgraphNode after, Condition c, unsigned at) {
    return launch(graph, after, take, (void *[]){&c, &x, &at});
}

// A node with a condition, and its graphs.
static CUgraphNode chooses(CUgraph graph, CUgraphNode after, Condition c, int type, unsigned size, CUgraph *to) {
    CUgraphNode node;
    Params p = {.type = CONDITIONAL, .condition = {.handle = c, .type = type, .size = size}}, told;
    OK(cuGraphAddNode_v2(&node, graph, &after, 0, after != 0, &p));
    OK(cuGraphNodeGetParams(node, &told));
    TRUE(told.type == CONDITIONAL && told.condition.handle == c && told.condition.type == type && told.condition.size == size);
    TRUE(told.condition.graphs == p.condition.graphs);
    for (unsigned i = 0; i < size; i++) to[i] = p.condition.graphs[i];
    return node;
}

// What x is after a launch that begins with some values.
static void run(CUgraphExec exec, const int *from, int *to) {
    OK(cuMemcpyHtoD_v2(x, from, 32));
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuMemcpyDtoH_v2(to, x, 32));
}

static void refused(CUcontext context) {
    CUgraph graph, copy, other;
    CUgraphNode node, child;
    CUgraphExec exec;
    CUcontext second;
    Condition c, foreign;
    Params p;
    int type;
    OK(cuGraphCreate(&graph, 0));
    EXPECT(1, cuGraphConditionalHandleCreate(0, graph, context, 0, 0));
    EXPECT(1, cuGraphConditionalHandleCreate(&c, 0, context, 0, 0));
    EXPECT(1, cuGraphConditionalHandleCreate(&c, graph, context, 0, 2));
    EXPECT(201, cuGraphConditionalHandleCreate(&c, graph, (CUcontext)0x1234, 0, 0));
    OK(cuGraphConditionalHandleCreate(&c, graph, 0, 0, 0));
    struct { int type; unsigned size; } wrong[] = {{IF, 0}, {IF, 3}, {WHILE, 0}, {WHILE, 2}, {SWITCH, 0}, {3, 1}, {-1, 1}};
    for (int i = 0; i < 7; i++) {
        p = (Params){.type = CONDITIONAL, .condition = {.handle = c, .type = wrong[i].type, .size = wrong[i].size}};
        EXPECT(1, cuGraphAddNode_v2(&node, graph, 0, 0, 0, &p));
    }
    p = (Params){.type = CONDITIONAL, .condition = {.handle = x, .type = IF, .size = 1}};
    EXPECT(1, cuGraphAddNode_v2(&node, graph, 0, 0, 0, &p));
    // Of another context.
    OK(cuCtxCreate_v2(&second, 0, 0));
    OK(cuGraphConditionalHandleCreate(&foreign, graph, second, 0, 0));
    OK(cuCtxPopCurrent_v2(0));
    p.condition.handle = foreign;
    EXPECT(1, cuGraphAddNode_v2(&node, graph, 0, 0, 0, &p));
    OK(cuCtxDestroy_v2(second));

    p.condition.handle = c;
    OK(cuGraphAddNode_v2(&node, graph, 0, 0, 0, &p));
    OK(cuGraphNodeGetType(node, &type));
    TRUE(type == CONDITIONAL);
    CUgraph body = p.condition.graphs[0];
    EXPECT(801, cuGraphNodeSetParams(node, &p));
    EXPECT(1, cuGraphDestroy(body));
    EXPECT(801, cuGraphClone(&copy, graph));
    OK(cuGraphCreate(&other, 0));
    EXPECT(801, cuGraphAddChildGraphNode(&child, other, 0, 0, graph));
    p = (Params){.type = CHILD, .child = {graph, 1}};
    EXPECT(1, cuGraphAddNode_v2(&child, body, 0, 0, 0, &p));
    // No call of the host under a condition.
    p = (Params){.type = HOST, .host = {(void (*)(void *))refused, 0}};
    OK(cuGraphAddNode_v2(&child, body, 0, 0, 0, &p));
    EXPECT(1, cuGraphInstantiate_v2(&exec, graph, 0, 0, 0));
    OK(cuGraphDestroy(other));
    OK(cuGraphDestroy(graph));
    // The condition and the graph of the node went with it.
    EXPECT(1, cuGraphDestroy(body));
    OK(cuGraphCreate(&graph, 0));
    p = (Params){.type = CONDITIONAL, .condition = {.handle = c, .type = IF, .size = 1}};
    EXPECT(1, cuGraphAddNode_v2(&node, graph, 0, 0, 0, &p));
    OK(cuGraphDestroy(graph));
}

int main(void) {
    CUcontext context;
    CUmodule module;
    OK(cuInit(0));
    OK(cuCtxCreate_v2(&context, 0, 0));
    OK(cuModuleLoadData(&module, TEXT));
    OK(cuModuleGetFunction(&count, module, "count"));
    OK(cuModuleGetFunction(&take, module, "take"));
    OK(cuModuleGetFunction(&add, module, "add"));
    OK(cuModuleGetFunction(&fault, module, "fault"));
    OK(cuMemAlloc_v2(&x, 32));
    OK(cuStreamCreate(&stream, 1));
    size_t before, after, total;
    OK(cuMemGetInfo_v2(&before, &total));
    refused(context);

    // A loop whose condition is 1 at the start of each launch, then a node after it.
    CUgraph graph, body, arms[3];
    CUgraphExec exec;
    Condition c, d;
    int to[8];
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphConditionalHandleCreate(&c, graph, context, 1, 1));
    CUgraphNode node = chooses(graph, 0, c, WHILE, 1, &body);
    launch(body, 0, count, (void *[]){&c, &x});
    adds(graph, node, 2, 10);
    OK(cuGraphInstantiate_v2(&exec, graph, 0, 0, 0));
    for (int n = 1; n < 40; n += 19) {
        run(exec, (int[8]){n, 0, 5}, to);
        TRUE(to[0] == 0 && to[1] == n && to[2] == 15);
    }
    // It runs on without the graph, and takes over another one of the same shape.
    CUgraph twin;
    OK(cuGraphDestroy(graph));
    OK(cuGraphCreate(&twin, 0));
    OK(cuGraphConditionalHandleCreate(&d, twin, context, 0, 1));
    node = chooses(twin, 0, d, WHILE, 1, &body);
    launch(body, 0, count, (void *[]){&d, &x});
    adds(twin, node, 2, 20);
    run(exec, (int[8]){3, 0, 5}, to);
    TRUE(to[0] == 0 && to[1] == 3 && to[2] == 15);
    OK(cuGraphExecUpdate_v2(exec, twin, 0));
    run(exec, (int[8]){3, 0, 5}, to);
    TRUE(to[0] == 3 && to[1] == 0 && to[2] == 25);
    OK(cuGraphDestroy(twin));
    OK(cuGraphExecDestroy(exec));

    // Else and switch by values that kernels set; a condition without a default keeps its value from launch to launch.
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphConditionalHandleCreate(&c, graph, context, 7, 0));
    OK(cuGraphConditionalHandleCreate(&d, graph, context, 0, 0));
    node = chooses(graph, 0, c, SWITCH, 3, arms);
    for (unsigned i = 0; i < 3; i++) adds(arms[i], adds(arms[i], 0, 1 + i, 1), 4, 1);
    node = takes(graph, takes(graph, node, c, 0), d, 5);
    chooses(graph, node, d, IF, 2, arms);
    adds(arms[0], 0, 6, 100);
    adds(arms[1], 0, 6, 1000);
    OK(cuGraphInstantiate_v2(&exec, graph, 0, 0, 0));
    run(exec, (int[8]){2, 0, 0, 0, 0, 1}, to);
    TRUE(!to[1] && !to[2] && !to[3] && !to[4] && to[6] == 100);
    run(exec, (int[8]){1, 0, 0, 0, 0, 0}, to);
    TRUE(!to[1] && !to[2] && to[3] == 1 && to[4] == 1 && to[6] == 1000);
    run(exec, (int[8]){3, 0, 0, 0, 0, -1}, to);
    TRUE(!to[1] && to[2] == 1 && !to[3] && to[4] == 1 && to[6] == 100);
    run(exec, (int[8]){0}, to);
    TRUE(!to[1] && !to[2] && !to[3] && !to[4] && to[6] == 1000);
    // Launched into a captured stream it would be a graph in a node, which may not be.
    CUgraph captured;
    OK(cuStreamBeginCapture_v2(stream, 2));
    EXPECT(801, cuGraphLaunch(exec, stream));
    OK(cuStreamEndCapture(stream, &captured));
    OK(cuGraphDestroy(captured));
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));

    // A branch in a loop, recorded from a stream: odd turns add to x[2].
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphConditionalHandleCreate(&c, graph, context, 1, 1));
    OK(cuGraphConditionalHandleCreate(&d, graph, context, 0, 0));
    chooses(graph, 0, c, WHILE, 1, &body);
    OK(cuStreamBeginCaptureToGraph(stream, body, 0, 0, 0, 2));
    OK(cuLaunchKernel(count, 1, 1, 1, 1, 1, 1, 0, stream, (void *[]){&c, &x}, 0));
    OK(cuMemcpyDtoDAsync_v2(x + 12, x, 4, stream));
    OK(cuStreamEndCapture(stream, &captured));
    TRUE(captured == body);
    CUgraphNode all[2];
    size_t n = 2;
    OK(cuGraphGetNodes(body, all, &n));
    TRUE(n == 2);
    chooses(body, takes(body, all[1], d, 3), d, IF, 1, arms);
    adds(arms[0], 0, 2, 1);
    OK(cuGraphInstantiate_v2(&exec, graph, 0, 0, 0));
    run(exec, (int[8]){9}, to);
    TRUE(to[0] == 0 && to[1] == 9 && to[2] == 8 && to[3] == 0);
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
    OK(cuMemGetInfo_v2(&after, &total));
    TRUE(before == after);

    // A fault ends the loop and the context.
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphConditionalHandleCreate(&c, graph, context, 1, 1));
    chooses(graph, 0, c, WHILE, 1, &body);
    launch(body, 0, fault, 0);
    OK(cuGraphInstantiate_v2(&exec, graph, 0, 0, 0));
    OK(cuGraphLaunch(exec, stream));
    EXPECT(700, cuStreamSynchronize(stream));
    EXPECT(700, cuGraphLaunch(exec, stream));
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
    OK(cuCtxDestroy_v2(context));
    puts("ok");
    return 0;
}
