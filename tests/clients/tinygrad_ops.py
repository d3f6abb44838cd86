"""tinygrad on the device against numpy: operations, training steps, a jitted step; a small convolutional net and a small transformer against its CPU device,
which needs clang."""

import shutil
import time

import numpy as np
from tinygrad import Context, Device, Tensor, TinyJit, dtypes
from tinygrad.nn.optim import SGD, Adam

assert Device.DEFAULT == "CUDA", Device.DEFAULT
rng = np.random.default_rng(1)


def check(name, work, reference, *arrays, rtol=1e-4, atol=1e-4):
    got = work(*[Tensor(a) for a in arrays]).numpy()
    np.testing.assert_allclose(got, reference(*arrays), rtol=rtol, atol=atol, err_msg=name)
    print(f"{name}: ok", flush=True)


def floats(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def convolution(x, w):
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    return np.maximum(np.einsum("ncyxij,ocij->noyx", windows, w), 0)


check("matmul", lambda a, b: a @ b, np.matmul, floats(70, 33), floats(33, 50))
check("softmax", lambda a: a.softmax(), softmax, floats(9, 77))
check("reductions", lambda a: a.sum(0) + a.max(0) - a.mean(0), lambda a: a.sum(0) + a.max(0) - a.mean(0), floats(130, 65))
check("convolution", lambda a, w: a.conv2d(w, padding=1).relu(), convolution, floats(2, 3, 16, 16), floats(4, 3, 3, 3))
check("functions", lambda a: a.exp() + a.sin() * a.abs().sqrt(), lambda a: np.exp(a) + np.sin(a) * np.sqrt(abs(a)), floats(1000))
check("integers", lambda a: (a * 7 + 3) % 11 ^ 5, lambda a: (a * 7 + 3) % 11 ^ 5, rng.integers(0, 1000, 333).astype(np.int32))
check("gather", lambda a, i: a[i], lambda a, i: a[i], floats(40, 8), rng.integers(0, 40, 25).astype(np.int32))
check("cumsum", lambda a: a.cumsum(1), lambda a: a.cumsum(1), floats(7, 300))
# Every operation on halves rounds.
halves = lambda a: (a.astype(np.float16) * np.float16(3)).astype(np.float32)
check("halves", lambda a: (a.cast(dtypes.half).contiguous() * 3).cast(dtypes.float), halves, floats(500), rtol=0, atol=0)


def train_numpy(w, batches):
    losses = []
    for x, y in batches:
        p = softmax(x @ w)
        losses.append(-np.log(p[np.arange(len(y)), y]).mean())
        p[np.arange(len(y)), y] -= 1
        w = w - 0.1 * x.T @ p / len(y)
    return losses


def train(w, batches):
    w, losses = Tensor(w), []
    optimiser = SGD([w], lr=0.1)
    with Context(TRAINING=1):
        for x, y in batches:
            optimiser.zero_grad()
            loss = (Tensor(x) @ w).sparse_categorical_crossentropy(Tensor(y))
            loss.backward()
            # Before the step: what is not computed yet would see the new weights.
            losses.append(loss.item())
            optimiser.step()
    return losses


w, batches = floats(20, 10), [(floats(16, 20), rng.integers(0, 10, 16).astype(np.int32)) for _ in range(4)]
np.testing.assert_allclose(train(w, batches), train_numpy(w, batches), rtol=1e-3)
print("training: ok", flush=True)


@TinyJit
def step(x):
    return ((x @ x).relu() + 1).sum(0).realize()


for _ in range(5):
    x = floats(32, 32)
    np.testing.assert_allclose(step(Tensor(x)).numpy(), (np.maximum(x @ x, 0) + 1).sum(0), rtol=1e-3, atol=1e-3)
print("jit and graph: ok", flush=True)


def net_losses(device):
    new = np.random.default_rng(3)
    make = lambda *s: Tensor(new.standard_normal(s).astype(np.float32) * 0.1, device=device)
    conv, full = make(4, 1, 3, 3), make(4 * 13 * 13, 10)
    optimiser, out = SGD([conv, full], lr=0.05), []
    with Context(TRAINING=1):
        for _ in range(4):
            x = Tensor(new.standard_normal((8, 1, 28, 28)).astype(np.float32), device=device)
            y = Tensor(new.integers(0, 10, 8).astype(np.int32), device=device)
            optimiser.zero_grad()
            loss = (x.conv2d(conv).relu().max_pool2d().flatten(1) @ full).sparse_categorical_crossentropy(y)
            loss.backward()
            out.append(loss.item())
            optimiser.step()
    return out


WORDS, PLACES, WIDTH, HEADS = 17, 12, 24, 3


class Transformer:
    """Two blocks of causal attention and a feed-forward layer, each behind a norm, between an embedding and scores."""

    def __init__(self, device):
        new = np.random.default_rng(5)
        make = lambda *s: Tensor(new.standard_normal(s).astype(np.float32) * s[0] ** -0.5, device=device)
        self.words, self.places, self.scores = make(WORDS, WIDTH), make(PLACES, WIDTH), make(WIDTH, WORDS)
        self.blocks = [(make(WIDTH, 3 * WIDTH), make(WIDTH, WIDTH), make(WIDTH, 4 * WIDTH), make(4 * WIDTH, WIDTH)) for _ in range(2)]

    def weights(self):
        return [self.words, self.places, self.scores] + [w for block in self.blocks for w in block]

    def __call__(self, x):
        heads = lambda t: t.reshape(x.shape[0], PLACES, HEADS, WIDTH // HEADS).transpose(1, 2)
        h = self.words[x] + self.places
        for to_qkv, out, up, down in self.blocks:
            q, k, v = [heads(t) for t in (h.layernorm() @ to_qkv).chunk(3, dim=-1)]
            met = q.scaled_dot_product_attention(k, v, is_causal=True)
            h = h + met.transpose(1, 2).reshape(h.shape) @ out
            h = h + (h.layernorm() @ up).gelu() @ down
        return h.layernorm() @ self.scores


def transformer_losses(device, steps=8):
    """Losses of training steps by Adam, jitted from the second on, and how long the last one took."""
    new, net = np.random.default_rng(7), Transformer(device)
    optimiser, out, last = Adam(net.weights(), lr=0.02), [], 0.0

    @TinyJit
    def step(x, y):
        optimiser.zero_grad()
        loss = net(x).sparse_categorical_crossentropy(y)
        loss.backward()
        return loss.realize(*optimiser.schedule_step())

    with Context(TRAINING=1):
        for _ in range(steps):
            # The next word is this one and five more.
            x = new.integers(0, WORDS, (4, 1)) + 5 * np.arange(PLACES + 1)
            x = (x % WORDS).astype(np.int32)
            start = time.perf_counter()
            given = [Tensor(np.ascontiguousarray(part), device=device).realize() for part in (x[:, :-1], x[:, 1:])]
            out.append(step(*given).item())
            last = time.perf_counter() - start
    return out, last


def compare(name, got, reference):
    if not shutil.which("clang"):
        assert np.isfinite(got).all()
        print(f"{name}: ran; not compared, since the CPU device needs clang")
        return
    np.testing.assert_allclose(got, reference(), rtol=1e-3, err_msg=name)
    print(f"{name}: ok")


compare("convolutional net", net_losses("CUDA"), lambda: net_losses("CPU"))
losses, took = transformer_losses("CUDA")
assert losses[-1] < 0.7 * losses[0], losses
compare("transformer", losses, lambda: transformer_losses("CPU")[0])
print(f"a training step of the transformer: {took * 1e3:.1f} ms")
