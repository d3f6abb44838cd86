#!/usr/bin/env python3
"""Makes the products and attentions in the folder triton: kernels of Triton, compiled ahead of time for several targets. No GPU is needed.

    python3 -m venv VENV
    VENV/bin/pip install triton==3.9.0
    VENV/bin/python tests/kernels/corpus/make.py          # all; or names: make.py matmul_f16

Other versions of Triton give other text. Tiles are small, so that files are. `tests/src/reference/products.rs` has what they compute, and the sizes of
their tiles, dynamic shared memory apart, of which all get as much as there is.
"""

import os
import pathlib
import sys

# Before Triton is read: no names of files in the text.
os.environ["TRITON_DISABLE_LINE_INFO"] = "1"
os.environ["TRITON_DEFAULT_FP_FUSION"] = "1"

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

FOLDER = pathlib.Path(__file__).resolve().parent / "triton"


@triton.jit
def matmul(a, b, c, M, N, K, sa, sb, sc, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, ACC: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    pa = a + rm[:, None] * sa + rk[None, :]
    pb = b + rk[:, None] * sb + rn[None, :]
    acc = tl.zeros((BM, BN), dtype=ACC)
    for k in range(0, tl.cdiv(K, BK)):
        x = tl.load(pa, mask=(rm[:, None] < M) & (rk[None, :] < K - k * BK), other=0.0)
        y = tl.load(pb, mask=(rk[:, None] < K - k * BK) & (rn[None, :] < N), other=0.0)
        acc = tl.dot(x, y, acc, out_dtype=ACC)
        pa += BK
        pb += BK * sb
    tl.store(c + rm[:, None] * sc + rn[None, :], acc, mask=(rm[:, None] < M) & (rn[None, :] < N))


@triton.jit
def attention(q, k, v, o, scale, n, CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.arange(0, BN)
    rd = tl.arange(0, D)
    x = tl.load(q + rm[:, None] * D + rd[None, :], mask=rm[:, None] < n, other=0.0)
    m = tl.full((BM,), -float("inf"), tl.float32)
    l = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for s in range(0, tl.minimum((tl.program_id(0) + 1) * BM, n) if CAUSAL else n, BN):
        at = s + rn
        y = tl.load(k + at[None, :] * D + rd[:, None], mask=at[None, :] < n, other=0.0)
        w = tl.dot(x, y) * (scale * 1.44269504)
        seen = at[None, :] < n
        if CAUSAL:
            seen = seen & (rm[:, None] >= at[None, :])
        w = tl.where(seen, w, -float("inf"))
        most = tl.maximum(m, tl.max(w, 1))
        p = tl.exp2(w - most[:, None])
        old = tl.exp2(m - most)
        l = l * old + tl.sum(p, 1)
        z = tl.load(v + at[:, None] * D + rd[None, :], mask=at[:, None] < n, other=0.0)
        acc = tl.dot(p.to(z.dtype), z, acc * old[:, None])
        m = most
    tl.store(o + rm[:, None] * D + rd[None, :], (acc / l[:, None]).to(o.dtype.element_ty), mask=rm[:, None] < n)


@triton.jit
def scaled(a, sa, b, sb, c, M, N, K, FORMAT: tl.constexpr, PACKED: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        rk = k * (BK // PACKED) + tl.arange(0, BK // PACKED)
        rs = k * (BK // 32) + tl.arange(0, BK // 32)
        x = tl.load(a + rm[:, None] * (K // PACKED) + rk[None, :], mask=(rm[:, None] < M) & (rk[None, :] < K // PACKED), other=0)
        y = tl.load(b + rn[None, :] * (K // PACKED) + rk[:, None], mask=(rn[None, :] < N) & (rk[:, None] < K // PACKED), other=0)
        xs = tl.load(sa + rm[:, None] * (K // 32) + rs[None, :], mask=(rm[:, None] < M) & (rs[None, :] < K // 32), other=127)
        ys = tl.load(sb + rn[:, None] * (K // 32) + rs[None, :], mask=(rn[:, None] < N) & (rs[None, :] < K // 32), other=127)
        acc = tl.dot_scaled(x, xs, FORMAT, y, ys, FORMAT, acc)
    tl.store(c + rm[:, None] * N + rn[None, :], acc, mask=(rm[:, None] < M) & (rn[None, :] < N))


@triton.jit
def persistent(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPECIAL: tl.constexpr):
    n_tiles = tl.cdiv(M, BM) * tl.cdiv(N, BN)
    for t in tl.range(tl.program_id(0), n_tiles, tl.num_programs(0), flatten=True, warp_specialize=SPECIAL):
        m = t // tl.cdiv(N, BN) * BM
        n = t % tl.cdiv(N, BN) * BN
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(tl.cdiv(K, BK)):
            acc = tl.dot(a.load([m, k * BK]), b.load([n, k * BK]).T, acc)
        c.store([m, n], acc.to(c.dtype))


@triton.jit
def made_maps(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPECIAL: tl.constexpr):
    x = tl.make_tensor_descriptor(a, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    y = tl.make_tensor_descriptor(b, shape=[N, K], strides=[K, 1], block_shape=[BN, BK])
    z = tl.make_tensor_descriptor(c, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    n_tiles = tl.cdiv(M, BM) * tl.cdiv(N, BN)
    for t in tl.range(tl.program_id(0), n_tiles, tl.num_programs(0), warp_specialize=SPECIAL):
        m = t // tl.cdiv(N, BN) * BM
        n = t % tl.cdiv(N, BN) * BN
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(tl.cdiv(K, BK)):
            acc = tl.dot(x.load([m, k * BK]), y.load([n, k * BK]).T, acc)
        z.store([m, n], acc.to(tl.float16))


def product(of, to, acc, targets, tile=(64, 32, 32)):
    types = dict(a=f"*{of}", b=f"*{of}", c=f"*{to}", **{s: "i32" for s in ("M", "N", "K", "sa", "sb", "sc")})
    return matmul, types, dict(zip(("BM", "BN", "BK"), tile), ACC=acc), ["a", "b", "c", "K", "sa", "sb", "sc"], targets


def by_maps(special, targets, tile):
    map = lambda rows, columns: f"tensordesc<fp16[{rows}, {columns}]>"
    types = dict(a=map(tile[0], tile[2]), b=map(tile[1], tile[2]), c=map(tile[0], tile[1]), M="i32", N="i32", K="i32")
    return persistent, types, dict(zip(("BM", "BN", "BK"), tile), SPECIAL=special), [], targets


def by_made_maps(targets, tile):
    types = dict(a="*fp16", b="*fp16", c="*fp16", M="i32", N="i32", K="i32")
    return made_maps, types, dict(zip(("BM", "BN", "BK"), tile), SPECIAL=True), ["a", "b", "c", "N", "K"], targets


def with_scales(format, packed, targets):
    types = dict(a="*u8", sa="*u8", b="*u8", sb="*u8", c="*fp32", M="i32", N="i32", K="i32")
    return scaled, types, dict(FORMAT=format, PACKED=packed, BM=128, BN=32, BK=128), ["a", "sa", "b", "sb", "c", "K"], targets


def heads(causal, targets):
    types = dict(q="*fp16", k="*fp16", v="*fp16", o="*fp16", scale="fp32", n="i32")
    return attention, types, dict(CAUSAL=causal, BM=64, BN=32, D=32), ["q", "k", "v", "o"], targets


KERNELS = {
    "matmul_f16": product("fp16", "fp32", tl.float32, [80, 90]),
    "matmul_tf32": product("fp32", "fp32", tl.float32, [80, 100]),
    "matmul_e5m2": product("fp8e5", "fp32", tl.float32, [89, 90]),
    "matmul_s8": product("i8", "i32", tl.int32, [80, 90]),
    "attention": heads(False, [100]),
    "attention_causal": heads(True, [89, 90]),
    "mxfp4": with_scales("e2m1", 2, [100, 120]),
    "mxfp8": with_scales("e4m3", 1, [100]),
    "persistent": by_maps(False, [90], (64, 64, 64)),
    "persistent_ws": by_maps(True, [100, 120], (128, 64, 64)),
    "made_maps": by_made_maps([90], (128, 64, 64)),
}


def main():
    for name in sys.argv[1:] or KERNELS:
        fn, types, constants, aligned, targets = KERNELS[name]
        place = fn.arg_names.index
        signature = {arg: types.get(arg, "constexpr") for arg in fn.arg_names}
        attrs = {(place(arg),): [["tt.divisibility", 16]] for arg in aligned}
        for target in targets:
            source = ASTSource(fn=fn, signature=signature, constexprs={(place(c),): v for c, v in constants.items()}, attrs=attrs)
            kernel = triton.compile(source, target=GPUTarget("cuda", target, 32), options=dict(num_warps=4, num_stages=2))
            text = kernel.asm["ptx"].split("\t.section\t.debug")[0].rstrip() + "\n"
            (FOLDER / f"{name}.sm{target}.ptx").write_text(text)
            print(f"{name}.sm{target}.ptx: {len(text)} bytes, {kernel.metadata.shared} of shared memory, maps {getattr(kernel.metadata, 'tensordesc_meta', None)}, scratch {kernel.metadata.global_scratch_size}", flush=True)


if __name__ == "__main__":
    main()
