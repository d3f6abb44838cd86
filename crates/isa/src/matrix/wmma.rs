//! `wmma`: matrix products whose fragments are opaque.

use handloom_ir::types::ScalarType::{self, *};

use super::fragment::{WHY, bits, fragment, no_shape, registers, row_col};
use super::shape::{WMMA, mnk};
use crate::data_movement::memory::{GLOBAL, SHARED, SHARED_CTA};
use crate::form::*;
use crate::target::{Needs, TargetGate};
use crate::words::*;

const SM_72: &[TargetGate] = &[TargetGate::AtLeast(72)];
const ROW_COL: &[Choice] = &[choice(".row", Value::Tag(0)), choice(".col", Value::Tag(1))];
const SHAPE: Group = must(Slot::Shape, WMMA);
const SPACE: Group = maybe(Slot::Space, &[GLOBAL, SHARED, SHARED_CTA]);
const STRIDE: Operand = val("stride", WORD).optional();
const ALIGNED: Group = maybe(Slot::Flag2, &[choice(".aligned", Value::Flag)]);
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
        must(Slot::Op, &[choice(".a", Value::Tag(0)), choice(".b", Value::Tag(1))]),
        ALIGNED,
        must(Slot::LayoutA, ROW_COL),
        SHAPE,
        SPACE,
        must(Slot::Type, MULTIPLICANDS),
    ],
    dst: &[fragment("r", |u| register(u, Slot::Type), |u| n_multiplicand(u, Slot::Type, u.text(Slot::Op) == ".a"))],
    src: &[address("p"), STRIDE],
    needs: Needs::on(6, 0, SM_70),
    legal: |u| aligned(u).and_then(|()| multiplicand(u, Slot::Type)).and_then(|n| sub_byte_layout(u).map(|()| n)),
    semantics: Semantics::Unsupported(WHY),
};

/// `wmma.load.c.sync.aligned.layout.shape{.ss}.type r, [p]{, stride}`.
pub const WMMA_LOAD_C: Form = Form {
    words: &[".sync", ".c"],
    qualifiers: &[ALIGNED, must(Slot::LayoutA, ROW_COL), SHAPE, SPACE, must(Slot::Type, ACCUMULATORS)],
    dst: &[fragment("r", |u| register(u, Slot::Type), |u| n_accumulator(u, Slot::Type))],
    legal: |u| aligned(u).and_then(|()| accumulator(u, Slot::Type)),
    ..WMMA_LOAD
};

/// `wmma.store.d.sync.aligned.layout.shape{.ss}.type [p], r{, stride}`.
pub const WMMA_STORE: Form = Form {
    opcode: "wmma.store",
    words: &[".sync", ".d"],
    section: "Warp-level Matrix Store Instruction: wmma.store",
    dst: &[],
    src: &[address("p"), fragment("r", |u| register(u, Slot::Type), |u| n_accumulator(u, Slot::Type)), STRIDE],
    ..WMMA_LOAD_C
};

const LAYOUT_A: Group = one_of(Slot::LayoutA, ROW_COL);
const LAYOUT_B: Group = one_of(Slot::LayoutB, ROW_COL);
const D: Operand = fragment("d", |u| register(u, Slot::Type), |u| n_accumulator(u, Slot::Type));
const C: Operand = fragment("c", |u| register(u, Slot::Type4), |u| n_accumulator(u, Slot::Type4));

/// `wmma.mma.sync.aligned.alayout.blayout.shape.dtype.ctype d, a, b, c` of `.f16`.
pub const WMMA_HALF: Form = Form {
    opcode: "wmma.mma",
    words: &[".sync"],
    section: "Warp-level Matrix Multiply-and-Accumulate Instruction: wmma.mma",
    qualifiers: &[
        ALIGNED,
        LAYOUT_A,
        LAYOUT_B,
        SHAPE,
        one_of(Slot::Type, &[ty(".f16", F16), ty(".f32", F32)]),
        one_of(Slot::Type4, &[ty(".f16", F16), ty(".f32", F32)]),
        maybe(Slot::SatFinite, &[choice(".satfinite", Value::Flag)]),
    ],
    dst: &[D],
    src: &[fragment("a", |_| B32, |_| 8), fragment("b", |_| B32, |_| 8), C],
    needs: Needs::on(6, 0, SM_70),
    legal: |u| {
        aligned(u)?;
        if u.has(Slot::SatFinite) && u.version >= crate::target::Version::new(6, 5) {
            return Err(Reason::new("`.satfinite` of floats is gone from PTX 6.5 on").at(".satfinite"));
        }
        wide_shape(u)
    },
    ..WMMA_LOAD
};

/// `wmma.mma.sync.aligned.alayout.blayout.shape.dtype.atype.btype.ctype d, a, b, c` of the other types.
pub const WMMA_MMA: Form = Form {
    qualifiers: &[
        ALIGNED,
        LAYOUT_A,
        LAYOUT_B,
        SHAPE,
        one_of(Slot::Type, ACCUMULATORS),
        one_of(Slot::Type2, MULTIPLICANDS),
        one_of(Slot::Type3, MULTIPLICANDS),
        one_of(Slot::Type4, ACCUMULATORS),
        maybe(Slot::SatFinite, &[choice(".satfinite", Value::Flag)]),
        ROUND_OPT,
    ],
    src: &[
        fragment("a", |u| register(u, Slot::Type2), |u| n_multiplicand(u, Slot::Type2, true)),
        fragment("b", |u| register(u, Slot::Type2), |u| n_multiplicand(u, Slot::Type2, false)),
        C,
    ],
    legal: product,
    ..WMMA_HALF
};

/// `wmma.mma.op.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32 d, a, b, c`.
pub const WMMA_BIT: Form = Form {
    words: &[".sync", ".popc", ".m8n8k128"],
    qualifiers: &[
        must(Slot::Op, &[choice(".xor", Value::Flag), choice_if(".and", Value::Flag, Needs::on(7, 1, SM_80))]),
        ALIGNED,
        LAYOUT_A,
        LAYOUT_B,
        one_of(Slot::Type, &[ty(".s32", S32)]),
        one_of(Slot::Type2, &[ty(".b1", B32)]),
        one_of(Slot::Type3, &[ty(".b1", B32)]),
        one_of(Slot::Type4, &[ty(".s32", S32)]),
    ],
    dst: &[fragment("d", |_| S32, |_| 2)],
    src: &[fragment("a", |_| B32, |_| 1), fragment("b", |_| B32, |_| 1), fragment("c", |_| S32, |_| 2)],
    needs: Needs::on(6, 3, SM_75),
    legal: |u| aligned(u).and_then(|()| row_col(u, "these types take")).map(|()| Needs::NONE),
    ..WMMA_HALF
};

fn register(u: &Use, slot: Slot) -> ScalarType {
    match u.ty(slot) {
        F32 => F32,
        F64 => F64,
        S32 => S32,
        _ => B32,
    }
}

/// Fragments of `.f16` hold each element twice.
fn n_multiplicand(u: &Use, slot: Slot, is_a: bool) -> u8 {
    let (m, n, k) = mnk(u.text(Slot::Shape));
    if u.ty(slot) == F16 { 8 } else { registers(if is_a { m * k } else { k * n }, bits(u, slot)) }
}

fn n_accumulator(u: &Use, slot: Slot) -> u8 {
    let (m, n, _) = mnk(u.text(Slot::Shape));
    registers(m * n, u.ty(slot).bits())
}

/// `.aligned` must be written from PTX 6.3 on.
fn aligned(u: &Use) -> Result<(), Reason> {
    if !u.has(Slot::Flag2) && u.version >= crate::target::Version::new(6, 3) {
        return Err(Reason::new("`.aligned` must be written").help("write `.sync.aligned`"));
    }
    Ok(())
}

/// Small types lie in rows of `a` and columns of `b`.
fn sub_byte_layout(u: &Use) -> Result<(), Reason> {
    if bits(u, Slot::Type) >= 8 && u.text(Slot::Type) != ".b1" {
        return Ok(());
    }
    let wanted = if u.text(Slot::Op) == ".a" { ".row" } else { ".col" };
    if u.text(Slot::LayoutA) == wanted {
        return Ok(());
    }
    Err(Reason::new(format!("`{}` takes `{wanted}`", u.text(Slot::Type))).at(u.text(Slot::LayoutA)))
}

fn wide_shape(u: &Use) -> Result<Needs, Reason> {
    match u.text(Slot::Shape) {
        ".m16n16k16" => Ok(Needs::NONE),
        ".m8n32k16" | ".m32n8k16" => Ok(Needs::ptx(6, 1)),
        _ => no_shape(u, Slot::Type),
    }
}

fn multiplicand(u: &Use, slot: Slot) -> Result<Needs, Reason> {
    let shape = u.text(Slot::Shape);
    let (fits, needs) = match u.text(slot) {
        ".f16" => return wide_shape(u),
        ".bf16" => (wide_shape(u).is_ok(), Needs::on(7, 0, SM_80)),
        ".s8" | ".u8" => (wide_shape(u).is_ok(), Needs::on(6, 3, SM_72)),
        ".tf32" => (shape == ".m16n16k8", Needs::on(7, 0, SM_80)),
        ".f64" => (shape == ".m8n8k4", Needs::on(7, 0, SM_80)),
        ".b1" => (shape == ".m8n8k128", Needs::on(6, 3, SM_75)),
        _ => (shape == ".m8n8k32", Needs::on(6, 3, SM_75)),
    };
    if fits { Ok(needs) } else { no_shape(u, slot) }
}

fn accumulator(u: &Use, slot: Slot) -> Result<Needs, Reason> {
    let shape = u.text(Slot::Shape);
    let (fits, needs) = match u.text(slot) {
        ".f16" => return wide_shape(u),
        ".f32" if shape == ".m16n16k8" => (true, Needs::on(7, 0, SM_80)),
        ".f32" => return wide_shape(u),
        ".f64" => (shape == ".m8n8k4", Needs::on(7, 0, SM_80)),
        _ if matches!(shape, ".m8n8k32" | ".m8n8k128") => (true, Needs::on(6, 3, SM_75)),
        _ => (wide_shape(u).is_ok(), Needs::on(6, 3, SM_72)),
    };
    if fits { Ok(needs) } else { no_shape(u, slot) }
}

fn product(u: &Use) -> Result<Needs, Reason> {
    aligned(u)?;
    let (a, b) = (u.text(Slot::Type2), u.text(Slot::Type3));
    let (accumulator, is_int) = match a {
        ".f16" | ".b1" => return no_shape(u, Slot::Type2),
        ".bf16" | ".tf32" => (F32, false),
        ".f64" => (F64, false),
        _ => (S32, true),
    };
    // One sign for both, and one size.
    if a != b {
        return Err(Reason::new(format!("`{a}` and `{b}` are not multiplied")).at(b));
    }
    for slot in [Slot::Type, Slot::Type4] {
        if u.ty(slot) != accumulator {
            return Err(Reason::new(format!("`{a}` gives `{accumulator}`")).at(u.text(slot)));
        }
    }
    if u.has(Slot::SatFinite) && !is_int {
        return Err(Reason::new("`.satfinite` goes only with integers").at(".satfinite"));
    }
    if u.has(Slot::Round) && accumulator != F64 {
        return Err(Reason::new("a rounding goes only with `.f64`").at(u.text(Slot::Round)));
    }
    if bits(u, Slot::Type2) < 8 {
        row_col(u, "these types take")?;
    }
    multiplicand(u, Slot::Type2)
}
