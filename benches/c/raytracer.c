// A path tracer with virtual functions and recursion, whose text is the kernel's, in C++. Sizes: width, height, paths of a pixel, turns of a path.
#include "common.h"

void *make_world(void);
void render(const void *world, float *out, int width, int height, int samples, int turns);

static int width, height, samples, turns;
static void *world;
static float *out;

static void prepare(const unsigned *sizes) {
  width = (int)sizes[0], height = (int)sizes[1], samples = (int)sizes[2], turns = (int)sizes[3];
  world = make_world();
  out = array((size_t)width * height * 3, sizeof *out);
  result = out;
  result_bytes = (size_t)width * height * 3 * sizeof *out;
}

static void reset(void) { memset(out, 0, result_bytes); }

static void calls(void) { render(world, out, width, height, samples, turns); }

static const struct variant variants[] = {{"calls", calls}, {0, 0}};
