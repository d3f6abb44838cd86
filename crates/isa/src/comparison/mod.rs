//! Comparison and selection instructions.

use crate::form::Form;

pub mod selp;
pub mod set;
pub mod setp;
pub mod slct;

/// The records, in the order of the manual.
pub const FORMS: &[&Form] =
    &[&set::SET, &set::SET_BOOL, &setp::SETP, &setp::SETP_BOOL, &selp::SELP, &slct::SLCT_S32, &slct::SLCT_F32];
