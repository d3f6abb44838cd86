//! `setmaxnreg`: changes how many registers the warp owns. Registers are not counted here: a hint.

use handloom_ir::types::ScalarType::U32;

use crate::form::*;
use crate::target::TargetGate::{Arch, Family};
use crate::target::{Needs, Version};

/// `setmaxnreg.action.sync.aligned.u32 imm-reg-count`.
pub const SETMAXNREG: Form = Form {
    opcode: "setmaxnreg",
    words: &[".sync", ".aligned"],
    section: "Miscellaneous Instructions: setmaxnreg",
    qualifiers: &[
        lead(Role::Mode, &[choice(".inc", Value::Flag), choice(".dec", Value::Flag)]),
        must(Role::Type, &[ty(".u32", U32)]),
    ],
    dst: &[],
    src: &[operand("imm-reg-count", Kind::Imm, Is::Like(Role::Type))],
    needs: Needs::on(
        8,
        0,
        &[
            Arch(90),
            Arch(100),
            Arch(101),
            Arch(110),
            Arch(120),
            Family(100, Version::new(8, 8)),
            Family(101, Version::new(8, 8)),
            Family(110, Version::new(9, 0)),
            Family(120, Version::new(8, 8)),
        ],
    ),
    legal: always,
    semantics: Semantics::Hint,
};
