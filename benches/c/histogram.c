// Counts of the top bytes of words. Sizes: words.
#include "common.h"

static unsigned n;
static uint32_t *in, bins[256];

static void prepare(const unsigned *sizes) {
  n = sizes[0];
  in = array(n, sizeof *in);
  result = bins;
  result_bytes = sizeof bins;
}

static void reset(void) {
  for (unsigned i = 0; i < n; i++) in[i] = mixed(i);
  memset(bins, 0, sizeof bins);
}

static void count_into(unsigned count, const uint32_t *from, uint32_t *to) {
#pragma omp parallel for reduction(+ : to[:256])
  for (unsigned i = 0; i < count; i++) to[from[i] >> 24]++;
}

static void plain(void) { count_into(n, in, bins); }

static const struct variant variants[] = {{"plain", plain}, {0, 0}};
