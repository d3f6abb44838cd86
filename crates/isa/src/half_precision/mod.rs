//! Floating-point instructions of half precision and bfloat16.

use crate::form::Form;

pub mod abs;
pub mod add;
pub mod ex2;
pub mod fma;
pub mod max;
pub mod min;
pub mod mul;
pub mod neg;
pub mod sub;
pub mod tanh;

/// The records, in the order of the manual.
pub const FORMS: &[&Form] = &[
    &add::ADD_F16,
    &add::ADD_BF16,
    &sub::SUB_F16,
    &sub::SUB_BF16,
    &mul::MUL_F16,
    &mul::MUL_BF16,
    &fma::FMA_F16,
    &fma::FMA_BF16,
    &fma::FMA_OOB,
    &neg::NEG_F16,
    &neg::NEG_BF16,
    &abs::ABS_F16,
    &abs::ABS_BF16,
    &min::MIN_F16,
    &min::MIN_BF16,
    &max::MAX_F16,
    &max::MAX_BF16,
    &tanh::TANH_F16,
    &tanh::TANH_BF16,
    &ex2::EX2_F16,
    &ex2::EX2_BF16,
];
