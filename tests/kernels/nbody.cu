// Accelerations of bodies that pull each other, softened; tiles of positions go through shared memory. A body is x, y, z, mass.
// targets: sm_80
extern "C" __global__ void accelerations(int n, float softening, const float4* bodies, float4* result) {
  extern __shared__ float4 tile[];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float4 own = i < n ? bodies[i] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  float ax = 0.0f, ay = 0.0f, az = 0.0f;
  for (int from = 0; from < n; from += blockDim.x) {
    int j = from + threadIdx.x;
    tile[threadIdx.x] = j < n ? bodies[j] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    __syncthreads();
    for (int k = 0; k < blockDim.x; k++) {
      float4 other = tile[k];
      float dx = other.x - own.x, dy = other.y - own.y, dz = other.z - own.z;
      float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + softening);
      float pull = other.w * inverse * inverse * inverse;
      ax += dx * pull, ay += dy * pull, az += dz * pull;
    }
    __syncthreads();
  }
  if (i < n) result[i] = make_float4(ax, ay, az, 0.0f);
}

// One step of time: velocities, then positions.
extern "C" __global__ void advance(int n, float step, const float4* pull, float4* velocities, float4* bodies) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float4 v = velocities[i], p = bodies[i], a = pull[i];
  v.x += step * a.x, v.y += step * a.y, v.z += step * a.z;
  p.x += step * v.x, p.y += step * v.y, p.z += step * v.z;
  velocities[i] = v;
  bodies[i] = p;
}
