//! `vshr`: a part of a word shifted right.

use handloom_ir::simt::VideoOp;

use super::scalar::*;
use crate::compose::wraps;
use crate::form::*;
use crate::words::{CLAMP, SAT};

/// `vshr.dtype.atype.u32{.sat}.mode d{.dsel}, a{.asel}, b{.bsel}{, c}`: a part of a word shifted right, alone or merged into `c`.
pub const VSHR: Form = Form {
    opcode: "vshr",
    words: &[],
    section: "Scalar Video Instructions: vshl, vshr",
    qualifiers: &[DTYPE, ATYPE, UNSIGNED_BTYPE, SAT, SAT_AGAIN, CLAMP],
    dst: &[PART_OF_D],
    src: &[A, B, C_OF_MERGE],
    needs: SCALAR,
    legal: merges,
    semantics: Semantics::Build(|x| scalar(x, VideoOp::Shr { wrap: wraps(x.u) })),
};

/// `vshr.dtype.atype.u32{.sat}.mode.op2 d, a{.asel}, b{.bsel}, c`: a part of a word shifted right, and `c`.
pub const VSHR_OP2: Form = Form {
    qualifiers: &[DTYPE, ATYPE, UNSIGNED_BTYPE, SAT, SAT_AGAIN, CLAMP, OP2],
    dst: &[D],
    src: &[A, B, C],
    legal: once,
    ..VSHR
};
