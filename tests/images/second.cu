// The other one. Its variable has the name of the first one's, unless both are linked.
#ifndef LINKED
__device__ int counter;
#endif

namespace ns {
template <class T> __global__ void scale(T *p) { p[threadIdx.x] *= 2; }
template __global__ void scale<float>(float *);
template __global__ void scale<int>(int *);
}

__device__ int twice(int x) { return x + x; }
