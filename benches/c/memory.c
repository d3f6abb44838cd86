// Copies, strided and indexed reads, counts, a lock and full fences, with C11 atomics where threads share a word. Sizes: words, and what is looked at:
// 0 the words, 1 counts.
#include <stdatomic.h>

#include "common.h"

static unsigned n;
static uint32_t *from, *to, *indices;
static _Atomic uint32_t counts[65536];

static void prepare(const unsigned *sizes) {
  n = sizes[0];
  from = array(n, sizeof *from);
  to = array(n, sizeof *to);
  indices = array(n, sizeof *indices);
  result = sizes[1] ? (void *)counts : (void *)to;
  result_bytes = sizes[1] ? sizes[1] * sizeof *counts : n * sizeof *to;
}

static void reset(void) {
  for (unsigned i = 0; i < n; i++) {
    from[i] = mixed(i);
    indices[i] = mixed(n + i) % n;
  }
  memset(to, 0, n * sizeof *to);
  memset((void *)counts, 0, sizeof counts);
}

static void copy(void) {
#ifdef _OPENMP
#pragma omp parallel for
  for (unsigned part = 0; part < 2; part++) {
    size_t half = n / 2, first = part * half;
    memcpy(to + first, from + first, (part ? n - half : half) * sizeof *to);
  }
#else
  memcpy(to, from, n * sizeof *to);
#endif
}

static void strided(void) {
#pragma omp parallel for
  for (unsigned i = 0; i < n; i++) to[i] = from[(i * 33u) & (n - 1)];
}

static void gather(void) {
#pragma omp parallel for
  for (unsigned i = 0; i < n; i++) to[i] = from[indices[i]];
}

// Plain increments.
static void shared_counts(void) {
#pragma omp parallel for
  for (unsigned block = 0; block < n / 256; block++) {
    uint32_t bins[256] = {0};
    for (unsigned t = 0; t < 256; t++) {
      for (uint32_t turn = 0; turn < 64; turn++) bins[(turn * 0x1000003u + block * 256 + t) * 0x9e3779b1u >> 24]++;
    }
    memcpy(to + 256 * block, bins, sizeof bins);
  }
}

static void counts_few(void) {
#pragma omp parallel for
  for (unsigned i = 0; i < n; i++) atomic_fetch_add_explicit(counts + (i & 3), 1, memory_order_relaxed);
}

static void counts_many(void) {
#pragma omp parallel for
  for (unsigned i = 0; i < n; i++) atomic_fetch_add_explicit(counts + (i & 65535), 1, memory_order_relaxed);
}

static void count_one(void) {
#pragma omp parallel for
  for (unsigned i = 0; i < n; i++) atomic_fetch_add_explicit(counts, 1, memory_order_relaxed);
}

// `counts`: the lock and what it guards.
static void lock(void) {
#pragma omp parallel for
  for (unsigned i = 0; i < n; i++) {
    for (;;) {
      uint32_t open = 0;
      if (atomic_compare_exchange_weak_explicit(counts, &open, 1, memory_order_acquire, memory_order_relaxed)) break;
    }
    volatile uint32_t *guarded = (volatile uint32_t *)counts;
    guarded[1] = guarded[1] + 1;
    guarded[2] = guarded[2] + guarded[1];
    atomic_store_explicit(counts, 0, memory_order_release);
  }
}

static void fence_sc(void) {
#pragma omp parallel for
  for (unsigned i = 0; i < n; i++) {
    _Atomic uint32_t *mine = (_Atomic uint32_t *)to + i;
    uint32_t value = 0;
    for (uint32_t turn = 0; turn < 16; turn++) {
      value += turn;
      atomic_store_explicit(mine, value, memory_order_relaxed);
      atomic_thread_fence(memory_order_seq_cst);
      value = atomic_load_explicit(mine, memory_order_relaxed);
    }
  }
}

static const struct variant variants[] = {
    {"copy", copy},       {"strided", strided},     {"gather", gather}, {"shared_counts", shared_counts}, {"counts_few", counts_few},
    {"counts_many", counts_many}, {"count_one", count_one}, {"lock", lock},     {"fence_sc", fence_sc},           {0, 0}};
