// targets: sm_80
// headers: cuda
// Products by nvcuda::wmma: f16 in both layouts with strides, bf16, tf32, f64, s8 in another shape, and single bits.
#include <mma.h>

using namespace nvcuda::wmma;

// c = a * b + c with f32 sums, one warp for each tile of 16 by 16: a lies in rows, b in columns, strides are those of the matrices.
extern "C" __global__ void halves(const __half* a, const __half* b, float* c, int n, int k) {
  int row = blockIdx.y * 16, column = (blockIdx.x * blockDim.y + threadIdx.y) * 16;
  fragment<matrix_a, 16, 16, 16, __half, row_major> x;
  fragment<matrix_b, 16, 16, 16, __half, col_major> y;
  fragment<accumulator, 16, 16, 16, float> sum;
  load_matrix_sync(sum, c + row * n + column, n, mem_row_major);
  for (int i = 0; i < k; i += 16) {
    load_matrix_sync(x, a + row * k + i, k);
    load_matrix_sync(y, b + column * k + i, k);
    mma_sync(sum, x, y, sum);
  }
  store_matrix_sync(c + row * n + column, sum, n, mem_row_major);
}

// The same from shared memory, with both matrices the other way round, 8 rows of 32 columns, f16 sums that are doubled, and a result in columns.
extern "C" __global__ void halves_turned(const __half* a, const __half* b, __half* c) {
  __shared__ alignas(32) __half left[16 * 24], right[16 * 40];
  for (int i = threadIdx.x; i < 16 * 8; i += 32) left[i / 8 * 24 + i % 8] = a[i];
  for (int i = threadIdx.x; i < 16 * 32; i += 32) right[i / 32 * 40 + i % 32] = b[i];
  __syncwarp();
  fragment<matrix_a, 8, 32, 16, __half, col_major> x;
  fragment<matrix_b, 8, 32, 16, __half, row_major> y;
  fragment<accumulator, 8, 32, 16, __half> sum;
  fill_fragment(sum, __float2half(0.5f));
  load_matrix_sync(x, left, 24);
  load_matrix_sync(y, right, 40);
  mma_sync(sum, x, y, sum);
  for (int i = 0; i < sum.num_elements; i++) sum.x[i] = sum.x[i] + sum.x[i];
  store_matrix_sync(c, sum, 8, mem_col_major);
}

extern "C" __global__ void brains(const __nv_bfloat16* a, const __nv_bfloat16* b, float* c) {
  fragment<matrix_a, 32, 8, 16, __nv_bfloat16, row_major> x;
  fragment<matrix_b, 32, 8, 16, __nv_bfloat16, col_major> y;
  fragment<accumulator, 32, 8, 16, float> sum;
  fill_fragment(sum, 0.0f);
  load_matrix_sync(x, a, 16);
  load_matrix_sync(y, b, 16);
  mma_sync(sum, x, y, sum);
  store_matrix_sync(c, sum, 8, mem_row_major);
}

// Numbers of f32 are rounded to tf32 in their fragments.
extern "C" __global__ void floats(const float* a, const float* b, float* c) {
  fragment<matrix_a, 16, 16, 8, precision::tf32, row_major> x;
  fragment<matrix_b, 16, 16, 8, precision::tf32, row_major> y;
  fragment<accumulator, 16, 16, 8, float> sum;
  fill_fragment(sum, 0.0f);
  load_matrix_sync(x, a, 8);
  load_matrix_sync(y, b, 16);
  for (int i = 0; i < x.num_elements; i++) x.x[i] = __float_to_tf32(x.x[i]);
  for (int i = 0; i < y.num_elements; i++) y.x[i] = __float_to_tf32(y.x[i]);
  mma_sync(sum, x, y, sum);
  store_matrix_sync(c, sum, 16, mem_row_major);
}

extern "C" __global__ void doubles(const double* a, const double* b, double* c) {
  fragment<matrix_a, 8, 8, 4, double, row_major> x;
  fragment<matrix_b, 8, 8, 4, double, col_major> y;
  fragment<accumulator, 8, 8, 4, double> sum;
  load_matrix_sync(sum, c, 8, mem_col_major);
  load_matrix_sync(x, a, 4);
  load_matrix_sync(y, b, 4);
  mma_sync(sum, x, y, sum);
  store_matrix_sync(c, sum, 8, mem_col_major);
}

extern "C" __global__ void bytes(const signed char* a, const signed char* b, int* c, int k) {
  fragment<matrix_a, 32, 8, 16, signed char, row_major> x;
  fragment<matrix_b, 32, 8, 16, signed char, col_major> y;
  fragment<accumulator, 32, 8, 16, int> sum;
  fill_fragment(sum, -7);
  for (int i = 0; i < k; i += 16) {
    load_matrix_sync(x, a + i, k);
    load_matrix_sync(y, b + i, k);
    mma_sync(sum, x, y, sum);
  }
  store_matrix_sync(c, sum, 8, mem_row_major);
}

// Bits in which rows of a and columns of b differ.
extern "C" __global__ void bits(const experimental::precision::b1* a, const experimental::precision::b1* b, int* c) {
  fragment<matrix_a, 8, 8, 128, experimental::precision::b1, row_major> x;
  fragment<matrix_b, 8, 8, 128, experimental::precision::b1, col_major> y;
  fragment<accumulator, 8, 8, 128, int> sum;
  fill_fragment(sum, 0);
  load_matrix_sync(x, a, 128);
  load_matrix_sync(y, b, 128);
  bmma_sync(sum, x, y, sum, experimental::bmmaBitOpXOR);
  store_matrix_sync(c, sum, 8, mem_row_major);
}
