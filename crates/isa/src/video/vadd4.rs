//! `vadd4`: sums of bytes.

use handloom_ir::simt::SimdOp;

use super::scalar::{ATYPE, BTYPE, DTYPE, SAT_AGAIN};
use super::simd::*;
use crate::form::*;
use crate::words::SAT;

/// `vadd4.dtype.atype.btype{.sat} d{.mask}, a{.asel}, b{.bsel}, c`: sums of bytes, merged into `c`.
pub const VADD4: Form = Form {
    opcode: "vadd4",
    words: &[],
    section: QUADS,
    qualifiers: &[DTYPE, ATYPE, BTYPE, SAT, SAT_AGAIN],
    dst: &[D4],
    src: &SOURCES4,
    needs: SIMD,
    legal: clamps,
    semantics: Semantics::Build(|x| simd(x, SimdOp::Add, 4, false)),
};

/// `vadd4.dtype.atype.btype.add d{.mask}, a{.asel}, b{.bsel}, c`: sums of bytes, all added to `c`.
pub const VADD4_ADD: Form = Form {
    words: ADD,
    qualifiers: &[DTYPE, ATYPE, BTYPE],
    legal: always,
    semantics: Semantics::Build(|x| simd(x, SimdOp::Add, 4, true)),
    ..VADD4
};
