// Patterns as people write them, which are right: nothing may be found, whatever the seed.
//@ seeds: 0..4
#include <cooperative_groups.h>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/ptx>

#define KERNEL extern "C" __global__ void
namespace cg = cooperative_groups;
namespace ptx = cuda::ptx;
using word = unsigned;
using u64 = cuda::std::uint64_t;
using cuda::std::memory_order_acq_rel, cuda::std::memory_order_acquire, cuda::std::memory_order_relaxed, cuda::std::memory_order_release;
constexpr auto B = cuda::thread_scope_block, D = cuda::thread_scope_device;
template <cuda::thread_scope S> using ref = cuda::atomic_ref<word, S>;

__device__ inline void wait(u64 *b, word parity)
{
    while (!ptx::mbarrier_try_wait_parity(b, parity)) {}
}

// The same by fences and atomics.
//@ launch: lookback_fences<<<6, 32>>>
KERNEL lookback_fences(word *data, word *flag, word *out)
{
    __shared__ word id;
    if (threadIdx.x == 0) id = atomicAdd(flag + 100, 1);
    __syncthreads();
    word b = id;
    if (threadIdx.x == 0) {
        word before = 0;
        if (b) {
            while (atomicAdd(flag + b - 1, 0) == 0) {}
            __threadfence();
            before = __ldcg(data + b - 1);
        }
        data[b] = before + b;
        __threadfence();
        atomicExch(flag + b, 1);
        out[b] = before;
    }
}

// The last block adds up what all wrote.
//@ launch: last_acqrel<<<4, 64>>>
KERNEL last_acqrel(word *data, word *flag, word *out)
{
    __shared__ bool last;
    data[blockIdx.x * 64 + threadIdx.x] = 1;
    __syncthreads();
    if (threadIdx.x == 0) last = ref<D>(*flag).fetch_add(1, memory_order_acq_rel) == gridDim.x - 1;
    __syncthreads();
    if (last) {
        word s = 0;
        for (int i = threadIdx.x; i < 256; i += 64) s += data[i];
        out[threadIdx.x] = s;
    }
}

// `cuda::barrier`.
//@ launch: cbar_split_ok<<<2, 64>>>
KERNEL cbar_split_ok(word *data, word *flag, word *out)
{
    __shared__ cuda::barrier<B> bar;
    __shared__ word s[64];
    if (threadIdx.x == 0) init(&bar, 64);
    __syncthreads();
    s[threadIdx.x] = threadIdx.x;
    auto t = bar.arrive();
    word x = data[threadIdx.x];
    bar.wait(std::move(t));
    out[blockIdx.x * 64 + threadIdx.x] = x + s[63 - threadIdx.x];
}

//@ launch: nb_pc<<<1, 64>>>
KERNEL nb_pc(word *data, word *flag, word *out)
{
    __shared__ word s[32];
    int t = threadIdx.x & 31;
    word x = 0;
    for (int i = 0; i < 3; i++) {
        if (threadIdx.x < 32) {
            s[t] = i;
            asm volatile("bar.arrive 1, 64;" ::: "memory");
            asm volatile("bar.sync 2, 64;" ::: "memory");
        }
        else {
            asm volatile("bar.sync 1, 64;" ::: "memory");
            x += s[31 - t];
            asm volatile("bar.arrive 2, 64;" ::: "memory");
        }
    }
    out[threadIdx.x] = x;
}

// Sums of a warp in shared memory.
//@ launch: warp_syncwarp<<<1, 32>>>
KERNEL warp_syncwarp(word *data, word *flag, word *out)
{
    __shared__ word s[64];
    int t = threadIdx.x;
    s[t] = t;
    s[t + 32] = 0;
    __syncwarp();
    word v = s[t];
    for (int d = 16; d; d /= 2) {
        v += s[t + d];
        __syncwarp();
        s[t] = v;
        __syncwarp();
    }
    if (t == 0) out[0] = s[0];
}

//@ launch: warp_guarded<<<1, 32>>>
KERNEL warp_guarded(word *data, word *flag, word *out)
{
    __shared__ word s[32];
    int t = threadIdx.x;
    s[t] = t;
    __syncwarp();
    for (int d = 16; d; d /= 2) {
        if (t < d) s[t] += s[t + d];
        __syncwarp();
    }
    if (t == 0) out[0] = s[0];
}

// One atomic for lanes that go together.
//@ launch: warp_aggregated<<<2, 64>>>
KERNEL warp_aggregated(word *data, word *flag, word *out)
{
    if (threadIdx.x % 3) {
        auto g = cg::coalesced_threads();
        word base = 0;
        if (g.thread_rank() == 0) base = atomicAdd(flag, g.size());
        base = g.shfl(base, 0);
        out[base + g.thread_rank()] = threadIdx.x;
    }
}

// Locks.
//@ launch: lock_ok<<<4, 32>>>
KERNEL lock_ok(word *data, word *flag, word *out)
{
    if (threadIdx.x) return;
    while (atomicCAS(flag, 0, 1)) {}
    __threadfence();
    data[0]++;
    __threadfence();
    atomicExch(flag, 0);
}

//@ launch: rwlock<<<4, 32>>>
KERNEL rwlock(word *data, word *flag, word *out)
{
    if (threadIdx.x) return;
    ref<D> l(*flag);
    if (blockIdx.x == 0) {
        word z = 0;
        while (!l.compare_exchange_strong(z, 0x80000000u, memory_order_acquire, memory_order_relaxed)) z = 0;
        data[0] = 5;
        l.store(0, memory_order_release);
    }
    else {
        word v = l.load(memory_order_relaxed);
        do {
            v &= 0x7fffffff;
        } while (!l.compare_exchange_strong(v, v + 1, memory_order_acquire, memory_order_relaxed));
        out[blockIdx.x] = data[0];
        l.fetch_sub(1, memory_order_release);
    }
}

// All blocks meet.
//@ launch: grid_barrier<<<4, 64>>>
KERNEL grid_barrier(word *data, word *flag, word *out)
{
    data[blockIdx.x * 64 + threadIdx.x] = 1;
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(flag, 1);
        while (atomicAdd(flag, 0) < gridDim.x) {}
        __threadfence();
    }
    __syncthreads();
    out[blockIdx.x * 64 + threadIdx.x] = data[255 - (blockIdx.x * 64 + threadIdx.x)];
}

// A bulk copy into shared memory, for which one thread waits.
//@ launch: tma_one_waits<<<2, 64>>>
KERNEL tma_one_waits(word *data, word *flag, word *out)
{
    __shared__ alignas(128) word s[64];
    __shared__ u64 b;
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&b, 1);
        ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, s, data, 256, &b);
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &b, 256);
        wait(&b, 0);
    }
    __syncthreads();
    out[blockIdx.x * 64 + threadIdx.x] = s[63 - threadIdx.x];
}

// A bulk copy out of it.
//@ launch: tma_store_fence_after<<<2, 64>>>
KERNEL tma_store_fence_after(word *data, word *flag, word *out)
{
    __shared__ alignas(128) word s[64];
    s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out + blockIdx.x * 64, s, 256);
        ptx::cp_async_bulk_commit_group();
        ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
    }
}
