//! Asynchronous Warpgroup Level Matrix Instructions.

use crate::form::Form;

pub mod mma_async;
mod product;
mod tile;

/// Records of this chapter.
pub const FORMS: &[&Form] = &[
    &mma_async::HALF,
    &mma_async::HALF_REGISTERS,
    &mma_async::FLOAT,
    &mma_async::FLOAT_REGISTERS,
    &mma_async::INT,
    &mma_async::INT_REGISTERS,
    &mma_async::BIT,
    &mma_async::BIT_REGISTERS,
    &mma_async::SP_HALF,
    &mma_async::SP_HALF_REGISTERS,
    &mma_async::SP_FLOAT,
    &mma_async::SP_FLOAT_REGISTERS,
    &mma_async::SP_INT,
    &mma_async::SP_INT_REGISTERS,
    &mma_async::FENCE,
    &mma_async::COMMIT_GROUP,
    &mma_async::WAIT_GROUP,
];
