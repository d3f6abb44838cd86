// As many products of bytes, added to words, as the host can do: ten sums side by side in its widest vectors, by its dot products of bytes where it has
// them. Sizes: products / 4096, a multiple of 5.
#include "common.h"

#include <immintrin.h>

#if defined(__AVX512VNNI__)
typedef __m512i vector;
#define dot(sum, a, b) _mm512_dpbusd_epi32(sum, a, b)
#define all(byte) _mm512_set1_epi8(byte)
#elif defined(__AVXVNNI__)
typedef __m256i vector;
#define dot(sum, a, b) _mm256_dpbusd_avx_epi32(sum, a, b)
#define all(byte) _mm256_set1_epi8(byte)
#else
typedef __m256i vector;
#define dot(sum, a, b) _mm256_add_epi32(sum, _mm256_madd_epi16(a, b))
#define all(byte) _mm256_set1_epi8(byte)
#define HALF 1
#endif
#define SUMS 10
#ifdef HALF
#define PRODUCTS (sizeof(vector) / 2)
#else
#define PRODUCTS sizeof(vector)
#endif

static long times;
static float *out;

static void prepare(const unsigned *sizes) {
  times = (long)sizes[0] * 4096 / (long)(SUMS * PRODUCTS);
  out = array(8, sizeof *out);
  result = out;
  result_bytes = 8 * sizeof *out;
}

static void reset(void) { memset(out, 0, result_bytes); }

// The result says that the sums were made: all ten came to the same.
static void dots(void) {
  vector sum[SUMS], a = all(1), b = all(2);
  for (int i = 0; i < SUMS; i++) sum[i] = all(0);
  __asm__ volatile("" : "+x"(a), "+x"(b));
  for (long n = 0; n < times; n++)
    for (int i = 0; i < SUMS; i++) sum[i] = dot(sum[i], a, b);
  int first[SUMS];
  for (int i = 0; i < SUMS; i++) {
    int words[sizeof(vector) / 4];
    memcpy(words, &sum[i], sizeof words);
    first[i] = words[i % 8];
  }
  int alike = first[0] != 0;
  for (int i = 1; i < SUMS; i++) alike &= first[i] == first[0];
  for (int l = 0; l < 8; l++) out[l] = alike ? 2.0f : 0.0f;
}

static const struct variant variants[] = {{"dots", dots}, {0, 0}};
