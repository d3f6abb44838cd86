//! Surface Instructions.

use crate::form::Form;

pub mod suld;

/// Records of this chapter.
pub const FORMS: &[&Form] = &[&suld::SULD, &suld::SUST, &suld::SUST_P, &suld::SURED, &suld::SURED_P, &suld::SUQ];
