//! `vmin2`: the smaller ones of halves.

use handloom_ir::simt::SimdOp;

use super::scalar::{ATYPE, BTYPE, DTYPE, SAT_AGAIN};
use super::simd::*;
use crate::form::*;
use crate::words::SAT;

/// `vmin2.dtype.atype.btype{.sat} d{.mask}, a{.asel}, b{.bsel}, c`: the smaller ones of halves, merged into `c`.
pub const VMIN2: Form = Form {
    opcode: "vmin2",
    words: &[],
    section: PAIRS,
    qualifiers: &[DTYPE, ATYPE, BTYPE, SAT, SAT_AGAIN],
    dst: &[D2],
    src: &SOURCES2,
    needs: SIMD,
    legal: clamps,
    semantics: Semantics::Build(|x| simd(x, SimdOp::Min, 2, false)),
};

/// `vmin2.dtype.atype.btype.add d{.mask}, a{.asel}, b{.bsel}, c`: the smaller ones of halves, all added to `c`.
pub const VMIN2_ADD: Form = Form {
    words: ADD,
    qualifiers: &[DTYPE, ATYPE, BTYPE],
    legal: always,
    semantics: Semantics::Build(|x| simd(x, SimdOp::Min, 2, true)),
    ..VMIN2
};
