// Sorts each 512 words: by the kernel's bitonic network, and by the sort of the C library. Sizes: words, a multiple of 512.
#include "common.h"

static unsigned n;
static uint32_t *in, *out;

static void prepare(const unsigned *sizes) {
  n = sizes[0];
  in = array(n, sizeof *in);
  out = array(n, sizeof *out);
  result = out;
  result_bytes = n * sizeof *out;
}

static void reset(void) {
  for (uint32_t i = 0; i < n; i++) in[i] = mixed(i);
}

static void sort_512(uint32_t *restrict part) {
  for (unsigned size = 2; size <= 512; size *= 2)
    for (unsigned distance = size / 2; distance > 0; distance /= 2)
      for (unsigned from = 0; from < 512; from += 2 * distance) {
        int is_up = (from & size) == 0;
        for (unsigned i = from; i < from + distance; i++) {
          uint32_t a = part[i], b = part[i + distance];
          uint32_t low = a < b ? a : b, high = a < b ? b : a;
          part[i] = is_up ? low : high;
          part[i + distance] = is_up ? high : low;
        }
      }
}

static void network(void) {
#pragma omp parallel for
  for (unsigned from = 0; from < n; from += 512) {
    memcpy(out + from, in + from, 512 * sizeof *out);
    sort_512(out + from);
  }
}

static int order(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

static void library(void) {
#pragma omp parallel for
  for (unsigned from = 0; from < n; from += 512) {
    memcpy(out + from, in + from, 512 * sizeof *out);
    qsort(out + from, 512, sizeof *out, order);
  }
}

static const struct variant variants[] = {{"network", network}, {"library", library}, {0, 0}};
