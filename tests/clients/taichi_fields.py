"""Taichi on its CUDA backend: fields, atomics, a loop of steps, a matrix product. Compared with numpy."""

import numpy as np
import taichi as ti

ti.init(arch=ti.cuda, offline_cache=False)
assert ti.cfg.arch == ti.cuda, "Taichi fell back to another backend"

N = 1000
x = ti.field(ti.f32, shape=N)
total = ti.field(ti.f32, shape=())
bins = ti.field(ti.i32, shape=8)
a, b, c = (ti.field(ti.f32, shape=(32, 32)) for _ in range(3))


@ti.kernel
def fill():
    for i in x:
        x[i] = ti.sin(i * 0.1) * 2


@ti.kernel
def gather():
    for i in x:
        total[None] += x[i]
        bins[i % 8] += 1


@ti.kernel
def product():
    for i, j in c:
        s = 0.0
        for k in range(32):
            s += a[i, k] * b[k, j]
        c[i, j] = s


@ti.kernel
def collatz(n: ti.i32) -> ti.i32:
    best = 0
    for i in range(1, n):
        k, steps = i, 0
        while k > 1:
            k = k // 2 if k % 2 == 0 else 3 * k + 1
            steps += 1
        ti.atomic_max(best, steps)
    return best


def main():
    fill()
    gather()
    want = np.sin(np.arange(N, dtype=np.float32) * np.float32(0.1)) * 2
    np.testing.assert_allclose(x.to_numpy(), want, atol=1e-3)
    np.testing.assert_allclose(total[None], want.sum(), atol=1e-1)
    np.testing.assert_array_equal(bins.to_numpy(), np.full(8, N // 8))
    p, q = np.random.default_rng(1).random((2, 32, 32), dtype=np.float32)
    a.from_numpy(p)
    b.from_numpy(q)
    product()
    np.testing.assert_allclose(c.to_numpy(), p @ q, rtol=1e-4)

    def steps(k):
        n = 0
        while k > 1:
            k, n = (k // 2 if k % 2 == 0 else 3 * k + 1), n + 1
        return n

    assert collatz(300) == max(steps(k) for k in range(1, 300))
    print("ok")


main()
