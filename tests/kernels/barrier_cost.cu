// Loops around a barrier with 1, 4, 16 and 32 values that change in every turn and live across it.
// targets: sm_80
template <int N>
__device__ __forceinline__ void turns(int count, float scale, float* out) {
  float v[N];
#pragma unroll
  for (int j = 0; j < N; j++) v[j] = threadIdx.x + j;
#pragma unroll 1
  for (int i = 0; i < count; i++) {
    __syncthreads();
#pragma unroll
    for (int j = 0; j < N; j++) v[j] = v[j] * scale + 1.0f;
  }
  float sum = 0.0f;
#pragma unroll
  for (int j = 0; j < N; j++) sum += v[j];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

extern "C" __global__ void barrier1(int count, float scale, float* out) { turns<1>(count, scale, out); }
extern "C" __global__ void barrier4(int count, float scale, float* out) { turns<4>(count, scale, out); }
extern "C" __global__ void barrier16(int count, float scale, float* out) { turns<16>(count, scale, out); }
extern "C" __global__ void barrier32(int count, float scale, float* out) { turns<32>(count, scale, out); }
