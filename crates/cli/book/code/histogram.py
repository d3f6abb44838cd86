"""A kernel for Numba, and the PTX that Numba makes of it: `python histogram.py` writes histogram.ptx. No GPU is needed for that."""

import os

from numba import cuda, int32, void


def histogram(x, bins):
    i = cuda.grid(1)
    if i < x.size:
        bins[x[i]] += 1


if __name__ == "__main__":
    ptx, _ = cuda.compile_ptx(histogram, void(int32[::1], int32[::1]), cc=(8, 0), lineinfo=True, abi_info={"abi_name": "histogram"})
    ptx = ptx.replace(os.path.dirname(os.path.abspath(__file__)) + "/", "")
    open("histogram.ptx", "w").write(ptx)
