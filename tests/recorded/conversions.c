// What the host code of the CUDA headers gives for conversions to and from small floats, over all their sources, as runs.
//
// Each line: the types, the rounding, `satfinite` or `plain`, then `SOURCE=RESULT` in hexadecimal for the first source of each run of equal
// results. Sources go up as unsigned numbers. A source or a result is one element.
#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static __half_raw half_of(uint32_t a) {
  __half_raw h;
  h.x = (unsigned short)a;
  return h;
}

static __nv_bfloat16_raw bfloat_of(uint32_t a) {
  __nv_bfloat16_raw h;
  h.x = (unsigned short)a;
  return h;
}

static float float_of(uint32_t a) {
  float f;
  memcpy(&f, &a, 4);
  return f;
}

#define RUNS(last, name, value)                                      \
  {                                                                  \
    printf("%s", name);                                              \
    uint32_t before = ~0u;                                           \
    for (uint64_t i = 0; i <= last; i++) {                           \
      uint32_t a = (uint32_t)i, now = (uint32_t)(value);             \
      if (now != before) printf(" %x=%x", a, now);                   \
      before = now;                                                  \
    }                                                                \
    puts("");                                                        \
  }

#define SOURCES(to, mode, CONVERT_F32, CONVERT_F16, CONVERT_BF16)    \
  RUNS(0xffffffff, "f32 " to " " mode, CONVERT_F32)                  \
  RUNS(0xffff, "f16 " to " " mode, CONVERT_F16)                      \
  RUNS(0xffff, "bf16 " to " " mode, CONVERT_BF16)

#define FP8(to, kind)                                                                     \
  SOURCES(to, "rn satfinite", __nv_cvt_float_to_fp8(float_of(a), __NV_SATFINITE, kind),   \
          __nv_cvt_halfraw_to_fp8(half_of(a), __NV_SATFINITE, kind),                      \
          __nv_cvt_bfloat16raw_to_fp8(bfloat_of(a), __NV_SATFINITE, kind))                \
  RUNS(0xff, to " f16 rn plain", __nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)a, kind).x)

#define FP6(to, kind)                                                                     \
  SOURCES(to, "rn satfinite", __nv_cvt_float_to_fp6(float_of(a), kind, cudaRoundNearest), \
          __nv_cvt_halfraw_to_fp6(half_of(a), kind, cudaRoundNearest),                    \
          __nv_cvt_bfloat16raw_to_fp6(bfloat_of(a), kind, cudaRoundNearest))              \
  RUNS(0x3f, to " f16 rn plain", __nv_cvt_fp6_to_halfraw((__nv_fp6_storage_t)a, kind).x)

#define POWERS(mode, sat, round)                                                          \
  RUNS(0xffffffff, "f32 ue8m0 " mode, __nv_cvt_float_to_e8m0(float_of(a), sat, round))    \
  RUNS(0xffff, "bf16 ue8m0 " mode, __nv_cvt_bfloat16raw_to_e8m0(bfloat_of(a), sat, round))

int main(void) {
  FP8("e4m3", __NV_E4M3)
  FP8("e5m2", __NV_E5M2)
  FP6("e2m3", __NV_E2M3)
  FP6("e3m2", __NV_E3M2)
  SOURCES("e2m1", "rn satfinite", __nv_cvt_float_to_fp4(float_of(a), __NV_E2M1, cudaRoundNearest),
          __nv_cvt_halfraw_to_fp4(half_of(a), __NV_E2M1, cudaRoundNearest),
          __nv_cvt_bfloat16raw_to_fp4(bfloat_of(a), __NV_E2M1, cudaRoundNearest))
  RUNS(0xf, "e2m1 f16 rn plain", __nv_cvt_fp4_to_halfraw((__nv_fp4_storage_t)a, __NV_E2M1).x)
  POWERS("rz satfinite", __NV_SATFINITE, cudaRoundZero)
  POWERS("rz plain", __NV_NOSAT, cudaRoundZero)
  POWERS("rp satfinite", __NV_SATFINITE, cudaRoundPosInf)
  POWERS("rp plain", __NV_NOSAT, cudaRoundPosInf)
  RUNS(0xff, "ue8m0 bf16 rn plain", __nv_cvt_e8m0_to_bf16raw((__nv_fp8_storage_t)a).x)
  return 0;
}
