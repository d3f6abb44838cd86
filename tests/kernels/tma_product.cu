// targets: sm_90a
// A product as libraries of kernels write it for warpgroups: one warpgroup copies tiles by tensor maps into a ring of stages, two others multiply them,
// mbarriers hand the stages to and fro. Two blocks of a cluster share the tile of b: each copies a half of it to both. c = a * b^T, f16 to f32.

using u32 = unsigned;
using u64 = unsigned long long;
struct alignas(64) Map { char bytes[128]; };

constexpr int M = 128, N = 64, K = 64, STAGES = 3;
constexpr u32 A_BYTES = M * K * 2, B_BYTES = N * K * 2, STAGE = A_BYTES + B_BYTES;

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

__device__ u64 descriptor(u32 tile) { return (u64)(tile >> 4 & 0x3fff) | (u64)1 << 16 | (u64)(1024 >> 4) << 32 | (u64)1 << 62; }

__device__ void multiply(float (&d)[32], u64 a, u64 b, int adds) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, p, 1, 1, 0, 0;\n}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]),
        "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]),
        "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]),
        "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
      : "l"(a), "l"(b), "r"(adds));
}

extern "C" __global__ void __cluster_dims__(1, 2, 1) __launch_bounds__(384, 1)
tma_product(const __grid_constant__ Map a, const __grid_constant__ Map b, float* c, int m, int n, int k) {
  extern __shared__ __align__(1024) char tiles[];
  __shared__ alignas(8) u64 full[STAGES], empty[STAGES];
  u32 rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  int group = threadIdx.x / 128, t = threadIdx.x % 128;
  int row = blockIdx.y * M, column = blockIdx.x * N;
  u32 first = shared(tiles);
  if (threadIdx.x == 0) {
    for (int s = 0; s < STAGES; s++) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared(&full[s])));
      // Two warpgroups of each of two blocks.
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 4;" ::"r"(shared(&empty[s])));
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  both_blocks();
  if (group == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (t == 0) {
      for (int i = 0, s = 0, parity = 1; i * K < k; i++) {
        wait(shared(&empty[s]), parity);
        u32 bar = shared(&full[s]), to = first + s * STAGE;
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(STAGE) : "memory");
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                     ::"r"(to), "l"(&a), "r"(i * K), "r"(row), "r"(bar) : "memory");
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;"
                     ::"r"(to + A_BYTES + rank * (B_BYTES / 2)), "l"(&b), "r"(i * K), "r"(column + (int)rank * (N / 2)), "r"(bar), "h"((short)3) : "memory");
        if (++s == STAGES) {
          s = 0;
          parity ^= 1;
        }
      }
    }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    float d[32];
    int s = 0, parity = 0, before = 0;
    for (int i = 0; i * K < k; i++) {
      wait(shared(&full[s]), parity);
      u32 x = first + s * STAGE + (group - 1) * 64 * K * 2, y = first + s * STAGE + A_BYTES;
      asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
      for (int q = 0; q < K / 16; q++) multiply(d, descriptor(x + q * 32), descriptor(y + q * 32), i + q > 0);
      asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
      // The products of the round before are done: its stage is free in both blocks.
      asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
      if (i > 0 && t < 2)
        asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(of_block(shared(&empty[before]), t)) : "memory");
      before = s;
      if (++s == STAGES) {
        s = 0;
        parity ^= 1;
      }
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    row += (group - 1) * 64 + t / 32 * 16 + t % 32 / 4;
    column += t % 4 * 2;
    for (int i = 0; i < 32; i++) {
      int r = row + i / 2 % 2 * 8, q = column + i / 4 * 8 + i % 2;
      if (r < m && q < n) c[(long long)r * n + q] = d[i];
    }
  }
  // The other block may still copy to this one.
  both_blocks();
}
