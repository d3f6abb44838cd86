"""Dr.Jit writes PTX by itself: arithmetic, gathers and scatters, reductions, a loop, derivatives. Compared with numpy."""

import drjit as dr
import numpy as np
from drjit.cuda import Float, UInt32
from drjit.cuda.ad import Float as Derived


def main():
    n = 10_000
    x = np.random.default_rng(1).random(n, dtype=np.float32)
    a = Float(x)
    np.testing.assert_allclose(dr.sin(a) * 2 + dr.sqrt(a), np.sin(x) * 2 + np.sqrt(x), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(float(dr.sum(a)[0]), x.sum(dtype=np.float64), rtol=1e-4)
    np.testing.assert_allclose(float(dr.max(a)[0]), x.max())

    order = np.random.default_rng(2).permutation(n).astype(np.uint32)
    np.testing.assert_array_equal(dr.gather(Float, a, UInt32(order)).numpy(), x[order])
    bins = dr.zeros(UInt32, 16)
    dr.scatter_reduce(dr.ReduceOp.Add, bins, UInt32(1), UInt32(order % 16))
    np.testing.assert_array_equal(bins.numpy(), np.bincount(order % 16, minlength=16))

    @dr.syntax
    def steps(k):
        count = UInt32(0)
        while k > 1:
            k = dr.select(k & 1 == 0, k // 2, 3 * k + 1)
            count += 1
        return count

    def plain(k):
        count = 0
        while k > 1:
            k, count = (k // 2 if k % 2 == 0 else 3 * k + 1), count + 1
        return count

    np.testing.assert_array_equal(steps(dr.arange(UInt32, 200)).numpy(), [plain(k) for k in range(200)])

    d = Derived(x)
    dr.enable_grad(d)
    dr.backward(dr.sum(d * d * d))
    np.testing.assert_allclose(dr.grad(d).numpy(), 3 * x * x, rtol=1e-5)
    print("ok")


main()
