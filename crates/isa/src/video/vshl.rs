//! `vshl`: a part of a word shifted left.

use handloom_ir::simt::VideoOp;

use super::scalar::*;
use crate::compose::wraps;
use crate::form::*;
use crate::words::{CLAMP, SAT};

/// `vshl.dtype.atype.u32{.sat}.mode d{.dsel}, a{.asel}, b{.bsel}{, c}`: a part of a word shifted left, alone or merged into `c`.
pub const VSHL: Form = Form {
    opcode: "vshl",
    words: &[],
    section: "Scalar Video Instructions: vshl, vshr",
    qualifiers: &[DTYPE, ATYPE, UNSIGNED_BTYPE, SAT, SAT_AGAIN, CLAMP],
    dst: &[PART_OF_D],
    src: &[A, B, C_OF_MERGE],
    needs: SCALAR,
    legal: merges,
    semantics: Semantics::Build(|x| scalar(x, VideoOp::Shl { wrap: wraps(x.u) })),
};

/// `vshl.dtype.atype.u32{.sat}.mode.op2 d, a{.asel}, b{.bsel}, c`: a part of a word shifted left, and `c`.
pub const VSHL_OP2: Form = Form {
    qualifiers: &[DTYPE, ATYPE, UNSIGNED_BTYPE, SAT, SAT_AGAIN, CLAMP, OP2],
    dst: &[D],
    src: &[A, B, C],
    legal: once,
    ..VSHL
};
