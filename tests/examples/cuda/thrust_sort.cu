// Thrust: sort pairs by key, then sum the values of equal keys.
#include "check.h"

#include <thrust/device_vector.h>
#include <thrust/host_vector.h>
#include <thrust/reduce.h>
#include <thrust/sort.h>

#include <algorithm>
#include <vector>

int main() {
    const int n = 20000;
    std::vector<unsigned> keys(n);
    std::vector<int> values(n);
    Numbers numbers{6};
    for (int i = 0; i < n; i++) {
        keys[i] = numbers.next() % 257;
        values[i] = int(numbers.next() % 2001) - 1000;
    }
    thrust::device_vector<unsigned> k(keys.begin(), keys.end()), unique(n);
    thrust::device_vector<int> v(values.begin(), values.end()), sums(n);
    thrust::sort_by_key(k.begin(), k.end(), v.begin());
    auto ends = thrust::reduce_by_key(k.begin(), k.end(), v.begin(), unique.begin(), sums.begin());
    size_t found = ends.first - unique.begin();

    std::vector<long> wanted(257, 0);
    std::vector<bool> present(257, false);
    for (int i = 0; i < n; i++) {
        wanted[keys[i]] += values[i];
        present[keys[i]] = true;
    }
    thrust::host_vector<unsigned> hk = k, hu = unique;
    thrust::host_vector<int> hs = sums;
    std::sort(keys.begin(), keys.end());
    for (int i = 0; i < n; i++) expect_equal("sorted keys", i, unsigned(hk[i]), keys[i]);
    size_t at = 0;
    for (unsigned key = 0; key < 257; key++) {
        if (!present[key]) continue;
        expect_equal("unique keys", at, unsigned(hu[at]), key);
        expect_equal("sums", at, long(hs[at]), wanted[key]);
        at++;
    }
    expect_equal("number of unique keys", 0, found, at);
    std::printf("thrust_sort: %d pairs, %zu keys\n", n, found);
}
