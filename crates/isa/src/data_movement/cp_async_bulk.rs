//! `cp.async.bulk`, `cp.reduce.async.bulk`, `cp.async.bulk.prefetch`: copies of blocks of bytes that complete later.

use handloom_ir::types::ScalarType::*;

use super::memory::*;
use crate::form::*;
use crate::target::Needs;
use crate::target::TargetGate::AtLeast;
use crate::words::*;

const SECTION: &str = "Data Movement and Conversion Instructions: cp.async.bulk";
const WHY: &str = "asynchronous copies";

/// The hint of a bulk copy.
pub const HINT: Group = maybe(Role::CacheHint, &[choice(".L2::cache_hint", Value::Flag)]);
/// The policy that belongs to it.
pub const HINT_POLICY: Operand = val("cache-policy", Is::Fixed(U64)).with(Role::CacheHint);
/// The ctas that get a copy.
pub const MULTICAST: Group = maybe(Role::Flag, &[choice(".multicast::cluster", Value::Flag)]);
/// Their mask.
pub const CTA_MASK: Operand = val("ctaMask", Is::Fixed(U16)).with(Role::Flag);
/// Gate of the bulk copies.
pub const BULK: Needs = Needs::on(8, 0, SM_90);

/// `cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes{.L2::cache_hint} [dstMem], [srcMem], size, [mbar]{, cache-policy}`.
pub const BULK_TO_CTA: Form = Form {
    opcode: "cp.async.bulk",
    words: &[COMPLETE_TX],
    section: SECTION,
    qualifiers: &[one_of(Role::Space, &[SHARED_CTA]), one_of(Role::Space2, &[GLOBAL]), HINT],
    src: &[address("dstMem"), address("srcMem"), val("size", WORD), address("mbar"), HINT_POLICY],
    needs: Needs::on(8, 6, SM_90),
    semantics: Semantics::Unsupported(WHY),
    ..UNSUPPORTED_FORM
};

/// The same to `.shared::cluster`, with a mask of ctas where `.multicast::cluster` is written.
pub const BULK_TO_CLUSTER: Form = Form {
    qualifiers: &[one_of(Role::Space, &[SHARED_CLUSTER]), one_of(Role::Space2, &[GLOBAL]), MULTICAST, HINT],
    src: &[address("dstMem"), address("srcMem"), val("size", WORD), address("mbar"), CTA_MASK, HINT_POLICY],
    needs: BULK,
    ..BULK_TO_CTA
};

/// `cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [dstMem], [srcMem], size, [mbar]`.
pub const BULK_CTA_TO_CLUSTER: Form = Form {
    qualifiers: &[one_of(Role::Space, &[SHARED_CLUSTER]), one_of(Role::Space2, &[SHARED_CTA])],
    src: &[address("dstMem"), address("srcMem"), val("size", WORD), address("mbar")],
    needs: BULK,
    ..BULK_TO_CTA
};

/// `cp.async.bulk.global.shared::cta.bulk_group{.L2::cache_hint}{.cp_mask} [dstMem], [srcMem], size{, cache-policy}{, byteMask}`.
pub const BULK_TO_GLOBAL: Form = Form {
    words: &[".bulk_group"],
    qualifiers: &[
        one_of(Role::Space, &[GLOBAL]),
        one_of(Role::Space2, &[SHARED_CTA]),
        HINT,
        maybe(Role::Flag, &[choice_if(".cp_mask", Value::Flag, Needs::on(8, 6, &[AtLeast(100)]))]),
    ],
    src: &[
        address("dstMem"),
        address("srcMem"),
        val("size", WORD),
        HINT_POLICY,
        val("byteMask", Is::Fixed(U16)).with(Role::Flag),
    ],
    needs: BULK,
    ..BULK_TO_CTA
};

/// Operations of the reductions.
pub const REDUCTIONS: Group = must(
    Role::Op,
    &[
        choice(".and", Value::Flag),
        choice(".or", Value::Flag),
        choice(".xor", Value::Flag),
        choice(".add", Value::Flag),
        choice(".inc", Value::Flag),
        choice(".dec", Value::Flag),
        choice(".min", Value::Flag),
        choice(".max", Value::Flag),
    ],
);

/// `cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.redOp.type [dstMem], [srcMem], size, [mbar]`.
pub const BULK_REDUCE_TO_CLUSTER: Form = Form {
    opcode: "cp.reduce.async.bulk",
    section: "Data Movement and Conversion Instructions: cp.reduce.async.bulk",
    qualifiers: &[
        one_of(Role::Space, &[SHARED_CLUSTER]),
        one_of(Role::Space2, &[SHARED_CTA]),
        REDUCTIONS,
        must(Role::Type, &[ty(".b32", B32), ty(".u32", U32), ty(".s32", S32), ty(".u64", U64)]),
    ],
    legal: |u| operation(u, true),
    ..BULK_CTA_TO_CLUSTER
};

/// `cp.reduce.async.bulk.global.shared::cta.bulk_group{.L2::cache_hint}.redOp.type [dstMem], [srcMem], size{, cache-policy}`.
pub const BULK_REDUCE: Form = Form {
    opcode: "cp.reduce.async.bulk",
    words: &[".bulk_group"],
    section: "Data Movement and Conversion Instructions: cp.reduce.async.bulk",
    qualifiers: &[
        one_of(Role::Space, &[GLOBAL]),
        one_of(Role::Space2, &[SHARED_CTA]),
        HINT,
        REDUCTIONS,
        must(
            Role::Type,
            &[
                ty(".f16", F16),
                ty(".bf16", BF16),
                ty(".b32", B32),
                ty(".u32", U32),
                ty(".s32", S32),
                ty(".b64", B64),
                ty(".u64", U64),
                ty(".s64", S64),
                ty(".f32", F32),
                ty(".f64", F64),
            ],
        ),
    ],
    src: &[address("dstMem"), address("srcMem"), val("size", WORD), HINT_POLICY],
    needs: BULK,
    legal: |u| operation(u, false),
    ..BULK_TO_CTA
};

/// `cp.reduce.async.bulk.global.shared::cta.bulk_group{.L2::cache_hint}.add.noftz.type` of half precision.
pub const ADD_NOFTZ: Form = Form {
    words: &[".bulk_group", ".add", ".noftz"],
    qualifiers: &[
        one_of(Role::Space, &[GLOBAL]),
        one_of(Role::Space2, &[SHARED_CTA]),
        HINT,
        must(Role::Type, &[ty(".f16", F16), ty(".bf16", BF16)]),
    ],
    legal: always,
    ..BULK_REDUCE
};

/// `cp.async.bulk.prefetch.L2.global{.L2::cache_hint} [srcMem], size{, cache-policy}`.
pub const BULK_PREFETCH: Form = Form {
    opcode: "cp.async.bulk.prefetch",
    words: &[".L2"],
    section: "Data Movement and Conversion Instructions: cp.async.bulk.prefetch",
    qualifiers: &[must(Role::Space, &[GLOBAL]), HINT],
    src: &[address("srcMem"), val("size", WORD), HINT_POLICY],
    needs: BULK,
    ..BULK_TO_CTA
};

/// `cp.async.bulk.commit_group`.
pub const BULK_COMMIT_GROUP: Form = Form {
    opcode: "cp.async.bulk.commit_group",
    section: "Data Movement and Conversion Instructions: cp.async.bulk.commit_group",
    needs: BULK,
    semantics: Semantics::Unsupported(WHY),
    ..UNSUPPORTED_FORM
};

/// `cp.async.bulk.wait_group{.read} N`.
pub const BULK_WAIT_GROUP: Form = Form {
    opcode: "cp.async.bulk.wait_group",
    section: "Data Movement and Conversion Instructions: cp.async.bulk.wait_group",
    qualifiers: &[maybe(Role::Flag, &[choice(".read", Value::Flag)])],
    src: &[operand("N", Kind::Imm, WORD)],
    ..BULK_COMMIT_GROUP
};

/// Which types an operation of a bulk reduction takes.
fn operation(u: &Use, to_shared: bool) -> Result<Needs, Reason> {
    let (op, t) = (u.text(Role::Op), u.ty(Role::Type));
    let fits = match op {
        ".and" | ".or" | ".xor" => matches!(t, B32 | B64),
        ".inc" | ".dec" => t == U32,
        ".min" | ".max" => match t {
            U32 | S32 => true,
            U64 | S64 | F16 | BF16 => !to_shared,
            _ => false,
        },
        _ => match t {
            U32 | S32 | U64 => true,
            F32 | F64 => !to_shared,
            _ => false,
        },
    };
    if fits { Ok(Needs::NONE) } else { Err(Reason::new(format!("`{op}` does not go with `{t}`")).at(op)) }
}
