// SHA-256 (FIPS 180-4) of many messages, one a thread. Message i is `bytes` bytes from data + i * bytes; digests are 32 bytes
// each, written as the standard writes them, most significant byte first.
// targets: sm_80
__constant__ unsigned round_words[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

__device__ __forceinline__ unsigned turn(unsigned x, int n) { return (x >> n) | (x << (32 - n)); }

// Byte `at` of the padded message: the text, a one bit, zeros, and the length in bits in the last eight bytes.
__device__ unsigned padded(const unsigned char* text, unsigned bytes, unsigned total, unsigned at) {
  if (at < bytes) return text[at];
  if (at == bytes) return 0x80;
  if (at < total - 8) return 0;
  return (unsigned)(((unsigned long long)bytes * 8) >> (8 * (total - 1 - at))) & 0xff;
}

extern "C" __global__ void sha256(unsigned messages, unsigned bytes, const unsigned char* data, unsigned char* digests) {
  unsigned id = blockIdx.x * blockDim.x + threadIdx.x;
  if (id >= messages) return;
  const unsigned char* text = data + (unsigned long long)id * bytes;
  unsigned total = (bytes + 9 + 63) / 64 * 64;
  unsigned hash[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  for (unsigned from = 0; from < total; from += 64) {
    unsigned w[16];
    for (int i = 0; i < 16; i++) {
      unsigned at = from + 4 * i;
      w[i] = padded(text, bytes, total, at) << 24 | padded(text, bytes, total, at + 1) << 16 |
             padded(text, bytes, total, at + 2) << 8 | padded(text, bytes, total, at + 3);
    }
    unsigned a = hash[0], b = hash[1], c = hash[2], d = hash[3], e = hash[4], f = hash[5], g = hash[6], h = hash[7];
    for (int i = 0; i < 64; i++) {
      if (i >= 16) {
        unsigned early = w[(i + 1) & 15], late = w[(i + 14) & 15];
        w[i & 15] += (turn(early, 7) ^ turn(early, 18) ^ early >> 3) + w[(i + 9) & 15] +
                     (turn(late, 17) ^ turn(late, 19) ^ late >> 10);
      }
      unsigned one = h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + round_words[i] + w[i & 15];
      unsigned two = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
      h = g, g = f, f = e, e = d + one, d = c, c = b, b = a, a = one + two;
    }
    hash[0] += a, hash[1] += b, hash[2] += c, hash[3] += d, hash[4] += e, hash[5] += f, hash[6] += g, hash[7] += h;
  }
  for (int i = 0; i < 32; i++) digests[32ull * id + i] = (unsigned char)(hash[i / 4] >> (24 - 8 * (i % 4)));
}
