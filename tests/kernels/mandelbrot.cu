// Steps until a point of the plane leaves the circle of radius 2, at most `limit`.
// targets: sm_80 sm_90
extern "C" __global__ void mandelbrot(int width, int height, int limit, float left, float top, float step, int* out) {
  int px = blockIdx.x * blockDim.x + threadIdx.x;
  int py = blockIdx.y * blockDim.y + threadIdx.y;
  if (px >= width || py >= height) return;
  float cx = left + step * px, cy = top + step * py;
  float x = 0.0f, y = 0.0f;
  int n = 0;
  while (n < limit) {
    float xx = x * x, yy = y * y;
    if (xx + yy > 4.0f) break;
    y = 2.0f * x * y + cy;
    x = xx - yy + cx;
    n++;
  }
  out[py * width + px] = n;
}
