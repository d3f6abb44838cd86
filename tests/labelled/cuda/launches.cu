// Grids that launch grids, copy and fill, each beside the same program with what orders them, or without.
//@ seeds: 0..3
//@ options: -rdc=true

#define KERNEL extern "C" __global__ void
using word = unsigned;

__device__ cudaStream_t stream()
{
    cudaStream_t made;
    cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking);
    return made;
}

__global__ void take_before(word *from, word *to) { to[threadIdx.x] = from[threadIdx.x]; }

//@ launch: written_before<<<1, 64>>>
KERNEL written_before(word *data, word *flag, word *out)
{
    data[threadIdx.x] = 1;
    __syncthreads();
    if (threadIdx.x == 0) take_before<<<1, 64>>>(data, out);
}

__global__ void take_beside(word *from, word *to)
{
    to[threadIdx.x] = from[threadIdx.x]; //~ ld.global: race unordered
}

//@ launch: written_by_others<<<1, 64>>>
KERNEL written_by_others(word *data, word *flag, word *out)
{
    data[threadIdx.x] = 1; //~ st.global: race unordered
    if (threadIdx.x == 0) take_beside<<<1, 64>>>(data, out);
}

__global__ void take_after(word *from, word *to)
{
    to[threadIdx.x] = from[threadIdx.x]; //~ ld.global: race unordered
}

//@ launch: written_after<<<1, 1>>>
KERNEL written_after(word *data, word *flag, word *out)
{
    take_after<<<1, 1>>>(data, out);
    data[0] = 1; //~ st.global: race unordered
}

__global__ void take_tail(word *from, word *to) { to[threadIdx.x] = from[threadIdx.x]; }

//@ launch: written_before_the_tail<<<1, 64>>>
KERNEL written_before_the_tail(word *data, word *flag, word *out)
{
    if (threadIdx.x == 0) take_tail<<<1, 64, 0, cudaStreamTailLaunch>>>(data, out);
    data[threadIdx.x] = 1;
}

__global__ void give_result(word *to)
{
    to[0] = 1; //~ st.global: race unordered
}

//@ launch: result_not_waited_for<<<1, 1>>>
KERNEL result_not_waited_for(word *data, word *flag, word *out)
{
    give_result<<<1, 1>>>(data);
    out[0] = data[0]; //~ ld.global: race unordered
}

__global__ void take_last(word *from, word *to) { to[threadIdx.x] = from[threadIdx.x]; }

//@ launch: by_the_last_block<<<2, 32>>>
KERNEL by_the_last_block(word *data, word *flag, word *out)
{
    data[blockIdx.x * 32 + threadIdx.x] = 1;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0 && atomicAdd(flag, 1) == gridDim.x - 1) {
        __threadfence();
        take_last<<<1, 64>>>(data, out);
    }
}

__global__ void take_first(word *from, word *to)
{
    to[threadIdx.x] = from[threadIdx.x]; //~ ld.global: race unordered
}

//@ launch: by_the_first_block<<<2, 32>>>
KERNEL by_the_first_block(word *data, word *flag, word *out)
{
    data[blockIdx.x * 32 + threadIdx.x] = 1; //~ st.global: race unordered
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0 && atomicAdd(flag, 1) == 0) {
        __threadfence();
        take_first<<<1, 64>>>(data, out);
    }
}

__global__ void give(word *to) { to[threadIdx.x] = 2; }
__global__ void take(word *from, word *to) { to[threadIdx.x] = from[threadIdx.x]; }

//@ launch: one_stream<<<1, 64>>>
KERNEL one_stream(word *data, word *flag, word *out)
{
    if (threadIdx.x == 0) give<<<1, 32>>>(data);
    __syncthreads();
    if (threadIdx.x == 33) take<<<1, 32>>>(data, out);
}

__global__ void give_of_block(word *to)
{
    to[threadIdx.x] = 2; //~ st.global: race unordered
}
__global__ void take_of_block(word *from, word *to)
{
    to[threadIdx.x] = from[threadIdx.x]; //~ ld.global: race unordered
}

//@ launch: default_streams_of_blocks<<<2, 1>>>
KERNEL default_streams_of_blocks(word *data, word *flag, word *out)
{
    if (blockIdx.x == 0) give_of_block<<<1, 32>>>(data);
    else take_of_block<<<1, 32>>>(data, out);
}

__global__ void give_beside(word *to)
{
    to[threadIdx.x] = 2; //~ st.global: race unordered
}
__global__ void take_of_other(word *from, word *to)
{
    to[threadIdx.x] = from[threadIdx.x]; //~ ld.global: race unordered
}

//@ launch: two_streams<<<1, 1>>>
KERNEL two_streams(word *data, word *flag, word *out)
{
    give_beside<<<1, 32, 0, stream()>>>(data);
    take_of_other<<<1, 32, 0, stream()>>>(data, out);
}

//@ launch: two_streams_and_an_event<<<1, 1>>>
KERNEL two_streams_and_an_event(word *data, word *flag, word *out)
{
    cudaStream_t a = stream(), b = stream();
    cudaEvent_t event;
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    give<<<1, 32, 0, a>>>(data);
    cudaEventRecord(event, a);
    cudaStreamWaitEvent(b, event, 0);
    take<<<1, 32, 0, b>>>(data, out);
}

__global__ void give_forgotten(word *to, word value)
{
    to[threadIdx.x] = value; //~ st.global: race unordered
}

//@ launch: fire_and_forget<<<1, 1>>>
KERNEL fire_and_forget(word *data, word *flag, word *out)
{
    give_forgotten<<<1, 32, 0, cudaStreamFireAndForget>>>(data, 1);
    give_forgotten<<<1, 32, 0, cudaStreamFireAndForget>>>(data, 2);
}

//@ launch: fire_and_forget_apart<<<1, 1>>>
KERNEL fire_and_forget_apart(word *data, word *flag, word *out)
{
    give<<<1, 32, 0, cudaStreamFireAndForget>>>(data);
    give<<<1, 32, 0, cudaStreamFireAndForget>>>(data + 32);
}

__global__ void give_below(word *to)
{
    to[0] = 1; //~ st.global: race unordered
}
__global__ void between(word *to) { give_below<<<1, 1>>>(to); }

//@ launch: child_of_a_child<<<1, 1>>>
KERNEL child_of_a_child(word *data, word *flag, word *out)
{
    between<<<1, 1>>>(data);
    data[0] = 2; //~ st.global: race unordered
}

__global__ void give_below_first(word *to) { to[0] = 1; }
__global__ void between_first(word *to) { give_below_first<<<1, 1, 0, cudaStreamFireAndForget>>>(to); }

//@ launch: child_of_a_child_before<<<1, 1>>>
KERNEL child_of_a_child_before(word *data, word *flag, word *out)
{
    data[0] = 2;
    between_first<<<1, 1>>>(data);
    take<<<1, 1>>>(data, out);
}

__global__ void add(word *to) { atomicAdd(to, 1); }

//@ launch: atomics<<<1, 32>>>
KERNEL atomics(word *data, word *flag, word *out)
{
    add<<<4, 32>>>(data);
    atomicAdd(data, 1);
    add<<<4, 32, 0, cudaStreamFireAndForget>>>(data);
}

__global__ void add_of_block(word *to)
{
    atomicAdd_block(to, 1); //~ atom: race unordered
}

//@ launch: atomics_of_blocks<<<1, 1>>>
KERNEL atomics_of_blocks(word *data, word *flag, word *out)
{
    add_of_block<<<1, 1>>>(data);
    atomicAdd_block(data, 1); //~ atom: race unordered
}

//@ launch: copied_and_filled<<<1, 1>>>
KERNEL copied_and_filled(word *data, word *flag, word *out)
{
    data[0] = 1;
    cudaMemcpyAsync(out, data, 64, cudaMemcpyDeviceToDevice, 0);
    take<<<1, 16>>>(out, flag);
    cudaMemsetAsync(out, 1, 64, 0);
}

//@ launch: copied_while_written<<<1, 1>>>
KERNEL copied_while_written(word *data, word *flag, word *out)
{
    cudaMemcpyAsync(out, data, 64, cudaMemcpyDeviceToDevice, 0); //~ call: race unordered
    data[0] = 1; //~ st.global: race unordered
}

__global__ void take_filled(word *from, word *to)
{
    to[threadIdx.x] = from[threadIdx.x]; //~ ld.global: race unordered
}

//@ launch: filled_beside<<<1, 1>>>
KERNEL filled_beside(word *data, word *flag, word *out)
{
    cudaMemsetAsync(data, 1, 64, cudaStreamFireAndForget); //~ call: race unordered
    take_filled<<<1, 16>>>(data, out);
}

__global__ void below(word *to) { to[0] = 4; }
__global__ void launches_more(word *to)
{
    for (word i = 0; i < 4; i++) below<<<1, 1>>>(to + i);
}

// Memory for parameters of launches is used again and again.
//@ launch: parameters<<<1, 4>>>
KERNEL parameters(word *data, word *flag, word *out)
{
    for (word i = 0; i < 4; i++) launches_more<<<1, 1, 0, cudaStreamFireAndForget>>>(data + 16 * threadIdx.x + 4 * i);
}

__global__ void deeper(word *to, word n)
{
    to[0] += n;
    if (n > 1) deeper<<<1, 1>>>(to, n - 1);
}

//@ launch: each_before_the_next<<<1, 1>>>
KERNEL each_before_the_next(word *data, word *flag, word *out)
{
    data[0] = 1;
    deeper<<<1, 1>>>(data, 5);
}

__global__ void chain(word *to, word n)
{
    if (n > 1) chain<<<1, 1, 0, cudaStreamTailLaunch>>>(to, n - 1);
    to[0] += n;
}

//@ launch: each_after_the_last<<<1, 1>>>
KERNEL each_after_the_last(word *data, word *flag, word *out)
{
    chain<<<1, 1, 0, cudaStreamTailLaunch>>>(data, 5);
    data[0] = 1;
}

__global__ void deeper_too_late(word *to, word n)
{
    if (n > 1) deeper_too_late<<<1, 1>>>(to, n - 1);
    to[0] += n; //~ st.global: race unordered
}

//@ launch: each_with_the_next<<<1, 1>>>
KERNEL each_with_the_next(word *data, word *flag, word *out)
{
    deeper_too_late<<<1, 1>>>(data, 2);
}
