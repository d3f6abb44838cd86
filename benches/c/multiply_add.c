// As many multiply-adds of floats as the host can do: ten sums side by side in its widest vectors. Sizes: multiply-adds / 4096, a multiple of 5.
#include "common.h"

#ifdef __AVX512F__
#define LANES 16
#else
#define LANES 8
#endif
#define SUMS 10
typedef float vector __attribute__((vector_size(4 * LANES)));

static long times;
static float *out;

static void prepare(const unsigned *sizes) {
  times = (long)sizes[0] * 4096 / (SUMS * LANES);
  out = array(8, sizeof *out);
  result = out;
  result_bytes = 8 * sizeof *out;
}

static void reset(void) { memset(out, 0, result_bytes); }

// Every sum comes to 2. What is done does not depend on it.
static void peak(void) {
  vector sum[SUMS], half, one;
  for (int l = 0; l < LANES; l++) half[l] = 0.5f, one[l] = 1.0f;
  for (int i = 0; i < SUMS; i++) sum[i] = one * (float)i;
  __asm__ volatile("" : "+x"(half), "+x"(one));
  for (long n = 0; n < times; n++)
    for (int i = 0; i < SUMS; i++) sum[i] = sum[i] * half + one;
  for (int l = 0; l < 8; l++) {
    out[l] = sum[0][l];
    for (int i = 1; i < SUMS; i++)
      if (sum[i][l] > out[l]) out[l] = sum[i][l];
  }
}

static const struct variant variants[] = {{"peak", peak}, {0, 0}};
