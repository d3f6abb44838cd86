// Prices of European options in doubles: calls, and behind them puts.
// targets: sm_80
__device__ double distribution(double x) { return 0.5 * erfc(-0.70710678118654752 * x); }

extern "C" __global__ void black_scholes(int n, double rate, double volatility, const double* spot, const double* strike,
                                         const double* years, double* prices) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  double s = spot[i], k = strike[i], t = years[i];
  double spread = volatility * sqrt(t);
  double d1 = (log(s / k) + (rate + 0.5 * volatility * volatility) * t) / spread, d2 = d1 - spread;
  double discounted = k * exp(-rate * t);
  prices[i] = s * distribution(d1) - discounted * distribution(d2);
  prices[n + i] = discounted * distribution(-d2) - s * distribution(-d1);
}
