// Does nothing: what a launch and a compilation cost at least.
// targets: sm_80
extern "C" __global__ void empty() {}
