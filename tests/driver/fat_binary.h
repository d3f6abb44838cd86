// A fat binary as nvcc puts it into a program, a container with one text that is not compressed, and the functions by which the program registers it and launches.
#pragma once
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct { unsigned x, y, z; } dim3;
void **__cudaRegisterFatBinary(void *wrapper);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaRegisterFunction(void **handle, const void *stub, char *device, const char *name, int limit, void *tid, void *bid, void *block, void *grid,
                            int *warp);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void *stream);
int __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);

static void put(unsigned char *at, uint64_t v, int bytes) { memcpy(at, &v, bytes); }

// `bytes`: with the NUL at the end of the text.
static void *container(const char *ptx, size_t bytes) {
  size_t text = (bytes + 7) / 8 * 8;
  unsigned char *c = calloc(1, 16 + 80 + text);
  put(c, 0xba55ed50u, 4), put(c + 4, 1, 2), put(c + 6, 16, 2), put(c + 8, 80 + text, 8);
  unsigned char *m = c + 16;
  put(m, 1, 2), put(m + 2, 0x101, 2), put(m + 4, 80, 4), put(m + 8, text, 8), put(m + 20, 64, 4);
  put(m + 24, 0, 2), put(m + 26, 8, 2), put(m + 28, 80, 4), put(m + 40, 0x11, 8);
  memcpy(m + 80, ptx, bytes);
  return c;
}
