//! `vabsdiff4`: distances of bytes.

use handloom_ir::simt::SimdOp;

use super::scalar::{ATYPE, BTYPE, DTYPE, SAT_AGAIN};
use super::simd::*;
use crate::form::*;
use crate::words::SAT;

/// `vabsdiff4.dtype.atype.btype{.sat} d{.mask}, a{.asel}, b{.bsel}, c`: distances of bytes, merged into `c`.
pub const VABSDIFF4: Form = Form {
    opcode: "vabsdiff4",
    words: &[],
    section: QUADS,
    qualifiers: &[DTYPE, ATYPE, BTYPE, SAT, SAT_AGAIN],
    dst: &[D4],
    src: &SOURCES4,
    needs: SIMD,
    legal: clamps,
    semantics: Semantics::Build(|x| simd(x, SimdOp::AbsDiff, 4, false)),
};

/// `vabsdiff4.dtype.atype.btype.add d{.mask}, a{.asel}, b{.bsel}, c`: distances of bytes, all added to `c`.
pub const VABSDIFF4_ADD: Form = Form {
    words: ADD,
    qualifiers: &[DTYPE, ATYPE, BTYPE],
    legal: always,
    semantics: Semantics::Build(|x| simd(x, SimdOp::AbsDiff, 4, true)),
    ..VABSDIFF4
};
