// C = A B by tiles of 16 x 16 in shared memory, with sizes that tiles do not divide. A constant scales the result.
#include "check.h"

#include <vector>

__constant__ float scale;

__global__ void product(const float *a, const float *b, float *c, int m, int k, int n) {
    __shared__ float ta[16][16], tb[16][17];
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    float sum = 0;
    for (int t = 0; t < k; t += 16) {
        ta[threadIdx.y][threadIdx.x] = row < m && t + threadIdx.x < k ? a[row * k + t + threadIdx.x] : 0.0f;
        tb[threadIdx.y][threadIdx.x] = column < n && t + threadIdx.y < k ? b[(t + threadIdx.y) * n + column] : 0.0f;
        __syncthreads();
        for (int i = 0; i < 16; i++) sum = fmaf(ta[threadIdx.y][i], tb[i][threadIdx.x], sum);
        __syncthreads();
    }
    if (row < m && column < n) c[row * n + column] = scale * sum;
}

int main() {
    const int m = 133, k = 210, n = 95;
    std::vector<float> a(m * k), b(k * n), c(m * n, -1.0f);
    Numbers numbers{3};
    for (auto &v : a) v = numbers.small();
    for (auto &v : b) v = numbers.small();
    const float two = 2.0f;
    CHECK(cudaMemcpyToSymbol(scale, &two, sizeof two));
    float *da, *db, *dc;
    CHECK(cudaMalloc(&da, a.size() * sizeof(float)));
    CHECK(cudaMalloc(&db, b.size() * sizeof(float)));
    CHECK(cudaMalloc(&dc, c.size() * sizeof(float)));
    CHECK(cudaMemcpy(da, a.data(), a.size() * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(db, b.data(), b.size() * sizeof(float), cudaMemcpyHostToDevice));
    product<<<dim3((n + 15) / 16, (m + 15) / 16), dim3(16, 16)>>>(da, db, dc, m, k, n);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(c.data(), dc, c.size() * sizeof(float), cudaMemcpyDeviceToHost));
    for (int row = 0; row < m; row++) {
        for (int column = 0; column < n; column++) {
            // Multiples of 2^-16 below 2^12: exact in 32 bits only in part, so the order of the sum counts. It is the same here.
            float sum = 0;
            for (int i = 0; i < k; i++) sum = std::fma(a[row * k + i], b[i * n + column], sum);
            expect_equal("c", size_t(row) * n + column, c[row * n + column], 2.0f * sum);
        }
    }
    CHECK(cudaFree(da));
    CHECK(cudaFree(db));
    CHECK(cudaFree(dc));
    std::printf("matrix_product: %d x %d elements are right\n", m, n);
}
