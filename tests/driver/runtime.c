// The runtime library as a program built by nvcc uses it: a fat binary that is registered, launches through stubs, variables, streams, graphs, errors.
// The declarations are those of the runtime API, written down here so that no header of another maker is needed.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fat_binary.h"

typedef void *stream_t;

void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterVar(void **handle, void *shadow, char *device, const char *name, int ext, size_t size, int constant, int global);
void __cudaRegisterManagedVar(void **handle, void **pointer, char *device, const char *name, int ext, size_t size, int constant, int global);
char __cudaInitModule(void **handle);
int __cudaGetKernel(void **kernel, const void *stub);
int __cudaLaunchKernel(void *kernel, dim3 grid, dim3 block, void **args, size_t shared, stream_t stream);
int cudaLaunchKernel(const void *stub, dim3 grid, dim3 block, void **args, size_t shared, stream_t stream);
int cudaMalloc(void **p, size_t n);
int cudaFree(void *p);
int cudaMemcpy(void *to, const void *from, size_t n, int kind);
int cudaMemcpyAsync(void *to, const void *from, size_t n, int kind, stream_t stream);
int cudaMemcpy2D(void *to, size_t tp, const void *from, size_t fp, size_t w, size_t h, int kind);
int cudaMemset(void *p, int v, size_t n);
int cudaMemcpyToSymbol(const void *s, const void *from, size_t n, size_t offset, int kind);
int cudaMemcpyFromSymbol(void *to, const void *s, size_t n, size_t offset, int kind);
int cudaGetSymbolSize(size_t *n, const void *s);
int cudaDeviceSynchronize(void);
int cudaGetLastError(void);
int cudaPeekAtLastError(void);
const char *cudaGetErrorName(int e);
const char *cudaGetErrorString(int e);
int cudaGetDeviceCount(int *n);
int cudaGetDevice(int *d);
int cudaSetDevice(int d);
int cudaGetDeviceProperties(void *p, int d);
int cudaDeviceGetAttribute(int *v, int a, int d);
int cudaFuncGetAttributes(void *a, const void *stub);
int cudaPointerGetAttributes(void *a, const void *p);
int cudaStreamCreate(stream_t *s);
int cudaStreamDestroy(stream_t s);
int cudaStreamSynchronize(stream_t s);
int cudaStreamBeginCapture(stream_t s, int mode);
int cudaStreamBeginCaptureToGraph(stream_t s, void *graph, void *const *after, const void *edges, size_t n, int mode);
typedef struct { char bytes[64]; } handle64;
int cudaEventCreateWithFlags(void **event, unsigned flags);
int cudaEventRecord(void *event, stream_t s);
int cudaEventSynchronize(void *event);
int cudaIpcGetEventHandle(handle64 *handle, void *event);
int cudaIpcOpenEventHandle(void **event, handle64 handle);
int cudaMemPoolCreate(void **pool, const void *props);
int cudaMallocFromPoolAsync(void **p, size_t bytes, void *pool, stream_t s);
int cudaMemPoolExportToShareableHandle(void *to, void *pool, int kind, unsigned flags);
int cudaMemPoolImportFromShareableHandle(void **pool, void *from, int kind, unsigned flags);
int cudaMemPoolExportPointer(handle64 *to, void *p);
int cudaMemPoolImportPointer(void **p, void *pool, const handle64 *from);
int cudaDeviceGetHostAtomicCapabilities(unsigned *to, const int *operations, unsigned n, int device);
int cudaDeviceGetP2PAtomicCapabilities(unsigned *to, const int *operations, unsigned n, int device, int peer);
int cudaStreamEndCapture(stream_t s, void **graph);
int cudaGraphInstantiate(void **exec, void *graph, unsigned long long flags);
int cudaGraphLaunch(void *exec, stream_t s);
int cudaGraphGetNodes(void *graph, void **nodes, size_t *n);
int cudaGraphExecDestroy(void *exec);
int cudaGraphDestroy(void *graph);
int cudaGraphCreate(void **graph, unsigned flags);
int cudaGraphAddMemAllocNode(void **node, void *graph, void *const *after, size_t n, void *params);
int cudaGraphAddMemFreeNode(void **node, void *graph, void *const *after, size_t n, void *address);
int cudaGraphAddMemsetNode(void **node, void *graph, void *const *after, size_t n, const void *params);
int cudaGraphAddKernelNode(void **node, void *graph, void *const *after, size_t n, const void *params);
int cudaGraphAddMemcpyNode1D(void **node, void *graph, void *const *after, size_t n, void *to, const void *from, size_t bytes, int kind);
int cudaGraphKernelNodeGetParams(void *node, void *params);
int cudaGraphMemsetNodeGetParams(void *node, void *params);
int cudaGraphMemcpyNodeGetParams(void *node, void *params);
#if VERSION >= 13000
int cudaGraphAddNode(void **node, void *graph, void *const *after, const void *edges, size_t n, void *params);
int cudaGraphNodeGetParams(void *node, void *params);
int cudaMemcpyBatchAsync(void *const *to, const void *const *from, const size_t *sizes, size_t n, void *said, size_t *firsts, size_t many, stream_t s);
#define ADD_NODE(node, graph, after, n, params) cudaGraphAddNode(node, graph, after, 0, n, params)
#define COPIES(...) cudaMemcpyBatchAsync(__VA_ARGS__)
#else
int cudaGraphAddNode(void **node, void *graph, void *const *after, size_t n, void *params);
int cudaMemcpyBatchAsync(void *const *to, const void *const *from, const size_t *sizes, size_t n, void *said, size_t *firsts, size_t many, size_t *fail,
                         stream_t s);
#define ADD_NODE(...) cudaGraphAddNode(__VA_ARGS__)
#define COPIES(to, from, sizes, n, said, firsts, many, s) cudaMemcpyBatchAsync(to, from, sizes, n, said, firsts, many, &(size_t){0}, s)
#endif
int cudaGraphExecNodeSetParams(void *exec, void *node, void *params);
int cudaGraphDestroyNode(void *node);
int cudaGraphNodeSetEnabled(void *exec, void *node, unsigned on);
int cudaGraphNodeGetEnabled(void *exec, void *node, unsigned *on);
int cudaDeviceGetGraphMemAttribute(int device, int attribute, void *value);
int cudaRuntimeGetVersion(int *v);
int cudaArrayGetPlane(void **plane, void *array, unsigned which);
int cudaGraphConditionalHandleCreate(unsigned long long *condition, void *graph, unsigned value, unsigned flags);
typedef struct { int bits[4], kind; } channel;
int cudaMallocArray(void **array, const channel *c, size_t width, size_t height, unsigned flags);
int cudaFreeArray(void *array);
int cudaMemcpyToArray(void *array, size_t x, size_t y, const void *from, size_t n, int kind);
int cudaMemcpyFromArray(void *to, void *array, size_t x, size_t y, size_t n, int kind);
int cudaMemcpyArrayToArray(void *to, size_t tx, size_t ty, void *from, size_t x, size_t y, size_t n, int kind);
int cudaArrayGetMemoryRequirements(void *to, void *array, int device);
int cudaArrayGetSparseProperties(void *to, void *array);
int cudaDeviceGetTexture1DLinearMaxWidth(size_t *width, const channel *c, int device);
int cudaDeviceFlushGPUDirectRDMAWrites(int target, int scope);
int cudaLaunchHostFunc_v2(stream_t s, void (*call)(void *), void *data, unsigned mode);
int cudaLaunchHostFunc(stream_t s, void (*call)(void *), void *data);
int cudaLibraryGetUnifiedFunction(void **function, void *library, const char *name);
int cudaMemcpy3DPeer(const void *p);
int cudaMemcpy3DPeerAsync(const void *p, stream_t s);

#define CHECK(what)                                                                          \
  do {                                                                                       \
    if (!(what)) {                                                                           \
      printf("line %d: %s (last error %s)\n", __LINE__, #what, cudaGetErrorName(cudaPeekAtLastError())); \
      return 1;                                                                              \
    }                                                                                        \
  } while (0)
#define OK(call) CHECK((call) == 0)

static const char ptx[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .const .align 4 .f32 factor = 0f3f800000;\n"
    ".visible .global .align 4 .u32 counter = 5;\n"
    ".visible .global .attribute(.managed) .align 4 .u32 shared_with_host = 7;\n"
    ".visible .entry scale(.param .u64 p, .param .u32 m) {\n"
    " .reg .b64 a, o; .reg .b32 i, n, t, b, d; .reg .f32 v, f; .reg .pred q;\n"
    " mov.u32 t, %tid.x; mov.u32 b, %ctaid.x; mov.u32 d, %ntid.x; mad.lo.u32 i, b, d, t;\n"
    " ld.param.u32 n, [m]; setp.ge.u32 q, i, n; @q ret;\n"
    " ld.param.u64 a, [p]; mul.wide.u32 o, i, 4; add.u64 a, a, o;\n"
    " ld.global.f32 v, [a]; ld.const.f32 f, [factor]; mul.f32 v, v, f; st.global.f32 [a], v;\n"
    " mov.u64 a, counter; red.global.add.u32 [a], 1; ret;\n}\n"
    ".visible .entry bump() { .reg .b64 a; mov.u64 a, shared_with_host; red.global.add.u32 [a], 1; ret; }\n"
    ".visible .entry wild(.param .u64 p) { .reg .b64 a; ld.param.u64 a, [p]; st.global.u32 [a], 1; ret; }\n"
    ".extern .func cudaGraphSetConditional(.param .b64 c, .param .b32 v);\n"
    ".visible .entry turn(.param .u64 c, .param .u64 p) { .reg .b64 a, h; .reg .b32 n;\n"
    " ld.param.u64 h, [c]; ld.param.u64 a, [p]; ld.global.u32 n, [a]; sub.u32 n, n, 1; st.global.u32 [a], n;\n"
    " { .param .b64 x; .param .b32 y; st.param.b64 [x], h; st.param.b32 [y], n; call.uni cudaGraphSetConditional, (x, y); } ret; }\n"
    ".visible .entry refused() { .reg .b32 w; mov.u32 w, 0; ld.global.b32 w, counter[w]; ret; }\n";

// Stubs, shadows: only their addresses count.
static char scale_stub, bump_stub, turn_stub, wild_stub, refused_stub, missing_stub, factor_shadow, counter_shadow;
static void *managed;

// A launch as the compiler writes it: first the configuration, then the stub, which takes it.
static int stub(const void *function, void **args) {
  dim3 grid, block;
  size_t shared;
  stream_t stream;
  void *kernel = 0;
  __cudaGetKernel(&kernel, function);
  if (__cudaPopCallConfiguration(&grid, &block, &shared, &stream)) return 1;
  return __cudaLaunchKernel(kernel, grid, block, args, shared, stream);
}

static void add_one(void *n) { ++*(unsigned *)n; }

// A loop of a graph, which a kernel ends.
static int conditions(unsigned *p) {
  unsigned long long c;
  unsigned n = 5;
  void *graph, *node, *exec, *body;
  stream_t stream;
  struct {
    int kind, pad[3];
    union {
      long long words[29];
      struct { unsigned long long handle; int kind; unsigned size; void **graphs, *context; } condition;
    };
    long long rest;
  } any = {.kind = 13};
  OK(cudaStreamCreate(&stream));
  OK(cudaGraphCreate(&graph, 0));
  CHECK(cudaGraphConditionalHandleCreate(&c, graph, 1, 4) == 1 && cudaGetLastError() == 1);
  OK(cudaGraphConditionalHandleCreate(&c, graph, 1, 1));
  any.condition.handle = c, any.condition.kind = 1, any.condition.size = 1;
  OK(ADD_NODE(&node, graph, 0, 0, &any));
  OK(cudaStreamBeginCaptureToGraph(stream, any.condition.graphs[0], 0, 0, 0, 2));
  void *args[] = {&c, &p};
  dim3 one = {1, 1, 1};
  OK(cudaLaunchKernel(&turn_stub, one, one, args, 0, stream));
  OK(cudaStreamEndCapture(stream, &body));
  CHECK(body == any.condition.graphs[0]);
  OK(cudaGraphInstantiate(&exec, graph, 0));
  OK(cudaMemcpy(p, &n, 4, 1));
  OK(cudaGraphLaunch(exec, stream));
  OK(cudaStreamSynchronize(stream));
  OK(cudaMemcpy(&n, p, 4, 2));
  CHECK(n == 0);
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphDestroy(graph));
#if VERSION >= 13000
  OK(cudaLaunchHostFunc_v2(stream, add_one, &n, 0));
#else
  OK(cudaLaunchHostFunc(stream, add_one, &n));
#endif
  OK(cudaStreamSynchronize(stream));
  CHECK(n == 1);
  CHECK(cudaLibraryGetUnifiedFunction(&body, 0, "turn") == 400 && cudaGetLastError() == 400);
  OK(cudaStreamDestroy(stream));
  return 0;
}

// Bytes from array to array, whose rows differ, boxes between devices, and what arrays of ours are not.
static int arrays(unsigned char *p) {
  channel bytes = {{8}, 1}, wrong = {{8, 16}, 1};
  void *wide, *narrow;
  unsigned char from[24], to[24];
  size_t width, words[16];
  for (int i = 0; i < 24; i++) from[i] = (unsigned char)(i + 1);
  OK(cudaMallocArray(&wide, &bytes, 8, 3, 0));
  OK(cudaMallocArray(&narrow, &bytes, 5, 4, 0));
  OK(cudaMemcpyToArray(wide, 0, 0, from, 24, 1));
  OK(cudaMemcpyToArray(narrow, 0, 0, (unsigned char[20]){0}, 20, 1));
  OK(cudaMemcpyArrayToArray(narrow, 3, 0, wide, 6, 0, 11, 3));
  OK(cudaMemcpyFromArray(to, narrow, 0, 0, 20, 2));
  CHECK(!memcmp(to + 3, from + 6, 11) && !to[2] && !to[14]);
  CHECK(cudaMemcpyArrayToArray(narrow, 9, 0, wide, 0, 0, 1, 3) == 1 && cudaGetLastError() == 1);
  struct {
    void *array;
    size_t pos[3];
    struct { void *p; size_t pitch, width, rows; } ptr;
    int device;
  } side[2] = {{0, {1, 1, 0}, {from, 8, 8, 3}, 0}, {0, {0, 0, 0}, {p, 4, 4, 2}, 0}};
  struct { char sides[sizeof side]; size_t extent[3]; } box = {.extent = {4, 2, 1}};
  memcpy(box.sides, side, sizeof side);
  OK(cudaMemcpy3DPeer(&box));
  OK(cudaMemcpy(to, p, 8, 2));
  CHECK(!memcmp(to, from + 9, 4) && !memcmp(to + 4, from + 17, 4));
  side[0].pos[0] = 2;
  memcpy(box.sides, side, sizeof side);
  OK(cudaMemcpy3DPeerAsync(&box, 0));
  OK(cudaDeviceSynchronize());
  OK(cudaMemcpy(to, p, 8, 2));
  CHECK(to[0] == 11 && to[7] == 22);
  side[1].device = 99;
  memcpy(box.sides, side, sizeof side);
  CHECK(cudaMemcpy3DPeer(&box) == 101 && cudaGetLastError() == 101);
  CHECK(cudaMemcpy3DPeer(0) == 1 && cudaGetLastError() == 1);
  OK(cudaDeviceGetTexture1DLinearMaxWidth(&width, &bytes, 0));
  CHECK(width >= 1 << 27);
  CHECK(cudaDeviceGetTexture1DLinearMaxWidth(&width, &wrong, 0) == 20 && cudaGetLastError() == 20);
  CHECK(cudaArrayGetMemoryRequirements(words, wide, 0) == 1 && cudaGetLastError() == 1);
  CHECK(cudaArrayGetSparseProperties(words, wide) == 1 && cudaGetLastError() == 1);
  CHECK(cudaDeviceFlushGPUDirectRDMAWrites(0, 100) == 801 && cudaGetLastError() == 801);
  OK(cudaFreeArray(wide));
  OK(cudaFreeArray(narrow));
  return 0;
}

int main(void) {
  struct { int magic, version; const void *data; void *list; } wrapper = {0x466243b1, 1, container(ptx, sizeof ptx), 0};
  void **handle = __cudaRegisterFatBinary(&wrapper);
  __cudaRegisterFunction(handle, &scale_stub, 0, "scale", -1, 0, 0, 0, 0, 0);
  __cudaRegisterFunction(handle, &bump_stub, 0, "bump", -1, 0, 0, 0, 0, 0);
  __cudaRegisterFunction(handle, &turn_stub, 0, "turn", -1, 0, 0, 0, 0, 0);
  __cudaRegisterFunction(handle, &wild_stub, 0, "wild", -1, 0, 0, 0, 0, 0);
  __cudaRegisterFunction(handle, &refused_stub, 0, "refused", -1, 0, 0, 0, 0, 0);
  __cudaRegisterFunction(handle, &missing_stub, 0, "missing", -1, 0, 0, 0, 0, 0);
  __cudaRegisterVar(handle, &factor_shadow, 0, "factor", 0, 4, 1, 0);
  __cudaRegisterVar(handle, &counter_shadow, 0, "counter", 0, 4, 0, 1);
  __cudaRegisterManagedVar(handle, &managed, 0, "shared_with_host", 0, 4, 0, 1);
  __cudaRegisterFatBinaryEnd(handle);

  // Devices.
  int n, d = -1, v;
  OK(cudaGetDeviceCount(&n));
  CHECK(n >= 1);
  OK(cudaGetDevice(&d));
  CHECK(d == 0);
  CHECK(cudaSetDevice(n) == 101 && cudaGetLastError() == 101 && cudaGetLastError() == 0);
  CHECK(!strcmp(cudaGetErrorName(101), "cudaErrorInvalidDevice") && !strcmp(cudaGetErrorString(9), "invalid configuration argument"));
  OK(cudaRuntimeGetVersion(&v));
  CHECK(v == VERSION);
  unsigned char properties[1032];
  memset(properties, 0xee, sizeof properties);
  if (VERSION >= 13000) {
    OK(cudaGetDeviceProperties(properties, 0));
    CHECK(properties[1008] == 0xee);
    int major, minor, warp, cooperative, attribute;
    memcpy(&warp, properties + 308, 4), memcpy(&major, properties + 360, 4), memcpy(&minor, properties + 364, 4);
    memcpy(&cooperative, properties + 668, 4);
    OK(cudaDeviceGetAttribute(&attribute, 75, 0));
    CHECK(warp == 32 && major == attribute && cooperative == 1);
    OK(cudaDeviceGetAttribute(&attribute, 76, 0));
    CHECK(minor == attribute && strstr((char *)properties, "Handloom"));
  } else {
    CHECK(cudaGetDeviceProperties(properties, 0) == 801 && cudaGetLastError() == 801);
  }

  // Memory, a launch, and variables.
  enum { N = 1000 };
  float x[N], y[N], two = 2;
  for (int i = 0; i < N; i++) x[i] = (float)i;
  float *p = 0;
  void *nothing = &n;
  OK(cudaMalloc(&nothing, 0));
  CHECK(nothing == 0);
  OK(cudaFree(0));
  OK(cudaMalloc((void **)&p, sizeof x));
  OK(cudaMemcpy(p, x, sizeof x, 1));
  OK(cudaMemcpyToSymbol(&factor_shadow, &two, 4, 0, 1));
  unsigned count = N;
  void *args[] = {&p, &count};
  dim3 grid = {(N + 127) / 128, 1, 1}, block = {128, 1, 1};
  OK(__cudaPushCallConfiguration(grid, block, 0, 0));
  OK(stub(&scale_stub, args));
  OK(cudaLaunchKernel(&scale_stub, grid, block, args, 0, 0));
  OK(cudaMemcpy(y, p, sizeof y, 4));
  for (int i = 0; i < N; i++) CHECK(y[i] == 4 * x[i]);
  unsigned counter;
  size_t size;
  OK(cudaMemcpyFromSymbol(&counter, &counter_shadow, 4, 0, 2));
  CHECK(counter == 5 + 2 * N);
  OK(cudaGetSymbolSize(&size, &counter_shadow));
  CHECK(size == 4);
  CHECK(cudaMemcpyFromSymbol(&counter, &counter_shadow, 4, 1, 2) == 1 && cudaGetLastError() == 1);
  CHECK(cudaMemcpyToSymbol(&scale_stub, &two, 4, 0, 1) == 13 && cudaGetLastError() == 13);
  CHECK(__cudaInitModule(handle) == 1 && managed && *(unsigned *)managed == 7);
  dim3 one = {1, 1, 1};
  OK(cudaLaunchKernel(&bump_stub, one, block, 0, 0, 0));
  OK(cudaDeviceSynchronize());
  CHECK(*(unsigned *)managed == 7 + 128);
  struct { int type, device; void *dp, *hp; uint64_t rest[8]; } attributes;
  OK(cudaPointerGetAttributes(&attributes, p + 3));
  CHECK(attributes.type == 2 && attributes.device == 0 && attributes.dp == p + 3);
  OK(cudaPointerGetAttributes(&attributes, x));
  CHECK(attributes.type == 0 && attributes.dp == 0);
  unsigned char function[144];
  OK(cudaFuncGetAttributes(function, &scale_stub));
  int target;
  memcpy(&target, function + 32, 4);
  CHECK(target == 80);
  // Rows: the first 3 of 4 bytes.
  OK(cudaMemset(p, 0xab, 64));
  OK(cudaMemcpy2D(y, 3, p, 4, 3, 5, 2));
  CHECK(((unsigned char *)y)[14] == 0xab);
  CHECK(cudaMemcpy2D(y, 2, p, 4, 3, 5, 2) == 12 && cudaGetLastError() == 12);
  CHECK(cudaMemcpy(y, p, 4, 9) == 21 && cudaGetLastError() == 21);

  // A graph that a stream captured.
  stream_t stream;
  void *graph, *exec;
  OK(cudaStreamCreate(&stream));
  OK(cudaMemcpy(p, x, sizeof x, 1));
  OK(cudaStreamBeginCapture(stream, 0));
  OK(cudaLaunchKernel(&scale_stub, grid, block, args, 0, stream));
  OK(cudaMemcpyAsync(y, p, sizeof y, 2, stream));
  OK(cudaStreamEndCapture(stream, &graph));
  size_t nodes;
  OK(cudaGraphGetNodes(graph, 0, &nodes));
  CHECK(nodes == 2);
  OK(cudaGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < 3; i++) OK(cudaGraphLaunch(exec, stream));
  OK(cudaStreamSynchronize(stream));
  for (int i = 0; i < N; i++) CHECK(y[i] == 8 * x[i]);
  OK(cudaGraphExecDestroy(exec));
  // A capture that goes on in the same graph.
  void *again;
  OK(cudaStreamBeginCaptureToGraph(stream, graph, 0, 0, 0, 0));
  OK(cudaMemcpyAsync(y, p, sizeof y, 2, stream));
  OK(cudaStreamEndCapture(stream, &again));
  OK(cudaGraphGetNodes(graph, 0, &nodes));
  CHECK(again == graph && nodes == 3);
  OK(cudaGraphDestroy(graph));

  // Events and memory of pools for other processes.
  struct { int alloc_type, handle_types, location_type, location; void *security; size_t max_size; char rest[56]; } pool_props = {1, 1, 1, 0};
  handle64 name;
  void *event, *same, *pool, *theirs, *piece, *opened;
  int file;
  OK(cudaEventCreateWithFlags(&event, 6));
  OK(cudaIpcGetEventHandle(&name, event));
  OK(cudaIpcOpenEventHandle(&same, name));
  OK(cudaEventRecord(event, stream));
  OK(cudaEventSynchronize(same));
  OK(cudaMemPoolCreate(&pool, &pool_props));
  OK(cudaMallocFromPoolAsync(&piece, 64, pool, stream));
  OK(cudaMemPoolExportToShareableHandle(&file, pool, 1, 0));
  OK(cudaMemPoolImportFromShareableHandle(&theirs, (void *)(intptr_t)file, 1, 0));
  OK(cudaMemPoolExportPointer(&name, piece));
  CHECK(cudaMemPoolExportPointer(&name, p) == 1 && cudaGetLastError() == 1);
  CHECK(cudaMemPoolImportPointer(&opened, theirs, &name) == 201 && cudaGetLastError() == 201); // it is this process
  OK(cudaStreamDestroy(stream));
#if VERSION >= 13000
  int sum = 0;
  unsigned can;
  OK(cudaDeviceGetHostAtomicCapabilities(&can, &sum, 1, 0));
  CHECK(can == 31);
  CHECK(cudaDeviceGetP2PAtomicCapabilities(&can, &sum, 1, 0, 0) == 101 && cudaGetLastError() == 101);
#endif

  // A graph built by hand, with memory of its own: what its nodes were told is told back.
  struct {
    int alloc_type, handle_types, location_type, location;
    void *security;
    size_t max_size;
    char rest[56];
    const void *access;
    size_t accesses, bytes;
    float *address;
  } alloc = {1, 0, 1, 0, 0, 0, {0}, 0, 0, sizeof x, 0};
  struct { void *func; dim3 grid, block; unsigned shared; void **args, **extra; } launch = {&scale_stub, grid, block, 0, args, 0}, told;
  struct { void *dst; size_t pitch; unsigned value, element; size_t width, height; } set = {0, 0, 0, 4, N, 1}, told_set;
  struct { void *array; size_t x, y, z; void *ptr; size_t pitch, xsize, ysize; } sides[2];
  struct { typeof(sides[0]) src, dst; size_t width, height, depth; int kind; } told_copy;
  void *node[5];
  uint64_t bytes;
  unsigned on;
  OK(cudaStreamCreate(&stream));
  OK(cudaGraphCreate(&graph, 0));
  OK(cudaGraphAddMemAllocNode(&node[0], graph, 0, 0, &alloc));
  set.dst = alloc.address;
  args[0] = &alloc.address;
  OK(cudaGraphAddMemsetNode(&node[1], graph, &node[0], 1, &set));
  OK(cudaGraphAddKernelNode(&node[2], graph, &node[1], 1, &launch));
  OK(cudaGraphAddMemcpyNode1D(&node[3], graph, &node[2], 1, y, alloc.address, sizeof y, 2));
  OK(cudaGraphAddMemFreeNode(&node[4], graph, &node[3], 1, alloc.address));
  OK(cudaGraphKernelNodeGetParams(node[2], &told));
  CHECK(told.func == &scale_stub && told.grid.x == grid.x && told.block.x == 128 && *(float **)told.args[0] == alloc.address);
  CHECK(*(unsigned *)told.args[1] == N);
  OK(cudaGraphMemsetNodeGetParams(node[1], &told_set));
  CHECK(told_set.dst == alloc.address && told_set.width == N && told_set.element == 4);
  OK(cudaGraphMemcpyNodeGetParams(node[3], &told_copy));
  CHECK(told_copy.src.ptr == alloc.address && told_copy.dst.ptr == y && told_copy.width == sizeof y && told_copy.kind == 4);
  OK(cudaDeviceGetGraphMemAttribute(0, 0, &bytes));
  CHECK(bytes == sizeof x);
  OK(cudaGraphInstantiate(&exec, graph, 0));
  y[0] = 1;
  OK(cudaGraphLaunch(exec, stream));
  OK(cudaStreamSynchronize(stream));
  CHECK(y[0] == 0 && y[N - 1] == 0);
  OK(cudaGraphNodeSetEnabled(exec, node[3], 0));
  OK(cudaGraphNodeGetEnabled(exec, node[3], &on));
  CHECK(on == 0);
  y[0] = 5;
  OK(cudaGraphLaunch(exec, stream));
  OK(cudaStreamSynchronize(stream));
  CHECK(y[0] == 5);
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphDestroy(graph));

  // The same by the structure of any node, and a batch of copies, with the signatures of the version.
  struct {
    int kind, reserved[3];
    union {
      long long words[29];
      typeof(launch) kernel;
      struct { int flags, reserved; void *context; typeof(told_copy) copy; } copy;
      typeof(set) fill;
    };
    long long end;
  } any = {.kind = 2}, told_any;
  args[0] = &p;
  set.dst = p;
  set.value = 7;
  any.fill = set;
  OK(cudaGraphCreate(&graph, 0));
  OK(ADD_NODE(&node[0], graph, 0, 0, &any));
  memset(&any, 0, sizeof any);
  any.kernel = launch;
  any.kind = 0;
  OK(ADD_NODE(&node[1], graph, 0, 0, &any));
  OK(cudaGraphDestroyNode(node[1]));
  any.kernel.func = &missing_stub;
  CHECK(ADD_NODE(&node[1], graph, 0, 0, &any) == 98 && cudaGetLastError() == 98);
  memset(&any, 0, sizeof any);
  any.kind = 1;
  told_copy.src.ptr = p;
  any.copy.copy = told_copy;
  OK(ADD_NODE(&node[1], graph, &node[0], 1, &any));
  any.copy.copy.dst.ptr = 0;
  CHECK(ADD_NODE(&node[2], graph, &node[0], 1, &any) == 1 && cudaGetLastError() == 1);
  OK(cudaGraphInstantiate(&exec, graph, 0));
  OK(cudaGraphLaunch(exec, stream));
  OK(cudaStreamSynchronize(stream));
  CHECK(!memcmp(&y[N - 1], &(unsigned){7}, 4));
  any.kind = 2;
  memset(any.words, 0, sizeof any.words);
  set.value = 9;
  any.fill = set;
  OK(cudaGraphExecNodeSetParams(exec, node[0], &any));
  OK(cudaGraphLaunch(exec, stream));
  OK(cudaStreamSynchronize(stream));
  CHECK(!memcmp(&y[0], &(unsigned){9}, 4));
  OK(cudaGraphExecDestroy(exec));
#if VERSION >= 13000
  OK(cudaGraphNodeGetParams(node[1], &told_any));
  CHECK(told_any.kind == 1 && told_any.copy.copy.src.ptr == p && told_any.copy.copy.dst.ptr == y);
#endif
  (void)told_any;
  OK(cudaGraphDestroy(graph));
  struct { int order, from[2], to[2]; unsigned flags; } said = {1, {0}, {0}, 0};
  void *to[2] = {p, p + 8};
  const void *from[2] = {y + 16, y + 32};
  size_t sizes[2] = {16, 32}, first = 0;
  y[16] = 3.5f;
  OK(COPIES(to, from, sizes, 2, &said, &first, 1, stream));
  OK(cudaStreamSynchronize(stream));
  OK(cudaMemcpy(y, p, 4, 2));
  CHECK(y[0] == 3.5f);
  OK(cudaStreamDestroy(stream));

  CHECK(!conditions((unsigned *)p) && !arrays((unsigned char *)p));

  // What is wrong.
  dim3 empty = {0, 1, 1}, large = {2048, 1, 1};
  CHECK(cudaLaunchKernel(&scale_stub, empty, block, args, 0, 0) == 9 && cudaGetLastError() == 9);
  CHECK(cudaLaunchKernel(&scale_stub, one, large, args, 0, 0) == 9 && cudaGetLastError() == 9);
  CHECK(cudaLaunchKernel(&missing_stub, one, one, 0, 0, 0) == 98 && cudaGetLastError() == 98);
  CHECK(cudaLaunchKernel(&count, one, one, 0, 0, 0) == 98 && cudaGetLastError() == 98);
  CHECK(cudaLaunchKernel(&refused_stub, one, one, 0, 0, 0) == 209 && cudaGetLastError() == 209);
  CHECK(cudaArrayGetPlane(&nothing, 0, 1) == 801 && cudaGetLastError() == 801);
  CHECK(cudaMalloc(0, 4) == 1 && cudaGetLastError() == 1);
  CHECK(__cudaPopCallConfiguration(&one, &block, &size, &stream) == 52 && cudaGetLastError() == 52);
  CHECK(cudaMalloc(&nothing, (size_t)1 << 50) == 2 && cudaGetLastError() == 2);
  // A fault is told at the next call that waits, and stays.
  uint64_t address = 64;
  void *wild[] = {&address};
  dim3 single = {1, 1, 1};
  OK(cudaLaunchKernel(&wild_stub, single, single, wild, 0, 0));
  CHECK(cudaDeviceSynchronize() == 700);
  CHECK(cudaMemcpy(y, p, 4, 2) == 700 && cudaGetLastError() == 700 && cudaGetLastError() == 700);
  __cudaUnregisterFatBinary(handle);
  puts("ok");
  return 0;
}
