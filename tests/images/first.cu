// One of two translation units. With -DLINKED it calls a function of the other one.
__device__ int counter;

__global__ void first(int *p) { p[threadIdx.x] = threadIdx.x + counter; }

#ifdef LINKED
__device__ int twice(int x);
__global__ void both(int *p) { p[threadIdx.x] = twice(threadIdx.x); }
#endif

int main()
{
    first<<<1, 32>>>(nullptr);
    return 0;
}
