//! `tensormap.replace`: changes a field of a tensor map.

use handloom_ir::types::ScalarType::*;

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
    src: &[address("addr"), val("new_val", Is::Fixed(U64))],
    needs: Needs::on(8, 3, TARGETS),
    semantics: Semantics::Unsupported("tensor maps"),
    ..UNSUPPORTED_FORM
};

/// `tensormap.replace.tile.rank{.ss}.b1024.b32 [addr], new_val`.
pub const REPLACE_RANK: Form = Form {
    words: &[".tile", ".b1024", ".rank"],
    qualifiers: &[SPACE, B32_ONLY],
    src: &[address("addr"), val("new_val", WORD)],
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
    src: &[address("addr"), operand("ord", Kind::Imm, WORD), val("new_val", WORD)],
    ..REPLACE_ADDRESS
};

/// `tensormap.replace.tile.global_stride{.ss}.b1024.b64 [addr], ord, new_val`.
pub const REPLACE_STRIDE: Form = Form {
    words: &[".tile", ".b1024", ".global_stride"],
    src: &[address("addr"), operand("ord", Kind::Imm, WORD), val("new_val", Is::Fixed(U64))],
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
    src: &[address("addr"), operand("new_val", Kind::Imm, WORD)],
    ..REPLACE_ADDRESS
};
