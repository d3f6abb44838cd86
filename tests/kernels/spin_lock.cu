// Spin locks: every thread that asks for the lock must get it, whoever holds it. The counter is no atomic: it is right only
// if the lock works.
// targets: sm_80 sm_90
__device__ void acquire(int* lock) {
  while (atomicCAS(lock, 0, 1) != 0) {}
  __threadfence();
}

__device__ void release(int* lock) {
  __threadfence();
  atomicExch(lock, 0);
}

// Between the lanes of a warp: launched with one warp, or with several that each have a lock and a counter of their own.
extern "C" __global__ void spin_lanes(int turns, int* locks, volatile int* counters) {
  int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  for (int i = 0; i < turns; i++) {
    acquire(&locks[warp]);
    counters[warp] = counters[warp] + 1;
    release(&locks[warp]);
  }
}

// Between the warps of a block: the lock lies in shared memory and one lane of each warp takes it.
extern "C" __global__ void spin_warps(int turns, int* result) {
  __shared__ int lock;
  __shared__ volatile int counter;
  if (threadIdx.x == 0) lock = 0, counter = 0;
  __syncthreads();
  if (threadIdx.x % 32 == 0)
    for (int i = 0; i < turns; i++) {
      acquire(&lock);
      counter = counter + 1;
      release(&lock);
    }
  __syncthreads();
  if (threadIdx.x == 0) result[blockIdx.x] = counter;
}

// Between blocks: one lock for the grid, taken by one thread of each block.
extern "C" __global__ void spin_blocks(int turns, int* lock, volatile int* counter) {
  if (threadIdx.x != 0) return;
  for (int i = 0; i < turns; i++) {
    acquire(lock);
    *counter = *counter + 1;
    release(lock);
  }
}

// Between all threads of the grid, the hardest: lanes, warps and blocks at once.
extern "C" __global__ void spin_all(int* lock, volatile int* counter) {
  acquire(lock);
  *counter = *counter + 1;
  release(lock);
}

// The other shape of the loop, which also ends where lanes of a warp advance together: the holder works inside it.
extern "C" __global__ void spin_inside(int* lock, volatile int* counter) {
  bool waits = true;
  while (waits)
    if (atomicCAS(lock, 0, 1) == 0) {
      *counter = *counter + 1;
      release(lock);
      waits = false;
    }
}

// A lane hands a value to the next one, which waits for it: lane 31 first, so that the order of lanes is no help.
extern "C" __global__ void pass_down(volatile int* slots) {
  int t = threadIdx.x, last = blockDim.x - 1;
  if (t != last)
    while (slots[t + 1] == 0) {}
  slots[t] = t == last ? 1 : slots[t + 1] + 1;
}
