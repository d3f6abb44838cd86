// targets: sm_100a
// A product by pairs of blocks in tensor memory: in each a warp copies tiles by tensor maps, one warp of the first block multiplies for both, four warps
// of each write their half of the result. c = a * b^T, f16 to f32.

using u32 = unsigned;
using u64 = unsigned long long;
struct alignas(64) Map { char bytes[128]; };

// Of a pair; a block has half of the rows of a and half of the rows of b.
constexpr int M = 256, N = 128, K = 64, STAGES = 2;
constexpr u32 A_BYTES = M / 2 * K * 2, B_BYTES = N / 2 * K * 2, STAGE = A_BYTES + B_BYTES;

__device__ u32 shared(const void* p) { return (u32)__cvta_generic_to_shared(p); }

__device__ u32 of_block(u32 address, u32 rank) {
  u32 at;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(at) : "r"(address), "r"(rank));
  return at;
}

__device__ void wait(u32 bar, u32 parity) {
  asm volatile(
      "{\n.reg .pred p;\nagain:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], %1;\n@p bra done;\nbra again;\ndone:\n}"
      ::"r"(bar), "r"(parity) : "memory");
}

__device__ void both_blocks() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

__device__ u64 descriptor(u32 tile) {
  return (u64)(tile >> 4 & 0x3fff) | (u64)1 << 16 | (u64)(1024 >> 4) << 32 | (u64)1 << 46 | (u64)2 << 61;
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(192, 1)
pair_product(const __grid_constant__ Map a, const __grid_constant__ Map b, float* c, int m, int n, int k) {
  extern __shared__ __align__(1024) char tiles[];
  __shared__ alignas(8) u64 full[STAGES], empty[STAGES], done;
  __shared__ u32 place;
  u32 rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  int row = blockIdx.x / 2 * M + rank * (M / 2), column = blockIdx.y * N;
  u32 first = shared(tiles);
  if (warp == 0) {
    asm volatile("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(shared(&place)), "r"(N) : "memory");
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;");
  }
  if (threadIdx.x == 0) {
    for (int s = 0; s < STAGES; s++) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 2;" ::"r"(shared(&full[s])));
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared(&empty[s])));
    }
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared(&done)));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
  both_blocks();
  __syncthreads();
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
  u32 sums = place;
  if (warp == 4 && lane == 0) {
    for (int i = 0, s = 0, parity = 1; i * K < k; i++) {
      wait(shared(&empty[s]), parity);
      // The first block is told of both blocks' copies.
      u32 bar = of_block(shared(&full[s]), 0), to = first + s * STAGE;
      // The same, as CUTLASS writes it: the rank of a block lies from bit 24 on in addresses on a device.
      u32 same = shared(&full[s]) & 0xFEFFFFFF;
      asm volatile("mbarrier.arrive.expect_tx.relaxed.cluster.shared::cluster.b64 _, [%0], %1;" ::"r"(bar), "r"(STAGE) : "memory");
      asm volatile("cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                   ::"r"(to), "l"(&a), "r"(i * K), "r"(row), "r"(same) : "memory");
      asm volatile("cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                   ::"r"(to + A_BYTES), "l"(&b), "r"(i * K), "r"(column + (int)rank * (N / 2)), "r"(same) : "memory");
      if (++s == STAGES) {
        s = 0;
        parity ^= 1;
      }
    }
  } else if (warp == 5 && rank == 0 && lane == 0) {
    u32 instruction = 1u << 4 | (N / 8) << 17 | (M / 16) << 24;
    for (int i = 0, s = 0, parity = 0; i * K < k; i++) {
      wait(shared(&full[s]), parity);
      asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
      u32 x = first + s * STAGE, y = x + A_BYTES;
      for (int q = 0; q < K / 16; q++)
        asm volatile(
            "{\n.reg .pred p;\nsetp.ne.b32 p, %4, 0;\ntcgen05.mma.cta_group::2.kind::f16 [%0], %1, %2, %3, p;\n}"
            ::"r"(sums), "l"(descriptor(x + q * 32)), "l"(descriptor(y + q * 32)), "r"(instruction), "r"(i + q) : "memory");
      asm volatile("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;"
                   ::"r"(shared(&empty[s])), "h"((short)3) : "memory");
      if (++s == STAGES) {
        s = 0;
        parity ^= 1;
      }
    }
    asm volatile("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;"
                 ::"r"(shared(&done)), "h"((short)3) : "memory");
  }
  __syncwarp();
  if (warp < 4) {
    wait(shared(&done), 0);
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
    row += threadIdx.x;
    for (int q = 0; q < N; q += 8) {
      u32 r[8];
      asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
                   : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]), "=r"(r[4]), "=r"(r[5]), "=r"(r[6]), "=r"(r[7])
                   : "r"(sums + ((u32)(warp * 32) << 16) + q));
      asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
      for (int i = 0; i < 8; i++)
        if (row < m && column + q + i < n) c[(long long)row * n + column + q + i] = __uint_as_float(r[i]);
    }
    asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
  }
  both_blocks();
  if (warp == 0) asm volatile("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, %1;" ::"r"(sums), "r"(N));
}
