//! Warp Level Matrix Instructions.

use crate::form::Form;

pub(crate) mod fragment;
pub mod ldmatrix;
pub mod mma;
mod opaque;
pub(crate) mod product;
pub mod shape;
pub mod wmma;

/// Records of this chapter.
pub const FORMS: &[&Form] = &[
    &ldmatrix::LDMATRIX,
    &ldmatrix::LDMATRIX_B8,
    &ldmatrix::LDMATRIX_PACKED,
    &ldmatrix::LDMATRIX_PACKED_TRANS,
    &ldmatrix::STMATRIX,
    &ldmatrix::STMATRIX_B8,
    &ldmatrix::MOVMATRIX,
    &mma::MMA_VOLTA,
    &mma::MMA_FLOAT,
    &mma::MMA_SMALL,
    &mma::MMA_F64,
    &mma::MMA_INT,
    &mma::MMA_BIT,
    &mma::MMA_SCALED,
    &mma::MMA_SP_FLOAT,
    &mma::MMA_SP_INT,
    &mma::MMA_SPO_FLOAT,
    &mma::MMA_SPO_INT,
    &mma::MMA_SPO_SMALL,
    &mma::MMA_SPO_SCALED,
    &wmma::WMMA_LOAD,
    &wmma::WMMA_LOAD_C,
    &wmma::WMMA_STORE,
    &wmma::WMMA_HALF,
    &wmma::WMMA_HALF_SAT,
    &wmma::WMMA_MMA,
    &wmma::WMMA_BIT,
];
