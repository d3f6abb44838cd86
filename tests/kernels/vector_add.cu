// c = a + b: one element a thread, and a grid-stride loop over four elements at a time.
// targets: sm_80
extern "C" __global__ void vector_add(int n, const float* a, const float* b, float* c) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

// `n4` counts groups of four.
extern "C" __global__ void vector_add4(int n4, const float4* a, const float4* b, float4* c) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n4; i += gridDim.x * blockDim.x) {
    float4 u = a[i], v = b[i];
    c[i] = make_float4(u.x + v.x, u.y + v.y, u.z + v.z, u.w + v.w);
  }
}
