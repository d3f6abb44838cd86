//! Data Movement and Conversion Instructions.

use crate::form::Form;

pub mod applypriority;
pub mod cp_async;
pub mod cp_async_bulk;
pub mod cp_async_bulk_tensor;
pub mod createpolicy;
pub mod cvt;
pub mod cvt_pack;
pub mod cvta;
pub mod discard;
pub mod getctarank;
pub mod isspacep;
pub mod ld;
pub mod ld_nc;
pub mod ldu;
pub mod mapa;
pub mod memory;
pub mod mov;
pub mod multimem;
pub mod prefetch;
pub mod prmt;
pub mod shfl;
pub mod st;
pub mod st_async;
pub mod tensormap_replace;
pub mod transfer;

/// Records of this chapter.
pub const FORMS: &[&Form] = &[
    &shfl::SHFL_SYNC,
    &shfl::SHFL,
    &ld::LD_WEAK,
    &ld::LD_EVICT,
    &ld::LD_VOLATILE,
    &ld::LD_RELAXED,
    &ld::LD_ACQUIRE,
    &ld::LD_MMIO,
    &ld_nc::LD_NC,
    &ld_nc::LD_NC_EVICT,
    &ldu::LDU,
    &st::ST_WEAK,
    &st::ST_EVICT,
    &st::ST_VOLATILE,
    &st::ST_RELAXED,
    &st::ST_RELEASE,
    &st::ST_MMIO,
    &prefetch::PREFETCH_LEVEL,
    &prefetch::PREFETCH_EVICT,
    &prefetch::PREFETCH_TENSORMAP,
    &prefetch::PREFETCHU,
    &applypriority::APPLYPRIORITY,
    &discard::DISCARD,
    &createpolicy::CREATEPOLICY_RANGE,
    &createpolicy::CREATEPOLICY_FRACTIONAL,
    &createpolicy::CREATEPOLICY_CVT,
    &isspacep::ISSPACEP,
    &cvta::CVTA,
    &cvta::CVTA_TO,
    &mapa::MAPA,
    &getctarank::GETCTARANK,
    &st_async::ST_ASYNC,
    &st_async::ST_ASYNC_RELEASE,
    &st_async::ST_BULK,
    &multimem::LD_REDUCE,
    &multimem::LD_REDUCE_FLOAT,
    &multimem::MULTIMEM_ST,
    &multimem::MULTIMEM_ST_FLOAT,
    &multimem::MULTIMEM_RED,
    &multimem::MULTIMEM_RED_FLOAT,
    &multimem::MULTIMEM_COPY,
    &multimem::MULTIMEM_REDUCE,
    &multimem::MULTIMEM_REDUCE_HALF,
    &cp_async::CP_ASYNC,
    &cp_async::CP_ASYNC_SIZED,
    &cp_async::CP_ASYNC_IGNORE,
    &cp_async::COMMIT_GROUP,
    &cp_async::WAIT_GROUP,
    &cp_async::WAIT_ALL,
    &cp_async::MBARRIER_ARRIVE,
    &cp_async_bulk::BULK_TO_CTA,
    &cp_async_bulk::BULK_TO_CLUSTER,
    &cp_async_bulk::BULK_CTA_TO_CLUSTER,
    &cp_async_bulk::BULK_TO_GLOBAL,
    &cp_async_bulk::BULK_REDUCE_TO_CLUSTER,
    &cp_async_bulk::BULK_REDUCE,
    &cp_async_bulk::ADD_NOFTZ,
    &cp_async_bulk::BULK_PREFETCH,
    &cp_async_bulk::BULK_COMMIT_GROUP,
    &cp_async_bulk::BULK_WAIT_GROUP,
    &cp_async_bulk_tensor::TENSOR_TO_CTA,
    &cp_async_bulk_tensor::TENSOR_TO_CLUSTER,
    &cp_async_bulk_tensor::TENSOR_TO_GLOBAL,
    &cp_async_bulk_tensor::TENSOR_REDUCE,
    &cp_async_bulk_tensor::TENSOR_PREFETCH,
    &tensormap_replace::REPLACE_ADDRESS,
    &tensormap_replace::REPLACE_RANK,
    &tensormap_replace::REPLACE_DIM,
    &tensormap_replace::REPLACE_STRIDE,
    &tensormap_replace::REPLACE_FIELD,
    &cp_async::CP_ASYNC_CG,
    &cp_async::CP_ASYNC_CG_SIZED,
    &cp_async::CP_ASYNC_CG_IGNORE,
];
