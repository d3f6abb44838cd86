//! `vmax2`: the larger ones of halves.

use handloom_ir::simt::SimdOp;

use super::scalar::{ATYPE, BTYPE, DTYPE, SAT_AGAIN};
use super::simd::*;
use crate::form::*;
use crate::words::SAT;

/// `vmax2.dtype.atype.btype{.sat} d{.mask}, a{.asel}, b{.bsel}, c`: the larger ones of halves, merged into `c`.
pub const VMAX2: Form = Form {
    opcode: "vmax2",
    words: &[],
    section: PAIRS,
    qualifiers: &[DTYPE, ATYPE, BTYPE, SAT, SAT_AGAIN],
    dst: &[D2],
    src: &SOURCES2,
    needs: SIMD,
    legal: clamps,
    semantics: Semantics::Build(|x| simd(x, SimdOp::Max, 2, false)),
};

/// `vmax2.dtype.atype.btype.add d{.mask}, a{.asel}, b{.bsel}, c`: the larger ones of halves, all added to `c`.
pub const VMAX2_ADD: Form = Form {
    words: ADD,
    qualifiers: &[DTYPE, ATYPE, BTYPE],
    legal: always,
    semantics: Semantics::Build(|x| simd(x, SimdOp::Max, 2, true)),
    ..VMAX2
};
