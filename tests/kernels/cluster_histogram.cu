// A histogram whose bins lie in the shared memory of the blocks of a cluster: each block has a part of the bins, and adds to the parts of
// the others. Launch with clusters. Then each block writes its part, and reads back what its right neighbour has.
// targets: sm_90
// The bytes of `counts` are zero at the start; `seen[b]` gets the sum of the bins of the right neighbour of block b.
__device__ unsigned rank_in_cluster() {
  unsigned r;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
  return r;
}

__device__ unsigned blocks_in_cluster() {
  unsigned n;
  asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(n));
  return n;
}

__device__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}

template <class T>
__device__ T* in_block(T* mine, unsigned rank) {
  unsigned long long there;
  asm("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"((unsigned long long)mine), "r"(rank));
  return reinterpret_cast<T*>(there);
}

extern "C" __global__ void cluster_histogram(const unsigned* keys, unsigned n, unsigned per_block, unsigned* counts, unsigned* seen) {
  extern __shared__ unsigned bins[];
  unsigned rank = rank_in_cluster(), blocks = blocks_in_cluster();
  for (unsigned i = threadIdx.x; i < per_block; i += blockDim.x) bins[i] = 0;
  cluster_sync();
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    unsigned bin = keys[i] % (per_block * blocks);
    atomicAdd(in_block(bins, bin / per_block) + bin % per_block, 1u);
  }
  cluster_sync();
  for (unsigned i = threadIdx.x; i < per_block; i += blockDim.x) atomicAdd(&counts[rank * per_block + i], bins[i]);
  if (threadIdx.x == 0) {
    const unsigned* there = in_block(bins, (rank + 1) % blocks);
    unsigned sum = 0;
    for (unsigned i = 0; i < per_block; i++) sum += there[i];
    seen[blockIdx.x] = sum;
  }
  cluster_sync();
}
