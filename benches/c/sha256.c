// SHA-256 (FIPS 180-4) of many messages. Sizes: messages, bytes of each.
#include "common.h"

static unsigned messages, bytes;
static unsigned char *data, *digests;

static const uint32_t words[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
    0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa,
    0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
    0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
    0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f,
    0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static void prepare(const unsigned *sizes) {
  messages = sizes[0], bytes = sizes[1];
  data = array(messages, bytes);
  digests = array(messages, 32);
  result = digests;
  result_bytes = 32 * (size_t)messages;
}

static void reset(void) {
  for (size_t i = 0; i < (size_t)messages * bytes; i++) data[i] = (unsigned char)(mixed((uint32_t)i) >> 24);
}

static inline uint32_t turn(uint32_t x, int by) { return x >> by | x << (32 - by); }

static void block(uint32_t hash[8], const unsigned char *text) {
  uint32_t w[64];
  for (int i = 0; i < 16; i++)
    w[i] = (uint32_t)text[4 * i] << 24 | (uint32_t)text[4 * i + 1] << 16 | (uint32_t)text[4 * i + 2] << 8 | text[4 * i + 3];
  for (int i = 16; i < 64; i++)
    w[i] = w[i - 16] + (turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ w[i - 15] >> 3) + w[i - 7] +
           (turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ w[i - 2] >> 10);
  uint32_t a = hash[0], b = hash[1], c = hash[2], d = hash[3], e = hash[4], f = hash[5], g = hash[6], h = hash[7];
  for (int i = 0; i < 64; i++) {
    uint32_t one = h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + words[i] + w[i];
    uint32_t two = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + one, d = c, c = b, b = a, a = one + two;
  }
  hash[0] += a, hash[1] += b, hash[2] += c, hash[3] += d, hash[4] += e, hash[5] += f, hash[6] += g, hash[7] += h;
}

static void one_by_one(void) {
#pragma omp parallel for
  for (unsigned m = 0; m < messages; m++) {
    const unsigned char *text = data + (size_t)m * bytes;
    uint32_t hash[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    unsigned whole = bytes / 64 * 64, left = bytes - whole;
    for (unsigned from = 0; from < whole; from += 64) block(hash, text + from);
    unsigned char last[128] = {0};
    memcpy(last, text + whole, left);
    last[left] = 0x80;
    unsigned end = left < 56 ? 64 : 128;
    for (int i = 0; i < 8; i++) last[end - 1 - i] = (unsigned char)((uint64_t)bytes * 8 >> 8 * i);
    for (unsigned from = 0; from < end; from += 64) block(hash, last + from);
    for (int i = 0; i < 32; i++) digests[32 * (size_t)m + i] = (unsigned char)(hash[i / 4] >> (24 - 8 * (i % 4)));
  }
}

static const struct variant variants[] = {{"one_by_one", one_by_one}, {0, 0}};
