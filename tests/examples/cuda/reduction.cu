// The sum of integers in two ways: shared memory and a tree, and shuffles within a warp; both end in an atomic add.
#include "check.h"

#include <vector>

__global__ void by_tree(const int *x, size_t n, unsigned long long *sum) {
    extern __shared__ long long part[];
    long long mine = 0;
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n; i += size_t(blockDim.x) * gridDim.x) mine += x[i];
    part[threadIdx.x] = mine;
    __syncthreads();
    for (unsigned s = blockDim.x / 2; s > 0; s /= 2) {
        if (threadIdx.x < s) part[threadIdx.x] += part[threadIdx.x + s];
        __syncthreads();
    }
    if (threadIdx.x == 0) atomicAdd(sum, (unsigned long long)part[0]);
}

__global__ void by_shuffles(const int *x, size_t n, unsigned long long *sum) {
    long long mine = 0;
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n; i += size_t(blockDim.x) * gridDim.x) mine += x[i];
    for (int distance = 16; distance > 0; distance /= 2) mine += __shfl_down_sync(0xffffffffu, mine, distance);
    if (threadIdx.x % 32 == 0) atomicAdd(sum, (unsigned long long)mine);
}

int main() {
    const size_t n = 777777;
    std::vector<int> x(n);
    Numbers numbers{2};
    long long wanted = 0;
    for (auto &v : x) {
        v = int(numbers.next());
        if (numbers.next() % 2) v = -v;
        wanted += v;
    }
    int *dx;
    unsigned long long *dsum, sums[2];
    CHECK(cudaMalloc(&dx, n * sizeof(int)));
    CHECK(cudaMalloc(&dsum, sizeof sums));
    CHECK(cudaMemcpy(dx, x.data(), n * sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaMemset(dsum, 0, sizeof sums));
    by_tree<<<48, 256, 256 * sizeof(long long)>>>(dx, n, dsum);
    by_shuffles<<<48, 256>>>(dx, n, dsum + 1);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(sums, dsum, sizeof sums, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 2; i++) {
        if ((long long)sums[i] != wanted) {
            std::fprintf(stderr, "sum %d is %lld, expected %lld\n", i, (long long)sums[i], wanted);
            return 1;
        }
    }
    CHECK(cudaFree(dx));
    CHECK(cudaFree(dsum));
    std::printf("reduction: both sums are %lld\n", wanted);
}
