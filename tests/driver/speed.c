// How long calls take that clients repeat, launches, copies, and the load of a module. Prints, and checks no time: figures depend on the machine.
// speed [FILE.ptx]. `ci/calls` builds and runs it.
#include "driver.h"
#include "fat_binary.h"
#include <time.h>

CUresult cuPointerGetAttributes(unsigned n, int *attributes, void **data, CUdeviceptr address);
CUresult cuCtxGetDevice(CUdevice *device);

int __cudaGetKernel(void **kernel, const void *stub);
int __cudaLaunchKernel(void *kernel, dim3 grid, dim3 block, void **args, size_t shared, CUstream stream);
int cudaGetDevice(int *device);
int cudaSetDevice(int device);
int cudaGetLastError(void);
int cudaPeekAtLastError(void);
int cudaStreamQuery(CUstream stream);
int cudaStreamSynchronize(CUstream stream);
int cudaDeviceSynchronize(void);
int cudaPointerGetAttributes(void *to, const void *address);

enum { TURNS = 5, LAUNCHES = 100000 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static int above(const void *a, const void *b) { return *(const double *)a > *(const double *)b ? 1 : -1; }

static double median(double *times) {
    qsort(times, TURNS, sizeof *times, above);
    return times[TURNS / 2];
}

// Nanoseconds of one call, the median of some turns of many.
#define TIME(what, n, call)                                              \
    do {                                                                 \
        double turns[TURNS];                                             \
        for (int turn = 0; turn < TURNS; turn++) {                       \
            double start = now();                                        \
            for (int i = 0; i < (n); i++) OK(call);                      \
            turns[turn] = (now() - start) / (n) * 1e9;                   \
        }                                                                \
        printf("%-44s %8.1f ns\n", what, median(turns));                 \
    } while (0)

// What nvcc makes of a kernel without parameters, and of `<<<>>>` at its place.
static void *kernel_of_stub;
static void stub(void) {
    dim3 grid, block;
    size_t shared;
    CUstream stream;
    OK(__cudaPopCallConfiguration(&grid, &block, &shared, &stream));
    if (!kernel_of_stub) OK(__cudaGetKernel(&kernel_of_stub, (void *)stub));
    OK(__cudaLaunchKernel(kernel_of_stub, grid, block, 0, shared, stream));
}

static void register_kernels(void) {
    static struct { int magic, version; void *data, *more; } wrapper = {0x466243b1, 1, 0, 0};
    wrapper.data = container(KERNELS, sizeof KERNELS);
    void **handle = __cudaRegisterFatBinary(&wrapper);
    __cudaRegisterFunction(handle, (void *)stub, (char *)"empty", "empty", -1, 0, 0, 0, 0, 0);
    __cudaRegisterFatBinaryEnd(handle);
}

static void launch_stub(CUstream stream) {
    dim3 one = {1, 1, 1}, warp = {32, 1, 1};
    OK(__cudaPushCallConfiguration(one, warp, 0, stream));
    stub();
}

// 100,000 launches and one call that waits for them.
#define LAUNCH(what, launch, wait)                                                                                     \
    do {                                                                                                               \
        double given[TURNS], all[TURNS];                                                                               \
        for (int turn = 0; turn < TURNS; turn++) {                                                                     \
            double start = now();                                                                                      \
            for (int i = 0; i < LAUNCHES; i++) launch;                                                                 \
            given[turn] = (now() - start) / LAUNCHES * 1e9;                                                            \
            OK(wait);                                                                                                  \
            all[turn] = (now() - start) / LAUNCHES * 1e9;                                                              \
        }                                                                                                              \
        printf("%-44s %8.1f ns to give, %.1f ns in all\n", what, median(given), median(all));                          \
    } while (0)

static void copies(void) {
    for (size_t bytes = 1 << 20; bytes <= (64 << 20); bytes *= 8) {
        CUdeviceptr x;
        // Memory of all three begins with a page.
        char *host = aligned_alloc(4096, bytes), *other = aligned_alloc(4096, bytes);
        memset(host, 1, bytes);
        memset(other, 1, bytes);
        OK(cuMemAlloc_v2(&x, bytes));
        OK(cuMemsetD8_v2(x, 1, bytes));
        int n = (int)((256 << 20) / bytes);
        double plain[TURNS], to[TURNS], from[TURNS];
        for (int turn = 0; turn < TURNS; turn++) {
            double start = now();
            for (int i = 0; i < n; i++) memcpy(other, host, bytes);
            double mid = now();
            for (int i = 0; i < n; i++) OK(cuMemcpyHtoD_v2(x, host, bytes));
            double late = now();
            for (int i = 0; i < n; i++) OK(cuMemcpyDtoH_v2(other, x, bytes));
            plain[turn] = mid - start, to[turn] = late - mid, from[turn] = now() - late;
        }
        double memcpys = median(plain);
        printf("copies of %2zu MiB%28s %8.2f of memcpy to the device, %.2f from it\n", bytes >> 20, "", memcpys / median(to), memcpys / median(from));
        OK(cuMemFree_v2(x));
        free(host);
        free(other);
    }
}

static void load(const char *file) {
    FILE *f = fopen(file, "rb");
    TRUE(f && !fseek(f, 0, SEEK_END));
    long n = ftell(f);
    rewind(f);
    char *text = calloc(1, (size_t)n + 1);
    TRUE(fread(text, 1, (size_t)n, f) == (size_t)n);
    fclose(f);
    double turns[TURNS];
    for (int turn = 0; turn < TURNS; turn++) {
        // A comment that is new each time, so that nothing known of the text helps.
        char *image = malloc((size_t)n + 32);
        sprintf(image + sprintf(image, "%s", text), "\n// %d\n", turn);
        CUmodule module;
        double start = now();
        OK(cuModuleLoadData(&module, image));
        turns[turn] = (now() - start) * 1e3;
        OK(cuModuleUnload(module));
        free(image);
    }
    printf("cuModuleLoadData of %7ld bytes%12s %8.2f ms\n", n, "", median(turns));
    free(text);
}

int main(int argc, char **argv) {
    CUcontext context;
    int value;
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    CUmodule module;
    CUfunction empty;
    CUdeviceptr x;
    CUstream stream;
    CUevent event;
    char attributes[64];
    int *host = malloc(sizeof *host), kind;
    OK(cuModuleLoadData(&module, KERNELS));
    OK(cuModuleGetFunction(&empty, module, "empty"));
    OK(cuStreamCreate(&stream, 1));
    OK(cuEventCreate(&event, 0));
    OK(cuMemAlloc_v2(&x, 1 << 20));
    OK(cuLaunchKernel(empty, 1, 1, 1, 32, 1, 1, 0, stream, 0, 0));
    OK(cuEventRecord(event, stream));
    OK(cuStreamSynchronize(stream));
    TIME("cuCtxGetCurrent", 1000000, cuCtxGetCurrent(&context));
    TIME("cuCtxSetCurrent", 1000000, cuCtxSetCurrent(context));
    TIME("cuCtxGetDevice", 1000000, cuCtxGetDevice(&value));
    TIME("cuDeviceGetAttribute", 1000000, cuDeviceGetAttribute(&value, 75, 0));
    TIME("cuFuncGetAttribute", 1000000, cuFuncGetAttribute(&value, 0, empty));
    TIME("cuModuleGetFunction", 1000000, cuModuleGetFunction(&empty, module, "empty"));
    TIME("cuPointerGetAttribute, device", 1000000, cuPointerGetAttribute(&kind, 2, x));
    TIME("cuStreamQuery", 1000000, cuStreamQuery(stream));
    TIME("cuStreamIsCapturing", 1000000, cuStreamIsCapturing(stream, &value));
    TIME("cuEventQuery", 1000000, cuEventQuery(event));
    TIME("cuStreamSynchronize, nothing to wait for", 1000000, cuStreamSynchronize(stream));
    TIME("cudaGetDevice", 1000000, cudaGetDevice(&value));
    TIME("cudaSetDevice", 1000000, cudaSetDevice(0));
    TIME("cudaGetLastError", 1000000, cudaGetLastError());
    TIME("cudaPeekAtLastError", 1000000, cudaPeekAtLastError());
    TIME("cudaStreamQuery", 1000000, cudaStreamQuery(stream));
    TIME("cudaPointerGetAttributes, device", 1000000, cudaPointerGetAttributes(attributes, (void *)(uintptr_t)x));
    TIME("cudaPointerGetAttributes, host", 1000000, cudaPointerGetAttributes(attributes, host));
    LAUNCH("cuLaunchKernel, an empty kernel", OK(cuLaunchKernel(empty, 1, 1, 1, 32, 1, 1, 0, stream, 0, 0)), cuStreamSynchronize(stream));
    register_kernels();
    LAUNCH("<<<>>>, an empty kernel", launch_stub(stream), cudaDeviceSynchronize());
    copies();
    if (argc > 1) load(argv[1]);
    return 0;
}
