// Work of a stream is captured once as a graph and launched many times.
#include "check.h"

#include <vector>

__global__ void scale(float *x, int n, float by) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= by;
}

__global__ void increment(float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += 1.0f;
}

int main() {
    const int n = 3000, launches = 10;
    std::vector<float> start(n), end(n);
    for (int i = 0; i < n; i++) start[i] = float(i % 64);
    float *x;
    CHECK(cudaMalloc(&x, n * sizeof(float)));
    CHECK(cudaMemcpy(x, start.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    cudaGraph_t graph;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    scale<<<(n + 255) / 256, 256, 0, stream>>>(x, n, 0.5f);
    increment<<<(n + 255) / 256, 256, 0, stream>>>(x, n);
    CHECK(cudaMemcpyAsync(end.data(), x, n * sizeof(float), cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamEndCapture(stream, &graph));
    size_t nodes = 0;
    CHECK(cudaGraphGetNodes(graph, nullptr, &nodes));
    expect_equal("nodes", 0, nodes, size_t(3));
    cudaGraphExec_t exec;
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < launches; i++) CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    for (int i = 0; i < n; i++) {
        float wanted = start[i];
        for (int l = 0; l < launches; l++) wanted = wanted * 0.5f + 1.0f;
        expect_equal("end", i, end[i], wanted);
    }
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaStreamDestroy(stream));
    CHECK(cudaFree(x));
    std::printf("graph: %zu nodes, launched %d times\n", nodes, launches);
}
