//! Data Movement and Conversion Instructions.

use crate::form::Form;

pub mod applypriority;
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
pub mod prefetch;
pub mod prmt;
pub mod shfl;
pub mod st;

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
];
