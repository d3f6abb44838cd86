// Races as programs in CUDA C++ have them, each beside the same program without it.
//@ seeds: 0..3
#include <cuda/atomic>

#define KERNEL extern "C" __global__ void
using word = unsigned;

// A tile that threads of other warps read: with a barrier, and without.
//@ launch: tile_barrier<<<1, 64>>>
KERNEL tile_barrier(word *data, word *flag, word *out)
{
    __shared__ word tile[64];
    tile[threadIdx.x] = data[threadIdx.x] + 1;
    __syncthreads();
    out[threadIdx.x] = tile[63 - threadIdx.x];
}

//@ launch: tile_nothing<<<1, 64>>>
KERNEL tile_nothing(word *data, word *flag, word *out)
{
    __shared__ word tile[64];
    tile[threadIdx.x] = 0;
    __syncthreads();
    tile[threadIdx.x] = data[threadIdx.x] + 1; //~ st.shared: race unordered
    out[threadIdx.x] = tile[63 - threadIdx.x]; //~ ld.shared: race unordered
}

// The tile is filled again in each turn: a barrier before that is needed too.
//@ launch: turns_two_barriers<<<1, 64>>>
KERNEL turns_two_barriers(word *data, word *flag, word *out)
{
    __shared__ word tile[64];
    word sum = 0;
#pragma unroll 1
    for (word turn = 0; turn < 3; turn++) {
        tile[threadIdx.x] = data[threadIdx.x] + turn;
        __syncthreads();
        sum += tile[63 - threadIdx.x];
        __syncthreads();
    }
    out[threadIdx.x] = sum;
}

//@ launch: turns_one_barrier<<<1, 64>>>
KERNEL turns_one_barrier(word *data, word *flag, word *out)
{
    __shared__ word tile[64];
    word sum = 0;
    tile[threadIdx.x] = 0;
    __syncthreads();
#pragma unroll 1
    for (word turn = 0; turn < 3; turn++) {
        tile[threadIdx.x] = data[threadIdx.x] + turn; //~ st.shared: race unordered
        __syncthreads();
        sum += tile[63 - threadIdx.x]; //~ ld.shared: race unordered
    }
    out[threadIdx.x] = sum;
}

// A sum in a warp, as it was written before threads of a warp could part.
//@ launch: warp_sum_synced<<<1, 32>>>
KERNEL warp_sum_synced(word *data, word *flag, word *out)
{
    __shared__ word part[64];
    word t = threadIdx.x;
    part[t] = data[t];
    part[t + 32] = data[t + 32];
    __syncwarp();
#pragma unroll 1
    for (word far = 32; far > 0; far /= 2) {
        word next = part[t] + (t < far ? part[t + far] : 0);
        __syncwarp();
        part[t] = next;
        __syncwarp();
    }
    out[t] = part[t];
}

//@ launch: warp_sum_not_synced<<<1, 32>>>
KERNEL warp_sum_not_synced(word *data, word *flag, word *out)
{
    __shared__ word part[32];
    word t = threadIdx.x;
    part[t] = 0;
    __syncwarp();
    part[t] = data[t]; //~ st.shared: race same_warp
    word next = part[t ^ 1]; //~ ld.shared: race same_warp
    out[t] = next;
}

// Counts of values: with atomics, and without.
//@ launch: counts_atomic<<<2, 64>>>
KERNEL counts_atomic(word *data, word *flag, word *out)
{
    __shared__ word count[4];
    if (threadIdx.x < 4) count[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&count[data[threadIdx.x] % 4], 1u);
    __syncthreads();
    if (threadIdx.x < 4) atomicAdd(&out[threadIdx.x], count[threadIdx.x]);
}

//@ launch: counts_plain_in_global<<<2, 64>>>
KERNEL counts_plain_in_global(word *data, word *flag, word *out)
{
    if (threadIdx.x == 0) {
        word old = out[0]; //~ ld.global: race unordered
        out[0] = old + 1; //~ st.global: race unordered
    }
}

// Atomics of a block on a word that another block counts too.
//@ launch: atomic_of_gpu<<<2, 32>>>
KERNEL atomic_of_gpu(word *data, word *flag, word *out)
{
    atomicAdd(out, 1u);
}

//@ launch: atomic_of_block<<<2, 32>>>
KERNEL atomic_of_block(word *data, word *flag, word *out)
{
    atomicAdd_block(out, 1u); //~ atom.: race atomic_scopes
}

// A message to another block. Each waits for the one before it, so blocks may start in any order.
//@ launch: message_released<<<2, 1>>>
KERNEL message_released(word *data, word *flag, word *out)
{
    cuda::atomic_ref<word, cuda::thread_scope_device> f(*flag);
    if (blockIdx.x == 1) {
        data[0] = 7;
        f.store(1, cuda::std::memory_order_release);
        return;
    }
    while (f.load(cuda::std::memory_order_acquire) == 0) {}
    out[0] = data[0];
}

//@ launch: message_relaxed<<<2, 1>>>
KERNEL message_relaxed(word *data, word *flag, word *out)
{
    cuda::atomic_ref<word, cuda::thread_scope_device> f(*flag);
    if (blockIdx.x == 1) {
        data[0] = 7; //~ st.global: race unordered
        f.store(1, cuda::std::memory_order_relaxed);
        return;
    }
    while (f.load(cuda::std::memory_order_relaxed) == 0) {}
    out[0] = data[0]; //~ ld.global: race unordered
}

//@ launch: message_fenced<<<2, 1>>>
KERNEL message_fenced(word *data, word *flag, word *out)
{
    if (blockIdx.x == 1) {
        data[0] = 7;
        __threadfence();
        atomicExch(flag, 1u);
        return;
    }
    while (atomicAdd(flag, 0u) == 0) {}
    __threadfence();
    out[0] = data[0];
}

//@ launch: message_fenced_in_the_block<<<2, 1>>>
KERNEL message_fenced_in_the_block(word *data, word *flag, word *out)
{
    if (blockIdx.x == 1) {
        data[0] = 7; //~ st.global: race scope_too_narrow
        __threadfence_block();
        atomicExch(flag, 1u);
        return;
    }
    while (atomicAdd(flag, 0u) == 0) {}
    __threadfence();
    out[0] = data[0]; //~ ld.global: race scope_too_narrow
}

// The last block adds up what all have written.
//@ launch: last_block_fenced<<<4, 32>>>
KERNEL last_block_fenced(word *data, word *flag, word *out)
{
    if (threadIdx.x != 0) return;
    data[blockIdx.x] = blockIdx.x + 1;
    __threadfence();
    if (atomicAdd(flag, 1u) != 3) return;
    __threadfence();
    out[0] = data[0] + data[1] + data[2] + data[3];
}

//@ launch: last_block_not_fenced<<<4, 32>>>
KERNEL last_block_not_fenced(word *data, word *flag, word *out)
{
    if (threadIdx.x != 0) return;
    data[blockIdx.x] = blockIdx.x + 1; //~ st.global: race unordered
    if (atomicAdd(flag, 1u) != 3) return;
    word sum = 0;
#pragma unroll 1
    for (word i = 0; i < 4; i++) sum += data[i]; //~ ld.global: race unordered
    out[0] = sum;
}

// A flag that is only volatile is a race, and so is the data: `__threadfence` is a fence of sequential consistency, but nothing strong says which one comes first.
//@ launch: message_volatile<<<2, 1>>>
KERNEL message_volatile(word *data, word *flag, word *out)
{
    volatile word *f = flag;
    if (blockIdx.x == 1) {
        data[0] = 7; //~ st.global: race unordered
        __threadfence();
        *f = 1; //~ st.volatile: race unordered
        return;
    }
    while (*f == 0) {} //~ ld.volatile: race unordered
    __threadfence();
    out[0] = data[0]; //~ ld.global: race unordered
}
