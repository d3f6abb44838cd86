// A product of two matrices in `e4m3`: rows are scaled so that their largest element becomes the largest number, 448.
// targets: sm_89
static __device__ unsigned short pair_of(float low, float high) {
  unsigned short d;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(d) : "f"(high), "f"(low));
  return d;
}

static __device__ float2 floats_of(unsigned short pair) {
  unsigned halves;
  float2 d;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(pair));
  asm("cvt.f32.f16 %0, %1;" : "=f"(d.x) : "h"((unsigned short)halves));
  asm("cvt.f32.f16 %0, %1;" : "=f"(d.y) : "h"((unsigned short)(halves >> 16)));
  return d;
}

// A block of 128 threads for each row of `pairs` pairs. A row of zeros has the scale 1.
extern "C" __global__ void quantise_rows(int pairs, const float2* from, unsigned short* codes, float* scales) {
  __shared__ float most[128];
  const float2* row = from + blockIdx.x * pairs;
  float m = 0;
  for (int i = threadIdx.x; i < pairs; i += 128) m = fmaxf(m, fmaxf(fabsf(row[i].x), fabsf(row[i].y)));
  most[threadIdx.x] = m;
  __syncthreads();
  for (int half = 64; half > 0; half /= 2) {
    if (threadIdx.x < half) most[threadIdx.x] = fmaxf(most[threadIdx.x], most[threadIdx.x + half]);
    __syncthreads();
  }
  float scale = most[0] > 0 ? most[0] / 448.0f : 1.0f;
  if (threadIdx.x == 0) scales[blockIdx.x] = scale;
  for (int i = threadIdx.x; i < pairs; i += 128) {
    codes[blockIdx.x * pairs + i] = pair_of(row[i].x / scale, row[i].y / scale);
  }
}

// d[i][j] = sum over k of a[i][k] * b[j][k], in the order of k, by the scales of both rows.
extern "C" __global__ void product_e4m3(int m, int n, int pairs, const unsigned short* a, const float* a_scales,
                                        const unsigned short* b, const float* b_scales, float* d) {
  int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= m || j >= n) return;
  float sum = 0;
  for (int k = 0; k < pairs; k++) {
    float2 x = floats_of(a[i * pairs + k]), y = floats_of(b[j * pairs + k]);
    sum = __fmaf_rn(x.x, y.x, sum);
    sum = __fmaf_rn(x.y, y.y, sum);
  }
  d[i * n + j] = __fmul_rn(__fmul_rn(sum, a_scales[i]), b_scales[j]);
}
