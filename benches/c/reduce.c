// The sum of an array: in order, as the language asks for; with leave to reorder; and by the kernel's own tree. Sizes: elements,
// a multiple of 512.
#include "common.h"

static unsigned n;
static float *in, sum;

static void prepare(const unsigned *sizes) {
  n = sizes[0];
  in = array(n, sizeof *in);
  result = &sum;
  result_bytes = sizeof sum;
}

static void reset(void) {
  for (unsigned i = 0; i < n; i++) in[i] = mixed_float(i);
}

static float in_order(unsigned count, const float *from) {
  float s = 0.0f;
#pragma omp parallel for reduction(+ : s)
  for (unsigned i = 0; i < count; i++) s += from[i];
  return s;
}

static float reordered(unsigned count, const float *from) {
  float s = 0.0f;
#pragma omp simd reduction(+ : s)
  for (unsigned i = 0; i < count; i++) s += from[i];
  return s;
}

static float trees(unsigned count, const float *from) {
  float s = 0.0f, part[256];
  for (unsigned at = 0; at < count; at += 512) {
    for (int t = 0; t < 256; t++) part[t] = from[at + t] + from[at + t + 256];
    for (int half = 128; half > 0; half >>= 1)
      for (int t = 0; t < half; t++) part[t] += part[t + half];
    s += part[0];
  }
  return s;
}

static void plain(void) { sum = in_order(n, in); }
static void simd(void) { sum = reordered(n, in); }
static void tree(void) { sum = trees(n, in); }

static const struct variant variants[] = {{"plain", plain}, {"simd", simd}, {"tree", tree}, {0, 0}};
