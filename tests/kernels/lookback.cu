// Prefix sums in one pass: each tile publishes its sum at once and its prefix as soon as it knows it, and a warp looks back
// over the tiles before. Tiles are numbered as blocks start, so no block waits for one that has not started. 256 threads a block.
// `status` has a word for each tile, zero at the start: state in the upper half, value in the lower. `next_tile` is zero at the
// start.
// targets: sm_80 sm_90
#define SUM 1ull
#define PREFIX 2ull

extern "C" __global__ void scan_lookback(unsigned n, const unsigned* in, unsigned* out, unsigned long long* status,
                                         unsigned* next_tile) {
  __shared__ unsigned totals[8], tile, before;
  unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (threadIdx.x == 0) tile = atomicAdd(next_tile, 1u);
  __syncthreads();
  unsigned i = tile * 256 + threadIdx.x;
  unsigned v = i < n ? in[i] : 0;
  for (unsigned d = 1; d < 32; d *= 2) {
    unsigned other = __shfl_up_sync(0xffffffffu, v, d);
    if (lane >= d) v += other;
  }
  if (lane == 31) totals[warp] = v;
  __syncthreads();
  if (warp == 0) {
    unsigned sum = 0;
    for (int w = 0; w < 8; w++) sum += totals[w];
    volatile unsigned long long* words = status;
    unsigned prefix = 0;
    if (lane == 0) words[tile] = (tile == 0 ? PREFIX : SUM) << 32 | sum;
    for (int newest = (int)tile - 1; newest >= 0; newest -= 32) {
      // Lane 0 reads the nearest tile; tiles before the first count as a prefix of zero.
      int from = newest - (int)lane;
      unsigned long long word = PREFIX << 32;
      do {
        if (from >= 0) word = words[from];
      } while (__any_sync(0xffffffffu, word >> 32 == 0));
      unsigned done = __ballot_sync(0xffffffffu, word >> 32 == PREFIX);
      unsigned nearest = done ? __ffs(done) - 1 : 31;
      unsigned part = lane <= nearest ? (unsigned)word : 0;
      for (int d = 16; d > 0; d /= 2) part += __shfl_xor_sync(0xffffffffu, part, d);
      prefix += part;
      if (done) break;
    }
    if (lane == 0) {
      if (tile > 0) words[tile] = PREFIX << 32 | (prefix + sum);
      before = prefix;
    }
  }
  __syncthreads();
  for (unsigned w = 0; w < warp; w++) v += totals[w];
  if (i < n) out[i] = before + v;
}
