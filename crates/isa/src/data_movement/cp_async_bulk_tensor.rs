//! `cp.async.bulk.tensor` and its kin: copies of boxes of tensors.

use handloom_ir::simt::{Mode, TensorTransfer, Transfer, Val, Way};
use handloom_ir::types::ScalarType::*;
use handloom_ir::types::Ty;

use super::cp_async_bulk::*;
use super::memory::*;
use super::transfer::*;
use crate::form::*;
use crate::sync_comm::atomic::operation;
use crate::target::Needs;
use crate::target::TargetGate::AtLeast;
use crate::words::*;

const SECTION: &str = "Data Movement and Conversion Instructions: cp.async.bulk.tensor";

const DIM: Group = must(
    Role::Shape,
    &[
        choice(".1d", Value::Count(1)),
        choice(".2d", Value::Count(2)),
        choice(".3d", Value::Count(3)),
        choice(".4d", Value::Count(4)),
        choice(".5d", Value::Count(5)),
    ],
);
const NEW: Needs = Needs::on(8, 6, ARCH_100);
const NEW_CTA: Needs = Needs::on(8, 6, &[AtLeast(100)]);
/// Ways to load.
const LOAD_MODE: Group = maybe(
    Role::Mode,
    &[
        choice(".tile", Value::Tag(0)),
        choice_if(".tile::gather4", Value::Tag(1), NEW),
        choice(".im2col", Value::Tag(2)),
        choice_if(".im2col::w", Value::Tag(3), NEW),
        choice_if(".im2col::w::128", Value::Tag(4), NEW),
    ],
);
const LOAD_MODE_CTA: Group = maybe(
    Role::Mode,
    &[
        choice(".tile", Value::Tag(0)),
        choice_if(".tile::gather4", Value::Tag(1), NEW_CTA),
        choice(".im2col", Value::Tag(2)),
        choice_if(".im2col::w", Value::Tag(3), NEW_CTA),
        choice_if(".im2col::w::128", Value::Tag(4), NEW),
    ],
);
const CTA_GROUP: Group = maybe(
    Role::Flag2,
    &[choice_if(".cta_group::1", Value::Count(1), NEW), choice_if(".cta_group::2", Value::Count(2), NEW)],
);
/// A tensor and coordinates in it.
const TENSOR: Operand = Operand {
    name: "tensorMap, tensorCoords",
    kind: Kind::Point,
    is: Is::Fixed(S32),
    count: Count::Fragment(n_coordinates),
    optional: false,
    when: When::Always,
};
/// Offsets of `.im2col`.
const IM2COL: Operand = Operand {
    name: "im2colInfo",
    kind: Kind::Vector,
    is: Is::Fixed(U16),
    count: Count::Fragment(n_offsets),
    optional: false,
    when: When::Word(Role::Mode, &[".im2col", ".im2col::w", ".im2col::w::128"]),
};

/// `cp.async.bulk.tensor.dim.shared::cta.global{.load_mode}.mbarrier::complete_tx::bytes{.cta_group}{.L2::cache_hint}
/// [dstMem], [tensorMap, tensorCoords], [mbar]{, im2colInfo}{, cache-policy}`.
pub const TENSOR_TO_CTA: Form = Form {
    opcode: "cp.async.bulk.tensor",
    words: &[COMPLETE_TX],
    section: SECTION,
    qualifiers: &[
        DIM,
        one_of(Role::Space, &[SHARED_CTA]),
        one_of(Role::Space2, &[GLOBAL]),
        LOAD_MODE_CTA,
        CTA_GROUP,
        HINT,
    ],
    src: &[address("dstMem"), TENSOR, address("mbar"), IM2COL, HINT_POLICY],
    needs: Needs::on(8, 6, SM_90),
    legal: dimensions,
    semantics: Semantics::Build(|x| {
        let (to, multicast) = (x.u.space(Role::Space), x.u.has(Role::Flag));
        let pair = x.u.count(Role::Flag2) == 2;
        let mut src = vec![address_of(x, 0)];
        push_point(x, 1, &mut src);
        src.push(address_of(x, 2));
        let with_offsets = push_offsets(x, 3, &mut src);
        if multicast {
            src.push(word_of(x, 3 + usize::from(with_offsets)));
        }
        copy_tensor(x, Way::Load { to, multicast, pair }, src);
    }),
    ..UNSUPPORTED_FORM
};

/// The same to `.shared::cluster`, with a mask of ctas where `.multicast::cluster` is written.
pub const TENSOR_TO_CLUSTER: Form = Form {
    qualifiers: &[
        DIM,
        one_of(Role::Space, &[SHARED_CLUSTER]),
        one_of(Role::Space2, &[GLOBAL]),
        LOAD_MODE,
        MULTICAST,
        CTA_GROUP,
        HINT,
    ],
    src: &[address("dstMem"), TENSOR, address("mbar"), IM2COL, CTA_MASK, HINT_POLICY],
    needs: BULK,
    ..TENSOR_TO_CTA
};

/// `cp.async.bulk.tensor.dim.global.shared::cta{.load_mode}.bulk_group{.L2::cache_hint} [tensorMap, tensorCoords], [srcMem]{, cache-policy}`.
pub const TENSOR_TO_GLOBAL: Form = Form {
    words: &[".bulk_group"],
    qualifiers: &[
        DIM,
        one_of(Role::Space, &[GLOBAL]),
        one_of(Role::Space2, &[SHARED_CTA]),
        maybe(
            Role::Mode,
            &[
                choice(".tile", Value::Tag(0)),
                choice_if(".tile::scatter4", Value::Tag(1), NEW),
                choice(".im2col_no_offs", Value::Tag(2)),
            ],
        ),
        HINT,
    ],
    src: &[TENSOR, address("srcMem"), HINT_POLICY],
    needs: BULK,
    semantics: Semantics::Build(|x| store(x, Way::Store(None))),
    ..TENSOR_TO_CTA
};

/// `cp.reduce.async.bulk.tensor.dim.global.shared::cta.redOp{.load_mode}.bulk_group{.L2::cache_hint}
/// [tensorMap, tensorCoords], [srcMem]{, cache-policy}`.
pub const TENSOR_REDUCE: Form = Form {
    opcode: "cp.reduce.async.bulk.tensor",
    section: "Data Movement and Conversion Instructions: cp.reduce.async.bulk.tensor",
    qualifiers: &[
        DIM,
        one_of(Role::Space, &[GLOBAL]),
        one_of(Role::Space2, &[SHARED_CTA]),
        REDUCTIONS,
        maybe(Role::Mode, &[choice(".tile", Value::Tag(0)), choice(".im2col_no_offs", Value::Tag(2))]),
        HINT,
    ],
    semantics: Semantics::Build(|x| {
        let op = operation(x.u);
        store(x, Way::Store(Some(op)));
    }),
    ..TENSOR_TO_GLOBAL
};

/// `cp.async.bulk.prefetch.tensor.dim.L2.global{.load_mode}{.L2::cache_hint} [tensorMap, tensorCoords]{, im2colInfo}{, cache-policy}`.
pub const TENSOR_PREFETCH: Form = Form {
    opcode: "cp.async.bulk.prefetch.tensor",
    words: &[".L2"],
    section: "Data Movement and Conversion Instructions: cp.async.bulk.prefetch.tensor",
    qualifiers: &[DIM, must(Role::Space, &[GLOBAL]), LOAD_MODE, HINT],
    src: &[TENSOR, IM2COL, HINT_POLICY],
    needs: BULK,
    semantics: Semantics::Build(|x| {
        let mut src = vec![];
        push_point(x, 0, &mut src);
        push_offsets(x, 1, &mut src);
        copy_tensor(x, Way::Prefetch, src);
    }),
    ..TENSOR_TO_CTA
};

/// Rows of four come with one column and four rows.
fn n_coordinates(u: &Use) -> u8 {
    match u.text(Role::Mode) {
        ".tile::gather4" | ".tile::scatter4" => 5,
        _ => u.count(Role::Shape),
    }
}

fn n_offsets(u: &Use) -> u8 {
    match u.text(Role::Mode) {
        ".im2col" => u.count(Role::Shape).saturating_sub(2),
        _ => 2,
    }
}

fn dimensions(u: &Use) -> Result<Needs, Reason> {
    let (mode, dim) = (u.text(Role::Mode), u.count(Role::Shape));
    let fits = match mode {
        ".tile::gather4" | ".tile::scatter4" => dim == 2,
        ".im2col" | ".im2col::w" | ".im2col::w::128" | ".im2col_no_offs" => dim >= 3,
        _ => true,
    };
    if fits {
        return Ok(Needs::NONE);
    }
    let dims = if mode.starts_with(".tile") { "`.2d`" } else { "`.3d`, `.4d` and `.5d`" };
    Err(Reason::new(format!("`{mode}` goes with {dims}")).at(mode))
}

/// Adds the map and the coordinates of source operand `i`.
fn push_point(x: &mut Cx<'_, '_>, i: usize, src: &mut Vec<Val>) {
    src.push(address_of(x, i));
    src.extend(x.place(i));
}

/// Adds the offsets, which are source operand `i` where the mode has them. Says whether it has.
fn push_offsets(x: &mut Cx<'_, '_>, i: usize, src: &mut Vec<Val>) -> bool {
    let has = matches!(x.u.text(Role::Mode), ".im2col" | ".im2col::w" | ".im2col::w::128");
    if has {
        let words = x.srcs(i);
        src.extend(words.into_iter().map(|v| x.b.ext(v, 16, false, Ty::B32)));
    }
    has
}

fn store(x: &mut Cx<'_, '_>, way: Way) {
    let mut src = vec![address_of(x, 1)];
    push_point(x, 0, &mut src);
    copy_tensor(x, way, src);
}

fn copy_tensor(x: &mut Cx<'_, '_>, way: Way, src: Vec<Val>) {
    let mode = match x.u.text(Role::Mode) {
        ".tile::gather4" | ".tile::scatter4" => Mode::Rows4,
        ".im2col" | ".im2col_no_offs" => Mode::Im2col,
        ".im2col::w" => Mode::Im2colWide { is_128: false },
        ".im2col::w::128" => Mode::Im2colWide { is_128: true },
        _ => Mode::Tile,
    };
    transfer(x, Transfer::Tensor(TensorTransfer { way, dims: x.u.count(Role::Shape), mode }), src);
}
