// Steps until a point of the plane leaves the circle of radius 2. Sizes: width, height, limit.
#include "common.h"

static int width, height, limit;
static int32_t *out;

static void prepare(const unsigned *sizes) {
  width = (int)sizes[0], height = (int)sizes[1], limit = (int)sizes[2];
  out = array((size_t)width * height, sizeof *out);
  result = out;
  result_bytes = (size_t)width * height * sizeof *out;
}

static void reset(void) { memset(out, 0, result_bytes); }

static int steps(float cx, float cy, int most) {
  float x = 0.0f, y = 0.0f;
  int count = 0;
  while (count < most) {
    float xx = x * x, yy = y * y;
    if (xx + yy > 4.0f) break;
    y = 2.0f * x * y + cy;
    x = xx - yy + cx;
    count++;
  }
  return count;
}

static void picture(int w, int h, int most, float left, float top, float step, int32_t *to) {
#pragma omp parallel for schedule(dynamic, 4)
  for (int py = 0; py < h; py++)
    for (int px = 0; px < w; px++) to[py * w + px] = steps(left + step * px, top + step * py, most);
}

static void plain(void) { picture(width, height, limit, -2.0f, -1.25f, 2.5f / height, out); }

static const struct variant variants[] = {{"plain", plain}, {0, 0}};
