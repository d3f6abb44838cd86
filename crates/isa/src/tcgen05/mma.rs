//! `tcgen05.mma` and its kin: matrix products in tensor memory.

use handloom_ir::types::ScalarType::*;

use super::memory::{CTA_GROUP, NEEDS, no_variable};
use super::ops;
use crate::form::*;
use crate::target::{Needs, TargetGate, Version};
use crate::words::*;

const SECTION: &str = "TensorCore 5th Generation Instructions: tcgen05.mma";
/// Integers are for single architectures.
const I8: Needs = Needs::on(8, 6, &[TargetGate::Arch(100), TargetGate::Arch(101), TargetGate::Arch(110)]);
/// Of a product that scales what it adds to.
const SCALED_SUM: Needs =
    Needs::on(8, 6, &[TargetGate::Arch(100), TargetGate::Arch(103), TargetGate::Family(100, Version::new(8, 8))]);
const MXF4NVF4: Needs = Needs::on(8, 7, ARCH_100);
const ARCHS: &[TargetGate] =
    &[TargetGate::Arch(100), TargetGate::Arch(101), TargetGate::Arch(103), TargetGate::Arch(110)];
const BLOCKS: Needs =
    Needs::on(8, 8, &[TargetGate::Family(100, Version::new(8, 8)), TargetGate::Family(110, Version::new(9, 0))]);

const KIND: Group = must(
    Role::Mode,
    &[
        choice(".kind::f16", Value::Flag),
        choice(".kind::tf32", Value::Flag),
        choice(".kind::f8f6f4", Value::Flag),
        choice_if(".kind::i8", Value::Flag, I8),
    ],
);
const SCALED_KIND: Group = must(
    Role::Mode,
    &[
        choice(".kind::mxf8f6f4", Value::Flag),
        choice(".kind::mxf4", Value::Flag),
        choice_if(".kind::mxf4nvf4", Value::Flag, MXF4NVF4),
    ],
);
const VECTOR_SIZE: Group = maybe(
    Role::Num,
    &[
        choice_if(".scale_vec::1X", Value::Flag, Needs::on(8, 6, ARCHS)),
        choice_if(".scale_vec::2X", Value::Flag, Needs::on(8, 6, ARCHS)),
        choice_if(".scale_vec::4X", Value::Flag, Needs::on(8, 6, ARCHS)),
        choice_if(".block16", Value::Flag, BLOCKS),
        choice_if(".block32", Value::Flag, BLOCKS),
    ],
);
const COLLECTOR: Group = maybe(
    Role::Sem,
    &[
        choice(".collector::a::fill", Value::Flag),
        choice(".collector::a::use", Value::Flag),
        choice(".collector::a::lastuse", Value::Flag),
        choice(".collector::a::discard", Value::Flag),
    ],
);
const ASHIFT: Group = maybe(Role::Flag, &[choice(".ashift", Value::Flag)]);
const BLOCK_SCALE: Group = must(Role::Flag3, &[choice(".block_scale", Value::Flag)]);

const D: Operand = tmem_of_product("d-tmem");
const A: Operand = tmem_of_product("a-tmem");
const A_DESC: Operand = val("a-desc", Is::Descriptor(U64));
const B_DESC: Operand = val("b-desc", Is::Descriptor(U64));
const META: Operand = tmem_of_product("sp-meta-tmem");
const IDESC: Operand = val("idesc", Is::Descriptor(U32));
const LANES: Operand = Operand {
    name: "disable-output-lane",
    kind: Kind::Vector,
    is: Is::Fixed(B32),
    count: Count::Fragment(|u| 4 * u.count(Role::Flag2)),
    optional: false,
    when: When::Always,
};
const ENABLE: Operand = operand("enable-input-d", Kind::Pred { negatable: true }, Is::Fixed(Pred));
const SCALE_D: Operand =
    operand("scale-input-d", Kind::Imm, WORD).optional().when(When::Word(Role::Mode, &[".kind::f16", ".kind::tf32"]));
const SCALE_A: Operand = tmem_of_product("scale-A-tmem");
const SCALE_B: Operand = tmem_of_product("scale-B-tmem");

/// `tcgen05.mma.cta_group.kind{.collector_usage} [d-tmem], a-desc, b-desc, idesc, enable-input-d{, scale-input-d}`.
pub const MMA: Form = Form {
    opcode: "tcgen05.mma",
    section: SECTION,
    qualifiers: &[CTA_GROUP, KIND, COLLECTOR],
    src: &[D, A_DESC, B_DESC, IDESC, ENABLE, SCALE_D],
    needs: NEEDS,
    legal: plain::<5>,
    semantics: Semantics::Warp(ops::product::<false, false, false, false>),
    ..UNSUPPORTED_FORM
};

/// The same with a mask of lanes that are not written.
pub const MMA_LANES: Form = Form {
    src: &[D, A_DESC, B_DESC, IDESC, LANES, ENABLE, SCALE_D],
    semantics: Semantics::Warp(ops::product::<false, false, true, false>),
    legal: plain::<6>,
    ..MMA
};

/// The same with `a` in tensor memory.
pub const MMA_TMEM: Form = Form {
    qualifiers: &[CTA_GROUP, KIND, ASHIFT, COLLECTOR],
    src: &[D, A, B_DESC, IDESC, ENABLE, SCALE_D],
    semantics: Semantics::Warp(ops::product::<true, false, false, false>),
    legal: plain::<5>,
    ..MMA
};

/// The same with both.
pub const MMA_TMEM_LANES: Form = Form {
    src: &[D, A, B_DESC, IDESC, LANES, ENABLE, SCALE_D],
    semantics: Semantics::Warp(ops::product::<true, false, true, false>),
    legal: plain::<6>,
    ..MMA_TMEM
};

/// `tcgen05.mma.cta_group.kind.block_scale{.scale_vectorsize}{.collector_usage}
/// [d-tmem], a-desc, b-desc, idesc, [scale-A-tmem], [scale-B-tmem], enable-input-d`.
pub const MMA_SCALED: Form = Form {
    qualifiers: &[CTA_GROUP, SCALED_KIND, BLOCK_SCALE, VECTOR_SIZE, COLLECTOR],
    src: &[D, A_DESC, B_DESC, IDESC, SCALE_A, SCALE_B, ENABLE],
    legal: vector_size,
    semantics: Semantics::Warp(ops::product::<false, false, false, false>),
    ..MMA
};

/// The same with `a` in tensor memory.
pub const MMA_SCALED_TMEM: Form = Form {
    src: &[D, A, B_DESC, IDESC, SCALE_A, SCALE_B, ENABLE],
    semantics: Semantics::Warp(ops::product::<true, false, false, false>),
    ..MMA_SCALED
};

const SECTION_SP: &str = "TensorCore 5th Generation Instructions: tcgen05.mma.sp";

/// `tcgen05.mma.sp`: half of `a` is zero.
pub const SP: Form = Form {
    opcode: "tcgen05.mma.sp",
    section: SECTION_SP,
    src: &[D, A_DESC, B_DESC, META, IDESC, ENABLE, SCALE_D],
    semantics: Semantics::Warp(ops::product::<false, true, false, false>),
    legal: plain::<6>,
    ..MMA
};

/// The same with a mask of lanes that are not written.
pub const SP_LANES: Form = Form {
    src: &[D, A_DESC, B_DESC, META, IDESC, LANES, ENABLE, SCALE_D],
    semantics: Semantics::Warp(ops::product::<false, true, true, false>),
    legal: plain::<7>,
    ..SP
};

/// The same with `a` in tensor memory.
pub const SP_TMEM: Form = Form {
    opcode: "tcgen05.mma.sp",
    section: SECTION_SP,
    src: &[D, A, B_DESC, META, IDESC, ENABLE, SCALE_D],
    semantics: Semantics::Warp(ops::product::<true, true, false, false>),
    legal: plain::<6>,
    ..MMA_TMEM
};

/// The same with both.
pub const SP_TMEM_LANES: Form = Form {
    src: &[D, A, B_DESC, META, IDESC, LANES, ENABLE, SCALE_D],
    semantics: Semantics::Warp(ops::product::<true, true, true, false>),
    legal: plain::<7>,
    ..SP_TMEM
};

/// `tcgen05.mma.sp` with block scaling.
pub const SP_SCALED: Form = Form {
    opcode: "tcgen05.mma.sp",
    section: SECTION_SP,
    src: &[D, A_DESC, B_DESC, META, IDESC, SCALE_A, SCALE_B, ENABLE],
    semantics: Semantics::Warp(ops::product::<false, true, false, false>),
    legal: sparse_vector_size,
    ..MMA_SCALED
};

/// The same with `a` in tensor memory.
pub const SP_SCALED_TMEM: Form = Form {
    src: &[D, A, B_DESC, META, IDESC, SCALE_A, SCALE_B, ENABLE],
    semantics: Semantics::Warp(ops::product::<true, true, false, false>),
    ..SP_SCALED
};

const ONE_CTA: Group = must(Role::Flag2, &[choice(".cta_group::1", Value::Count(1))]);
const B_COLLECTOR: Group = maybe(
    Role::Sem,
    &[
        choice(".collector::b0::fill", Value::Flag),
        choice(".collector::b0::use", Value::Flag),
        choice(".collector::b0::lastuse", Value::Flag),
        choice(".collector::b0::discard", Value::Flag),
        choice(".collector::b1::fill", Value::Flag),
        choice(".collector::b1::use", Value::Flag),
        choice(".collector::b1::lastuse", Value::Flag),
        choice(".collector::b1::discard", Value::Flag),
        choice(".collector::b2::fill", Value::Flag),
        choice(".collector::b2::use", Value::Flag),
        choice(".collector::b2::lastuse", Value::Flag),
        choice(".collector::b2::discard", Value::Flag),
        choice(".collector::b3::fill", Value::Flag),
        choice(".collector::b3::use", Value::Flag),
        choice(".collector::b3::lastuse", Value::Flag),
        choice(".collector::b3::discard", Value::Flag),
    ],
);
const ZEROS: Operand = val("zero-column-mask-desc", Is::Descriptor(U64)).optional();

/// `tcgen05.mma.ws.cta_group::1.kind{.collector_usage} [d-tmem], a-desc, b-desc, idesc, enable-input-d{, zero-column-mask-desc}`.
pub const WS: Form = Form {
    opcode: "tcgen05.mma.ws",
    section: "TensorCore 5th Generation Instructions: tcgen05.mma.ws",
    qualifiers: &[ONE_CTA, KIND, B_COLLECTOR],
    src: &[D, A_DESC, B_DESC, IDESC, ENABLE, ZEROS],
    legal: no_variable,
    semantics: Semantics::Warp(ops::product::<false, false, false, true>),
    ..MMA
};

/// The same with `a` in tensor memory.
pub const WS_TMEM: Form = Form {
    src: &[D, A, B_DESC, IDESC, ENABLE, ZEROS],
    semantics: Semantics::Warp(ops::product::<true, false, false, true>),
    ..WS
};

/// `tcgen05.mma.ws.sp`: half of `a` is zero.
pub const WS_SP: Form = Form {
    opcode: "tcgen05.mma.ws.sp",
    section: "TensorCore 5th Generation Instructions: tcgen05.mma.ws.sp",
    src: &[D, A_DESC, B_DESC, META, IDESC, ENABLE, ZEROS],
    semantics: Semantics::Warp(ops::product::<false, true, false, true>),
    ..WS
};

/// The same with `a` in tensor memory.
pub const WS_SP_TMEM: Form = Form {
    src: &[D, A, B_DESC, META, IDESC, ENABLE, ZEROS],
    semantics: Semantics::Warp(ops::product::<true, true, false, true>),
    ..WS_SP
};

/// `N`: operands without `scale-input-d`. Shifted rows are not kept.
fn plain<const N: usize>(u: &Use) -> Result<Needs, Reason> {
    no_variable(u)?;
    if u.has(Role::Flag) && matches!(u.text(Role::Sem), ".collector::a::use" | ".collector::a::fill") {
        return Err(Reason::new("`.ashift` does not go with this use of the collector").at(u.text(Role::Sem)));
    }
    Ok(if u.n_src > N { SCALED_SUM } else { Needs::NONE })
}

/// Of elements of four bits, half of which are zero, families of targets know nothing.
fn sparse_vector_size(u: &Use) -> Result<Needs, Reason> {
    vector_size(u)?;
    Ok(if u.text(Role::Mode) == ".kind::mxf8f6f4" { Needs::NONE } else { Needs::on(8, 6, ARCHS) })
}

fn vector_size(u: &Use) -> Result<Needs, Reason> {
    no_variable(u)?;
    let (kind, size) = (u.text(Role::Mode), u.text(Role::Num));
    let sizes: &[&str] = match kind {
        ".kind::mxf8f6f4" => &["", ".scale_vec::1X", ".block32"],
        ".kind::mxf4" => &["", ".scale_vec::2X", ".block32"],
        _ => &[".scale_vec::2X", ".scale_vec::4X", ".block16", ".block32"],
    };
    if sizes.contains(&size) {
        return Ok(Needs::NONE);
    }
    let word = if size.is_empty() { kind } else { size };
    Err(Reason::new(format!("`{kind}` does not go with this size of scale vectors")).at(word))
}
