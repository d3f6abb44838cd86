// Counts of bytes: atomics in shared memory for each block, then in a `__device__` variable, which is read back by its symbol.
#include "check.h"

#include <vector>

__device__ unsigned counts[256];

__global__ void count(const unsigned char *x, size_t n) {
    __shared__ unsigned mine[256];
    for (unsigned i = threadIdx.x; i < 256; i += blockDim.x) mine[i] = 0;
    __syncthreads();
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n; i += size_t(blockDim.x) * gridDim.x) atomicAdd(&mine[x[i]], 1u);
    __syncthreads();
    for (unsigned i = threadIdx.x; i < 256; i += blockDim.x) {
        if (mine[i]) atomicAdd(&counts[i], mine[i]);
    }
}

int main() {
    const size_t n = 500009;
    std::vector<unsigned char> x(n);
    Numbers numbers{4};
    unsigned wanted[256] = {}, found[256];
    for (auto &v : x) {
        v = (unsigned char)(numbers.next() & numbers.next());
        wanted[v]++;
    }
    unsigned char *dx;
    CHECK(cudaMalloc(&dx, n));
    CHECK(cudaMemcpy(dx, x.data(), n, cudaMemcpyDefault));
    void *where;
    size_t size;
    CHECK(cudaGetSymbolAddress(&where, counts));
    CHECK(cudaGetSymbolSize(&size, counts));
    expect_equal("size of counts", 0, size, sizeof found);
    CHECK(cudaMemset(where, 0, size));
    count<<<20, 192>>>(dx, n);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpyFromSymbol(found, counts, sizeof found));
    for (int i = 0; i < 256; i++) expect_equal("counts", i, found[i], wanted[i]);
    CHECK(cudaFree(dx));
    std::printf("histogram: %zu bytes are counted\n", n);
}
