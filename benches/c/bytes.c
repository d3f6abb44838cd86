// Saturating sums and distances of bytes. Sizes: words of four bytes.
#include "common.h"

static unsigned n;
static uint8_t *a, *b, *to;

static void prepare(const unsigned *sizes) {
  n = 4 * sizes[0];
  a = array(n, 1);
  b = array(n, 1);
  to = array(n, 1);
  result = to;
  result_bytes = n;
}

static void reset(void) {
  for (unsigned i = 0; i < n / 4; i++) {
    uint32_t x = mixed(i), y = mixed(n / 4 + i);
    memcpy(a + 4 * i, &x, 4);
    memcpy(b + 4 * i, &y, 4);
  }
}

static void sums(unsigned count, const uint8_t *restrict x, const uint8_t *restrict y, uint8_t *restrict d) {
#pragma omp parallel for
  for (unsigned i = 0; i < count; i++) {
    int sum = x[i] + y[i];
    d[i] = sum > 255 ? 255 : sum;
  }
}

static void distances(unsigned count, const uint8_t *restrict x, const uint8_t *restrict y, uint8_t *restrict d) {
#pragma omp parallel for
  for (unsigned i = 0; i < count; i++) d[i] = x[i] > y[i] ? x[i] - y[i] : y[i] - x[i];
}

static void add(void) { sums(n, a, b, to); }
static void distance(void) { distances(n, a, b, to); }

static const struct variant variants[] = {{"add", add}, {"distance", distance}, {0, 0}};
