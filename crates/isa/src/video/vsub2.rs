//! `vsub2`: differences of halves.

use handloom_ir::simt::SimdOp;

use super::scalar::{ATYPE, BTYPE, DTYPE, SAT_AGAIN};
use super::simd::*;
use crate::form::*;
use crate::words::SAT;

/// `vsub2.dtype.atype.btype{.sat} d{.mask}, a{.asel}, b{.bsel}, c`: differences of halves, merged into `c`.
pub const VSUB2: Form = Form {
    opcode: "vsub2",
    words: &[],
    section: PAIRS,
    qualifiers: &[DTYPE, ATYPE, BTYPE, SAT, SAT_AGAIN],
    dst: &[D2],
    src: &SOURCES2,
    needs: SIMD,
    legal: clamps,
    semantics: Semantics::Build(|x| simd(x, SimdOp::Sub, 2, false)),
};

/// `vsub2.dtype.atype.btype.add d{.mask}, a{.asel}, b{.bsel}, c`: differences of halves, all added to `c`.
pub const VSUB2_ADD: Form = Form {
    words: ADD,
    qualifiers: &[DTYPE, ATYPE, BTYPE],
    legal: always,
    semantics: Semantics::Build(|x| simd(x, SimdOp::Sub, 2, true)),
    ..VSUB2
};
