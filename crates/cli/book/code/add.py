"""A Triton kernel, and the PTX that Triton makes of it: `python add.py` writes add.ptx. No GPU is needed for that."""

import os

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    sum = tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n)
    tl.store(out + i, sum)


if __name__ == "__main__":
    signature = {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32", "BLOCK": "constexpr"}
    source = ASTSource(add, signature, constexprs={"BLOCK": 256})
    ptx = triton.compile(source, target=GPUTarget("cuda", 80, 32)).asm["ptx"]
    # What only debuggers read is left out, and the folder of this file.
    ptx = ptx.split("\t.section")[0].replace(os.path.dirname(os.path.abspath(__file__)) + "/", "")
    open("add.ptx", "w").write(ptx)
