// A ticket lock with acquire and release operations: threads enter in the order of their tickets.
// `state` holds the next ticket and the ticket that is served; `order` gets the thread that entered at each turn.
// targets: sm_80
__device__ unsigned load_acquire(const unsigned* p) {
  unsigned v;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}

__device__ void store_release(unsigned* p, unsigned v) {
  asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

extern "C" __global__ void ticket_lock(unsigned* state, unsigned* order, unsigned* tickets) {
  unsigned id = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned ticket = atomicAdd(&state[0], 1u);
  while (load_acquire(&state[1]) != ticket) __nanosleep(20);
  order[ticket] = id;
  tickets[id] = ticket;
  store_release(&state[1], ticket + 1);
}
