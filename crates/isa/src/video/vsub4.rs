//! `vsub4`: differences of bytes.

use handloom_ir::simt::SimdOp;

use super::scalar::{ATYPE, BTYPE, DTYPE, SAT_AGAIN};
use super::simd::*;
use crate::form::*;
use crate::words::SAT;

/// `vsub4.dtype.atype.btype{.sat} d{.mask}, a{.asel}, b{.bsel}, c`: differences of bytes, merged into `c`.
pub const VSUB4: Form = Form {
    opcode: "vsub4",
    words: &[],
    section: QUADS,
    qualifiers: &[DTYPE, ATYPE, BTYPE, SAT, SAT_AGAIN],
    dst: &[D4],
    src: &SOURCES4,
    needs: SIMD,
    legal: clamps,
    semantics: Semantics::Build(|x| simd(x, SimdOp::Sub, 4, false)),
};

/// `vsub4.dtype.atype.btype.add d{.mask}, a{.asel}, b{.bsel}, c`: differences of bytes, all added to `c`.
pub const VSUB4_ADD: Form = Form {
    words: ADD,
    qualifiers: &[DTYPE, ATYPE, BTYPE],
    legal: always,
    semantics: Semantics::Build(|x| simd(x, SimdOp::Sub, 4, true)),
    ..VSUB4
};
