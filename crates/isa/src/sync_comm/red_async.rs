//! `red.async`: reductions in the memory of another cta that complete later.

use handloom_ir::types::ScalarType::*;

use crate::data_movement::memory::*;
use crate::form::*;
use crate::target::Needs;
use crate::target::TargetGate::AtLeast;
use crate::words::*;

const SECTION: &str = "Parallel Synchronization and Communication Instructions: red.async";
const WHY: &str = "asynchronous reductions";
const SPACE: Group = maybe(Role::Space, &[SHARED_CLUSTER]);

/// `red.async.relaxed.cluster{.ss}.mbarrier::complete_tx::bytes.op.u32 [a], b, [mbar]` of `.inc` and `.dec`.
pub const RED_ASYNC_INC: Form = Form {
    opcode: "red.async",
    words: &[".relaxed", ".cluster", COMPLETE_TX],
    section: SECTION,
    qualifiers: &[
        SPACE,
        must(Role::Op, &[choice(".inc", Value::Flag), choice(".dec", Value::Flag)]),
        must(Role::Type, &[ty(".u32", U32)]),
    ],
    src: &[address("a"), val("b", TYPE), address("mbar")],
    needs: Needs::on(8, 1, SM_90),
    semantics: Semantics::Unsupported(WHY),
    ..UNSUPPORTED_FORM
};

/// The same of `.min` and `.max`.
pub const RED_ASYNC_MIN: Form = Form {
    qualifiers: &[
        SPACE,
        must(Role::Op, &[choice(".min", Value::Flag), choice(".max", Value::Flag)]),
        must(Role::Type, &[ty(".u32", U32), ty(".s32", S32)]),
    ],
    ..RED_ASYNC_INC
};

/// The same of `.and`, `.or` and `.xor`.
pub const RED_ASYNC_AND: Form = Form {
    qualifiers: &[
        SPACE,
        must(Role::Op, &[choice(".and", Value::Flag), choice(".or", Value::Flag), choice(".xor", Value::Flag)]),
        must(Role::Type, &[ty(".b32", B32)]),
    ],
    ..RED_ASYNC_INC
};

/// The same of `.add`.
pub const RED_ASYNC_ADD: Form = Form {
    qualifiers: &[
        SPACE,
        must(Role::Op, &[choice(".add", Value::Flag)]),
        must(Role::Type, &[ty(".u32", U32), ty(".s32", S32), ty(".u64", U64)]),
    ],
    ..RED_ASYNC_INC
};

/// `red.async.release.scope{.global}.add.type [a], b`.
///
/// The manual has an optional `.mmio` here, which the assembler refuses.
pub const RED_ASYNC_RELEASE: Form = Form {
    words: &[".release", ".add"],
    qualifiers: &[
        must(Role::Scope, &[choice(".gpu", Value::Flag), choice(".sys", Value::Flag)]),
        maybe(Role::Space, &[GLOBAL]),
        must(Role::Type, &[ty(".u32", U32), ty(".s32", S32), ty(".u64", U64), ty(".s64", S64)]),
    ],
    src: &[address("a"), val("b", TYPE)],
    needs: Needs::on(8, 7, &[AtLeast(100)]),
    ..RED_ASYNC_INC
};
