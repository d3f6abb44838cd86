// 64 rounds of shifts and exclusive ors on a state of each thread's own.
// targets: sm_80
extern "C" __global__ void hash64(unsigned n, unsigned seed, unsigned* out) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned state = i * 2654435761u + seed;
  for (int round = 0; round < 64; round++) {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    state += 0x9e3779b9u;
  }
  out[i] = state;
}
