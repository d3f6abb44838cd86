// Arrays converted from one type to another. Sizes: elements, index of the variant.
#include "common.h"

static unsigned n;
static void *source, *target;

// Bytes of an element of the source and of the result, in the order of the variants.
static const unsigned widths[][2] = {{4, 2}, {2, 4}, {4, 2}, {4, 4}, {4, 4}, {1, 4}, {8, 8}, {8, 8}};
static unsigned kind;

static void prepare(const unsigned *sizes) {
  n = sizes[0];
  kind = sizes[1];
  source = array(n, widths[kind][0]);
  target = array(n, widths[kind][1]);
  result = target;
  result_bytes = (size_t)n * widths[kind][1];
}

static void reset(void) {
  for (unsigned i = 0; i < n; i++) {
    switch (kind) {
      case 0: case 2: ((float *)source)[i] = mixed_float(i); break;
      case 1: ((_Float16 *)source)[i] = (_Float16)mixed_float(i); break;
      case 3: ((float *)source)[i] = mixed_float(i) * 4e6f; break;
      case 4: ((int32_t *)source)[i] = (int32_t)mixed(i); break;
      case 5: ((uint8_t *)source)[i] = (uint8_t)mixed(i); break;
      case 6: ((double *)source)[i] = mixed_float(i) * 1e15; break;
      case 7: ((int64_t *)source)[i] = (int64_t)((uint64_t)mixed(i) << 32 | mixed(~i)); break;
    }
  }
}

#define LOOP(name, from, to, value)                                  \
  static void name##_of(unsigned count, const from *restrict a, to *restrict d) { \
    _Pragma("omp parallel for") for (unsigned i = 0; i < count; i++) d[i] = value; \
  }                                                                  \
  static void name(void) { name##_of(n, source, target); }

// The bits of a bfloat16: to nearest, ties to even, as plain C has no such type everywhere.
static inline uint16_t bfloat(float a) {
  uint32_t bits;
  memcpy(&bits, &a, 4);
  uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  return (bits & 0x7fffffff) > 0x7f800000 ? 0x7fff : rounded;
}

LOOP(f32_to_f16, float, _Float16, (_Float16)a[i])
LOOP(f16_to_f32, _Float16, float, (float)a[i])
LOOP(f32_to_bf16, float, uint16_t, bfloat(a[i]))
LOOP(f32_to_s32, float, int32_t, (int32_t)a[i])
LOOP(s32_to_f32, int32_t, float, (float)a[i])
LOOP(u8_to_f32, uint8_t, float, (float)a[i])
LOOP(f64_to_s64, double, int64_t, (int64_t)a[i])
LOOP(s64_to_f64, int64_t, double, (double)a[i])

#define V(name) {#name, name}
static const struct variant variants[] = {V(f32_to_f16), V(f16_to_f32), V(f32_to_bf16), V(f32_to_s32), V(s32_to_f32),
                                          V(u8_to_f32),  V(f64_to_s64), V(s64_to_f64),  {0, 0}};
