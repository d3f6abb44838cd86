//! `vavrg2`: rounded averages of halves.

use handloom_ir::simt::SimdOp;

use super::scalar::{ATYPE, BTYPE, DTYPE, SAT_AGAIN};
use super::simd::*;
use crate::form::*;
use crate::words::SAT;

/// `vavrg2.dtype.atype.btype{.sat} d{.mask}, a{.asel}, b{.bsel}, c`: rounded averages of halves, merged into `c`.
pub const VAVRG2: Form = Form {
    opcode: "vavrg2",
    words: &[],
    section: PAIRS,
    qualifiers: &[DTYPE, ATYPE, BTYPE, SAT, SAT_AGAIN],
    dst: &[D2],
    src: &SOURCES2,
    needs: SIMD,
    legal: clamps,
    semantics: Semantics::Build(|x| simd(x, SimdOp::Avrg, 2, false)),
};

/// `vavrg2.dtype.atype.btype.add d{.mask}, a{.asel}, b{.bsel}, c`: rounded averages of halves, all added to `c`.
pub const VAVRG2_ADD: Form = Form {
    words: ADD,
    qualifiers: &[DTYPE, ATYPE, BTYPE],
    legal: always,
    semantics: Semantics::Build(|x| simd(x, SimdOp::Avrg, 2, true)),
    ..VAVRG2
};
