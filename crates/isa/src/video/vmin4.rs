//! `vmin4`: the smaller ones of bytes.

use handloom_ir::simt::SimdOp;

use super::scalar::{ATYPE, BTYPE, DTYPE, SAT_AGAIN};
use super::simd::*;
use crate::form::*;
use crate::words::SAT;

/// `vmin4.dtype.atype.btype{.sat} d{.mask}, a{.asel}, b{.bsel}, c`: the smaller ones of bytes, merged into `c`.
pub const VMIN4: Form = Form {
    opcode: "vmin4",
    words: &[],
    section: QUADS,
    qualifiers: &[DTYPE, ATYPE, BTYPE, SAT, SAT_AGAIN],
    dst: &[D4],
    src: &SOURCES4,
    needs: SIMD,
    legal: clamps,
    semantics: Semantics::Build(|x| simd(x, SimdOp::Min, 4, false)),
};

/// `vmin4.dtype.atype.btype.add d{.mask}, a{.asel}, b{.bsel}, c`: the smaller ones of bytes, all added to `c`.
pub const VMIN4_ADD: Form = Form {
    words: ADD,
    qualifiers: &[DTYPE, ATYPE, BTYPE],
    legal: always,
    semantics: Semantics::Build(|x| simd(x, SimdOp::Min, 4, true)),
    ..VMIN4
};
