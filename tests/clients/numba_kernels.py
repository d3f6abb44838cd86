"""numba-cuda: grids, reductions, atomics, shared memory, streams, printf, asserts, against numpy."""

import os
import sys
import tempfile
import warnings

import numpy as np
from numba import cuda, float32

warnings.simplefilter("ignore")
rng = np.random.default_rng(1)
assert "Handloom" in str(cuda.get_current_device().name)


@cuda.jit
def add(a, b, c):
    i = cuda.grid(1)
    if i < c.size:
        c[i] = a[i] + b[i]


a, b = rng.standard_normal(10000).astype(np.float32), rng.standard_normal(10000).astype(np.float32)
c = np.zeros_like(a)
add[40, 256](a, b, c)
np.testing.assert_array_equal(c, a + b)
print("add: ok")


@cuda.reduce
def total(x, y):
    return x + y


x = rng.integers(0, 1000, 100000)
assert total(x) == x.sum()
print("reduction: ok")


@cuda.jit
def histogram(x, bins):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(bins, x[i], 1)


values = rng.integers(0, 50, 20000).astype(np.int32)
bins = np.zeros(50, np.int32)
histogram[80, 256](values, bins)
np.testing.assert_array_equal(bins, np.bincount(values, minlength=50))
print("atomics: ok")


@cuda.jit
def product(a, b, c):
    sa, sb = cuda.shared.array((16, 16), float32), cuda.shared.array((16, 16), float32)
    x, y = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    sum_ = float32(0)
    for k in range(a.shape[1] // 16):
        sa[tx, ty], sb[tx, ty] = a[x, ty + 16 * k], b[tx + 16 * k, y]
        cuda.syncthreads()
        for j in range(16):
            sum_ += sa[tx, j] * sb[j, ty]
        cuda.syncthreads()
    c[x, y] = sum_


a, b = rng.standard_normal((64, 48)).astype(np.float32), rng.standard_normal((48, 32)).astype(np.float32)
c = np.zeros((64, 32), np.float32)
product[(4, 2), (16, 16)](a, b, c)
np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-4)
print("shared memory: ok")

streams = [cuda.stream() for _ in range(4)]
parts = [cuda.to_device(np.full(1000, i, np.float32), stream=s) for i, s in enumerate(streams)]
for part, stream in zip(parts, streams):
    add[4, 256, stream](part, part, part)
for i, (part, stream) in enumerate(zip(parts, streams)):
    assert (part.copy_to_host(stream=stream) == 2 * i).all()
print("streams: ok")


@cuda.jit
def tell(n):
    if cuda.grid(1) < n:
        print("thread", cuda.grid(1), 2.5)


sys.stdout.flush()
kept = os.dup(1)
with tempfile.TemporaryFile() as file:
    os.dup2(file.fileno(), 1)
    tell[1, 32](3)
    cuda.synchronize()
    os.dup2(kept, 1)
    file.seek(0)
    assert file.read() == b"thread 0 2.500000\nthread 1 2.500000\nthread 2 2.500000\n"
print("print: ok")


@cuda.jit(debug=True, opt=False)
def check(x):
    assert x[cuda.grid(1)] > 0


try:
    check[1, 4](np.array([1, 2, 0, 4]))
    raise SystemExit("the assertion was not raised")
except AssertionError:
    print("exceptions: ok")
