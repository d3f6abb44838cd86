//! `vmin`: the smaller one of two parts of words.

use handloom_ir::simt::VideoOp;

use super::scalar::*;
use crate::form::*;
use crate::words::SAT;

/// `vmin.dtype.atype.btype{.sat} d{.dsel}, a{.asel}, b{.bsel}{, c}`: the smaller one of two parts of words, alone or merged into `c`.
pub const VMIN: Form = Form {
    opcode: "vmin",
    words: &[],
    section: ARITHMETIC,
    qualifiers: &[DTYPE, ATYPE, BTYPE, SAT, SAT_AGAIN],
    dst: &[PART_OF_D],
    src: &[A, B, C_OF_MERGE],
    needs: SCALAR,
    legal: merges,
    semantics: Semantics::Build(|x| scalar(x, VideoOp::Min)),
};

/// `vmin.dtype.atype.btype{.sat}.op2 d, a{.asel}, b{.bsel}, c`: the smaller one of two parts of words, and `c`.
pub const VMIN_OP2: Form =
    Form { qualifiers: &[DTYPE, ATYPE, BTYPE, SAT, SAT_AGAIN, OP2], dst: &[D], src: &[A, B, C], legal: once, ..VMIN };
