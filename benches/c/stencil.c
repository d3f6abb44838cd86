// Five points of a grid, inside its rim. Sizes: width, height.
#include "common.h"

static int width, height;
static float *in, *out;

static void prepare(const unsigned *sizes) {
  width = (int)sizes[0], height = (int)sizes[1];
  in = array((size_t)width * height, sizeof *in);
  out = array((size_t)width * height, sizeof *out);
  result = out;
  result_bytes = (size_t)width * height * sizeof *out;
}

static void reset(void) {
  for (int i = 0; i < width * height; i++) in[i] = mixed_float((uint32_t)i), out[i] = 0.0f;
}

static void stencil(int w, int h, float centre, float side, const float *restrict from, float *restrict to) {
#pragma omp parallel for
  for (int y = 1; y < h - 1; y++)
    for (int x = 1; x < w - 1; x++) {
      int i = y * w + x;
      to[i] = centre * from[i] + side * ((from[i - 1] + from[i + 1]) + (from[i - w] + from[i + w]));
    }
}

static void plain(void) { stencil(width, height, 0.5f, 0.125f, in, out); }

static const struct variant variants[] = {{"plain", plain}, {0, 0}};
