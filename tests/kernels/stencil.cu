// Five points of a grid of `width` by `height`: the inside is written, the rim is left alone.
// targets: sm_80
extern "C" __global__ void stencil5(int width, int height, float centre, float side, const float* __restrict__ in,
                                    float* __restrict__ out) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < 1 || y < 1 || x >= width - 1 || y >= height - 1) return;
  int i = y * width + x;
  out[i] = centre * in[i] + side * ((in[i - 1] + in[i + 1]) + (in[i - width] + in[i + width]));
}
