//! `cp.async.bulk`, `cp.reduce.async.bulk`, `cp.async.bulk.prefetch`: copies of blocks of bytes that complete later.
//!
//! Choice: by default a copy is done at once (`handloom_interp::transfer`), so groups have nothing to wait for.

use handloom_ir::simt::{Begun, Bytes, Mask, Transfer};
use handloom_ir::types::ScalarType::*;
use handloom_ir::types::{AtomOp, ScalarType, StateSpace};

use super::memory::*;
use super::transfer::*;
use crate::form::*;
use crate::sync_comm::atomic::operation as reduction;
use crate::target::Needs;
use crate::target::TargetGate::AtLeast;
use crate::words::*;

const SECTION: &str = "Data Movement and Conversion Instructions: cp.async.bulk";

/// The hint of a bulk copy.
pub const HINT: Group = maybe(Role::CacheHint, &[choice(".L2::cache_hint", Value::Flag)]);
/// The policy that belongs to it.
pub const HINT_POLICY: Operand = val("cache-policy", Is::Descriptor(U64)).with(Role::CacheHint);
/// The ctas that get a copy.
pub const MULTICAST: Group = maybe(Role::Flag, &[choice(".multicast::cluster", Value::Flag)]);
/// Their mask.
pub const CTA_MASK: Operand = val("ctaMask", Is::Descriptor(U16)).with(Role::Flag);
/// Gate of the bulk copies.
pub const BULK: Needs = Needs::on(8, 0, SM_90);

/// `cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes{.L2::cache_hint} [dstMem], [srcMem], size, [mbar]{, cache-policy}`.
pub const BULK_TO_CTA: Form = Form {
    opcode: "cp.async.bulk",
    words: &[COMPLETE_TX],
    section: SECTION,
    qualifiers: &[one_of(Role::Space, &[SHARED_CTA]), one_of(Role::Space2, &[GLOBAL]), HINT],
    src: &[address("dstMem"), address("srcMem"), val("size", WORD), address("mbar").in_bits(32), HINT_POLICY],
    needs: Needs::on(8, 6, SM_90),
    semantics: Semantics::Build(|x| copy(x, None)),
    ..UNSUPPORTED_FORM
};

/// The same to `.shared::cluster`, with a mask of ctas where `.multicast::cluster` is written.
pub const BULK_TO_CLUSTER: Form = Form {
    qualifiers: &[one_of(Role::Space, &[SHARED_CLUSTER]), one_of(Role::Space2, &[GLOBAL]), MULTICAST, HINT],
    src: &[address("dstMem"), address("srcMem"), val("size", WORD), address("mbar").in_bits(32), CTA_MASK, HINT_POLICY],
    needs: BULK,
    ..BULK_TO_CTA
};

/// `cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [dstMem], [srcMem], size, [mbar]`.
pub const BULK_CTA_TO_CLUSTER: Form = Form {
    qualifiers: &[one_of(Role::Space, &[SHARED_CLUSTER]), one_of(Role::Space2, &[SHARED_CTA])],
    src: &[address("dstMem"), address("srcMem"), val("size", WORD), address("mbar").in_bits(32)],
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
        val("byteMask", Is::Descriptor(U16)).with(Role::Flag),
    ],
    needs: BULK,
    ..BULK_TO_CTA
};

/// Operations of the reductions.
pub const REDUCTIONS: Group = must(
    Role::Op,
    &[
        choice(".and", Value::Atom(AtomOp::And)),
        choice(".or", Value::Atom(AtomOp::Or)),
        choice(".xor", Value::Atom(AtomOp::Xor)),
        choice(".add", Value::Atom(AtomOp::Add)),
        choice(".inc", Value::Atom(AtomOp::Inc)),
        choice(".dec", Value::Atom(AtomOp::Dec)),
        choice(".min", Value::Atom(AtomOp::Min)),
        choice(".max", Value::Atom(AtomOp::Max)),
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
    semantics: Semantics::Build(reduce),
    ..BULK_CTA_TO_CLUSTER
};

/// Types of reductions in global memory.
pub const REDUCED: Group = must(
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
);
/// Those of `.add.noftz`.
pub const HALVES: Group = must(Role::Type, &[ty(".f16", F16), ty(".bf16", BF16)]);

/// `cp.reduce.async.bulk.global.shared::cta.bulk_group{.L2::cache_hint}.redOp.type [dstMem], [srcMem], size{, cache-policy}`.
pub const BULK_REDUCE: Form = Form {
    opcode: "cp.reduce.async.bulk",
    words: &[".bulk_group"],
    section: "Data Movement and Conversion Instructions: cp.reduce.async.bulk",
    qualifiers: &[one_of(Role::Space, &[GLOBAL]), one_of(Role::Space2, &[SHARED_CTA]), HINT, REDUCTIONS, REDUCED],
    src: &[address("dstMem"), address("srcMem"), val("size", WORD), HINT_POLICY],
    needs: BULK,
    legal: |u| operation(u, false),
    semantics: Semantics::Build(reduce),
    ..BULK_TO_CTA
};

/// `cp.reduce.async.bulk.global.shared::cta.bulk_group{.L2::cache_hint}.add.noftz.type` of half precision.
pub const ADD_NOFTZ: Form = Form {
    words: &[".bulk_group", ".add", ".noftz"],
    qualifiers: &[one_of(Role::Space, &[GLOBAL]), one_of(Role::Space2, &[SHARED_CTA]), HINT, HALVES],
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
    semantics: Semantics::Build(|x| {
        let src = vec![address_of(x, 0), x.src(1)];
        transfer(x, Transfer::Prefetch, src);
    }),
    ..BULK_TO_CTA
};

/// `cp.async.bulk.commit_group`.
pub const BULK_COMMIT_GROUP: Form = Form {
    opcode: "cp.async.bulk.commit_group",
    section: "Data Movement and Conversion Instructions: cp.async.bulk.commit_group",
    needs: BULK,
    semantics: Semantics::Wait(|x| commit(x, Begun::Bulk)),
    ..UNSUPPORTED_FORM
};

/// `cp.async.bulk.wait_group{.read} N`.
pub const BULK_WAIT_GROUP: Form = Form {
    opcode: "cp.async.bulk.wait_group",
    section: "Data Movement and Conversion Instructions: cp.async.bulk.wait_group",
    qualifiers: &[maybe(Role::Flag, &[choice(".read", Value::Flag)])],
    src: &[operand("N", Kind::Imm, WORD)],
    semantics: Semantics::Wait(|x| wait(x, Begun::Bulk)),
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

/// A copy, or a reduction of elements.
pub(super) fn copy(x: &mut Cx<'_, '_>, reduce: Option<(AtomOp, ScalarType)>) {
    let (to, from) = (x.u.space(Role::Space), x.u.space(Role::Space2));
    let is_grouped = to == StateSpace::Global;
    let mask = match (x.u.text(Role::Flag), is_grouped) {
        ("", _) => Mask::None,
        (_, true) => Mask::Bytes,
        (_, false) => Mask::Ctas,
    };
    let mut src = vec![address_of(x, 0), address_of(x, 1), x.src(2)];
    if !is_grouped {
        src.push(address_of(x, 3));
    }
    match mask {
        Mask::None => {}
        Mask::Ctas => src.push(word_of(x, 4)),
        // Behind the cache policy, if there is one.
        Mask::Bytes => src.push(word_of(x, x.args.len() - 1)),
    }
    transfer(x, Transfer::Bytes(Bytes { to, from, reduce, mask, now: false }), src);
}

fn reduce(x: &mut Cx<'_, '_>) {
    let with = (reduction(x.u), x.u.ty(Role::Type));
    copy(x, Some(with));
}
