//! Asynchronous Warpgroup Level Matrix Instructions.

use crate::form::Form;

pub mod wgmma;

/// Records of this chapter.
pub const FORMS: &[&Form] = &[
    &wgmma::HALF,
    &wgmma::HALF_REGISTERS,
    &wgmma::FLOAT,
    &wgmma::FLOAT_REGISTERS,
    &wgmma::INT,
    &wgmma::INT_REGISTERS,
    &wgmma::BIT,
    &wgmma::BIT_REGISTERS,
    &wgmma::SP_HALF,
    &wgmma::SP_HALF_REGISTERS,
    &wgmma::SP_FLOAT,
    &wgmma::SP_FLOAT_REGISTERS,
    &wgmma::SP_INT,
    &wgmma::SP_INT_REGISTERS,
    &wgmma::FENCE,
    &wgmma::COMMIT_GROUP,
    &wgmma::WAIT_GROUP,
];
