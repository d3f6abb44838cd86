// Prices of European options in doubles by the functions of the C library. Sizes: options.
#include "common.h"
#include <math.h>

static int n;
static double *spot, *strike, *years, *prices;

static void prepare(const unsigned *sizes) {
  n = (int)sizes[0];
  spot = array(n, sizeof *spot), strike = array(n, sizeof *strike), years = array(n, sizeof *years);
  prices = array(2 * (size_t)n, sizeof *prices);
  result = prices;
  result_bytes = 2 * (size_t)n * sizeof *prices;
}

static void reset(void) {
  for (int i = 0; i < n; i++) {
    uint32_t from = 3 * (uint32_t)i;
    spot[i] = 20 * ((double)mixed_float(from) + 0.5) + 10;
    strike[i] = 30 * ((double)mixed_float(from + 1) + 0.5) + 5;
    years[i] = 5 * ((double)mixed_float(from + 2) + 0.5) + 0.25;
  }
}

static double distribution(double x) { return 0.5 * erfc(-0.70710678118654752 * x); }

static void price(int count, double rate, double volatility, const double *restrict from, const double *restrict to, const double *restrict t,
                  double *restrict found) {
#pragma omp parallel for
  for (int i = 0; i < count; i++) {
    double s = from[i], k = to[i], spread = volatility * sqrt(t[i]);
    double d1 = (log(s / k) + (rate + 0.5 * volatility * volatility) * t[i]) / spread, d2 = d1 - spread;
    double discounted = k * exp(-rate * t[i]);
    found[i] = s * distribution(d1) - discounted * distribution(d2);
    found[count + i] = discounted * distribution(-d2) - s * distribution(-d1);
  }
}

static void plain(void) { price(n, 0.02, 0.3, spot, strike, years, prices); }

static const struct variant variants[] = {{"plain", plain}, {0, 0}};
