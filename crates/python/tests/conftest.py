"""What the tests share."""

import os
from pathlib import Path

import pytest

# Kernels of one test are not those of another.
os.environ["HANDLOOM_CACHE"] = "off"

pytest_plugins = ["pytester"]

KERNELS = Path(__file__).resolve().parents[3] / "tests" / "kernels"

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"

# Its parameter of each type goes to memory as it is: what came is what lies there.
STORE = (
    HEAD
    + """
.visible .entry store_{ty}(.param .u64 out, .param .{ty} v) {{
    .reg .b64 %d; .reg .b{bits} %v;
    ld.param.u64 %d, [out]; ld.param.b{bits} %v, [v]; st.global.b{bits} [%d], %v; ret; }}
"""
)

# Threads of a warp exchange values through shared memory without a barrier.
RACY = (
    HEAD
    + """
.visible .entry racy(.param .u64 in, .param .u64 out) {
    .shared .align 4 .b8 tile[256]; .reg .b32 %r<6>; .reg .b64 %d<4>;
    ld.param.u64 %d0, [in]; ld.param.u64 %d1, [out]; mov.u32 %r0, %tid.x;
    mul.wide.u32 %d2, %r0, 4; add.u64 %d0, %d0, %d2; add.u64 %d1, %d1, %d2;
    ld.global.u32 %r1, [%d0]; shl.b32 %r2, %r0, 2; mov.u32 %r3, tile; add.u32 %r2, %r2, %r3;
    st.shared.u32 [%r2], %r1; xor.b32 %r4, %r2, 4; ld.shared.u32 %r5, [%r4]; st.global.u32 [%d1], %r5; ret; }
"""
)

SPIN = HEAD + ".visible .entry spin() { L: bra L; }\n"


@pytest.fixture
def saxpy():
    import handloom

    return handloom.RawModule(path=KERNELS / "saxpy.ptx").get_function("saxpy")
