// targets: sm_80
// options: --relocatable-device-code=true
// headers: cuda
// Launches of the device: recursion, tail launches, streams and events, limits and errors.

// Sorts x[0..n): what is small by itself, else two parts that are sorted beside each other.
extern "C" __global__ void quicksort(int *x, int n) {
    while (n > 8) {
        int pivot = x[n / 2], i = 0, j = n - 1;
        while (i <= j) {
            while (x[i] < pivot) i++;
            while (x[j] > pivot) j--;
            if (i <= j) {
                int t = x[i];
                x[i++] = x[j];
                x[j--] = t;
            }
        }
        quicksort<<<1, 1, 0, cudaStreamFireAndForget>>>(x, j + 1);
        quicksort<<<1, 1, 0, cudaStreamFireAndForget>>>(x + i, n - i);
        return;
    }
    for (int i = 1; i < n; i++)
        for (int j = i; j > 0 && x[j] < x[j - 1]; j--) {
            int t = x[j];
            x[j] = x[j - 1];
            x[j - 1] = t;
        }
}

// sums[node] of a tree whose leaves are 32 numbers each: a node is summed up by a tail launch, after all below it.
__global__ void join(int *sums, int node) { sums[node] = sums[2 * node + 1] + sums[2 * node + 2]; }

extern "C" __global__ void sum_tree(const int *x, int n, int *sums, int node) {
    if (n > 32) {
        if (threadIdx.x == 0) {
            join<<<1, 1, 0, cudaStreamTailLaunch>>>(sums, node);
            sum_tree<<<1, 32>>>(x, n / 2, sums, 2 * node + 1);
            sum_tree<<<1, 32>>>(x + n / 2, n / 2, sums, 2 * node + 2);
        }
        return;
    }
    int v = x[threadIdx.x];
    for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
    if (threadIdx.x == 0) sums[node] = v;
}

// Each launch is the tail of the one before it: as many as wanted.
extern "C" __global__ void chain(int *p, int n) {
    p[0] += n;
    if (n > 1) chain<<<1, 1, 0, cudaStreamTailLaunch>>>(p, n - 1);
}

// How deep launches can be nested, and what the next one gets.
extern "C" __global__ void deep(int *p, int n) {
    p[0] = n;
    deep<<<1, 1>>>(p, n + 1);
    if (cudaPeekAtLastError() != cudaSuccess) {
        p[1] = cudaPeekAtLastError();
        p[2] = cudaGetLastError();
        p[3] = cudaGetLastError();
    }
}

__global__ void add(int *p, int n) { atomicAdd(p, n); }
__global__ void multiply(int *p, int n) { *p *= n; }

// How many launches may wait, and what the next one gets.
extern "C" __global__ void flood(int *p, int n) {
    p[1] = p[2] = 0;
    for (int i = 0; i < n; i++) {
        add<<<1, 1>>>(p, 1);
        cudaError_t e = cudaGetLastError();
        if (e == cudaSuccess) p[1]++;
        else p[2] = e;
    }
}

// Work in the order of streams and of an event between two of them.
extern "C" __global__ void streams(int *p, int *codes) {
    cudaStream_t a, b;
    cudaEvent_t e;
    codes[0] = cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking);
    codes[1] = cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking);
    codes[2] = cudaEventCreateWithFlags(&e, cudaEventDisableTiming);
    add<<<1, 1, 0, a>>>(p, 3);
    multiply<<<1, 1, 0, a>>>(p, 5);
    codes[3] = cudaEventRecord(e, a);
    codes[4] = cudaStreamWaitEvent(b, e, 0);
    add<<<1, 1, 0, b>>>(p, 7);
    multiply<<<1, 1, 0, b>>>(p, 2);
    codes[5] = cudaMemcpyAsync(p + 1, p, 4, cudaMemcpyDeviceToDevice, b);
    codes[6] = cudaMemsetAsync(p + 2, 0x11, 4, b);
    codes[7] = cudaEventDestroy(e);
    add<<<1, 1, 0, b>>>(p, 1);
    codes[8] = cudaStreamDestroy(a);
    // What is wrong.
    codes[9] = cudaStreamDestroy(a);
    codes[10] = cudaEventRecord(e, b);
    codes[11] = cudaStreamCreateWithFlags(&a, 0);
    codes[12] = cudaGetLastError();
    add<<<1, 2000>>>(p, 1000);
    codes[13] = cudaGetLastError();
    codes[14] = cudaEventCreateWithFlags(&e, 0);
    codes[15] = cudaMemcpyAsync(p + 1, p, 4, cudaMemcpyHostToDevice, b);
    codes[16] = cudaMemsetAsync(&e, 0, 4, b);
    codes[17] = cudaEventRecord(e, cudaStreamTailLaunch);
}

// What is told at once.
extern "C" __global__ void facts(int *codes) {
    int v = -1;
    codes[0] = cudaDeviceGetAttribute(&v, cudaDevAttrWarpSize, 0);
    codes[1] = v;
    codes[2] = cudaDeviceGetAttribute(&v, cudaDevAttrWarpSize, 99);
    size_t size = 0;
    codes[3] = cudaDeviceGetLimit(&size, cudaLimitDevRuntimePendingLaunchCount);
    codes[4] = size;
    codes[5] = cudaGetDevice(&v);
    codes[6] = v;
    codes[7] = cudaGetDeviceCount(&v);
    codes[8] = v;
    int *m = 0;
    codes[9] = cudaMalloc((void **)&m, 64);
    m[15] = 42;
    codes[10] = m[15];
    codes[11] = cudaFree(m);
    codes[12] = cudaFree((void *)codes);
    const char *name = cudaGetErrorName(cudaErrorInvalidValue);
    codes[13] = name[0] | name[9] << 8 | name[20] << 16 | name[21] << 24;
}
