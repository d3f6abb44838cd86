// Copies that nothing waits for, masks, variables and unwritten bytes in CUDA C++, each beside the same program without the fault.
//@ seeds: 0..3
#include <cuda_pipeline.h>
#include <cuda/barrier>
#include <cuda/ptx>

#define KERNEL extern "C" __global__ void
using word = unsigned;

//@ launch: copy_waited<<<1, 32>>>
KERNEL copy_waited(word *data, word *flag, word *out)
{
    __shared__ __align__(16) word box[32];
    __pipeline_memcpy_async(&box[threadIdx.x], &data[threadIdx.x], 4);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    out[threadIdx.x] = box[threadIdx.x];
}

//@ launch: copy_not_waited<<<1, 32>>>
KERNEL copy_not_waited(word *data, word *flag, word *out)
{
    __shared__ __align__(16) word box[32];
    box[threadIdx.x] = 0;
    __syncthreads();
    __pipeline_memcpy_async(&box[threadIdx.x], &data[threadIdx.x], 4); //~ cp.async: sync async_unwaited
    __pipeline_commit();
    word early = box[threadIdx.x]; //~ ld.shared: sync async_unwaited
    __pipeline_wait_prior(0);
    if (early == 12345) flag[0] = 0;
}

//@ launch: mask_of_all<<<1, 32>>>
KERNEL mask_of_all(word *data, word *flag, word *out)
{
    out[threadIdx.x] = __shfl_sync(0xffffffff, threadIdx.x, 3);
}

//@ launch: mask_of_half<<<1, 32>>>
KERNEL mask_of_half(word *data, word *flag, word *out)
{
    out[threadIdx.x] = __shfl_sync(0x0000ffff, threadIdx.x, 3, 16); //~ shfl.: sync mask_without_caller
}

//@ launch: stored_behind_a_fence<<<1, 32>>>
KERNEL stored_behind_a_fence(word *data, word *flag, word *out)
{
    __shared__ __align__(16) word box[32];
    box[threadIdx.x] = data[threadIdx.x];
    cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
    __syncthreads();
    if (threadIdx.x == 0) {
        cuda::ptx::cp_async_bulk(cuda::ptx::space_global, cuda::ptx::space_shared, out, box, sizeof box);
        cuda::ptx::cp_async_bulk_commit_group();
        cuda::ptx::cp_async_bulk_wait_group_read(cuda::ptx::n32_t<0>{});
    }
}

//@ launch: stored_without_a_fence<<<1, 32>>>
KERNEL stored_without_a_fence(word *data, word *flag, word *out)
{
    __shared__ __align__(16) word box[32];
    box[threadIdx.x] = data[threadIdx.x]; //~ st.shared: race missing_proxy_fence
    __syncthreads();
    if (threadIdx.x == 0) {
        cuda::ptx::cp_async_bulk(cuda::ptx::space_global, cuda::ptx::space_shared, out, box, sizeof box); //~ cp.async: race missing_proxy_fence
        cuda::ptx::cp_async_bulk_commit_group();
        cuda::ptx::cp_async_bulk_wait_group_read(cuda::ptx::n32_t<0>{});
    }
}
