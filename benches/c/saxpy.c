// y = a * x + y. Sizes: elements.
#include "common.h"

static unsigned n;
static float *x, *y;

static void prepare(const unsigned *sizes) {
  n = sizes[0];
  x = array(n, sizeof *x);
  y = array(n, sizeof *y);
  result = y;
  result_bytes = n * sizeof *y;
}

static void reset(void) {
  for (unsigned i = 0; i < n; i++) x[i] = mixed_float(i), y[i] = mixed_float(n + i);
}

static void saxpy(unsigned count, float a, const float *restrict from, float *restrict to) {
#pragma omp parallel for
  for (unsigned i = 0; i < count; i++) to[i] = a * from[i] + to[i];
}

static void plain(void) { saxpy(n, 0.75f, x, y); }

static const struct variant variants[] = {{"plain", plain}, {0, 0}};
