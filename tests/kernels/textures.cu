// targets: sm_80
// headers: cuda
// Textures: a picture made larger by a bilinear filter, samples of a volume, a cube map, levels of detail, four neighbours at once.

extern "C" __global__ void resize(cudaTextureObject_t from, uchar4* to, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  float4 c = tex2D<float4>(from, (x + 0.5f) / width, (y + 0.5f) / height);
  to[y * width + x] = make_uchar4((unsigned char)(c.x * 255 + 0.5f), (unsigned char)(c.y * 255 + 0.5f),
                                  (unsigned char)(c.z * 255 + 0.5f), (unsigned char)(c.w * 255 + 0.5f));
}

// The mean along rays through a volume.
extern "C" __global__ void rays(cudaTextureObject_t volume, const float3* from, const float3* step, int steps, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float3 p = from[i];
  float sum = 0;
  for (int s = 0; s < steps; s++) {
    sum += tex3D<float>(volume, p.x, p.y, p.z);
    p.x += step[i].x;
    p.y += step[i].y;
    p.z += step[i].z;
  }
  out[i] = sum;
}

extern "C" __global__ void sky(cudaTextureObject_t cube, const float3* towards, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = texCubemap<int>(cube, towards[i].x, towards[i].y, towards[i].z);
}

extern "C" __global__ void details(cudaTextureObject_t pyramid, const float3* at, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = tex2DLod<float>(pyramid, at[i].x, at[i].y, at[i].z);
}

extern "C" __global__ void neighbours(cudaTextureObject_t from, const float2* at, float4* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = tex2Dgather<float4>(from, at[i].x, at[i].y, 0);
}

// A picture turned by a quarter through surfaces; what lies outside is left out.
extern "C" __global__ void turn(cudaSurfaceObject_t from, cudaSurfaceObject_t to, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  unsigned short v = surf2Dread<unsigned short>(from, x * 2, y, cudaBoundaryModeZero);
  surf2Dwrite(v, to, (height - 1 - y) * 2, x, cudaBoundaryModeZero);
}
