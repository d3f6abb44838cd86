// The path tracer for the host: the text of the kernel, and what a C program may call.
#include <stdlib.h>

#include "raytracer.cu"

extern "C" void *make_world(void) {
  World *world = (World *)aligned_alloc(64, (sizeof(World) + 63) / 64 * 64);
  furnish(world);
  return world;
}

extern "C" void render(const void *world, float *out, int width, int height, int samples, int turns) {
#pragma omp parallel for schedule(dynamic, 4)
  for (int y = 0; y < height; y++)
    for (int x = 0; x < width; x++) {
      Vec colour = pixel((const World *)world, x, y, width, height, samples, turns);
      float *to = out + 3 * (y * width + x);
      to[0] = colour.x;
      to[1] = colour.y;
      to[2] = colour.z;
    }
}
