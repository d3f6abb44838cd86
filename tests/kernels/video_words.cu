// Four bytes at a time: saturating sums and distances of two arrays.
static __device__ __forceinline__ unsigned add4(unsigned a, unsigned b) {
  unsigned d;
  asm("vadd4.u32.u32.u32.sat %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(0));
  return d;
}

static __device__ __forceinline__ unsigned distance4(unsigned a, unsigned b) {
  unsigned d;
  asm("vabsdiff4.u32.u32.u32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(0));
  return d;
}

extern "C" __global__ void add_bytes(int n, const unsigned* a, const unsigned* b, unsigned* to) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] = add4(a[i], b[i]);
}

extern "C" __global__ void distance_bytes(int n, const unsigned* a, const unsigned* b, unsigned* to) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] = distance4(a[i], b[i]);
}
