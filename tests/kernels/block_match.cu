// For each block of 8x8 bytes of a picture, the best place within 4 bytes of it in another picture, by the sum of absolute differences.
// One thread for each of the 81 places; a block of 96 threads for each block of the picture. The picture that is searched has a rim of
// 8 bytes on each side, so that no place is outside. A result is the sum in its upper and the number of the place in its lower half.
static __device__ __forceinline__ unsigned sum_of_distances(unsigned a, unsigned b, unsigned c) {
  unsigned d;
  asm("vabsdiff4.u32.u32.u32.add %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}

extern "C" __global__ void block_match(int words, const unsigned* picture, const unsigned* searched, unsigned* best) {
  __shared__ unsigned least;
  int x = blockIdx.x, y = blockIdx.y, place = threadIdx.x;
  if (place == 0) least = 0xffffffffu;
  __syncthreads();
  if (place < 81) {
    int dx = place % 9 + 4, dy = place / 9 + 4;
    int from = (8 * y + dy) * (words + 4) + 2 * x + dx / 4, shift = dx % 4 * 8;
    unsigned sum = 0;
    for (int row = 0; row < 8; row++) {
      const unsigned* s = searched + from + row * (words + 4);
      const unsigned* p = picture + (8 * y + row) * words + 2 * x;
      sum = sum_of_distances(p[0], __funnelshift_r(s[0], s[1], shift), sum);
      sum = sum_of_distances(p[1], __funnelshift_r(s[1], s[2], shift), sum);
    }
    atomicMin(&least, sum << 16 | place);
  }
  __syncthreads();
  if (place == 0) best[y * gridDim.x + x] = least;
}
