// Transposes a square matrix: two loops, and tiles of 32 by 32. Sizes: n, a multiple of 32.
#include "common.h"

static int n;
static float *in, *out;

static void prepare(const unsigned *sizes) {
  n = (int)sizes[0];
  size_t count = (size_t)n * n;
  in = array(count, sizeof *in);
  out = array(count, sizeof *out);
  result = out;
  result_bytes = count * sizeof *out;
}

static void reset(void) {
  for (uint32_t i = 0; i < (uint32_t)n * (uint32_t)n; i++) in[i] = mixed_float(i);
}

static void loops(int size, const float *restrict from, float *restrict to) {
#pragma omp parallel for
  for (int y = 0; y < size; y++)
    for (int x = 0; x < size; x++) to[(size_t)y * size + x] = from[(size_t)x * size + y];
}

static void in_tiles(int size, const float *restrict from, float *restrict to) {
#pragma omp parallel for
  for (int row = 0; row < size; row += 32)
    for (int column = 0; column < size; column += 32)
      for (int y = row; y < row + 32; y++)
        for (int x = column; x < column + 32; x++) to[(size_t)x * size + y] = from[(size_t)y * size + x];
}

static void plain(void) { loops(n, in, out); }
static void tiled(void) { in_tiles(n, in, out); }

static const struct variant variants[] = {{"tiled", tiled}, {"plain", plain}, {0, 0}};
