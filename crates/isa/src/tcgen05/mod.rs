//! TensorCore 5th Generation Family Instructions.

use crate::form::Form;

pub mod memory;
pub mod mma;
mod ops;

/// Records of this chapter.
pub const FORMS: &[&Form] = &[
    &memory::ALLOC,
    &memory::DEALLOC,
    &memory::RELINQUISH,
    &memory::LD,
    &memory::LD_SPLIT,
    &memory::LD_RED_FLOAT,
    &memory::LD_RED_FLOAT_SPLIT,
    &memory::LD_RED_INT,
    &memory::LD_RED_INT_SPLIT,
    &memory::ST,
    &memory::ST_SPLIT,
    &memory::WAIT_LD,
    &memory::WAIT_ST,
    &memory::FENCE_BEFORE,
    &memory::FENCE_AFTER,
    &memory::CP,
    &memory::SHIFT,
    &memory::COMMIT,
    &mma::MMA,
    &mma::MMA_LANES,
    &mma::MMA_TMEM,
    &mma::MMA_TMEM_LANES,
    &mma::MMA_SCALED,
    &mma::MMA_SCALED_TMEM,
    &mma::SP,
    &mma::SP_LANES,
    &mma::SP_TMEM,
    &mma::SP_TMEM_LANES,
    &mma::SP_SCALED,
    &mma::SP_SCALED_TMEM,
    &mma::WS,
    &mma::WS_TMEM,
    &mma::WS_SP,
    &mma::WS_SP_TMEM,
];
