//! `createpolicy`: makes a cache policy for `.L2::cache_hint`.
//!
//! A policy changes nothing here and is opaque, so its value is 0.

use handloom_ir::types::ScalarType::*;
use handloom_ir::types::Ty;

use super::memory::*;
use crate::form::*;
use crate::target::Needs;
use crate::target::TargetGate::AtLeast;

const FRACTIONAL: Group = lead(Role::Mode, &[choice(".fractional", Value::Flag)]);
const RANGE: Group = lead(Role::Mode, &[choice(".range", Value::Flag)]);
const CVT: Group = lead(Role::Mode, &[choice(".cvt", Value::Flag)]);

const PRIORITIES: &[Group] = &[
    one_of(
        Role::EvictL2,
        &[
            choice(".L2::evict_last", Value::Flag),
            choice(".L2::evict_normal", Value::Flag),
            choice(".L2::evict_first", Value::Flag),
            choice(".L2::evict_unchanged", Value::Flag),
        ],
    ),
    opt_seq(Role::Sel, &[choice(".L2::evict_first", Value::Flag), choice(".L2::evict_unchanged", Value::Flag)]),
];

/// `createpolicy.fractional.primary{.secondary}.b64 cache-policy{, fraction}`.
pub const CREATEPOLICY_FRACTIONAL: Form = Form {
    opcode: "createpolicy",
    words: &[".b64"],
    section: "Data Movement and Conversion Instructions: createpolicy",
    qualifiers: &[FRACTIONAL, PRIORITIES[0], PRIORITIES[1]],
    dst: &[reg("cache-policy", Is::Descriptor(U64))],
    src: &[val("fraction", Is::Fixed(F32)).optional()],
    needs: Needs::on(7, 4, &[AtLeast(80)]),
    legal: always,
    semantics: Semantics::Build(|x| {
        // Choice: every policy is 0.
        let policy = x.b.imm(0, Ty::B64);
        x.set(policy);
    }),
};

/// `createpolicy.range{.global}.primary{.secondary}.b64 cache-policy, [a], primary-size, total-size`.
pub const CREATEPOLICY_RANGE: Form = Form {
    words: &[".b64"],
    qualifiers: &[RANGE, PRIORITIES[0], PRIORITIES[1], maybe(Role::Space, &[GLOBAL])],
    src: &[address("a").in_bits(32), val("primary-size", Is::Fixed(U32)), val("total-size", Is::Fixed(U32))],
    legal: |u| check_named_space(u).map(|()| Needs::NONE),
    ..CREATEPOLICY_FRACTIONAL
};

/// `createpolicy.cvt.L2.b64 cache-policy, access-property`.
pub const CREATEPOLICY_CVT: Form = Form {
    words: &[".L2", ".b64"],
    qualifiers: &[CVT],
    src: &[val("access-property", Is::Descriptor(U64))],
    ..CREATEPOLICY_FRACTIONAL
};
