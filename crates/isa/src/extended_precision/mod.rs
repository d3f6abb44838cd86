//! Extended-precision arithmetic instructions: those that carry.

use crate::form::Form;

pub mod add_cc;
pub mod addc;
pub mod mad_cc;
pub mod madc;
pub mod sub_cc;
pub mod subc;

/// The records, in the order of the manual.
pub const FORMS: &[&Form] = &[&add_cc::ADD_CC, &addc::ADDC, &sub_cc::SUB_CC, &subc::SUBC, &mad_cc::MAD_CC, &madc::MADC];
