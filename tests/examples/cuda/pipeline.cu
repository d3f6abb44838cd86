// Chunks go through two streams: copy in, work, copy out; events order what crosses from one stream to the other, and tell the time.
#include "check.h"

__global__ void step(float *x, int n, float by) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = x[i] * 0.5f + by;
}

static int finished;

static void CUDART_CB chunk_done(void *argument) { finished += *static_cast<int *>(argument); }

int main() {
    const int chunks = 8, n = 50000;
    float *host, *device;
    CHECK(cudaMallocHost(&host, chunks * n * sizeof(float)));
    CHECK(cudaMalloc(&device, chunks * n * sizeof(float)));
    for (int i = 0; i < chunks * n; i++) host[i] = float(i % 1024);
    cudaStream_t in, out;
    CHECK(cudaStreamCreateWithFlags(&in, cudaStreamNonBlocking));
    CHECK(cudaStreamCreate(&out));
    cudaEvent_t start, end, ready[chunks];
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&end));
    static int one = 1;
    CHECK(cudaEventRecord(start, in));
    for (int c = 0; c < chunks; c++) {
        float *h = host + c * n, *d = device + c * n;
        CHECK(cudaEventCreateWithFlags(&ready[c], cudaEventDisableTiming));
        CHECK(cudaMemcpyAsync(d, h, n * sizeof(float), cudaMemcpyHostToDevice, in));
        step<<<(n + 127) / 128, 128, 0, in>>>(d, n, float(c));
        CHECK(cudaEventRecord(ready[c], in));
        CHECK(cudaStreamWaitEvent(out, ready[c], 0));
        step<<<(n + 127) / 128, 128, 0, out>>>(d, n, 1.0f);
        CHECK(cudaMemcpyAsync(h, d, n * sizeof(float), cudaMemcpyDeviceToHost, out));
        CHECK(cudaLaunchHostFunc(out, chunk_done, &one));
    }
    CHECK(cudaEventRecord(end, out));
    CHECK(cudaEventSynchronize(end));
    CHECK(cudaStreamSynchronize(out));
    CHECK(cudaEventQuery(end));
    float milliseconds = -1;
    CHECK(cudaEventElapsedTime(&milliseconds, start, end));
    if (!(milliseconds > 0)) {
        std::fprintf(stderr, "the events are %g ms apart\n", milliseconds);
        return 1;
    }
    expect_equal("finished chunks", 0, finished, chunks);
    for (int i = 0; i < chunks * n; i++) expect_equal("host", i, host[i], (float(i % 1024) * 0.5f + float(i / n)) * 0.5f + 1.0f);
    for (auto &event : ready) CHECK(cudaEventDestroy(event));
    CHECK(cudaEventDestroy(start));
    CHECK(cudaEventDestroy(end));
    CHECK(cudaStreamDestroy(in));
    CHECK(cudaStreamDestroy(out));
    CHECK(cudaFree(device));
    CHECK(cudaFreeHost(host));
    std::printf("pipeline: %d chunks went through two streams\n", chunks);
}
