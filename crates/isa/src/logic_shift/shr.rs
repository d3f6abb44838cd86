//! `shr`: bits to the right, signs or zeros before them.

use handloom_ir::simt::Pure;
use handloom_ir::types::{Int, ScalarType::*};

use crate::compose::*;
use crate::form::*;
use crate::target::Needs;
use crate::words::*;

/// `shr.type d, a, b`. Amounts above the width act as the width.
pub const SHR: Form = Form {
    opcode: "shr",
    words: &[],
    section: "Logic and Shift Instructions: shr",
    qualifiers: &[one_of(Role::Type, SHIFTED)],
    dst: &[reg("d", TYPE)],
    src: &[val("a", TYPE), val("b", WORD)],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Build(|x| {
        let int = Int::of(x.u.ty(Role::Type));
        apply(x, Pure::Shr(int), int.ty, 2);
    }),
};

const SHIFTED: &[Choice] = &[
    ty(".b16", B16),
    ty(".b32", B32),
    ty(".b64", B64),
    ty(".u16", U16),
    ty(".u32", U32),
    ty(".u64", U64),
    ty(".s16", S16),
    ty(".s32", S32),
    ty(".s64", S64),
];
