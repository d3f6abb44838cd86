// What the C programs share: the data, the clocks and the conversation with the benchmark that started them.
//
// The arguments are sizes. Each line on standard input is one request:
//   NAME REPEATS   one round of a variant, so many runs; answered by its wall and CPU time in nanoseconds
//   check NAME     one run on fresh data; answered by the number of bytes of the result, and the bytes
// Anything else is answered by `unknown`. The program ends with its input.

#define _DEFAULT_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

struct variant {
  const char *name;
  void (*run)(void);
};

// What a program brings.
static void prepare(const unsigned *sizes);  // Allocates.
static void reset(void);                     // Gives all arrays their first values.
static const struct variant variants[];      // Ends with a variant without a name.
static void *result;
static size_t result_bytes;

// Number `i` of a sequence of well mixed words; the benchmark has the same function.
static inline uint32_t mixed(uint32_t i) {
  uint32_t z = i * 0x9e3779b9u + 0x7f4a7c15u;
  z = (z ^ z >> 16) * 0x85ebca6bu;
  z = (z ^ z >> 13) * 0xc2b2ae35u;
  return z ^ z >> 16;
}

// The same between -0.5 and 0.5.
static inline float mixed_float(uint32_t i) { return (float)(mixed(i) >> 8) * (1.0f / 16777216.0f) - 0.5f; }

// Arrays lie as those of the device do: each at a multiple of 512 bytes with 512 free ones behind it, in large pages where the host has them.
static void *array(size_t count, size_t size) {
  static const size_t most = (size_t)16 << 30, large = (size_t)2 << 20, page = 4096;
  static char *next, *end;
  size_t bytes = (count * size + 511) / 512 * 512 + 512;
  if (!next) {
    char *room = (char *)mmap(0, most, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) exit(1);
    madvise(room, most, MADV_HUGEPAGE);
    end = room + most;
    next = (char *)(((uintptr_t)room + large - 1) / large * large) + 16 * page;
  }
  if (bytes > (size_t)(end - next)) exit(1);
  void *p = next;
  next += bytes;
  memset(p, 0, bytes);
  return p;
}

static int64_t now(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static const struct variant *find(const char *name) {
  for (const struct variant *v = variants; v->name; v++)
    if (!strcmp(v->name, name)) return v;
  return 0;
}

int main(int argc, char **argv) {
  unsigned sizes[4] = {0};
  for (int i = 1; i < argc && i <= 4; i++) sizes[i - 1] = (unsigned)strtoul(argv[i], 0, 10);
  prepare(sizes);
  reset();
  char line[128], first[64], second[64];
  while (fgets(line, sizeof line, stdin)) {
    int words = sscanf(line, "%63s %63s", first, second);
    int is_check = words == 2 && !strcmp(first, "check");
    const struct variant *v = words == 2 ? find(is_check ? second : first) : 0;
    if (!v) {
      puts("unknown");
    } else if (is_check) {
      reset();
      v->run();
      printf("%zu\n", result_bytes);
      fwrite(result, 1, result_bytes, stdout);
    } else {
      long repeats = strtol(second, 0, 10);
      int64_t wall = now(CLOCK_MONOTONIC), cpu = now(CLOCK_PROCESS_CPUTIME_ID);
      for (long i = 0; i < repeats; i++) v->run();
      cpu = now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
      wall = now(CLOCK_MONOTONIC) - wall;
      printf("%lld %lld\n", (long long)wall, (long long)cpu);
    }
    fflush(stdout);
  }
  return 0;
}
