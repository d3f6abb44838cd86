//! `vadd`: the sum of two parts of words.

use handloom_ir::simt::VideoOp;

use super::scalar::*;
use crate::form::*;
use crate::words::SAT;

/// `vadd.dtype.atype.btype{.sat} d{.dsel}, a{.asel}, b{.bsel}{, c}`: the sum of two parts of words, alone or merged into `c`.
pub const VADD: Form = Form {
    opcode: "vadd",
    words: &[],
    section: ARITHMETIC,
    qualifiers: &[DTYPE, ATYPE, BTYPE, SAT, SAT_AGAIN],
    dst: &[PART_OF_D],
    src: &[A, B, C_OF_MERGE],
    needs: SCALAR,
    legal: merges,
    semantics: Semantics::Build(|x| scalar(x, VideoOp::Add)),
};

/// `vadd.dtype.atype.btype{.sat}.op2 d, a{.asel}, b{.bsel}, c`: the sum of two parts of words, and `c`.
pub const VADD_OP2: Form =
    Form { qualifiers: &[DTYPE, ATYPE, BTYPE, SAT, SAT_AGAIN, OP2], dst: &[D], src: &[A, B, C], legal: once, ..VADD };
