// Fences of CUDA C++, which are of sequential consistency: where their order is forced, and where it is not.
//@ seeds: 0..3
#include <cuda/atomic>

#define KERNEL extern "C" __global__ void
using word = unsigned;

// All threads write and fence, a barrier, and one signals for all: the order of the fences is forced by what it signals.
//@ launch: all_fenced<<<2, 64>>>
KERNEL all_fenced(word *data, word *flag, word *out)
{
    __shared__ bool is_last;
    data[blockIdx.x * 64 + threadIdx.x] = threadIdx.x;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) is_last = atomicAdd(flag, 1u) == 1;
    __syncthreads();
    if (!is_last) return;
    __threadfence();
    out[threadIdx.x] = data[63 - threadIdx.x] + data[127 - threadIdx.x];
}

//@ launch: all_fenced_no_barrier<<<2, 64>>>
KERNEL all_fenced_no_barrier(word *data, word *flag, word *out)
{
    __shared__ bool is_last;
    data[blockIdx.x * 64 + threadIdx.x] = threadIdx.x; //~ st.global: race unordered
    __threadfence();
    if (threadIdx.x == 32) is_last = atomicAdd(flag, 1u) == 1;
    __syncthreads();
    if (!is_last) return;
    __threadfence();
    word sum = 0;
#pragma unroll 1
    for (word i = 0; i < 128; i += 64) sum += data[i + 63 - threadIdx.x]; //~ ld.global: race unordered
    out[threadIdx.x] = sum;
}

// A fence behind the signal keeps nothing before it.
//@ launch: fenced_behind<<<2, 1>>>
KERNEL fenced_behind(word *data, word *flag, word *out)
{
    if (blockIdx.x == 1) {
        data[0] = 7; //~ st.global: race unordered
        atomicExch(flag, 1u);
        __threadfence();
        return;
    }
    while (atomicAdd(flag, 0u) == 0) {}
    __threadfence();
    out[0] = data[0]; //~ ld.global: race unordered
}

// Fences are no barrier.
//@ launch: fences_for_a_barrier<<<1, 64>>>
KERNEL fences_for_a_barrier(word *data, word *flag, word *out)
{
    __shared__ word tile[64];
    tile[threadIdx.x] = 0;
    __syncthreads();
    tile[threadIdx.x] = data[threadIdx.x] + 1; //~ st.shared: race unordered
    __threadfence();
    __threadfence();
    out[threadIdx.x] = tile[63 - threadIdx.x]; //~ ld.shared: race unordered
}

// Who enters has raised a flag, and has seen that the other one has not: one of the two fences comes first.
//@ launch: flags_of_two<<<2, 1>>>
KERNEL flags_of_two(word *data, word *flag, word *out)
{
    cuda::atomic_ref<word, cuda::thread_scope_device> mine(flag[blockIdx.x]), other(flag[1 - blockIdx.x]);
    mine.store(1, cuda::std::memory_order_relaxed);
    __threadfence();
    if (other.load(cuda::std::memory_order_relaxed) == 0) data[0] = blockIdx.x;
}
