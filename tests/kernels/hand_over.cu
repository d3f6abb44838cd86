// A producer hands numbers to a consumer, one at a time, through a cell and a flag: a lane to another lane of its warp, a warp to another warp of
// its block, a block to another block. The flag tells how many numbers were made, the other one how many were taken.
// targets: sm_80
__device__ void produce(volatile unsigned* cell, unsigned* made, unsigned* taken, unsigned n, unsigned seed) {
  for (unsigned i = 0; i < n; i++) {
    unsigned seen;
    do {
      asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(seen) : "l"(taken) : "memory");
    } while (seen != i);
    *cell = seed + i * i;
    asm volatile("st.release.gpu.u32 [%0], %1;" ::"l"(made), "r"(i + 1) : "memory");
  }
}

__device__ unsigned consume(volatile unsigned* cell, unsigned* made, unsigned* taken, unsigned n) {
  unsigned sum = 0;
  for (unsigned i = 0; i < n; i++) {
    unsigned seen;
    do {
      asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(seen) : "l"(made) : "memory");
    } while (seen != i + 1);
    sum = sum * 3 + *cell;
    asm volatile("st.release.gpu.u32 [%0], %1;" ::"l"(taken), "r"(i + 1) : "memory");
  }
  return sum;
}

// One warp: lane 2 k is the producer of lane 2 k + 1.
extern "C" __global__ void hand_over_lanes(unsigned n, unsigned* sums) {
  __shared__ unsigned cell[16], made[16], taken[16];
  unsigned pair = threadIdx.x / 2;
  if (threadIdx.x % 2 == 0) made[pair] = taken[pair] = 0;
  __syncwarp();
  if (threadIdx.x % 2 == 0)
    produce(&cell[pair], &made[pair], &taken[pair], n, pair);
  else
    sums[pair] = consume(&cell[pair], &made[pair], &taken[pair], n);
}

// Lane l of warp 2 k is the producer of lane l of warp 2 k + 1.
extern "C" __global__ void hand_over_warps(unsigned n, unsigned* sums) {
  __shared__ unsigned cell[512], made[512], taken[512];
  unsigned warp = threadIdx.x / 32, pair = warp / 2 * 32 + threadIdx.x % 32;
  if (warp % 2 == 0) made[pair] = taken[pair] = 0;
  __syncthreads();
  if (warp % 2 == 0)
    produce(&cell[pair], &made[pair], &taken[pair], n, pair);
  else
    sums[blockIdx.x * blockDim.x / 2 + pair] = consume(&cell[pair], &made[pair], &taken[pair], n);
}

// The second half of the grid makes what the first half takes, so that the blocks that start first wait. All blocks must be able to run at once.
extern "C" __global__ void hand_over_blocks(unsigned n, unsigned* cell, unsigned* made, unsigned* taken, unsigned* sums) {
  unsigned half = gridDim.x / 2, pair = blockIdx.x % half;
  if (threadIdx.x != 0) return;
  if (blockIdx.x >= half)
    produce(&cell[pair], &made[pair], &taken[pair], n, pair);
  else
    sums[pair] = consume(&cell[pair], &made[pair], &taken[pair], n);
}
