// Two devices in the runtime library: a managed variable, of which there is one, and streams, which belong to their device.
#include <stdint.h>
#include <stdio.h>

#include "fat_binary.h"

typedef void *stream_t;

void __cudaRegisterVar(void **handle, void *shadow, char *device, const char *name, int ext, size_t size, int constant, int global);
void __cudaRegisterManagedVar(void **handle, void **pointer, char *device, const char *name, int ext, size_t size, int constant, int global);
char __cudaInitModule(void **handle);
int cudaLaunchKernel(const void *stub, dim3 grid, dim3 block, void **args, size_t shared, stream_t stream);
int cudaLaunchCooperativeKernel(const void *stub, dim3 grid, dim3 block, void **args, size_t shared, stream_t stream);
int cudaMemcpyFromSymbol(void *to, const void *s, size_t n, size_t offset, int kind);
int cudaMemcpyAsync(void *to, const void *from, size_t n, int kind, stream_t stream);
int cudaMalloc(void **p, size_t n);
int cudaDeviceSynchronize(void);
int cudaDeviceReset(void);
int cudaGetLastError(void);
int cudaSetDevice(int d);
int cudaStreamCreate(stream_t *s);
int cudaStreamSynchronize(stream_t s);

#define CHECK(what)                                     \
  do {                                                  \
    if (!(what)) {                                      \
      printf("line %d: %s\n", __LINE__, #what);         \
      return 1;                                         \
    }                                                   \
  } while (0)
#define OK(call) CHECK((call) == 0)

static const char ptx[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .global .attribute(.managed) .align 4 .u32 one_for_all = 7;\n"
    ".visible .global .align 8 .u64 where = one_for_all;\n"
    ".visible .global .align 4 .u32 one_each = 5;\n"
    ".visible .entry bump() { .reg .b64 a; mov.u64 a, one_for_all; red.global.add.u32 [a], 1;\n"
    " ld.global.u64 a, [where]; red.global.add.u32 [a], 1; mov.u64 a, one_each; red.global.add.u32 [a], 1; ret; }\n"
    ".visible .entry add(.param .u64 p) { .reg .b64 a; ld.param.u64 a, [p]; red.global.add.u32 [a], 100; ret; }\n";

// Only their addresses count.
static char bump, add, one_each;
static unsigned *one_for_all;

int main(void) {
  void *wrapper[3] = {0, container(ptx, sizeof ptx), 0};
  put((unsigned char *)wrapper, 0x466243b1u, 4), put((unsigned char *)wrapper + 4, 1, 4);
  void **handle = __cudaRegisterFatBinary(wrapper);
  __cudaRegisterFunction(handle, &bump, "bump", "bump", -1, 0, 0, 0, 0, 0);
  __cudaRegisterFunction(handle, &add, "add", "add", -1, 0, 0, 0, 0, 0);
  __cudaRegisterVar(handle, &one_each, "one_each", "one_each", 0, 4, 0, 1);
  __cudaRegisterManagedVar(handle, (void **)&one_for_all, "one_for_all", "one_for_all", 0, 4, 0, 1);
  __cudaRegisterFatBinaryEnd(handle);
  CHECK(__cudaInitModule(handle) == 1 && one_for_all && *one_for_all == 7);

  dim3 one = {1, 1, 1}, block = {32, 1, 1};
  stream_t streams[2];
  unsigned *memory[2], want = 7;
  for (int d = 0; d < 2; d++) {
    unsigned each = 0;
    OK(cudaSetDevice(d));
    OK(cudaLaunchKernel(&bump, one, block, 0, 0, 0));
    OK(cudaDeviceSynchronize());
    want += 64;
    CHECK(*one_for_all == want);
    *one_for_all = want = 100 * want;
    OK(cudaMemcpyFromSymbol(&each, &one_each, 4, 0, 2));
    CHECK(each == 5 + 32);
    OK(cudaStreamCreate(&streams[d]));
    OK(cudaMalloc((void **)&memory[d], 4));
  }
  // Its address means the same to kernels of both.
  void *args[] = {&one_for_all};
  for (int d = 0; d < 2; d++) {
    OK(cudaSetDevice(d));
    OK(cudaLaunchKernel(&add, one, one, args, 0, streams[d]));
    OK(cudaStreamSynchronize(streams[d]));
    want += 100;
    CHECK(*one_for_all == want);
  }

  // A launch goes to a stream of the current device; copies go to any stream. The default streams are those of the current device.
  for (int d = 0; d < 2; d++) {
    OK(cudaSetDevice(d));
    CHECK(cudaLaunchKernel(&add, one, one, args, 0, streams[1 - d]) == 400 && cudaGetLastError() == 400);
    CHECK(cudaLaunchCooperativeKernel(&add, one, one, args, 0, streams[1 - d]) == 400 && cudaGetLastError() == 400);
    OK(cudaMemcpyAsync(memory[d], &want, 4, 1, streams[1 - d]));
    OK(cudaStreamSynchronize(streams[1 - d]));
    for (uintptr_t standard = 0; standard < 3; standard++) {
      OK(cudaLaunchKernel(&add, one, one, args, 0, (stream_t)standard));
      OK(cudaDeviceSynchronize());
      want += 100;
    }
    CHECK(*one_for_all == want);
  }

  // The variable stays when the device that it was made on is reset.
  OK(cudaSetDevice(0));
  OK(cudaDeviceReset());
  OK(cudaSetDevice(1));
  OK(cudaLaunchKernel(&bump, one, block, 0, 0, streams[1]));
  OK(cudaDeviceSynchronize());
  want += 64;
  CHECK(*one_for_all == want);
  puts("ok");
  return 0;
}
