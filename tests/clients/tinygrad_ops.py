"""tinygrad on the device against its CPU device or its interpreter: operations, training steps of a small convolutional net, a jitted step."""

import shutil

import numpy as np
from tinygrad import Device, Tensor, TinyJit, dtypes
from tinygrad.nn.optim import SGD

assert Device.DEFAULT == "CUDA", Device.DEFAULT
# The CPU device needs clang; without it, the device that is an interpreter in Python is the reference.
REFERENCE = "CPU" if shutil.which("clang") else "PYTHON"
rng = np.random.default_rng(1)


def both(name, work, *arrays, rtol=1e-4, atol=1e-5):
    got, want = (work(*[Tensor(a, device=device) for a in arrays]).numpy() for device in ("CUDA", REFERENCE))
    np.testing.assert_allclose(got, want, rtol=rtol, atol=atol, err_msg=name)
    print(f"{name}: ok")


def floats(*shape):
    return rng.standard_normal(shape).astype(np.float32)


both("matmul", lambda a, b: a @ b, floats(70, 33), floats(33, 50))
both("softmax", lambda a: a.softmax(), floats(9, 77))
both("reductions", lambda a: a.sum(0) + a.max(0) - a.mean(0), floats(130, 65))
both("convolution", lambda a, w: a.conv2d(w, padding=1).relu(), floats(2, 3, 16, 16), floats(4, 3, 3, 3))
both("functions", lambda a: a.exp() + a.sin() * a.abs().sqrt() + a.sigmoid(), floats(1000))
both("integers", lambda a: (a * 7 + 3) % 11 ^ 5, rng.integers(0, 1000, 333).astype(np.int32))
both("gather", lambda a, i: a[i], floats(40, 8), rng.integers(0, 40, 25).astype(np.int32))
both("cumsum", lambda a: a.cumsum(1), floats(7, 300))

# Every operation on halves rounds; the interpreter computes with more digits.
x = floats(500)
halves = (Tensor(x).cast(dtypes.half).contiguous() * 3).cast(dtypes.float).numpy()
np.testing.assert_array_equal(halves, (x.astype(np.float16) * np.float16(3)).astype(np.float32))
print("halves: ok")


class Net:
    def __init__(self, device):
        new = np.random.default_rng(2)
        make = lambda *s: Tensor(new.standard_normal(s).astype(np.float32) * 0.1, device=device, requires_grad=True)
        self.conv, self.full = make(4, 1, 3, 3), make(4 * 5 * 5, 10)

    def __call__(self, x):
        return x.conv2d(self.conv).relu().max_pool2d().flatten(1) @ self.full


def losses(device, steps):
    new = np.random.default_rng(3)
    net = Net(device)
    optimiser = SGD([net.conv, net.full], lr=0.05)
    out = []
    with Tensor.train():
        for _ in range(steps):
            x = Tensor(new.standard_normal((8, 1, 12, 12)).astype(np.float32), device=device)
            y = Tensor(new.integers(0, 10, 8).astype(np.int32), device=device)
            optimiser.zero_grad()
            loss = net(x).sparse_categorical_crossentropy(y)
            loss.backward()
            optimiser.step()
            out.append(loss.item())
    return out


np.testing.assert_allclose(losses("CUDA", 4), losses(REFERENCE, 4), rtol=1e-3)
print("training: ok")


@TinyJit
def step(x):
    return ((x @ x).relu() + 1).sum(0).realize()


for _ in range(5):
    x = floats(32, 32)
    np.testing.assert_allclose(step(Tensor(x)).numpy(), (np.maximum(x @ x, 0) + 1).sum(0), rtol=1e-3, atol=1e-3)
print("jit and graph: ok")
