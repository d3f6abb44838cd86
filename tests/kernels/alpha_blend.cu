// A picture laid over another one: words of four bytes, alpha on top. to = above + below * (255 - alpha) / 255, rounded, each byte clamped.
static __device__ __forceinline__ unsigned over(unsigned above, unsigned below) {
  unsigned rest, t, scaled = 0, d;
  asm("vsub.u32.u32.u32 %0, 255, %1.b3;" : "=r"(rest) : "r"(above));
#define BYTE(n)                                                                                       \
  asm("vmad.u32.u32.u32 %0, %1.b" #n ", %2, 128;" : "=r"(t) : "r"(below), "r"(rest));                 \
  t += t >> 8;                                                                                        \
  asm("vshr.u32.u32.u32.clamp %0.b" #n ", %1, 8, %2;" : "=r"(d) : "r"(t), "r"(scaled));               \
  scaled = d;
  BYTE(0) BYTE(1) BYTE(2) BYTE(3)
  asm("vadd4.u32.u32.u32.sat %0, %1, %2, %3;" : "=r"(d) : "r"(above), "r"(scaled), "r"(0));
  return d;
}

extern "C" __global__ void alpha_blend(int n, const unsigned* above, const unsigned* below, unsigned* to) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] = over(above[i], below[i]);
}
