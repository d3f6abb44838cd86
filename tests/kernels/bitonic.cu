// Sorts each 512 words by a bitonic network in shared memory; a block has 256 threads.
// targets: sm_80
extern "C" __global__ void bitonic_sort(const unsigned* in, unsigned* out) {
  __shared__ unsigned part[512];
  unsigned t = threadIdx.x;
  in += 512ull * blockIdx.x;
  out += 512ull * blockIdx.x;
  part[t] = in[t];
  part[t + 256] = in[t + 256];
  for (unsigned size = 2; size <= 512; size *= 2)
    for (unsigned distance = size / 2; distance > 0; distance /= 2) {
      __syncthreads();
      unsigned i = 2 * t - (t & (distance - 1));
      unsigned a = part[i], b = part[i + distance];
      bool is_up = (i & size) == 0;
      if ((a > b) == is_up) {
        part[i] = b;
        part[i + distance] = a;
      }
    }
  __syncthreads();
  out[t] = part[t];
  out[t + 256] = part[t + 256];
}
