// A barrier of all blocks of the grid by atomics. Needs a cooperative launch. `arrived` and `generation` are zero at the start.
// Each turn, thread i of the grid reads what thread i + 1 wrote in the turn before, so that a missing barrier shows.
// targets: sm_80 sm_90
__device__ void wait_for_grid(unsigned* arrived, volatile unsigned* generation) {
  __syncthreads();
  if (threadIdx.x == 0) {
    unsigned now = *generation;
    __threadfence();
    if (atomicAdd(arrived, 1u) == gridDim.x - 1) {
      *arrived = 0;
      __threadfence();
      *generation = now + 1;
    } else {
      while (*generation == now) {}
    }
    __threadfence();
  }
  __syncthreads();
}

extern "C" __global__ void rotate_turns(int turns, volatile unsigned* even, volatile unsigned* odd, unsigned* arrived,
                                        volatile unsigned* generation) {
  unsigned n = gridDim.x * blockDim.x, i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int t = 0; t < turns; t++) {
    unsigned v = t % 2 == 0 ? even[(i + 1) % n] : odd[(i + 1) % n];
    if (t % 2 == 0) odd[i] = v + 1; else even[i] = v + 1;
    wait_for_grid(arrived, generation);
  }
}
