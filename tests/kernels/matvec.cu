// y = A * x for a matrix of `rows` by `columns`, row by row: one thread a row, and one warp a row.
// targets: sm_80
extern "C" __global__ void matvec_thread(int rows, int columns, const float* a, const float* x, float* y) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0.0f;
  for (int c = 0; c < columns; c++) sum += a[(long long)row * columns + c] * x[c];
  y[row] = sum;
}

extern "C" __global__ void matvec_warp(int rows, int columns, const float* a, const float* x, float* y) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  float sum = 0.0f;
  for (int c = lane; c < columns; c += 32) sum += a[(long long)row * columns + c] * x[c];
  for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(0xffffffffu, sum, d);
  if (lane == 0) y[row] = sum;
}
