// C = A * B for n by n matrices through 16 by 16 tiles in shared memory. No guards: n is a multiple of 16.
// targets: sm_80 sm_90
extern "C" __global__ void sgemm16(int n, const float* a, const float* b, float* c) {
  __shared__ float tile_a[16][16];
  __shared__ float tile_b[16][16];
  int tx = threadIdx.x, ty = threadIdx.y;
  int row = blockIdx.y * 16 + ty, col = blockIdx.x * 16 + tx;
  float sum = 0.0f;
  for (int t = 0; t < n; t += 16) {
    tile_a[ty][tx] = a[row * n + t + tx];
    tile_b[ty][tx] = b[(t + ty) * n + col];
    __syncthreads();
    for (int k = 0; k < 16; k++) sum += tile_a[ty][k] * tile_b[k][tx];
    __syncthreads();
  }
  c[row * n + col] = sum;
}
