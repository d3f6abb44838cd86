// C = A * B for n by n matrices: the best order of three loops, and the kernel's 16 by 16 tiles. Sizes: n, a multiple of 16.
#include "common.h"

static int n;
static float *a, *b, *c;

static void prepare(const unsigned *sizes) {
  n = (int)sizes[0];
  size_t count = (size_t)n * n;
  a = array(count, sizeof *a);
  b = array(count, sizeof *b);
  c = array(count, sizeof *c);
  result = c;
  result_bytes = count * sizeof *c;
}

static void reset(void) {
  for (int i = 0; i < n * n; i++) a[i] = mixed_float((uint32_t)i), b[i] = mixed_float((uint32_t)(n * n + i)), c[i] = 0.0f;
}

static void rows(int size, const float *restrict x, const float *restrict y, float *restrict to) {
#pragma omp parallel for
  for (int i = 0; i < size; i++) {
    for (int j = 0; j < size; j++) to[i * size + j] = 0.0f;
    for (int k = 0; k < size; k++) {
      float v = x[i * size + k];
      for (int j = 0; j < size; j++) to[i * size + j] += v * y[k * size + j];
    }
  }
}

static void tiles(int size, const float *restrict x, const float *restrict y, float *restrict to) {
  float tile_x[16][16], tile_y[16][16], sums[16][16];
  for (int row = 0; row < size; row += 16)
    for (int col = 0; col < size; col += 16) {
      memset(sums, 0, sizeof sums);
      for (int t = 0; t < size; t += 16) {
        for (int i = 0; i < 16; i++)
          for (int j = 0; j < 16; j++) {
            tile_x[i][j] = x[(row + i) * size + t + j];
            tile_y[i][j] = y[(t + i) * size + col + j];
          }
        for (int i = 0; i < 16; i++)
          for (int j = 0; j < 16; j++) {
            float s = sums[i][j];
            for (int k = 0; k < 16; k++) s += tile_x[i][k] * tile_y[k][j];
            sums[i][j] = s;
          }
      }
      for (int i = 0; i < 16; i++)
        for (int j = 0; j < 16; j++) to[(row + i) * size + col + j] = sums[i][j];
    }
}

static void ikj(void) { rows(n, a, b, c); }
static void tiled(void) { tiles(n, a, b, c); }

static const struct variant variants[] = {{"ikj", ikj}, {"tiled", tiled}, {0, 0}};
