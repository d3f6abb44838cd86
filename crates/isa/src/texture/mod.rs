//! Texture Instructions.

use crate::form::Form;

pub mod tex;
pub mod txq;

/// Records of this chapter.
pub const FORMS: &[&Form] = &[
    &tex::TEX,
    &tex::TEX_BASE,
    &tex::TEX_LEVEL,
    &tex::TEX_GRAD,
    &tex::TEX_PAIR,
    &tex::TEX_BASE_PAIR,
    &tex::TEX_LEVEL_PAIR,
    &tex::TEX_GRAD_PAIR,
    &tex::TLD4,
    &txq::TXQ,
    &txq::TXQ_LEVEL,
    &txq::ISTYPEP,
];
