// Softmax of rows: one block a row, its size a multiple of 32, any number of columns. Exact and fast exponential.
// targets: sm_80
__device__ float combine(float v, float other, bool is_max) { return is_max ? fmaxf(v, other) : v + other; }

// The maximum or the sum over all threads of the block, known to all of them.
__device__ float over_block(float v, bool is_max, float* parts) {
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = (blockDim.x + 31) / 32;
  for (int d = 16; d > 0; d /= 2) v = combine(v, __shfl_xor_sync(0xffffffffu, v, d), is_max);
  if (lane == 0) parts[warp] = v;
  __syncthreads();
  v = parts[lane < warps ? lane : 0];
  if (!is_max && lane >= warps) v = 0.0f;
  for (int d = 16; d > 0; d /= 2) v = combine(v, __shfl_xor_sync(0xffffffffu, v, d), is_max);
  __syncthreads();
  return v;
}

template <bool FAST>
__device__ __forceinline__ void softmax_row(int columns, const float* in, float* out) {
  __shared__ float parts[32];
  in += (long long)blockIdx.x * columns;
  out += (long long)blockIdx.x * columns;
  float top = __int_as_float(0xff800000);  // Minus infinity.
  for (int c = threadIdx.x; c < columns; c += blockDim.x) top = fmaxf(top, in[c]);
  top = over_block(top, true, parts);
  float sum = 0.0f;
  for (int c = threadIdx.x; c < columns; c += blockDim.x) sum += FAST ? __expf(in[c] - top) : expf(in[c] - top);
  sum = over_block(sum, false, parts);
  for (int c = threadIdx.x; c < columns; c += blockDim.x)
    out[c] = (FAST ? __expf(in[c] - top) : expf(in[c] - top)) / sum;
}

extern "C" __global__ void softmax(int columns, const float* in, float* out) { softmax_row<false>(columns, in, out); }
extern "C" __global__ void softmax_fast(int columns, const float* in, float* out) { softmax_row<true>(columns, in, out); }
