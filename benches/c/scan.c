// Prefix sums of each 256 words. Sizes: words, a multiple of 256.
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

static void sums(unsigned count, const uint32_t *restrict from, uint32_t *restrict to) {
#pragma omp parallel for
  for (unsigned start = 0; start < count; start += 256) {
    uint32_t sum = 0;
    for (unsigned i = start; i < start + 256; i++) to[i] = sum += from[i];
  }
}

static void plain(void) { sums(n, in, out); }

static const struct variant variants[] = {{"plain", plain}, {0, 0}};
