// C (m by n) = alpha * A (m by k) * B (k by n) + beta * C for any sizes: tiles that stick out are filled with zeros.
// targets: sm_80
extern "C" __global__ void sgemm16_guarded(int m, int n, int k, float alpha, const float* a, const float* b, float beta,
                                           float* c) {
  __shared__ float tile_a[16][16];
  __shared__ float tile_b[16][16];
  int tx = threadIdx.x, ty = threadIdx.y;
  int row = blockIdx.y * 16 + ty, col = blockIdx.x * 16 + tx;
  float sum = 0.0f;
  for (int t = 0; t < k; t += 16) {
    tile_a[ty][tx] = row < m && t + tx < k ? a[row * k + t + tx] : 0.0f;
    tile_b[ty][tx] = t + ty < k && col < n ? b[(t + ty) * n + col] : 0.0f;
    __syncthreads();
    for (int i = 0; i < 16; i++) sum += tile_a[ty][i] * tile_b[i][tx];
    __syncthreads();
  }
  if (row < m && col < n) c[row * n + col] = alpha * sum + beta * c[row * n + col];
}
