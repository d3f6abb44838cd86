// Accelerations of bodies that pull each other, all pairs. Sizes: bodies.
#include "common.h"
#include <math.h>

static int n;
static float *x, *y, *z, *mass, *pull;

static void prepare(const unsigned *sizes) {
  n = (int)sizes[0];
  x = array(n, sizeof *x), y = array(n, sizeof *y), z = array(n, sizeof *z), mass = array(n, sizeof *mass);
  pull = array(4 * (size_t)n, sizeof *pull);
  result = pull;
  result_bytes = 4 * (size_t)n * sizeof *pull;
}

static void reset(void) {
  for (int i = 0; i < n; i++) {
    uint32_t from = 4 * (uint32_t)i;
    x[i] = mixed_float(from), y[i] = mixed_float(from + 1), z[i] = mixed_float(from + 2);
    mass[i] = (mixed_float(from + 3) + 0.5f) / (float)n;
  }
}

static void all_pairs(int count, const float *restrict px, const float *restrict py, const float *restrict pz,
                      const float *restrict m, float *restrict to) {
#pragma omp parallel for
  for (int i = 0; i < count; i++) {
    float ax = 0, ay = 0, az = 0;
#pragma omp simd reduction(+ : ax, ay, az)
    for (int j = 0; j < count; j++) {
      float dx = px[j] - px[i], dy = py[j] - py[i], dz = pz[j] - pz[i];
      float inverse = 1.0f / sqrtf(dx * dx + dy * dy + dz * dz + 0.01f);
      float by = m[j] * inverse * inverse * inverse;
      ax += dx * by, ay += dy * by, az += dz * by;
    }
    to[4 * i] = ax, to[4 * i + 1] = ay, to[4 * i + 2] = az, to[4 * i + 3] = 0;
  }
}

static void simd(void) { all_pairs(n, x, y, z, mass, pull); }

static const struct variant variants[] = {{"simd", simd}, {0, 0}};
