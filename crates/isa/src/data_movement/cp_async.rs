//! `cp.async`: copies of a few bytes that complete later.

use handloom_ir::types::ScalarType::*;

use super::memory::*;
use crate::form::*;
use crate::target::Needs;
use crate::target::TargetGate::AtLeast;
use crate::words::*;

const SECTION: &str = "Data Movement and Conversion Instructions: cp.async";
const WHY: &str = "asynchronous copies";

const QUALIFIERS: &[Group] = &[
    must(Slot::CacheOp, &[choice(".ca", Value::Flag)]),
    one_of(Slot::Space, &[SHARED, SHARED_CTA]),
    one_of(Slot::Space2, &[GLOBAL]),
    maybe(Slot::CacheHint, CACHE_HINT),
    maybe(Slot::Prefetch, PREFETCH),
];

/// `cp.async.cop.shared.global{hints} [dst], [src], cp-size{, src-size}{, cache-policy}`.
pub const CP_ASYNC: Form = Form {
    opcode: "cp.async",
    section: SECTION,
    qualifiers: QUALIFIERS,
    src: &[
        address("dst"),
        address("src"),
        operand("cp-size", Kind::Imm, WORD),
        val("cache-policy", Is::Fixed(U64)).with(Slot::CacheHint),
    ],
    needs: Needs::on(7, 0, &[AtLeast(80)]),
    semantics: Semantics::Unsupported(WHY),
    ..UNSUPPORTED_FORM
};

/// The same with the number of bytes that are read; the rest is zero.
pub const CP_ASYNC_SIZED: Form = Form {
    src: &[
        address("dst"),
        address("src"),
        operand("cp-size", Kind::Imm, WORD),
        val("src-size", WORD),
        val("cache-policy", Is::Fixed(U64)).with(Slot::CacheHint),
    ],
    ..CP_ASYNC
};

/// The same with a predicate that makes zeros of all bytes.
pub const CP_ASYNC_IGNORE: Form = Form {
    src: &[
        address("dst"),
        address("src"),
        operand("cp-size", Kind::Imm, WORD),
        operand("ignore-src", Kind::Pred { negatable: true }, Is::Only(Pred)),
        val("cache-policy", Is::Fixed(U64)).with(Slot::CacheHint),
    ],
    needs: Needs::on(7, 5, &[AtLeast(80)]),
    ..CP_ASYNC
};

const CG: &[Group] =
    &[must(Slot::CacheOp, &[choice(".cg", Value::Flag)]), QUALIFIERS[1], QUALIFIERS[2], QUALIFIERS[3], QUALIFIERS[4]];
const SIXTEEN: Operand = operand("16", Kind::Imm, WORD);
const POLICY_WITH_HINT: Operand = val("cache-policy", Is::Fixed(U64)).with(Slot::CacheHint);

/// `cp.async.cg.shared.global{hints} [dst], [src], 16{, cache-policy}`.
pub const CP_ASYNC_CG: Form =
    Form { qualifiers: CG, src: &[address("dst"), address("src"), SIXTEEN, POLICY_WITH_HINT], ..CP_ASYNC };

/// The same with the number of bytes that are read.
pub const CP_ASYNC_CG_SIZED: Form = Form {
    qualifiers: CG,
    src: &[address("dst"), address("src"), SIXTEEN, val("src-size", WORD), POLICY_WITH_HINT],
    ..CP_ASYNC
};

/// The same with a predicate that makes zeros of all bytes.
pub const CP_ASYNC_CG_IGNORE: Form = Form {
    qualifiers: CG,
    src: &[
        address("dst"),
        address("src"),
        SIXTEEN,
        operand("ignore-src", Kind::Pred { negatable: true }, Is::Only(Pred)),
        POLICY_WITH_HINT,
    ],
    ..CP_ASYNC_IGNORE
};

/// `cp.async.commit_group`.
pub const COMMIT_GROUP: Form = Form {
    opcode: "cp.async.commit_group",
    section: "Data Movement and Conversion Instructions: cp.async.commit_group",
    needs: Needs::on(7, 0, &[AtLeast(80)]),
    semantics: Semantics::Unsupported(WHY),
    ..UNSUPPORTED_FORM
};

/// `cp.async.wait_group N`.
pub const WAIT_GROUP: Form = Form {
    opcode: "cp.async.wait_group",
    section: "Data Movement and Conversion Instructions: cp.async.wait_group / cp.async.wait_all",
    src: &[operand("N", Kind::Imm, WORD)],
    ..COMMIT_GROUP
};

/// `cp.async.wait_all`.
pub const WAIT_ALL: Form = Form { opcode: "cp.async.wait_all", src: &[], ..WAIT_GROUP };

/// `cp.async.mbarrier.arrive{.noinc}{.shared}.b64 [addr]`.
pub const MBARRIER_ARRIVE: Form = Form {
    opcode: "cp.async.mbarrier.arrive",
    words: &[".b64"],
    section: "Parallel Synchronization and Communication Instructions: cp.async.mbarrier.arrive",
    qualifiers: &[maybe(Slot::Flag, &[choice(".noinc", Value::Flag)]), maybe(Slot::Space, &[SHARED, SHARED_CTA])],
    src: &[address("addr")],
    ..COMMIT_GROUP
};
