// The sum of all numbers of a grid with barriers of the whole grid in between. Needs a cooperative launch. Each block sums its part, then the
// first block adds the parts up and every block writes the total: without the barriers it would be wrong.
// `grid_sum` waits by the word that the driver's environment registers name, as the headers of cooperative groups do; its entries are the
// same with functions of the device runtime.
// targets: sm_80 sm_90
// options: --relocatable-device-code=true
struct Workspace {
  unsigned bytes, barrier;
};

struct ByRegisters {
  Workspace* workspace;

  __device__ ByRegisters() {
    unsigned high, low;
    asm("mov.u32 %0, %%envreg1;" : "=r"(high));
    asm("mov.u32 %0, %%envreg2;" : "=r"(low));
    workspace = reinterpret_cast<Workspace*>((unsigned long long)high << 32 | low);
  }
  __device__ bool is_valid() const { return workspace != nullptr; }
  __device__ unsigned rank() const { return blockIdx.x * blockDim.x + threadIdx.x; }
  __device__ unsigned size() const { return gridDim.x * blockDim.x; }
  __device__ void sync() const {
    __syncthreads();
    if (threadIdx.x == 0) {
      unsigned n = blockIdx.x == 0 ? 0x80000000 - (gridDim.x - 1) : 1, before, now;
      asm volatile("atom.add.release.gpu.u32 %0,[%1],%2;" : "=r"(before) : "l"(&workspace->barrier), "r"(n) : "memory");
      do {
        asm volatile("ld.acquire.gpu.u32 %0,[%1];" : "=r"(now) : "l"(&workspace->barrier) : "memory");
      } while (((before ^ now) & 0x80000000) == 0);
    }
    __syncthreads();
  }
};

struct ByRuntime {
  unsigned long long handle;

  __device__ ByRuntime() : handle(cudaCGGetIntrinsicHandle(cudaCGScopeGrid)) {}
  __device__ bool is_valid() const { return handle != 0; }
  __device__ unsigned rank() const {
    unsigned thread;
    cudaCGGetRank(&thread, nullptr, handle);
    return thread;
  }
  __device__ unsigned size() const {
    unsigned threads;
    cudaCGGetSize(&threads, nullptr, handle);
    return threads;
  }
  __device__ void sync() const { cudaCGSynchronize(handle, 0); }
};

// `parts` has a word for each block, `totals` as well. `valid` tells whether the grid could wait at all.
template <class Grid>
__device__ void sum(const unsigned* x, unsigned n, unsigned* parts, unsigned* totals, unsigned* valid) {
  __shared__ unsigned part;
  Grid grid;
  if (threadIdx.x == 0) part = 0;
  if (grid.rank() == 0) *valid = grid.is_valid();
  if (!grid.is_valid()) return;
  __syncthreads();
  unsigned mine = 0;
  for (unsigned i = grid.rank(); i < n; i += grid.size()) mine += x[i];
  atomicAdd(&part, mine);
  __syncthreads();
  if (threadIdx.x == 0) parts[blockIdx.x] = part;
  grid.sync();
  for (unsigned half = (gridDim.x + 1) / 2, last = gridDim.x; last > 1; last = half, half = (half + 1) / 2) {
    unsigned i = blockIdx.x;
    if (threadIdx.x == 0 && i < last - half) parts[i] += parts[i + half];
    grid.sync();
  }
  if (threadIdx.x == 0) totals[blockIdx.x] = *(volatile unsigned*)parts;
}

extern "C" __global__ void grid_sum(const unsigned* x, unsigned n, unsigned* parts, unsigned* totals, unsigned* valid) {
  sum<ByRegisters>(x, n, parts, totals, valid);
}

extern "C" __global__ void grid_sum_runtime(const unsigned* x, unsigned n, unsigned* parts, unsigned* totals, unsigned* valid) {
  sum<ByRuntime>(x, n, parts, totals, valid);
}
