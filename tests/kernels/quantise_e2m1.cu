// Rows in blocks of 32 numbers of `e2m1` with one power of two, a `ue8m0`, for each block; such a matrix times a vector.
// targets: sm_100a
static __device__ unsigned char pair_of(float low, float high) {
  unsigned short d;
  asm("{ .reg .b8 t; cvt.rn.satfinite.e2m1x2.f32 t, %1, %2; mov.b16 %0, {t, 0}; }" : "=h"(d) : "f"(high), "f"(low));
  return (unsigned char)d;
}

static __device__ float2 floats_of(unsigned char pair) {
  unsigned halves;
  float2 d;
  asm("{ .reg .b8 t, u; mov.b16 {t, u}, %1; cvt.rn.f16x2.e2m1x2 %0, t; }" : "=r"(halves) : "h"((unsigned short)pair));
  asm("cvt.f32.f16 %0, %1;" : "=f"(d.x) : "h"((unsigned short)halves));
  asm("cvt.f32.f16 %0, %1;" : "=f"(d.y) : "h"((unsigned short)(halves >> 16)));
  return d;
}

// The power of two that a code stands for.
static __device__ float power_of(unsigned char code) {
  unsigned powers;
  asm("cvt.rn.bf16x2.ue8m0x2 %0, %1;" : "=r"(powers) : "h"((unsigned short)code));
  return __uint_as_float(powers << 16);
}

// A thread for each block of 32. The least power of two by which the largest number becomes 6 or less.
extern "C" __global__ void quantise_blocks(int blocks, const float* from, unsigned char* codes, unsigned char* scales) {
  int b = blockIdx.x * blockDim.x + threadIdx.x;
  if (b >= blocks) return;
  float most = 0;
  for (int i = 0; i < 32; i++) most = fmaxf(most, fabsf(from[32 * b + i]));
  unsigned short scale;
  asm("cvt.rp.satfinite.ue8m0x2.f32 %0, %1, %2;" : "=h"(scale) : "f"(0.0f), "f"(most / 6.0f));
  scales[b] = (unsigned char)scale;
  float power = power_of((unsigned char)scale);
  for (int i = 0; i < 16; i++) {
    codes[16 * b + i] = pair_of(from[32 * b + 2 * i] / power, from[32 * b + 2 * i + 1] / power);
  }
}

extern "C" __global__ void dequantise_blocks(int pairs, const unsigned char* codes, const unsigned char* scales, float2* to) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= pairs) return;
  float2 v = floats_of(codes[i]);
  float power = power_of(scales[i / 16]);
  to[i] = make_float2(v.x * power, v.y * power);
}

// d[r] = sum over blocks of the block's power times the sum of its products, each sum in order. A thread for each row.
extern "C" __global__ void matvec_e2m1(int rows, int blocks, const unsigned char* codes, const unsigned char* scales,
                                       const float* x, float* d) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  float sum = 0;
  for (int b = 0; b < blocks; b++) {
    float part = 0;
    for (int i = 0; i < 16; i++) {
      float2 v = floats_of(codes[16 * (r * blocks + b) + i]);
      part = __fmaf_rn(v.x, x[32 * b + 2 * i], part);
      part = __fmaf_rn(v.y, x[32 * b + 2 * i + 1], part);
    }
    sum = __fmaf_rn(part, power_of(scales[r * blocks + b]), sum);
  }
  d[r] = sum;
}
