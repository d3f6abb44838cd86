//! `wmma`: matrix products whose fragments are opaque. `opaque` says how they are done.

use handloom_ir::types::ScalarType::{self, *};

use super::fragment::{bits, fragment, no_shape, register_of, registers, row_col};
use super::opaque;
use super::shape::{WMMA, mnk};
use crate::data_movement::memory::{GLOBAL, SHARED, SHARED_CTA};
use crate::form::*;
use crate::target::{Needs, TargetGate};
use crate::words::*;

const SM_72: &[TargetGate] = &[TargetGate::AtLeast(72)];
const ROW_COL: &[Choice] = &[choice(".row", Value::Tag(0)), choice(".col", Value::Tag(1))];
const SHAPE: Group = must(Role::Shape, WMMA);
const SPACE: Group = maybe(Role::Space, &[GLOBAL, SHARED, SHARED_CTA]);
const STRIDE: Operand = val("stride", WORD).optional();
const ALIGNED: Group = maybe(Role::Flag2, &[choice(".aligned", Value::Flag)]);
const MULTIPLICANDS: &[Choice] = &[
    ty(".f16", F16),
    ty(".bf16", BF16),
    ty(".tf32", TF32),
    ty(".f64", F64),
    ty(".s8", S8),
    ty(".u8", U8),
    ty(".s4", B8),
    ty(".u4", B8),
    ty(".b1", B32),
];
const ACCUMULATORS: &[Choice] = &[ty(".f16", F16), ty(".f32", F32), ty(".s32", S32), ty(".f64", F64)];

/// `wmma.load.a.sync.aligned.layout.shape{.ss}.type r, [p]{, stride}`; also of `b`.
pub const WMMA_LOAD: Form = Form {
    opcode: "wmma.load",
    words: &[".sync"],
    section: "Warp-level Matrix Load Instruction: wmma.load",
    qualifiers: &[
        lead(Role::Op, &[choice(".a", Value::Tag(0)), choice(".b", Value::Tag(1))]),
        ALIGNED,
        must(Role::LayoutA, ROW_COL),
        SHAPE,
        SPACE,
        must(Role::Type, MULTIPLICANDS),
    ],
    dst: &[fragment("r", |u| register(u, Role::Type), |u| n_multiplicand(u, Role::Type, u.text(Role::Op) == ".a"))],
    src: &[address("p").in_bits(32), STRIDE],
    needs: Needs::on(6, 0, SM_70),
    legal: |u| aligned(u).and_then(|()| multiplicand(u, Role::Type)).and_then(|n| sub_byte_layout(u).map(|()| n)),
    semantics: Semantics::Warp(opaque::load_multiplicand),
};

/// `wmma.load.c.sync.aligned.layout.shape{.ss}.type r, [p]{, stride}`.
pub const WMMA_LOAD_C: Form = Form {
    qualifiers: &[
        lead(Role::Op, &[choice(".c", Value::Tag(2))]),
        ALIGNED,
        must(Role::LayoutA, ROW_COL),
        SHAPE,
        SPACE,
        must(Role::Type, ACCUMULATORS),
    ],
    dst: &[fragment("r", |u| register(u, Role::Type), |u| n_accumulator(u, Role::Type))],
    legal: |u| aligned(u).and_then(|()| accumulator(u, Role::Type)),
    semantics: Semantics::Warp(opaque::load_accumulator),
    ..WMMA_LOAD
};

/// `wmma.store.d.sync.aligned.layout.shape{.ss}.type [p], r{, stride}`.
pub const WMMA_STORE: Form = Form {
    opcode: "wmma.store",
    qualifiers: &[
        lead(Role::Op, &[choice(".d", Value::Tag(3))]),
        ALIGNED,
        must(Role::LayoutA, ROW_COL),
        SHAPE,
        SPACE,
        must(Role::Type, ACCUMULATORS),
    ],
    section: "Warp-level Matrix Store Instruction: wmma.store",
    dst: &[],
    src: &[
        address("p").in_bits(32),
        fragment("r", |u| register(u, Role::Type), |u| n_accumulator(u, Role::Type)),
        STRIDE,
    ],
    semantics: Semantics::Warp(opaque::store),
    ..WMMA_LOAD_C
};

const LAYOUT_A: Group = one_of(Role::LayoutA, ROW_COL);
const LAYOUT_B: Group = one_of(Role::LayoutB, ROW_COL);
const D: Operand = fragment("d", |u| register(u, Role::Type), |u| n_accumulator(u, Role::Type));
const C: Operand = fragment("c", |u| register(u, Role::Type4), |u| n_accumulator(u, Role::Type4));

const ONE_FLOAT: &[Choice] = &[ty(".f16", F16), ty(".f32", F32)];

/// `wmma.mma.sync.aligned.alayout.blayout.shape.dtype.ctype d, a, b, c` of `.f16`.
pub const WMMA_HALF: Form = Form {
    opcode: "wmma.mma",
    words: &[".sync"],
    section: "Warp-level Matrix Multiply-and-Accumulate Instruction: wmma.mma",
    qualifiers: &[ALIGNED, LAYOUT_A, LAYOUT_B, SHAPE, one_of(Role::Type, ONE_FLOAT), one_of(Role::Type4, ONE_FLOAT)],
    dst: &[D],
    src: &[fragment("a", |_| F16x2, |_| 8), fragment("b", |_| F16x2, |_| 8), C],
    needs: Needs::on(6, 0, SM_70),
    legal: |u| aligned(u).and_then(|()| wide_shape(u)),
    semantics: Semantics::Warp(opaque::product),
};

/// The same with `.satfinite`, of old versions.
pub const WMMA_HALF_SAT: Form = Form {
    qualifiers: &[
        ALIGNED,
        LAYOUT_A,
        LAYOUT_B,
        SHAPE,
        one_of(Role::Type, ONE_FLOAT),
        one_of(Role::Type4, ONE_FLOAT),
        must(Role::SatFinite, &[choice(".satfinite", Value::Flag)]),
    ],
    legal: |u| {
        if u.version >= crate::target::Version::new(6, 5) {
            return Err(Reason::new("`.satfinite` of floats is gone from PTX 6.5 on").at(".satfinite"));
        }
        aligned(u).and_then(|()| wide_shape(u))
    },
    semantics: Semantics::Warp(opaque::finite_product),
    ..WMMA_HALF
};

/// `wmma.mma.sync.aligned.alayout.blayout.shape.dtype.atype.btype.ctype d, a, b, c` of the other types.
pub const WMMA_MMA: Form = Form {
    qualifiers: &[
        ALIGNED,
        LAYOUT_A,
        LAYOUT_B,
        SHAPE,
        one_of(Role::Type, ACCUMULATORS),
        one_of(Role::Type2, MULTIPLICANDS),
        one_of(Role::Type3, MULTIPLICANDS),
        one_of(Role::Type4, ACCUMULATORS),
        maybe(Role::SatFinite, &[choice(".satfinite", Value::Flag)]),
        ROUND_OPT,
    ],
    src: &[
        fragment("a", |u| register(u, Role::Type2), |u| n_multiplicand(u, Role::Type2, true)),
        fragment("b", |u| register(u, Role::Type2), |u| n_multiplicand(u, Role::Type2, false)),
        C,
    ],
    legal: product,
    ..WMMA_HALF
};

/// `wmma.mma.op.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32 d, a, b, c`.
pub const WMMA_BIT: Form = Form {
    words: &[".sync", ".popc"],
    qualifiers: &[
        must(Role::Op, &[choice(".xor", Value::Flag), choice_if(".and", Value::Flag, Needs::on(7, 1, SM_80))]),
        ALIGNED,
        LAYOUT_A,
        LAYOUT_B,
        must(Role::Shape, &[choice(".m8n8k128", Value::Flag)]),
        one_of(Role::Type, &[ty(".s32", S32)]),
        one_of(Role::Type2, &[ty(".b1", B32)]),
        one_of(Role::Type3, &[ty(".b1", B32)]),
        one_of(Role::Type4, &[ty(".s32", S32)]),
    ],
    dst: &[fragment("d", |_| S32, |_| 2)],
    src: &[fragment("a", |_| U32, |_| 1), fragment("b", |_| U32, |_| 1), fragment("c", |_| S32, |_| 2)],
    needs: Needs::on(6, 3, SM_75),
    legal: |u| aligned(u).and_then(|()| row_col(u, "these types take")).map(|()| Needs::NONE),
    ..WMMA_HALF
};

fn register(u: &Use, role: Role) -> ScalarType {
    register_of(u.ty(role))
}

/// Fragments of `.f16` hold each element twice.
fn n_multiplicand(u: &Use, role: Role, is_a: bool) -> u8 {
    let (m, n, k) = mnk(u.text(Role::Shape));
    if u.ty(role) == F16 { 8 } else { registers(if is_a { m * k } else { k * n }, bits(u, role)) }
}

fn n_accumulator(u: &Use, role: Role) -> u8 {
    let (m, n, _) = mnk(u.text(Role::Shape));
    registers(m * n, u.ty(role).bits())
}

/// `.aligned` must be written from PTX 6.3 on.
fn aligned(u: &Use) -> Result<(), Reason> {
    if !u.has(Role::Flag2) && u.version >= crate::target::Version::new(6, 3) {
        return Err(Reason::new("`.aligned` must be written").help("write `.sync.aligned`"));
    }
    Ok(())
}

/// Small types lie in rows of `a` and columns of `b`.
fn sub_byte_layout(u: &Use) -> Result<(), Reason> {
    if bits(u, Role::Type) >= 8 && u.text(Role::Type) != ".b1" {
        return Ok(());
    }
    let wanted = if u.text(Role::Op) == ".a" { ".row" } else { ".col" };
    if u.text(Role::LayoutA) == wanted {
        return Ok(());
    }
    Err(Reason::new(format!("`{}` takes `{wanted}`", u.text(Role::Type))).at(u.text(Role::LayoutA)))
}

fn wide_shape(u: &Use) -> Result<Needs, Reason> {
    match u.text(Role::Shape) {
        ".m16n16k16" => Ok(Needs::NONE),
        ".m8n32k16" | ".m32n8k16" => Ok(Needs::ptx(6, 1)),
        _ => no_shape(u, Role::Type),
    }
}

fn multiplicand(u: &Use, role: Role) -> Result<Needs, Reason> {
    let shape = u.text(Role::Shape);
    let (fits, needs) = match u.text(role) {
        ".f16" => return wide_shape(u),
        ".bf16" => (wide_shape(u).is_ok(), Needs::on(7, 0, SM_80)),
        ".s8" | ".u8" => (wide_shape(u).is_ok(), Needs::on(6, 3, SM_72)),
        ".tf32" => (shape == ".m16n16k8", Needs::on(7, 0, SM_80)),
        ".f64" => (shape == ".m8n8k4", Needs::on(7, 0, SM_80)),
        ".b1" => (shape == ".m8n8k128", Needs::on(6, 3, SM_75)),
        _ => (shape == ".m8n8k32", Needs::on(6, 3, SM_75)),
    };
    if fits { Ok(needs) } else { no_shape(u, role) }
}

fn accumulator(u: &Use, role: Role) -> Result<Needs, Reason> {
    let shape = u.text(Role::Shape);
    let (fits, needs) = match u.text(role) {
        ".f16" => return wide_shape(u),
        ".f32" if shape == ".m16n16k8" => (true, Needs::on(7, 0, SM_80)),
        ".f32" => return wide_shape(u),
        ".f64" => (shape == ".m8n8k4", Needs::on(7, 0, SM_80)),
        _ if matches!(shape, ".m8n8k32" | ".m8n8k128") => (true, Needs::on(6, 3, SM_75)),
        _ => (wide_shape(u).is_ok(), Needs::on(6, 3, SM_72)),
    };
    if fits { Ok(needs) } else { no_shape(u, role) }
}

fn product(u: &Use) -> Result<Needs, Reason> {
    aligned(u)?;
    let (a, b) = (u.text(Role::Type2), u.text(Role::Type3));
    let (accumulator, is_int) = match a {
        ".f16" | ".b1" => return no_shape(u, Role::Type2),
        ".bf16" | ".tf32" => (F32, false),
        ".f64" => (F64, false),
        _ => (S32, true),
    };
    // One sign for both, and one size.
    if a != b {
        return Err(Reason::new(format!("`{a}` and `{b}` are not multiplied")).at(b));
    }
    for role in [Role::Type, Role::Type4] {
        if u.ty(role) != accumulator {
            return Err(Reason::new(format!("`{a}` gives `{accumulator}`")).at(u.text(role)));
        }
    }
    if u.has(Role::SatFinite) && !is_int {
        return Err(Reason::new("`.satfinite` goes only with integers").at(".satfinite"));
    }
    if u.has(Role::Round) && accumulator != F64 {
        return Err(Reason::new("a rounding goes only with `.f64`").at(u.text(Role::Round)));
    }
    if bits(u, Role::Type2) < 8 {
        row_col(u, "these types take")?;
    }
    multiplicand(u, Role::Type2)
}
