// Each warp adds products of a 16 by 16 and four 16 by 8 matrices of .f16 to four matrices of .f32, again and again.
// targets: sm_80
// options: --fmad=false

// Two numbers, which .f16 holds exactly, in a word.
__device__ unsigned pair(float low, float high) {
  unsigned word;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}

extern "C" __global__ void mma_sums(const float* a, const float* b, float* out, int times) {
  int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  a += warp * 16 * 16;
  b += warp * 16 * 32;
  unsigned x[4], y[4][2];
  for (int r = 0; r < 4; r++) {
    const float* at = a + (g + 8 * (r % 2)) * 16 + 2 * t + 8 * (r / 2);
    x[r] = pair(at[0], at[1]);
  }
  for (int m = 0; m < 4; m++)
    for (int r = 0; r < 2; r++) {
      const float* at = b + (2 * t + 8 * r) * 32 + 8 * m + g;
      y[m][r] = pair(at[0], at[32]);
    }
  float d[4][4] = {};
  for (int i = 0; i < times; i++)
#pragma unroll
    for (int m = 0; m < 4; m++)
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
          "{%0, %1, %2, %3};"
          : "+f"(d[m][0]), "+f"(d[m][1]), "+f"(d[m][2]), "+f"(d[m][3])
          : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[m][0]), "r"(y[m][1]));
  out += warp * 16 * 32;
  for (int m = 0; m < 4; m++)
    for (int i = 0; i < 4; i++) out[(g + 8 * (i / 2)) * 32 + 8 * m + 2 * t + i % 2] = d[m][i];
}
