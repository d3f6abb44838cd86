// Softmax of rows of halves. Sizes: rows, columns.
#include "common.h"
#include <math.h>

static unsigned rows, columns;
static _Float16 *in, *out;

static void prepare(const unsigned *sizes) {
  rows = sizes[0], columns = sizes[1];
  in = array((size_t)rows * columns, sizeof *in);
  out = array((size_t)rows * columns, sizeof *out);
  result = out;
  result_bytes = (size_t)rows * columns * sizeof *out;
}

static void reset(void) {
  for (uint32_t i = 0; i < rows * columns; i++) in[i] = (_Float16)(8 * mixed_float(i));
}

static void plain(void) {
#pragma omp parallel for
  for (unsigned row = 0; row < rows; row++) {
    const _Float16 *from = in + (size_t)row * columns;
    _Float16 *to = out + (size_t)row * columns;
    float values[4096], top = -INFINITY, sum = 0;
    for (unsigned i = 0; i < columns; i++) top = fmaxf(top, values[i] = (float)from[i]);
    for (unsigned i = 0; i < columns; i++) sum += values[i] = expf(values[i] - top);
    for (unsigned i = 0; i < columns; i++) to[i] = (_Float16)(values[i] / sum);
  }
}

static const struct variant variants[] = {{"plain", plain}, {0, 0}};
