// targets: sm_100a
// headers: cuda
// Products in tensor memory, as a library of kernels writes them: tiles in shared memory with swizzles of 128 bytes, one thread that multiplies and commits, a barrier in memory,
// accumulators that come back to registers. c = a * b^T, with rows of f16 in a and b, and f32 in c.
#include <cuda/ptx>
#include <cuda_fp16.h>

namespace ptx = cuda::ptx;

constexpr int M = 128, N = 64, K = 64;

__device__ uint64_t descriptor(const void* tile)
{
    uint64_t start = (__cvta_generic_to_shared(tile) & 0x3ffff) >> 4;
    return start | uint64_t(1) << 16 | uint64_t(1024 >> 4) << 32 | uint64_t(1) << 46 | uint64_t(2) << 61;
}

// Rows of 64 elements; what is not there is zero.
__device__ void fill(char* tile, const __half* from, int rows, int left, int k)
{
    for (int i = threadIdx.x; i < rows * 8; i += 128) {
        int row = i / 8, unit = i % 8;
        int at = row * 128 + unit * 16;
        at ^= (at >> 7 & 7) << 4;
        uint4 zero = make_uint4(0, 0, 0, 0);
        *reinterpret_cast<uint4*>(tile + at) =
            row < left ? *reinterpret_cast<const uint4*>(from + size_t(row) * k + unit * 8) : zero;
    }
}

extern "C" __global__ void __launch_bounds__(128)
tensor_product(const __half* a, const __half* b, float* c, int m, int n, int k)
{
    __shared__ alignas(1024) char tile_a[M * K * 2];
    __shared__ alignas(1024) char tile_b[N * K * 2];
    __shared__ alignas(8) uint64_t bar;
    __shared__ uint32_t place;
    int t = threadIdx.x, warp = t / 32;
    int m0 = blockIdx.y * M, n0 = blockIdx.x * N;
    if (warp == 0) {
        ptx::tcgen05_alloc(ptx::cta_group_1, &place, 64);
        ptx::tcgen05_relinquish_alloc_permit(ptx::cta_group_1);
    }
    if (t == 0)
        ptx::mbarrier_init(&bar, 1);
    ptx::tcgen05_fence_before_thread_sync();
    __syncthreads();
    ptx::tcgen05_fence_after_thread_sync();
    uint32_t d = place;
    uint32_t instruction = 1u << 4 | (N / 8) << 17 | (M / 16) << 24;
    int phase = 0;
    for (int k0 = 0; k0 < k; k0 += K) {
        fill(tile_a, a + size_t(m0) * k + k0, M, m - m0, k);
        fill(tile_b, b + size_t(n0) * k + k0, N, n - n0, k);
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        if (t == 0) {
            for (int i = 0; i < K; i += 16)
                ptx::tcgen05_mma(ptx::kind_f16, ptx::cta_group_1, d, descriptor(tile_a + i * 2), descriptor(tile_b + i * 2),
                                 instruction, k0 + i > 0, ptx::n32_t<0>{});
            ptx::tcgen05_commit(ptx::cta_group_1, &bar);
        }
        while (!ptx::mbarrier_try_wait_parity(&bar, phase)) {
        }
        phase ^= 1;
        __syncthreads();
    }
    ptx::tcgen05_fence_after_thread_sync();
    for (int column = 0; column < N; column += 16) {
        uint32_t r[16];
        ptx::tcgen05_ld_32x32b(r, d + (uint32_t(warp * 32) << 16) + column);
        ptx::tcgen05_wait_ld();
        for (int i = 0; i < 16; i++)
            if (m0 + t < m && n0 + column + i < n)
                c[size_t(m0 + t) * n + n0 + column + i] = __uint_as_float(r[i]);
    }
    __syncthreads();
    if (warp == 0)
        ptx::tcgen05_dealloc(ptx::cta_group_1, d, 64);
}
