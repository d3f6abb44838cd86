//! `tensormap.replace`: changes a field of a tensor map.
//!
//! Each field has a place of its own in the map, so that this is a store. Whether the map makes sense is asked where it is used.

use handloom_ir::simt::{Access, Addr, Pure, Val};
use handloom_ir::tensor_map::Field;
use handloom_ir::types::ScalarType::*;
use handloom_ir::types::{Int, Ty};

use super::memory::*;
use crate::form::*;
use crate::target::{Needs, TargetGate, Version};
use crate::words::*;

const TARGETS: &[TargetGate] = &[
    TargetGate::Arch(90),
    TargetGate::Arch(100),
    TargetGate::Arch(101),
    TargetGate::Arch(120),
    TargetGate::Family(100, Version::new(8, 8)),
    TargetGate::Family(110, Version::new(9, 0)),
    TargetGate::Family(120, Version::new(8, 8)),
];
const SPACE: Group = maybe(Role::Space, &[GLOBAL, SHARED_CTA]);
const B32_ONLY: Group = must(Role::Type, &[ty(".b32", B32)]);

/// `tensormap.replace.tile.global_address{.ss}.b1024.b64 [addr], new_val`.
pub const REPLACE_ADDRESS: Form = Form {
    opcode: "tensormap.replace",
    words: &[".tile", ".b1024", ".global_address"],
    section: "Data Movement and Conversion Instructions: tensormap.replace",
    qualifiers: &[SPACE, must(Role::Type, &[ty(".b64", B64)])],
    src: &[address("addr").in_bits(32), val("new_val", Is::Fixed(U64))],
    needs: Needs::on(8, 3, TARGETS),
    semantics: Semantics::Build(|x| replace(x, Field::Address, 1)),
    ..UNSUPPORTED_FORM
};

/// `tensormap.replace.tile.rank{.ss}.b1024.b32 [addr], new_val`.
pub const REPLACE_RANK: Form = Form {
    words: &[".tile", ".b1024", ".rank"],
    qualifiers: &[SPACE, B32_ONLY],
    src: &[address("addr").in_bits(32), val("new_val", WORD)],
    semantics: Semantics::Build(|x| replace(x, Field::Rank, 1)),
    ..REPLACE_ADDRESS
};

/// `tensormap.replace.tile.field{.ss}.b1024.b32 [addr], ord, new_val`.
pub const REPLACE_DIM: Form = Form {
    words: &[".tile", ".b1024"],
    qualifiers: &[
        must(
            Role::Op,
            &[
                choice(".box_dim", Value::Flag),
                choice(".global_dim", Value::Flag),
                choice(".element_stride", Value::Flag),
            ],
        ),
        SPACE,
        B32_ONLY,
    ],
    src: &[address("addr").in_bits(32), operand("ord", Kind::Imm, WORD), val("new_val", WORD)],
    semantics: Semantics::Build(|x| {
        let field = match x.u.text(Role::Op) {
            ".box_dim" => Field::Box,
            ".global_dim" => Field::Dim,
            _ => Field::ElementStride,
        };
        replace_one_of(x, field);
    }),
    ..REPLACE_ADDRESS
};

/// `tensormap.replace.tile.global_stride{.ss}.b1024.b64 [addr], ord, new_val`.
pub const REPLACE_STRIDE: Form = Form {
    words: &[".tile", ".b1024", ".global_stride"],
    src: &[address("addr").in_bits(32), operand("ord", Kind::Imm, WORD), val("new_val", Is::Fixed(U64))],
    semantics: Semantics::Build(|x| replace_one_of(x, Field::Stride)),
    ..REPLACE_ADDRESS
};

/// `tensormap.replace.tile.field{.ss}.b1024.b32 [addr], new_val` of a constant.
pub const REPLACE_FIELD: Form = Form {
    words: &[".tile", ".b1024"],
    qualifiers: &[
        must(
            Role::Op,
            &[
                choice(".elemtype", Value::Flag),
                choice(".interleave_layout", Value::Flag),
                choice(".swizzle_mode", Value::Flag),
                choice_if(".swizzle_atomicity", Value::Flag, Needs::on(8, 6, ARCH_100_120)),
                choice(".fill_mode", Value::Flag),
            ],
        ),
        SPACE,
        B32_ONLY,
    ],
    src: &[address("addr").in_bits(32), operand("new_val", Kind::Imm, WORD)],
    semantics: Semantics::Build(|x| {
        let field = match x.u.text(Role::Op) {
            ".elemtype" => Field::ElementType,
            ".interleave_layout" => Field::Interleave,
            ".swizzle_mode" => Field::Swizzle,
            ".swizzle_atomicity" => Field::Atomicity,
            _ => Field::Fill,
        };
        replace(x, field, 1);
    }),
    ..REPLACE_ADDRESS
};

/// Writes source operand `i` to a field.
fn replace(x: &mut Cx<'_, '_>, field: Field, i: usize) {
    let (at, bytes) = field.place();
    let value = match (x.src(i), bytes) {
        // Numbers that no field has are kept, to be told where the map is used.
        (Val::Imm(n, _), 1) => Val::Imm(n.min(0xff), Ty::B16),
        (value @ Val::Reg(_), 1) => {
            let wide = x.b.ty(value);
            let most = Val::Imm(0xff, wide);
            let kept = x.b.pure(Pure::Min(Int::U32), wide, &[value, most]);
            x.b.half(kept, false)
        }
        (value, _) => value,
    };
    let bits = u8::try_from(8 * bytes).unwrap_or(64);
    let access = Access::weak(space(x.u), bits);
    let address = x.addr(0);
    let place = Addr { base: address.base, offset: address.offset.wrapping_add(at.into()) };
    x.b.store(access, place, &[value]);
}

/// Writes source operand 2 to the field of the dimension that source operand 1 names, which is 0 to 4.
fn replace_one_of(x: &mut Cx<'_, '_>, field: fn(u8) -> Field) {
    let ord = match x.src(1) {
        Val::Imm(ord, _) => u8::try_from(ord).unwrap_or(0),
        Val::Reg(_) => panic!("record reads a register as an ordinal"),
    };
    replace(x, field(ord), 2);
}
