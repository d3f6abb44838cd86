// options: -lineinfo
// out[row] is the sum of a row of x, which has 64 columns. A block of 64 threads takes one row, then another.
extern "C" __global__ void row_sums(const float *x, float *out, int rows)
{
    __shared__ float part[64];

    for (int row = blockIdx.x; row < rows; row += gridDim.x) {
        part[threadIdx.x] = x[row * 64 + threadIdx.x];
        __syncthreads();
        if (threadIdx.x == 0) {
            float sum = 0.0f;
#pragma unroll 1
            for (int i = 0; i < 64; i++)
                sum += part[i];
            out[row] = sum;
        }
        __syncthreads();
    }
}
