//! `mma`, `mma.sp`: the product of two matrices in the registers of a warp, plus a third.

use handloom_ir::types::ScalarType::{self, *};

use super::fragment::{self, bits, fragment, no_shape, register_of, registers};
use super::product;
use super::shape::{MMA, mnk};
use crate::form::*;
use crate::target::{Needs, TargetGate, Version};
use crate::words::*;

const SECTION: &str = "Multiply-and-Accumulate Instruction: mma";
const SECTION_SP: &str = "Multiply-and-Accumulate Instruction: mma.sp / mma.sp::ordered_metadata";
const SM_89: &[TargetGate] = &[TargetGate::AtLeast(89)];
/// Small formats and block scaling.
const SM_120A: &[TargetGate] =
    &[TargetGate::Arch(120), TargetGate::Arch(121), TargetGate::Family(120, Version::new(8, 8))];
/// Sparse products of 4-bit formats.
const ONLY_120A: &[TargetGate] = &[TargetGate::Arch(120), TargetGate::Arch(121)];

const SHAPE: Group = must(Role::Shape, MMA);
const LAYOUTS: [Group; 2] = [
    one_of(Role::LayoutA, &[choice(".row", Value::Tag(0)), choice(".col", Value::Tag(1))]),
    one_of(Role::LayoutB, &[choice(".row", Value::Tag(0)), choice(".col", Value::Tag(1))]),
];
const ONLY_F16: &[Choice] = &[ty(".f16", F16)];
const ACCUMULATOR: &[Choice] = &[ty(".f16", F16), ty(".f32", F32)];
const FLOATS: &[Choice] = &[ty(".f16", F16), ty(".bf16", BF16), ty(".tf32", TF32), ty(".e4m3", B8), ty(".e5m2", B8)];
const SMALL_FLOATS: &[Choice] = &[ty(".e4m3", B8), ty(".e5m2", B8), ty(".e3m2", B8), ty(".e2m3", B8), ty(".e2m1", B8)];
const INTEGERS: &[Choice] = &[ty(".u8", U8), ty(".s8", S8), ty(".u4", B8), ty(".s4", B8)];

const D: Operand = fragment("d", |u| register_of(u.ty(Role::Type)), |u| accumulators(u, Role::Type));
const A: Operand = fragment("a", multiplicand, |u| n_a(u, 1));
const A_SPARSE: Operand = fragment("a", multiplicand, |u| n_a(u, 2));
const B: Operand = fragment("b", multiplicand, n_b);
const C: Operand = fragment("c", |u| register_of(u.ty(Role::Type4)), |u| accumulators(u, Role::Type4));
const META: Operand = reg("e", Is::Fixed(B32));
const SEL: Operand = operand("f", Kind::Imm, WORD);
const SCALE_A: Operand = reg("scale-a-data", Is::Fixed(B32));
const SCALE_B: Operand = reg("scale-b-data", Is::Fixed(B32));
const IDS_A: Operand = Operand {
    name: "{byte-id-a, thread-id-a}",
    kind: Kind::Vector,
    is: Is::Fixed(U16),
    count: Count::Fixed(2),
    optional: false,
    when: When::Always,
};
const IDS_B: Operand = Operand { name: "{byte-id-b, thread-id-b}", ..IDS_A };

/// `mma.sync.aligned.shape.alayout.blayout.dtype.atype.btype.ctype d, a, b, c` of floats.
pub const MMA_FLOAT: Form = Form {
    opcode: "mma",
    words: &[".sync", ".aligned"],
    section: SECTION,
    qualifiers: &[
        SHAPE,
        LAYOUTS[0],
        LAYOUTS[1],
        one_of(Role::Type, ACCUMULATOR),
        one_of(Role::Type2, FLOATS),
        one_of(Role::Type3, FLOATS),
        one_of(Role::Type4, ACCUMULATOR),
    ],
    dst: &[D],
    src: &[A, B, C],
    needs: Needs::on(6, 4, SM_70),
    legal: floats,
    semantics: Semantics::Warp(product::product),
};

/// `mma.sync.aligned.m8n8k4` of `.f16`: four products at a time, each by eight lanes, which lay out in their own way.
pub const MMA_VOLTA: Form = Form {
    words: &[".sync", ".aligned", ".m8n8k4"],
    qualifiers: &[
        LAYOUTS[0],
        LAYOUTS[1],
        one_of(Role::Type, ACCUMULATOR),
        one_of(Role::Type2, ONLY_F16),
        one_of(Role::Type3, ONLY_F16),
        one_of(Role::Type4, ACCUMULATOR),
    ],
    dst: &[fragment("d", |u| register_of(u.ty(Role::Type)), |u| 2 * halved(u, Role::Type))],
    src: &[
        fragment("a", multiplicand, |_| 2),
        fragment("b", multiplicand, |_| 2),
        fragment("c", |u| register_of(u.ty(Role::Type4)), |u| 2 * halved(u, Role::Type4)),
    ],
    legal: |u| {
        if u.ty(Role::Type) == F16 && u.ty(Role::Type4) == F32 {
            same_accumulators(u)?;
        }
        Ok(Needs::NONE)
    },
    semantics: Semantics::Warp(product::quads),
    ..MMA_FLOAT
};

/// The groups of products of small floats, which have one shape.
const fn small(shape: &'static [Choice]) -> [Group; 7] {
    [
        must(Role::Shape, shape),
        LAYOUTS[0],
        LAYOUTS[1],
        one_of(Role::Type, ACCUMULATOR),
        one_of(Role::Type2, SMALL_FLOATS),
        one_of(Role::Type3, SMALL_FLOATS),
        one_of(Role::Type4, ACCUMULATOR),
    ]
}

/// `mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.dtype.atype.btype.ctype d, a, b, c`.
pub const MMA_SMALL: Form = Form {
    words: &[".sync", ".aligned", ".kind::f8f6f4"],
    qualifiers: &small(&[choice(".m16n8k32", Value::Flag)]),
    src: &[
        fragment("a", multiplicand, |_| 4),
        fragment("b", multiplicand, |_| 2),
        fragment("c", |u| register_of(u.ty(Role::Type4)), |u| halved(u, Role::Type4)),
    ],
    dst: &[fragment("d", |u| register_of(u.ty(Role::Type)), |u| halved(u, Role::Type))],
    needs: Needs::on(8, 7, SM_120A),
    legal: |u| row_col(u).and_then(|()| same_accumulators(u)).map(|()| Needs::NONE),
    semantics: Semantics::Warp(product::product),
    ..MMA_FLOAT
};

/// `mma.sync.aligned.shape.row.col.f64.f64.f64.f64 d, a, b, c`.
pub const MMA_F64: Form = Form {
    qualifiers: &[
        SHAPE,
        LAYOUTS[0],
        LAYOUTS[1],
        one_of(Role::Type, ONLY_F64),
        one_of(Role::Type2, ONLY_F64),
        one_of(Role::Type3, ONLY_F64),
        one_of(Role::Type4, ONLY_F64),
    ],
    legal: |u| {
        row_col(u)?;
        match u.text(Role::Shape) {
            ".m8n8k4" => Ok(Needs::on(7, 0, SM_80)),
            ".m16n8k4" | ".m16n8k8" | ".m16n8k16" => Ok(Needs::on(7, 8, SM_90)),
            _ => no_shape(u, Role::Type2),
        }
    },
    semantics: Semantics::Warp(product::product),
    ..MMA_FLOAT
};

/// `mma.sync.aligned.shape.row.col{.satfinite}.s32.atype.btype.s32 d, a, b, c`.
pub const MMA_INT: Form = Form {
    qualifiers: &[
        SHAPE,
        LAYOUTS[0],
        LAYOUTS[1],
        maybe(Role::SatFinite, &[choice(".satfinite", Value::Flag)]),
        one_of(Role::Type, &[ty(".s32", S32)]),
        one_of(Role::Type2, INTEGERS),
        one_of(Role::Type3, INTEGERS),
        one_of(Role::Type4, &[ty(".s32", S32)]),
    ],
    needs: Needs::on(6, 5, SM_75),
    legal: integers,
    semantics: Semantics::Warp(product::product),
    ..MMA_FLOAT
};

/// `mma.sync.aligned.shape.row.col.s32.b1.b1.s32.bitOp.popc d, a, b, c`.
pub const MMA_BIT: Form = Form {
    words: &[".sync", ".aligned", ".popc"],
    qualifiers: &[
        SHAPE,
        LAYOUTS[0],
        LAYOUTS[1],
        must(Role::Op, &[choice(".xor", Value::Flag), choice_if(".and", Value::Flag, Needs::on(7, 1, SM_80))]),
        one_of(Role::Type, &[ty(".s32", S32)]),
        one_of(Role::Type2, &[ty(".b1", B32)]),
        one_of(Role::Type3, &[ty(".b1", B32)]),
        one_of(Role::Type4, &[ty(".s32", S32)]),
    ],
    needs: Needs::on(7, 0, SM_75),
    legal: |u| {
        row_col(u)?;
        match u.text(Role::Shape) {
            ".m8n8k128" => Ok(Needs::NONE),
            ".m16n8k128" | ".m16n8k256" => Ok(Needs::on(7, 0, SM_80)),
            _ => no_shape(u, Role::Type2),
        }
    },
    semantics: Semantics::Warp(product::product),
    ..MMA_FLOAT
};

const SCALED: &[Group] = &[
    SHAPE,
    LAYOUTS[0],
    LAYOUTS[1],
    must(
        Role::Mode,
        &[
            choice(".kind::mxf4", Value::Flag),
            choice(".kind::mxf4nvf4", Value::Flag),
            choice(".kind::mxf8f6f4", Value::Flag),
        ],
    ),
    maybe(
        Role::Num,
        &[
            choice(".scale_vec::1X", Value::Flag),
            choice(".scale_vec::2X", Value::Flag),
            choice(".scale_vec::4X", Value::Flag),
        ],
    ),
    one_of(Role::Type, ONLY_F32),
    one_of(Role::Type2, SMALL_FLOATS),
    one_of(Role::Type3, SMALL_FLOATS),
    one_of(Role::Type4, ONLY_F32),
    one_of(Role::Sel, &[choice(".ue8m0", Value::Flag), choice(".ue4m3", Value::Flag)]),
];

/// `mma.sync.aligned.shape.row.col.kind.block_scale{.scale_vec_size}.f32.atype.btype.f32.stype
/// d, a, b, c, scale-a-data, {byte-id-a, thread-id-a}, scale-b-data, {byte-id-b, thread-id-b}`.
pub const MMA_SCALED: Form = Form {
    words: &[".sync", ".aligned", ".block_scale"],
    qualifiers: SCALED,
    dst: &[fragment("d", |_| F32, |_| 4)],
    src: &[
        fragment("a", multiplicand, |_| 4),
        fragment("b", multiplicand, |_| 2),
        fragment("c", |_| F32, |_| 4),
        SCALE_A,
        IDS_A,
        SCALE_B,
        IDS_B,
    ],
    needs: Needs::on(8, 7, SM_120A),
    legal: |u| scaled(u, false),
    semantics: Semantics::Warp(product::scaled),
    ..MMA_FLOAT
};

/// `mma.sp` of floats: half of `a` is zero; `e` says which, `f` who knows it.
pub const MMA_SP_FLOAT: Form = Form {
    opcode: "mma.sp",
    section: SECTION_SP,
    src: &[A_SPARSE, B, C, META, SEL],
    needs: Needs::on(7, 1, SM_80),
    legal: sparse_floats,
    semantics: Semantics::Warp(product::sparse),
    ..MMA_FLOAT
};

/// `mma.sp` of integers.
pub const MMA_SP_INT: Form = Form {
    opcode: "mma.sp",
    section: SECTION_SP,
    src: &[A_SPARSE, B, C, META, SEL],
    needs: Needs::on(7, 1, SM_80),
    legal: sparse_integers,
    semantics: Semantics::Warp(product::sparse),
    ..MMA_INT
};

/// `mma.sp::ordered_metadata` of floats.
pub const MMA_SPO_FLOAT: Form =
    Form { opcode: "mma.sp::ordered_metadata", needs: Needs::on(8, 5, SM_80), ..MMA_SP_FLOAT };

/// `mma.sp::ordered_metadata` of integers.
pub const MMA_SPO_INT: Form = Form { opcode: "mma.sp::ordered_metadata", needs: Needs::on(8, 5, SM_80), ..MMA_SP_INT };

/// `mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.kind::f8f6f4.dtype.atype.btype.ctype`.
pub const MMA_SPO_SMALL: Form = Form {
    opcode: "mma.sp::ordered_metadata",
    section: SECTION_SP,
    qualifiers: &small(&[choice(".m16n8k64", Value::Flag)]),
    src: &[
        fragment("a", multiplicand, |_| 4),
        fragment("b", multiplicand, |_| 4),
        fragment("c", |u| register_of(u.ty(Role::Type4)), |u| halved(u, Role::Type4)),
        META,
        SEL,
    ],
    semantics: Semantics::Warp(product::sparse),
    ..MMA_SMALL
};

/// `mma.sp::ordered_metadata` with block scaling.
pub const MMA_SPO_SCALED: Form = Form {
    opcode: "mma.sp::ordered_metadata",
    section: SECTION_SP,
    src: &[
        fragment("a", multiplicand, |_| 4),
        fragment("b", multiplicand, |_| 4),
        fragment("c", |_| F32, |_| 4),
        META,
        SEL,
        SCALE_A,
        IDS_A,
        SCALE_B,
        IDS_B,
    ],
    legal: |u| scaled(u, true),
    semantics: Semantics::Warp(product::sparse_scaled),
    ..MMA_SCALED
};

fn multiplicand(u: &Use) -> ScalarType {
    register_of(u.ty(Role::Type2))
}

fn accumulators(u: &Use, role: Role) -> u8 {
    let (m, n, _) = mnk(u.text(Role::Shape));
    registers(m * n, u.ty(role).bits())
}

fn halved(u: &Use, role: Role) -> u8 {
    if u.ty(role) == F16 { 2 } else { 4 }
}

fn n_a(u: &Use, sparse: u32) -> u8 {
    let (m, _, k) = mnk(u.text(Role::Shape));
    registers(m * k / sparse, bits(u, Role::Type2))
}

fn n_b(u: &Use) -> u8 {
    let (_, n, k) = mnk(u.text(Role::Shape));
    registers(n * k, bits(u, Role::Type2))
}

fn row_col(u: &Use) -> Result<(), Reason> {
    fragment::row_col(u, format_args!("`{}` takes", u.text(Role::Shape)))
}

fn same_accumulators(u: &Use) -> Result<(), Reason> {
    let (d, c) = (u.text(Role::Type), u.text(Role::Type4));
    if d == c { Ok(()) } else { Err(Reason::new(format!("`{d}` and `{c}`: both must be the same")).at(c)) }
}

fn f32_accumulators(u: &Use) -> Result<(), Reason> {
    if u.ty(Role::Type) == F32 && u.ty(Role::Type4) == F32 {
        return Ok(());
    }
    Err(Reason::new(format!("`{}` gives `.f32`", u.text(Role::Type2))).at(u.text(Role::Type2)))
}

fn same_types(u: &Use) -> Result<(), Reason> {
    let (a, b) = (u.text(Role::Type2), u.text(Role::Type3));
    let is_f8 = |t: &str| t.starts_with(".e");
    if a == b || is_f8(a) && is_f8(b) {
        return Ok(());
    }
    Err(Reason::new(format!("`{a}` and `{b}` are not multiplied")).at(b))
}

fn floats(u: &Use) -> Result<Needs, Reason> {
    same_types(u)?;
    let shape = u.text(Role::Shape);
    row_col(u)?;
    match u.text(Role::Type2) {
        ".f16" => match shape {
            ".m16n8k8" => same_accumulators(u).map(|()| Needs::on(6, 5, SM_75)),
            ".m16n8k16" => same_accumulators(u).map(|()| Needs::on(7, 0, SM_80)),
            _ => no_shape(u, Role::Type2),
        },
        ".bf16" | ".tf32" => {
            f32_accumulators(u)?;
            let depth =
                if u.text(Role::Type2) == ".bf16" { [".m16n8k8", ".m16n8k16"] } else { [".m16n8k4", ".m16n8k8"] };
            if depth.contains(&shape) { Ok(Needs::on(7, 0, SM_80)) } else { no_shape(u, Role::Type2) }
        }
        _ => {
            same_accumulators(u)?;
            match (shape, u.ty(Role::Type)) {
                (".m16n8k32", F32) => Ok(Needs::on(8, 4, SM_89)),
                (".m16n8k16" | ".m16n8k32", _) => Ok(Needs::on(8, 7, SM_89)),
                _ => no_shape(u, Role::Type2),
            }
        }
    }
}

fn is_nibble(t: &str) -> bool {
    matches!(t, ".u4" | ".s4")
}

fn same_width(u: &Use) -> Result<(), Reason> {
    let (a, b) = (u.text(Role::Type2), u.text(Role::Type3));
    if is_nibble(a) == is_nibble(b) {
        return Ok(());
    }
    Err(Reason::new(format!("`{a}` and `{b}` are not multiplied")).at(b))
}

fn integers(u: &Use) -> Result<Needs, Reason> {
    same_width(u)?;
    row_col(u)?;
    match (is_nibble(u.text(Role::Type2)), u.text(Role::Shape)) {
        (false, ".m8n8k16") | (true, ".m8n8k32") => Ok(Needs::NONE),
        (false, ".m16n8k16" | ".m16n8k32") | (true, ".m16n8k32" | ".m16n8k64") => Ok(Needs::on(7, 0, SM_80)),
        _ => no_shape(u, Role::Type2),
    }
}

fn sparse_integers(u: &Use) -> Result<Needs, Reason> {
    same_width(u)?;
    row_col(u)?;
    match (is_nibble(u.text(Role::Type2)), u.text(Role::Shape)) {
        (false, ".m16n8k32" | ".m16n8k64") | (true, ".m16n8k64" | ".m16n8k128") => Ok(Needs::NONE),
        _ => no_shape(u, Role::Type2),
    }
}

fn sparse_floats(u: &Use) -> Result<Needs, Reason> {
    same_types(u)?;
    row_col(u)?;
    let shape = u.text(Role::Shape);
    let (fits, needs) = match u.text(Role::Type2) {
        ".f16" => {
            same_accumulators(u)?;
            (matches!(shape, ".m16n8k16" | ".m16n8k32"), Needs::NONE)
        }
        ".bf16" => {
            f32_accumulators(u)?;
            (matches!(shape, ".m16n8k16" | ".m16n8k32"), Needs::NONE)
        }
        ".tf32" => {
            f32_accumulators(u)?;
            (matches!(shape, ".m16n8k8" | ".m16n8k16"), Needs::NONE)
        }
        _ => {
            same_accumulators(u)?;
            match (shape, u.ty(Role::Type)) {
                (".m16n8k64", F32) => (true, Needs::on(8, 4, SM_89)),
                (".m16n8k64", _) => (true, Needs::on(8, 7, SM_120)),
                _ => (false, Needs::NONE),
            }
        }
    };
    if fits { Ok(needs) } else { no_shape(u, Role::Type2) }
}

const SM_120: &[TargetGate] = &[TargetGate::AtLeast(120)];

fn scaled(u: &Use, sparse: bool) -> Result<Needs, Reason> {
    row_col(u)?;
    let (kind, vec, scale) = (u.text(Role::Mode), u.text(Role::Num), u.text(Role::Sel));
    let shape = match (kind, sparse) {
        (".kind::mxf8f6f4", false) => ".m16n8k32",
        (".kind::mxf8f6f4", true) | (_, false) => ".m16n8k64",
        (_, true) => ".m16n8k128",
    };
    let refuse = |word: &'static str| Err(Reason::new(format!("`{word}` does not go with `{kind}`")).at(word));
    if u.text(Role::Shape) != shape {
        return refuse(u.text(Role::Shape));
    }
    if kind != ".kind::mxf8f6f4" {
        for role in [Role::Type2, Role::Type3] {
            if u.text(role) != ".e2m1" {
                return refuse(u.text(role));
            }
        }
    }
    let vecs: &[&str] = match kind {
        ".kind::mxf8f6f4" => &["", ".scale_vec::1X"],
        ".kind::mxf4" => &["", ".scale_vec::2X"],
        _ => &[".scale_vec::2X", ".scale_vec::4X"],
    };
    if vec.is_empty() && !vecs.contains(&vec) {
        return Err(Reason::new(format!("`{kind}` needs `.scale_vec::2X` or `.scale_vec::4X`")).at(kind));
    }
    if !vecs.contains(&vec) {
        return refuse(vec);
    }
    if scale == ".ue4m3" && (kind != ".kind::mxf4nvf4" || vec != ".scale_vec::4X") {
        return refuse(scale);
    }
    let four = kind != ".kind::mxf8f6f4";
    if kind == ".kind::mxf4nvf4" && scale == ".ue8m0" && vec == ".scale_vec::4X" {
        return Ok(Needs::on(9, 1, if sparse { ONLY_120A } else { SM_120A }));
    }
    Ok(if sparse && four { Needs::on(8, 7, ONLY_120A) } else { Needs::NONE })
}
