//! Floating-point instructions that take half precision into single.

use crate::form::Form;

pub mod add;
pub mod fma;
pub mod sub;

/// The records, in the order of the manual.
pub const FORMS: &[&Form] = &[&add::ADD_MIXED, &sub::SUB_MIXED, &fma::FMA_MIXED];
