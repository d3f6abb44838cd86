// Collectives of cooperative groups on tiles of several warps. The headers keep the barriers of tiles, and what their warps tell each other,
// in the shared memory that is reserved for system software.
// targets: sm_80 sm_90 sm_100
// headers: cuda
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

namespace cg = cooperative_groups;

// What each thread writes: words that are `n` words apart.
enum Word { SUM, MOST, WIDE, WIDE_HIGH, EXCLUSIVE, PRODUCT, FROM, ANY_ALL, NEXT, PLACE };

template <unsigned SIZE>
__device__ void collect(const int* in, unsigned* out, unsigned* mine) {
  __shared__ cg::block_tile_memory<1024> memory;
  auto block = cg::this_thread_block(memory);
  auto tile = cg::tiled_partition<SIZE>(block);
  unsigned n = gridDim.x * blockDim.x, i = blockIdx.x * blockDim.x + threadIdx.x, rank = tile.thread_rank();
  auto put = [&](Word word, unsigned value) { out[word * n + i] = value; };
  int value = in[i];
  put(SUM, cg::reduce(tile, unsigned(value), cg::plus<unsigned>()));
  put(MOST, __float_as_uint(cg::reduce(tile, float(value), cg::greater<float>())));
  long long wide = cg::reduce(tile, (long long)value * value, cg::plus<long long>());
  put(WIDE, unsigned(wide));
  put(WIDE_HIGH, unsigned(wide >> 32));
  put(EXCLUSIVE, cg::exclusive_scan(tile, value, cg::bit_xor<int>()));
  // By a function of the program's own.
  put(PRODUCT, cg::inclusive_scan(tile, unsigned(value) | 1, [](unsigned a, unsigned b) { return a * b; }));
  put(FROM, tile.shfl(value, (tile.meta_group_rank() * 37 + 5) % SIZE));
  put(ANY_ALL, tile.any(value % 100 == 7) | tile.all(value % 100 != 11) << 1);
  // The block's own variables lie elsewhere: they go round each tile.
  mine[threadIdx.x] = value;
  tile.sync();
  put(NEXT, mine[threadIdx.x - rank + (rank + 1) % SIZE]);
  tile.sync();
  put(PLACE, rank << 16 | tile.meta_group_rank() << 8 | tile.meta_group_size());
}

template <unsigned SIZE>
__device__ void collect_static(const int* in, unsigned* out) {
  __shared__ unsigned mine[1024];
  collect<SIZE>(in, out, mine);
}

template <unsigned SIZE>
__device__ void collect_dynamic(const int* in, unsigned* out) {
  extern __shared__ unsigned dynamic[];
  collect<SIZE>(in, out, dynamic);
}

extern "C" __global__ void tiles_64(const int* in, unsigned* out) { collect_static<64>(in, out); }
extern "C" __global__ void tiles_128(const int* in, unsigned* out) { collect_dynamic<128>(in, out); }
extern "C" __global__ void tiles_256(const int* in, unsigned* out) { collect_static<256>(in, out); }
extern "C" __global__ void tiles_512(const int* in, unsigned* out) { collect_dynamic<512>(in, out); }

// Tiles of a block do different numbers of rounds, so their barriers are passed at different times; then they are parted further.
extern "C" __global__ void tiles_apart(const int* in, unsigned* out) {
  __shared__ cg::block_tile_memory<512> memory;
  auto tile = cg::tiled_partition<128>(cg::this_thread_block(memory));
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned value = in[i];
  for (unsigned round = 0; round < 3 + 2 * tile.meta_group_rank(); ++round)
    value = cg::reduce(tile, value ^ round, cg::plus<unsigned>()) + tile.thread_rank();
  auto half = cg::tiled_partition<64>(tile);
  value += cg::inclusive_scan(half, value & 255);
  auto warp = cg::tiled_partition<32>(half);
  out[i] = value ^ warp.shfl_xor(value, 9);
}
