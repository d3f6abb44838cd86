//! Kernels of the examples in this documentation.

/// `y[i] += a * x[i]` for `i < n`: parameters `n`, `a`, `x`, `y`.
pub const SAXPY: &str = "\
.version 8.0
.target sm_80
.address_size 64

.visible .entry saxpy(.param .u32 n, .param .f32 a, .param .u64 x, .param .u64 y)
{
    .reg .pred %p;
    .reg .b32 %r<5>;
    .reg .f32 %f<4>;
    .reg .b64 %d<4>;

    ld.param.u32 %r0, [n];
    ld.param.f32 %f0, [a];
    ld.param.u64 %d0, [x];
    ld.param.u64 %d1, [y];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.u32 %r4, %r1, %r2, %r3;
    setp.ge.u32 %p, %r4, %r0;
    @%p ret;
    mul.wide.u32 %d2, %r4, 4;
    add.u64 %d0, %d0, %d2;
    add.u64 %d1, %d1, %d2;
    ld.global.f32 %f1, [%d0];
    ld.global.f32 %f2, [%d1];
    fma.rn.f32 %f3, %f0, %f1, %f2;
    st.global.f32 [%d1], %f3;
    ret;
}
";

/// `y[i] = factor * x[i] + offset[i % 4]` for `i < n`. Its one parameter is a structure of `x`, `y`, `n` and `factor`; `offset` is a variable of the module.
pub const SCALE: &str = "\
.version 8.0
.target sm_80
.address_size 64

.visible .const .align 4 .f32 offset[4];

.visible .entry scale(.param .align 8 .b8 p[24])
{
    .reg .pred %p;
    .reg .b32 %r<4>;
    .reg .f32 %f<5>;
    .reg .b64 %d<6>;

    ld.param.u64 %d0, [p];
    ld.param.u64 %d1, [p+8];
    ld.param.u32 %r0, [p+16];
    ld.param.f32 %f0, [p+20];
    mov.u32 %r1, %tid.x;
    setp.ge.u32 %p, %r1, %r0;
    @%p ret;
    and.b32 %r2, %r1, 3;
    mov.u64 %d2, offset;
    mul.wide.u32 %d3, %r2, 4;
    add.u64 %d2, %d2, %d3;
    ld.const.f32 %f1, [%d2];
    mul.wide.u32 %d4, %r1, 4;
    add.u64 %d0, %d0, %d4;
    add.u64 %d1, %d1, %d4;
    ld.global.f32 %f2, [%d0];
    fma.rn.f32 %f3, %f0, %f2, %f1;
    st.global.f32 [%d1], %f3;
    ret;
}
";

/// `*out` is the sum of `in[0..ntid.x]`, through shared memory, with the barrier left out: a race.
pub const RACY: &str = "\
.version 8.0
.target sm_80
.address_size 64

.visible .entry neighbour(.param .u64 in, .param .u64 out)
{
    .shared .align 4 .b8 tile[256];
    .reg .b32 %r<6>;
    .reg .b64 %d<4>;

    ld.param.u64 %d0, [in];
    ld.param.u64 %d1, [out];
    mov.u32 %r0, %tid.x;
    mul.wide.u32 %d2, %r0, 4;
    add.u64 %d0, %d0, %d2;
    add.u64 %d1, %d1, %d2;
    ld.global.u32 %r1, [%d0];
    shl.b32 %r2, %r0, 2;
    mov.u32 %r3, tile;
    add.u32 %r2, %r2, %r3;
    st.shared.u32 [%r2], %r1;
    xor.b32 %r4, %r2, 4;
    ld.shared.u32 %r5, [%r4];
    st.global.u32 [%d1], %r5;
    ret;
}
";
