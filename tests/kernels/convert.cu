// Arrays converted from one type to another, a thread for each element, or for two where elements come in pairs.
// targets: sm_100a
#define AT int i = blockIdx.x * blockDim.x + threadIdx.x

extern "C" __global__ void f32_to_f16(int n, const float* from, unsigned short* to) {
  AT;
  if (i < n) asm("cvt.rn.f16.f32 %0, %1;" : "=h"(to[i]) : "f"(from[i]));
}

extern "C" __global__ void f16_to_f32(int n, const unsigned short* from, float* to) {
  AT;
  if (i < n) asm("cvt.f32.f16 %0, %1;" : "=f"(to[i]) : "h"(from[i]));
}

extern "C" __global__ void f32_to_bf16(int n, const float* from, unsigned short* to) {
  AT;
  if (i < n) asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(to[i]) : "f"(from[i]));
}

extern "C" __global__ void f32_to_s32(int n, const float* from, int* to) {
  AT;
  if (i < n) to[i] = (int)from[i];
}

extern "C" __global__ void s32_to_f32(int n, const int* from, float* to) {
  AT;
  if (i < n) to[i] = (float)from[i];
}

extern "C" __global__ void u8_to_f32(int n, const unsigned char* from, float* to) {
  AT;
  if (i < n) to[i] = (float)from[i];
}

extern "C" __global__ void f64_to_s64(int n, const double* from, long long* to) {
  AT;
  if (i < n) to[i] = (long long)from[i];
}

extern "C" __global__ void s64_to_f64(int n, const long long* from, double* to) {
  AT;
  if (i < n) to[i] = (double)from[i];
}

extern "C" __global__ void f32_to_e4m3(int n, const float2* from, unsigned short* to) {
  AT;
  if (i < n) {
    float2 v = from[i];
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(to[i]) : "f"(v.y), "f"(v.x));
  }
}

extern "C" __global__ void e4m3_to_f16(int n, const unsigned short* from, unsigned* to) {
  AT;
  if (i < n) asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(to[i]) : "h"(from[i]));
}

extern "C" __global__ void f32_to_e2m1(int n, const float2* from, unsigned char* to) {
  AT;
  if (i < n) {
    float2 v = from[i];
    unsigned short d;
    asm("{ .reg .b8 t; cvt.rn.satfinite.e2m1x2.f32 t, %1, %2; mov.b16 %0, {t, 0}; }" : "=h"(d) : "f"(v.y), "f"(v.x));
    to[i] = (unsigned char)d;
  }
}
