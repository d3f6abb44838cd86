// One launch sums in two phases with a barrier of the whole grid between them (cooperative groups).
#include "check.h"

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <vector>

namespace cg = cooperative_groups;

__global__ void sum(const int *x, int n, int *parts, int *result) {
    cg::grid_group grid = cg::this_grid();
    cg::thread_block block = cg::this_thread_block();
    auto warp = cg::tiled_partition<32>(block);
    __shared__ int mine[32];
    int total = 0;
    for (unsigned long long i = grid.thread_rank(); i < (unsigned)n; i += grid.size()) total += x[i];
    total = cg::reduce(warp, total, cg::plus<int>());
    if (warp.thread_rank() == 0) mine[warp.meta_group_rank()] = total;
    block.sync();
    if (block.thread_rank() == 0) {
        int here = 0;
        for (unsigned i = 0; i < warp.meta_group_size(); i++) here += mine[i];
        parts[blockIdx.x] = here;
    }
    grid.sync();
    if (grid.thread_rank() == 0) {
        int all = 0;
        for (unsigned i = 0; i < gridDim.x; i++) all += parts[i];
        *result = all;
    }
}

int main() {
    int device, cooperative;
    CHECK(cudaGetDevice(&device));
    CHECK(cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, device));
    if (!cooperative) {
        std::fprintf(stderr, "the device has no cooperative launches\n");
        return 1;
    }
    int blocks_here = 0, processors = 0;
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks_here, sum, 128, 0));
    CHECK(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
    int blocks = blocks_here * processors;
    if (blocks > 12) blocks = 12;
    int n = 123456;
    std::vector<int> x(n);
    Numbers numbers{5};
    int wanted = 0;
    for (auto &v : x) {
        v = int(numbers.next() % 1000);
        wanted += v;
    }
    int *dx, *parts, *result;
    CHECK(cudaMalloc(&dx, n * sizeof(int)));
    CHECK(cudaMalloc(&parts, blocks * sizeof(int)));
    CHECK(cudaMallocManaged(&result, sizeof(int)));
    *result = -1;
    CHECK(cudaMemcpy(dx, x.data(), n * sizeof(int), cudaMemcpyHostToDevice));
    void *arguments[] = {&dx, &n, &parts, &result};
    CHECK(cudaLaunchCooperativeKernel((const void *)sum, dim3(blocks), dim3(128), arguments, 0, nullptr));
    CHECK(cudaDeviceSynchronize());
    expect_equal("sum", 0, *result, wanted);
    CHECK(cudaFree(dx));
    CHECK(cudaFree(parts));
    CHECK(cudaFree(result));
    std::printf("grid_sum: %d blocks agree on %d\n", blocks, wanted);
}
