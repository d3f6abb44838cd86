"""Triton with tensors of a PyTorch on the CPU, whose memory kernels use where it is: softmax, layer norm, dropout, a matrix product, attention.

    handloom exec --open-addresses -- python triton_torch.py
"""

import torch
import triton
import triton.language as tl

torch.manual_seed(1)


@triton.jit
def softmax_kernel(x, o, n, B: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, B)
    v = tl.load(x + row * n + i, mask=i < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(o + row * n + i, e / tl.sum(e, axis=0), mask=i < n)


@triton.jit
def layer_norm_kernel(x, w, b, o, n, eps, B: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, B)
    m = i < n
    v = tl.load(x + row * n + i, mask=m, other=0.0)
    mean = tl.sum(v, axis=0) / n
    d = tl.where(m, v - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(d * d, axis=0) / n + eps)
    tl.store(o + row * n + i, d * scale * tl.load(w + i, mask=m) + tl.load(b + i, mask=m), mask=m)


@triton.jit
def dropout_kernel(x, o, n, p, seed, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    keep = tl.rand(seed, i) > p
    tl.store(o + i, tl.where(keep, tl.load(x + i, mask=i < n) / (1 - p), 0.0), mask=i < n)


@triton.jit
def matmul_kernel(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a + rm[:, None] * K + (k + rk)[None, :], mask=(rm[:, None] < M) & ((k + rk)[None, :] < K), other=0.0)
        y = tl.load(b + (k + rk)[:, None] * N + rn[None, :], mask=((k + rk)[:, None] < K) & (rn[None, :] < N), other=0.0)
        acc = tl.dot(x, y, acc)
    tl.store(c + rm[:, None] * N + rn[None, :], acc, mask=(rm[:, None] < M) & (rn[None, :] < N))


@triton.jit
def attention_kernel(q, k, v, o, scale, L, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """One pass over the keys, with a running maximum and a running sum, and no key after the query."""
    head = tl.program_id(1) * L * D
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    query = tl.load(q + head + rows[:, None] * D + d[None, :])
    best = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, D), dtype=tl.float32)
    for start in range(0, L, BN):
        cols = start + tl.arange(0, BN)
        s = tl.dot(query, tl.load(k + head + cols[None, :] * D + d[:, None])) * scale
        s = tl.where(rows[:, None] >= cols[None, :], s, -float("inf"))
        higher = tl.maximum(best, tl.max(s, axis=1))
        p = tl.exp(s - higher[:, None])
        keep = tl.exp(best - higher)
        total = total * keep + tl.sum(p, axis=1)
        acc = tl.dot(p.to(tl.float16), tl.load(v + head + cols[:, None] * D + d[None, :]), acc * keep[:, None])
        best = higher
    tl.store(o + head + rows[:, None] * D + d[None, :], acc / total[:, None])


def close(name, got, want, tolerance):
    torch.testing.assert_close(got, want, rtol=tolerance, atol=tolerance)
    print(f"{name}: ok", flush=True)


x = torch.randn(37, 300)
out = torch.empty_like(x)
softmax_kernel[(37,)](x, out, 300, B=512)
close("softmax", out, torch.softmax(x, 1), 1e-5)

w, b = torch.randn(300), torch.randn(300)
layer_norm_kernel[(37,)](x, w, b, out, 300, 1e-5, B=512)
close("layer norm", out, torch.nn.functional.layer_norm(x, (300,), w, b), 1e-4)

# What is kept depends on the seed alone, and is about as much as was asked for.
flat = torch.randn(10_000)
once, again, other = (torch.empty_like(flat) for _ in range(3))
for to, seed in ((once, 7), (again, 7), (other, 8)):
    dropout_kernel[(triton.cdiv(10_000, 1024),)](flat, to, 10_000, 0.3, seed, B=1024)
kept = once != 0
close("dropout", once[kept], flat[kept] / 0.7, 1e-6)
assert torch.equal(once, again) and not torch.equal(once, other)
# Six times the deviation of a sum of 10,000 draws.
assert abs(kept.float().mean().item() - 0.7) < 6 * (0.21 / 10_000) ** 0.5

# Products of 16-bit floats are exact in 32 bits; of `float32` the units take 11 bits of each factor, which is 2^-11 of a product, of which there are 50.
for kind, tolerance in ((torch.float16, 1e-4), (torch.bfloat16, 1e-4), (torch.float32, 50 * 2**-11)):
    a, c = torch.randn(70, 50).to(kind), torch.randn(50, 90).to(kind)
    got = torch.empty(70, 90)
    matmul_kernel[(triton.cdiv(70, 32), triton.cdiv(90, 32))](a, c, got, 70, 90, 50, BM=32, BN=32, BK=16)
    close(f"matrix product of {kind}", got, a.float() @ c.float(), tolerance)

q, k, v = (torch.randn(2, 64, 32).to(torch.float16) for _ in range(3))
got = torch.empty(2, 64, 32)
attention_kernel[(2, 2)](q, k, v, got, 32**-0.5, 64, D=32, BM=32, BN=32)
want = torch.nn.functional.scaled_dot_product_attention(q.float(), k.float(), v.float(), is_causal=True)
close("attention", got, want, 1e-2)
print("ok")
