//! `alloca`, `stacksave`, `stackrestore`: memory on the stack whose size is known at run time.

use handloom_ir::types::ScalarType::*;

use crate::form::*;
use crate::target::Needs;
use crate::target::TargetGate::AtLeast;
use crate::words::*;

const WHY: &str = "stack allocation";
const TYPES: &[Group] = &[must(Slot::Type, &[ty(".u32", U32), ty(".u64", U64)])];

/// `alloca.type ptr, size{, immAlign}`.
pub const ALLOCA: Form = Form {
    opcode: "alloca",
    section: "Stack Manipulation Instructions: alloca",
    qualifiers: TYPES,
    dst: &[reg("ptr", TYPE)],
    src: &[val("size", TYPE), operand("immAlign", Kind::Imm, WORD).optional()],
    needs: Needs::on(7, 3, &[AtLeast(52)]),
    semantics: Semantics::Unsupported(WHY),
    ..UNSUPPORTED_FORM
};

/// `stacksave.type d`.
pub const STACKSAVE: Form = Form {
    opcode: "stacksave",
    section: "Stack Manipulation Instructions: stacksave",
    dst: &[reg("d", TYPE)],
    src: &[],
    ..ALLOCA
};

/// `stackrestore.type a`.
pub const STACKRESTORE: Form = Form {
    opcode: "stackrestore",
    section: "Stack Manipulation Instructions: stackrestore",
    dst: &[],
    src: &[reg("a", TYPE)],
    ..ALLOCA
};
