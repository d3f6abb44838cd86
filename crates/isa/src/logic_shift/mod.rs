//! Logic and shift instructions.

use crate::form::Form;

pub mod and;
pub mod cnot;
pub mod lop3;
pub mod not;
pub mod or;
pub mod shf;
pub mod shl;
pub mod shr;
pub mod xor;

/// The records, in the order of the manual.
pub const FORMS: &[&Form] = &[
    &and::AND,
    &and::AND_PRED,
    &or::OR,
    &or::OR_PRED,
    &xor::XOR,
    &xor::XOR_PRED,
    &not::NOT,
    &not::NOT_PRED,
    &cnot::CNOT,
    &lop3::LOP3,
    &lop3::LOP3_BOOL,
    &shf::SHF,
    &shl::SHL,
    &shr::SHR,
];
