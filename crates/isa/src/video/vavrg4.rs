//! `vavrg4`: rounded averages of bytes.

use handloom_ir::simt::SimdOp;

use super::scalar::{ATYPE, BTYPE, DTYPE, SAT_AGAIN};
use super::simd::*;
use crate::form::*;
use crate::words::SAT;

/// `vavrg4.dtype.atype.btype{.sat} d{.mask}, a{.asel}, b{.bsel}, c`: rounded averages of bytes, merged into `c`.
pub const VAVRG4: Form = Form {
    opcode: "vavrg4",
    words: &[],
    section: QUADS,
    qualifiers: &[DTYPE, ATYPE, BTYPE, SAT, SAT_AGAIN],
    dst: &[D4],
    src: &SOURCES4,
    needs: SIMD,
    legal: clamps,
    semantics: Semantics::Build(|x| simd(x, SimdOp::Avrg, 4, false)),
};

/// `vavrg4.dtype.atype.btype.add d{.mask}, a{.asel}, b{.bsel}, c`: rounded averages of bytes, all added to `c`.
pub const VAVRG4_ADD: Form = Form {
    words: ADD,
    qualifiers: &[DTYPE, ATYPE, BTYPE],
    legal: always,
    semantics: Semantics::Build(|x| simd(x, SimdOp::Avrg, 4, true)),
    ..VAVRG4
};
