// Pairs of small floats by the host code of the CUDA headers. Sizes: pairs, index of the variant.
#include <cuda_fp8.h>
#include <cuda_fp4.h>
#include "common.h"

static unsigned n;
static unsigned kind;
static float2 *floats;
static uint16_t *codes;
static void *target;

static void prepare(const unsigned *sizes) {
  n = sizes[0];
  kind = sizes[1];
  unsigned bytes = kind == 0 ? 2 : kind == 1 ? 4 : 1;
  if (kind == 1) codes = (uint16_t *)array(n, 2);
  else floats = (float2 *)array(n, 8);
  target = array(n, bytes);
  result = target;
  result_bytes = (size_t)n * bytes;
}

static void reset(void) {
  for (unsigned i = 0; i < n; i++) {
    if (kind == 1) codes[i] = (uint16_t)mixed(i);
    else floats[i].x = mixed_float(2 * i) * 16, floats[i].y = mixed_float(2 * i + 1) * 16;
  }
}

static void f32_to_e4m3(void) {
  uint16_t *d = (uint16_t *)target;
#pragma omp parallel for
  for (unsigned i = 0; i < n; i++) d[i] = __nv_cvt_float2_to_fp8x2(floats[i], __NV_SATFINITE, __NV_E4M3);
}

static void e4m3_to_f16(void) {
  __half2_raw *d = (__half2_raw *)target;
#pragma omp parallel for
  for (unsigned i = 0; i < n; i++) d[i] = __nv_cvt_fp8x2_to_halfraw2(codes[i], __NV_E4M3);
}

static void f32_to_e2m1(void) {
  uint8_t *d = (uint8_t *)target;
#pragma omp parallel for
  for (unsigned i = 0; i < n; i++) d[i] = __nv_cvt_float2_to_fp4x2(floats[i], __NV_E2M1, cudaRoundNearest);
}

static const struct variant variants[] = {
    {"f32_to_e4m3", f32_to_e4m3}, {"e4m3_to_f16", e4m3_to_f16}, {"f32_to_e2m1", f32_to_e2m1}, {0, 0}};
