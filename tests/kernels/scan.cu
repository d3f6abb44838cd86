// Prefix sums (each element included) within a block of up to 1,024 threads, a multiple of 32: shuffles inside a warp, shared
// memory between warps.
// `sums` gets the total of each block; `add_offsets` completes a scan over blocks when it gets the scanned totals.
// targets: sm_80 sm_90
__device__ int scan_warp(int v) {
  int lane = threadIdx.x % 32;
  for (int d = 1; d < 32; d *= 2) {
    int other = __shfl_up_sync(0xffffffffu, v, d);
    if (lane >= d) v += other;
  }
  return v;
}

extern "C" __global__ void scan_blocks(int n, const int* in, int* out, int* sums) {
  __shared__ int totals[32];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = (blockDim.x + 31) / 32;
  int v = scan_warp(i < n ? in[i] : 0);
  if (lane == 31) totals[warp] = v;
  __syncthreads();
  if (warp == 0) totals[lane] = scan_warp(lane < warps ? totals[lane] : 0);
  __syncthreads();
  if (warp > 0) v += totals[warp - 1];
  if (i < n) out[i] = v;
  if (threadIdx.x == blockDim.x - 1) sums[blockIdx.x] = v;
}

extern "C" __global__ void add_offsets(int n, const int* sums, int* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (blockIdx.x > 0 && i < n) out[i] += sums[blockIdx.x - 1];
}
