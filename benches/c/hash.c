// Rounds of shifts and exclusive ors for each element. gcc leaves the loop over the elements scalar while the number of rounds is
// a variable (`plain`), and makes vectors of it when the number is a constant (`fixed`) or when the loops change places over strips
// of elements (`interchanged`). Sizes: elements, rounds.
#include "common.h"

#define STRIP 256u

static unsigned n;
static int rounds;
static uint32_t *out;

static void prepare(const unsigned *sizes) {
  n = sizes[0], rounds = (int)sizes[1];
  out = array(n, sizeof *out);
  result = out;
  result_bytes = n * sizeof *out;
}

static void reset(void) { memset(out, 0, result_bytes); }

static uint32_t round_of(uint32_t state) {
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  return state + 0x9e3779b9u;
}

static void elements(unsigned count, int turns, uint32_t seed, uint32_t *to) {
#pragma omp parallel for
  for (unsigned i = 0; i < count; i++) {
    uint32_t state = i * 2654435761u + seed;
    for (int r = 0; r < turns; r++) state = round_of(state);
    to[i] = state;
  }
}

static void elements64(unsigned count, uint32_t seed, uint32_t *to) {
#pragma omp parallel for
  for (unsigned i = 0; i < count; i++) {
    uint32_t state = i * 2654435761u + seed;
    for (int r = 0; r < 64; r++) state = round_of(state);
    to[i] = state;
  }
}

static void strips(unsigned count, int turns, uint32_t seed, uint32_t *to) {
  uint32_t states[STRIP];
  for (unsigned at = 0; at < count; at += STRIP) {
    unsigned m = count - at < STRIP ? count - at : STRIP;
    for (unsigned i = 0; i < m; i++) states[i] = (at + i) * 2654435761u + seed;
    for (int r = 0; r < turns; r++)
      for (unsigned i = 0; i < m; i++) states[i] = round_of(states[i]);
    memcpy(to + at, states, m * sizeof *to);
  }
}

static void plain(void) { elements(n, rounds, 12345u, out); }
static void fixed(void) { elements64(n, 12345u, out); }
static void interchanged(void) { strips(n, rounds, 12345u, out); }

static const struct variant variants[] = {{"plain", plain}, {"fixed", fixed}, {"interchanged", interchanged}, {0, 0}};
