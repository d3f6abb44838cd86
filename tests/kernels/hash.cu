// Rounds of shifts and exclusive ors on a state of each thread's own: with the number of rounds as a parameter, and 64 of them.
// targets: sm_80
__device__ __forceinline__ unsigned round_of(unsigned state) {
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  return state + 0x9e3779b9u;
}

extern "C" __global__ void hash(unsigned n, unsigned seed, int rounds, unsigned* out) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned state = i * 2654435761u + seed;
  for (int r = 0; r < rounds; r++) state = round_of(state);
  out[i] = state;
}

extern "C" __global__ void hash64(unsigned n, unsigned seed, unsigned* out) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned state = i * 2654435761u + seed;
  for (int r = 0; r < 64; r++) state = round_of(state);
  out[i] = state;
}
