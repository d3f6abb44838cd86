//! Comparison instructions of half precision and bfloat16.

use crate::form::Form;

pub mod set;
pub mod setp;

/// The records, in the order of the manual.
pub const FORMS: &[&Form] = &[
    &set::SET_TO_F16,
    &set::SET_BOOL_TO_F16,
    &set::SET_TO_BF16,
    &set::SET_BOOL_TO_BF16,
    &set::SET_INT_F16,
    &set::SET_BOOL_INT_F16,
    &set::SET_INT_BF16,
    &set::SET_BOOL_INT_BF16,
    &set::SET_F16X2,
    &set::SET_BOOL_F16X2,
    &set::SET_BF16X2,
    &set::SET_BOOL_BF16X2,
    &setp::SETP_F16,
    &setp::SETP_BOOL_F16,
    &setp::SETP_F16X2,
    &setp::SETP_BOOL_F16X2,
    &setp::SETP_BF16,
    &setp::SETP_BOOL_BF16,
    &setp::SETP_BF16X2,
    &setp::SETP_BOOL_BF16X2,
];
