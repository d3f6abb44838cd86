// Batches of copies, and what is said of managed memory and told back.
#include "driver.h"

enum { N = 64 };

typedef struct {
    int type, id;
} Place;
typedef struct {
    int order;
    Place from, to;
    unsigned flags;
} Attributes;
typedef struct {
    int type;
    CUdeviceptr ptr;
    size_t row, layer;
    Place hint;
} Operand;
typedef struct {
    Operand src, dst;
    size_t extent[3];
    int order;
    unsigned flags;
} Box;

CUresult cuMemcpyBatchAsync(CUdeviceptr *, CUdeviceptr *, size_t *, size_t, Attributes *, size_t *, size_t, size_t *, CUstream);
CUresult cuMemcpyBatchAsync_v2(CUdeviceptr *, CUdeviceptr *, size_t *, size_t, Attributes *, size_t *, size_t, CUstream);
CUresult cuMemcpy3DBatchAsync(size_t, Box *, size_t *, unsigned long long, CUstream);
CUresult cuMemcpy3DBatchAsync_v2(size_t, Box *, unsigned long long, CUstream);
CUresult cuMemcpyWithAttributesAsync(CUdeviceptr, CUdeviceptr, size_t, Attributes *, CUstream);
CUresult cuMemAdvise_v2(CUdeviceptr, size_t, int, Place);
CUresult cuMemAdvise(CUdeviceptr, size_t, int, int);
CUresult cuMemPrefetchAsync_v2(CUdeviceptr, size_t, Place, unsigned, CUstream);
CUresult cuMemPrefetchBatchAsync(CUdeviceptr *, size_t *, size_t, Place *, size_t *, size_t, unsigned long long, CUstream);
CUresult cuMemDiscardBatchAsync(CUdeviceptr *, size_t *, size_t, unsigned long long, CUstream);
CUresult cuMemRangeGetAttribute(void *, size_t, int, CUdeviceptr, size_t);
CUresult cuMemRangeGetAttributes(void **, size_t *, int *, size_t, CUdeviceptr, size_t);
CUresult cuMemGetMemPool(void **, Place *, int);
CUresult cuDeviceGetMemPool(void **, CUdevice);

static int attribute(int number, CUdeviceptr at, size_t bytes) {
    int value = -77;
    OK(cuMemRangeGetAttribute(&value, 4, number, at, bytes));
    return value;
}

int main(void) {
    CUcontext context;
    OK(cuInit(0));
    OK(cuCtxCreate_v2(&context, 0, 0));
    CUstream stream;
    OK(cuStreamCreate(&stream, 0));
    CUdeviceptr a, b;
    OK(cuMemAlloc_v2(&a, 4 * N));
    OK(cuMemAlloc_v2(&b, 4 * N));
    uint32_t from[N], to[N];
    for (int i = 0; i < N; i++) from[i] = i;

    // To the device, inside it, and back; the first attributes belong to two of the copies.
    OK(cuMemsetD32_v2(b, 9, N));
    OK(cuCtxSynchronize());
    CUdeviceptr dsts[3] = {a, a + 2 * N, a + 3 * N}, srcs[3] = {(CUdeviceptr)from, (CUdeviceptr)(from + N / 2), b};
    size_t sizes[3] = {2 * N, N, N}, firsts[2] = {0, 2}, fail = 7;
    Attributes said[2] = {{.order = 2}, {.order = 1, .flags = 1}};
    OK(cuMemcpyBatchAsync(dsts, srcs, sizes, 3, said, firsts, 2, &fail, stream));
    memset(from, 0xff, sizeof from);
    OK(cuMemcpyBatchAsync_v2((CUdeviceptr[]){(CUdeviceptr)to}, &a, (size_t[]){4 * N}, 1, said + 1, firsts, 1, stream));
    OK(cuStreamSynchronize(stream));
    for (int i = 0; i < N; i++) TRUE(to[i] == (i < 3 * N / 4 ? (uint32_t)i : 9u));
    // Nothing is copied if one is wrong, and it is told which.
    OK(cuMemsetD32_v2(a, 5, N));
    sizes[2] = 8 * N;
    EXPECT(1, cuMemcpyBatchAsync(dsts, srcs, sizes, 3, said, firsts, 2, &fail, stream));
    TRUE(fail == 2);
    OK(cuMemcpyDtoH_v2(to, a, 4 * N));
    TRUE(to[0] == 5);
    sizes[2] = N;
    fail = 7;
    EXPECT(1, cuMemcpyBatchAsync(dsts, srcs, sizes, 3, said, firsts, 2, &fail, 0));
    TRUE(fail == (size_t)-1);
    EXPECT(1, cuMemcpyBatchAsync(dsts, srcs, sizes, 0, said, firsts, 0, 0, stream));
    EXPECT(1, cuMemcpyBatchAsync(dsts, srcs, sizes, 3, said, (size_t[]){1, 2}, 2, 0, stream));
    EXPECT(1, cuMemcpyBatchAsync(dsts, srcs, sizes, 3, said, (size_t[]){0, 3}, 2, 0, stream));
    EXPECT(1, cuMemcpyBatchAsync(dsts, srcs, sizes, 3, said, (size_t[]){0, 0}, 2, 0, stream));
    said[0].order = 0;
    EXPECT(1, cuMemcpyBatchAsync(dsts, srcs, sizes, 3, said, firsts, 2, &fail, stream));
    TRUE(fail == 0);
    EXPECT(1, cuMemcpyWithAttributesAsync(a, b, 4, said, stream));
    OK(cuMemcpyWithAttributesAsync(a, b, 4, said + 1, 0));

    // Boxes: rows of 8 bytes out of rows of 16, packed; arrays there are none.
    for (int i = 0; i < N; i++) from[i] = i;
    OK(cuMemcpyHtoD_v2(a, from, sizeof from));
    Box boxes[2] = {
        {{1, a, 16, 4, {0}}, {1, b, 0, 0, {0}}, {8, 2, 3}, 1, 0},
        {{1, a + 8, 0, 0, {0}}, {1, b + 128, 0, 0, {0}}, {4, 1, 1}, 3, 0},
    };
    OK(cuMemcpy3DBatchAsync(2, boxes, &fail, 0, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuMemcpyDtoH_v2(to, b, sizeof to));
    for (int z = 0; z < 3; z++)
        for (int y = 0; y < 2; y++)
            for (int x = 0; x < 2; x++) TRUE(to[z * 4 + y * 2 + x] == (uint32_t)(z * 16 + y * 4 + x));
    TRUE(to[32] == 2);
    boxes[1].extent[2] = 0;
    EXPECT(1, cuMemcpy3DBatchAsync(2, boxes, &fail, 0, stream));
    TRUE(fail == 1);
    boxes[1].extent[2] = 1;
    boxes[1].src.type = 2;
    EXPECT(801, cuMemcpy3DBatchAsync_v2(2, boxes, 0, stream));
    boxes[0].src.row = 4;
    EXPECT(1, cuMemcpy3DBatchAsync_v2(1, boxes, 0, stream));

    // A batch that is captured is done when the graph is.
    CUgraph graph;
    CUgraphExec exec;
    said[1].order = 1;
    OK(cuStreamBeginCapture_v2(stream, 2));
    OK(cuMemcpyBatchAsync_v2(&a, &b, (size_t[]){4}, 1, said + 1, firsts, 1, stream));
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuGraphInstantiate_v2(&exec, graph, 0, 0, 0));
    OK(cuMemsetD32_v2(b, 1234, 1));
    OK(cuCtxSynchronize());
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuMemcpyDtoH_v2(to, a, 4));
    TRUE(to[0] == 1234);

    // Advice: told back for a range if it was given for all of it.
    CUdeviceptr m;
    size_t bytes = 64 << 10;
    Place here = {1, 0}, host = {2, 0}, nowhere = {1, 9};
    OK(cuMemAllocManaged(&m, bytes, 1));
    TRUE(attribute(1, m, bytes) == 0 && attribute(2, m, bytes) == -2 && attribute(4, m, bytes) == -2 && attribute(5, m, bytes) == 0);
    OK(cuMemAdvise_v2(m, bytes, 1, here));
    OK(cuMemAdvise_v2(m, bytes, 3, here));
    OK(cuMemAdvise(m, 4096, 3, -1));
    OK(cuMemAdvise_v2(m, bytes, 5, here));
    OK(cuMemPrefetchAsync_v2(m, bytes, host, 0, stream));
    TRUE(attribute(1, m, bytes) == 1 && attribute(2, m, bytes) == -2 && attribute(2, m, 4096) == -1 && attribute(2, m + 8192, 4096) == 0);
    TRUE(attribute(4, m, bytes) == -1 && attribute(7, m, bytes) == 2 && attribute(5, m + 8192, 8) == 1 && attribute(6, m + 8192, 8) == 0);
    int users[3], mostly;
    OK(cuMemRangeGetAttribute(users, sizeof users, 3, m, bytes));
    TRUE(users[0] == 0 && users[1] == -2 && users[2] == -2);
    OK(cuMemAdvise_v2(m, 8192, 6, here));
    OK(cuMemRangeGetAttributes((void *[]){users, &mostly}, (size_t[]){4, 4}, (int[]){3, 1}, 2, m, bytes));
    TRUE(users[0] == -2 && mostly == 1);
    OK(cuMemAdvise_v2(m, bytes, 2, here));
    TRUE(attribute(1, m, bytes) == 0);
    OK(cuMemPrefetchBatchAsync((CUdeviceptr[]){m, m + 8192}, (size_t[]){8192, 8192}, 2, (Place[]){here, host}, (size_t[]){0, 1}, 2, 0, stream));
    TRUE(attribute(4, m, 8192) == 0 && attribute(4, m + 8192, 8192) == -1);
    OK(cuMemDiscardBatchAsync(&m, (size_t[]){4096}, 1, 0, stream));
    EXPECT(101, cuMemAdvise_v2(m, bytes, 3, nowhere));
    EXPECT(101, cuMemPrefetchAsync_v2(m, bytes, nowhere, 0, stream));
    EXPECT(1, cuMemAdvise_v2(m, bytes, 9, here));
    EXPECT(1, cuMemAdvise_v2(m, bytes + 1, 1, here));
    EXPECT(1, cuMemRangeGetAttribute(users, 8, 1, m, bytes));
    EXPECT(1, cuMemRangeGetAttribute(users, 4, 9, m, bytes));
    EXPECT(1, cuMemRangeGetAttribute(0, 4, 1, m, bytes));
    OK(cuMemFree_v2(m));
    EXPECT(1, cuMemRangeGetAttribute(users, 4, 1, m, bytes));

    void *pool, *known;
    OK(cuDeviceGetMemPool(&known, 0));
    OK(cuMemGetMemPool(&pool, &here, 1));
    TRUE(pool == known);
    EXPECT(801, cuMemGetMemPool(&pool, &host, 1));
    OK(cuCtxDestroy_v2(context));
    puts("ok");
    return 0;
}
