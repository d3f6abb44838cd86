// What all programs of this folder use: an error stops the program by name and place, a wrong result by place and both values.
#pragma once
#include <cuda_runtime.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                                                                                              \
    do {                                                                                                                         \
        cudaError_t error_ = (call);                                                                                             \
        if (error_ != cudaSuccess) {                                                                                             \
            std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, cudaGetErrorName(error_), cudaGetErrorString(error_));   \
            std::exit(1);                                                                                                        \
        }                                                                                                                        \
    } while (0)

// Numbers that are the same everywhere (a linear congruence modulo 2^64, upper bits).
struct Numbers {
    unsigned long long state;
    unsigned next() {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        return unsigned(state >> 33);
    }
    // A multiple of 1/256 between -4 and 4: sums and products of a few are exact.
    float small() { return (int(next() % 2049) - 1024) / 256.0f; }
};

template <class T> void expect_equal(const char *what, size_t i, T found, T wanted) {
    if (!(found == wanted)) {
        std::fprintf(stderr, "%s: element %zu is %.9g, expected %.9g\n", what, i, double(found), double(wanted));
        std::exit(1);
    }
}
