"""Halide makes PTX of a pipeline: a blur in tiles, and a histogram-like reduction. Compared with numpy."""

import halide as hl
import numpy as np


def blur(target):
    rng = np.random.default_rng(1)
    picture = rng.random((50, 70), dtype=np.float32)
    given = hl.Buffer(picture)
    x, y, xi, yi = hl.Var("x"), hl.Var("y"), hl.Var("xi"), hl.Var("yi")
    edge = hl.BoundaryConditions.repeat_edge(given)
    across, both = hl.Func("across"), hl.Func("both")
    across[x, y] = edge[x - 1, y] + edge[x, y] + edge[x + 1, y]
    both[x, y] = (across[x, y - 1] + across[x, y] + across[x, y + 1]) / 9
    both.gpu_tile(x, y, xi, yi, 16, 8)
    across.compute_at(both, x).gpu_threads(x, y)
    out = both.realize([70, 50], target)
    out.copy_to_host()
    padded = np.pad(picture, 1, mode="edge")
    want = sum(padded[i : i + 50, j : j + 70] for i in range(3) for j in range(3)) / 9
    np.testing.assert_allclose(np.array(out), want, rtol=1e-5)


def sums(target):
    x, xi = hl.Var("x"), hl.Var("xi")
    r = hl.RDom([(0, 100)])
    f = hl.Func("sums")
    f[x] = 0
    f[x] += hl.cast(hl.Int(32), (x * 3 + r.x) % 7)
    f.gpu_tile(x, xi, 32)
    f.update().gpu_tile(x, xi, 32)
    out = f.realize([200], target)
    out.copy_to_host()
    want = [sum((i * 3 + k) % 7 for k in range(100)) for i in range(200)]
    assert np.array(out).tolist() == want


def main():
    target = hl.get_host_target().with_feature(hl.TargetFeature.CUDA)
    blur(target)
    sums(target)
    print("ok")


main()
