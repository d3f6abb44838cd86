//! `wgmma`: asynchronous matrix products of four warps.

use handloom_ir::simt::BarKind;
use handloom_ir::types::ScalarType::{self, *};

use super::product::product;
use crate::form::*;
use crate::matrix::fragment::register_of;
use crate::matrix::shape::{SHAPE_64, mnk};
use crate::target::{Needs, TargetGate};
use crate::words::*;

const SECTION: &str = "Asynchronous Multiply-and-Accumulate Instruction: wgmma.mma_async";
const SECTION_SP: &str = "Asynchronous Multiply-and-Accumulate Instruction: wgmma.mma_async.sp";
const SM_90A: &[TargetGate] = &[TargetGate::Arch(90)];
const NEEDS: Needs = Needs::on(8, 0, SM_90A);
const NEEDS_SP: Needs = Needs::on(8, 2, SM_90A);

const D: Operand = Operand {
    name: "d",
    kind: Kind::Vector,
    is: Is::Of(d_type),
    count: Count::Every(n_d),
    optional: false,
    when: When::Always,
};
const A: Operand = Operand {
    name: "a",
    kind: Kind::Vector,
    is: Is::Of(|u| register_of(u.ty(Role::Type2))),
    count: Count::Fixed(4),
    optional: false,
    when: When::Always,
};
const A_DESC: Operand = val("a-desc", Is::Descriptor(U64));
const B_DESC: Operand = val("b-desc", Is::Descriptor(U64));
const META: Operand = reg("sp-meta", Is::Fixed(B32));
const SEL: Operand = operand("sp-sel", Kind::Imm, WORD);
const SCALE_D: Operand = operand("scale-d", Kind::Pred { negatable: true }, Is::Fixed(Pred));
const SCALE_A: Operand = operand("imm-scale-a", Kind::Imm, Is::Fixed(S32));
const SCALE_B: Operand = operand("imm-scale-b", Kind::Imm, Is::Fixed(S32));
const TRANS_A: Operand = operand("imm-trans-a", Kind::Imm, WORD);
const TRANS_B: Operand = operand("imm-trans-b", Kind::Imm, WORD);

const HALF_TYPES: &[Group] = &[
    must(Role::Shape, SHAPE_64),
    one_of(Role::Type, &[ty(".f16", F16), ty(".f32", F32)]),
    one_of(Role::Type2, &[ty(".f16", F16), ty(".bf16", BF16)]),
    one_of(Role::Type3, &[ty(".f16", F16), ty(".bf16", BF16)]),
];
const FLOAT_TYPES: &[Group] = &[
    must(Role::Shape, SHAPE_64),
    one_of(Role::Type, &[ty(".f16", F16), ty(".f32", F32)]),
    one_of(Role::Type2, &[ty(".tf32", TF32), ty(".e4m3", B8), ty(".e5m2", B8)]),
    one_of(Role::Type3, &[ty(".tf32", TF32), ty(".e4m3", B8), ty(".e5m2", B8)]),
];
const INT_TYPES: &[Group] = &[
    must(Role::Shape, SHAPE_64),
    maybe(Role::SatFinite, &[choice(".satfinite", Value::Flag)]),
    one_of(Role::Type, &[ty(".s32", S32)]),
    one_of(Role::Type2, &[ty(".s8", S8), ty(".u8", U8)]),
    one_of(Role::Type3, &[ty(".s8", S8), ty(".u8", U8)]),
];
const BIT_TYPES: &[Group] = &[
    must(Role::Shape, SHAPE_64),
    one_of(Role::Type, &[ty(".s32", S32)]),
    one_of(Role::Type2, &[ty(".b1", B32)]),
    one_of(Role::Type3, &[ty(".b1", B32)]),
];

/// `wgmma.mma_async.sync.aligned.shape.dtype.f16.f16 d, a-desc, b-desc, scale-d, imm-scale-a, imm-scale-b, imm-trans-a, imm-trans-b`;
/// also of `.bf16`.
pub const HALF: Form = Form {
    opcode: "wgmma.mma_async",
    words: &[".sync", ".aligned"],
    section: SECTION,
    qualifiers: HALF_TYPES,
    dst: &[D],
    src: &[A_DESC, B_DESC, SCALE_D, SCALE_A, SCALE_B, TRANS_A, TRANS_B],
    needs: NEEDS,
    legal: |u| floats(u, 1),
    semantics: Semantics::WarpUpdate(product::<false, false>),
};

/// The same with `a` in registers.
pub const HALF_REGISTERS: Form = Form {
    src: &[A, B_DESC, SCALE_D, SCALE_A, SCALE_B, TRANS_B],
    semantics: Semantics::WarpUpdate(product::<true, false>),
    ..HALF
};

/// `wgmma.mma_async.sync.aligned.shape.dtype.atype.btype d, a-desc, b-desc, scale-d, imm-scale-a, imm-scale-b` of `.tf32` and 8-bit floats.
pub const FLOAT: Form = Form { qualifiers: FLOAT_TYPES, src: &[A_DESC, B_DESC, SCALE_D, SCALE_A, SCALE_B], ..HALF };

/// The same with `a` in registers.
pub const FLOAT_REGISTERS: Form = Form {
    src: &[A, B_DESC, SCALE_D, SCALE_A, SCALE_B],
    semantics: Semantics::WarpUpdate(product::<true, false>),
    ..FLOAT
};

/// `wgmma.mma_async.sync.aligned.shape{.satfinite}.s32.atype.btype d, a-desc, b-desc, scale-d`.
pub const INT: Form = Form { qualifiers: INT_TYPES, src: &[A_DESC, B_DESC, SCALE_D], legal: |u| ints(u, 1), ..HALF };

/// The same with `a` in registers.
pub const INT_REGISTERS: Form =
    Form { src: &[A, B_DESC, SCALE_D], semantics: Semantics::WarpUpdate(product::<true, false>), ..INT };

/// `wgmma.mma_async.sync.aligned.shape.s32.b1.b1.and.popc d, a-desc, b-desc, scale-d`.
pub const BIT: Form = Form { words: &[".sync", ".aligned", ".and", ".popc"], qualifiers: BIT_TYPES, ..INT };

/// The same with `a` in registers.
pub const BIT_REGISTERS: Form =
    Form { src: &[A, B_DESC, SCALE_D], semantics: Semantics::WarpUpdate(product::<true, false>), ..BIT };

/// `wgmma.mma_async.sp` of half precision, where half of `a` is zero.
pub const SP_HALF: Form = Form {
    opcode: "wgmma.mma_async.sp",
    section: SECTION_SP,
    src: &[A_DESC, B_DESC, META, SEL, SCALE_D, SCALE_A, SCALE_B, TRANS_A, TRANS_B],
    needs: NEEDS_SP,
    legal: |u| floats(u, 2),
    semantics: Semantics::WarpUpdate(product::<false, true>),
    ..HALF
};

/// The same with `a` in registers.
pub const SP_HALF_REGISTERS: Form = Form {
    src: &[A, B_DESC, META, SEL, SCALE_D, SCALE_A, SCALE_B, TRANS_B],
    semantics: Semantics::WarpUpdate(product::<true, true>),
    ..SP_HALF
};

/// `wgmma.mma_async.sp` of `.tf32` and 8-bit floats.
pub const SP_FLOAT: Form =
    Form { qualifiers: FLOAT_TYPES, src: &[A_DESC, B_DESC, META, SEL, SCALE_D, SCALE_A, SCALE_B], ..SP_HALF };

/// The same with `a` in registers.
pub const SP_FLOAT_REGISTERS: Form = Form {
    src: &[A, B_DESC, META, SEL, SCALE_D, SCALE_A, SCALE_B],
    semantics: Semantics::WarpUpdate(product::<true, true>),
    ..SP_FLOAT
};

/// `wgmma.mma_async.sp` of integers.
pub const SP_INT: Form =
    Form { qualifiers: INT_TYPES, src: &[A_DESC, B_DESC, META, SEL, SCALE_D], legal: |u| ints(u, 2), ..SP_HALF };

/// The same with `a` in registers.
pub const SP_INT_REGISTERS: Form =
    Form { src: &[A, B_DESC, META, SEL, SCALE_D], semantics: Semantics::WarpUpdate(product::<true, true>), ..SP_INT };

/// `wgmma.fence.sync.aligned`. Products are done in the order of the program.
///
/// Choice: the warps of a warpgroup wait for each other, as on the device, where a warpgroup begins a product as one: each warp reads what the others wrote
/// before. The manual does not promise that, and checks tell of programs that build on it.
pub const FENCE: Form = Form {
    opcode: "wgmma.fence",
    words: &[".sync", ".aligned"],
    section: "Asynchronous Multiply-and-Accumulate Instruction: wgmma.fence",
    needs: NEEDS,
    semantics: Semantics::Control(Control::Barrier(BarKind::WarpgroupStart)),
    ..UNSUPPORTED_FORM
};

/// `wgmma.commit_group.sync.aligned`. Products are done at once.
pub const COMMIT_GROUP: Form = Form {
    opcode: "wgmma.commit_group",
    section: "Asynchronous Multiply-and-Accumulate Instruction: wgmma.commit_group",
    semantics: Semantics::Hint,
    ..FENCE
};

/// `wgmma.wait_group.sync.aligned N`. The warps of a warpgroup read shared memory each at a time of its own, and one that goes on may tell others that
/// it may be written again. So they wait for each other.
pub const WAIT_GROUP: Form = Form {
    opcode: "wgmma.wait_group",
    section: "Asynchronous Multiply-and-Accumulate Instruction: wgmma.wait_group",
    src: &[operand("N", Kind::Imm, WORD)],
    semantics: Semantics::Control(Control::Barrier(BarKind::Warpgroup)),
    ..FENCE
};

fn d_type(u: &Use) -> ScalarType {
    register_of(u.ty(Role::Type))
}

/// 64 rows of `n` over 128 threads: half as many registers as columns, and half of that for pairs.
fn n_d(u: &Use) -> u8 {
    let (_, n, _) = mnk(u.text(Role::Shape));
    let registers = if u.ty(Role::Type) == F16 { n / 4 } else { n / 2 };
    u8::try_from(registers).unwrap_or(u8::MAX)
}

/// A sparse product is twice as deep.
fn floats(u: &Use, factor: u32) -> Result<Needs, Reason> {
    let (a, b) = (u.text(Role::Type2), u.text(Role::Type3));
    let is_small = |t: &str| t.starts_with(".e");
    if a != b && !(is_small(a) && is_small(b)) {
        return Err(Reason::new(format!("`{a}` and `{b}` are not multiplied")).at(b));
    }
    if u.ty(Role::Type) == F16 && (a == ".bf16" || a == ".tf32") {
        return Err(Reason::new(format!("`{a}` gives `.f32`")).at(u.text(Role::Type)));
    }
    let depth = match a {
        ".tf32" => 8,
        ".f16" | ".bf16" => 16,
        _ => 32,
    };
    deep(u, depth * factor)
}

fn ints(u: &Use, factor: u32) -> Result<Needs, Reason> {
    let (_, n, _) = mnk(u.text(Role::Shape));
    if n > 24 && n % 16 != 0 {
        return Err(Reason::new("integers take 8, 24 or a multiple of 16 columns").at(u.text(Role::Shape)));
    }
    let mixed = u.text(Role::Type2) != u.text(Role::Type3);
    deep(u, if u.text(Role::Type2) == ".b1" { 256 } else { 32 * factor })?;
    Ok(if mixed { Needs::ptx(8, 4) } else { Needs::NONE })
}

fn deep(u: &Use, depth: u32) -> Result<Needs, Reason> {
    let (_, _, k) = mnk(u.text(Role::Shape));
    if k == depth {
        return Ok(Needs::NONE);
    }
    let message = format!("`{}` takes shapes that end in `k{depth}`", u.text(Role::Type2));
    Err(Reason::new(message).at(u.text(Role::Shape)))
}
