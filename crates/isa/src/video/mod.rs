//! Video instructions.

use crate::form::Form;

mod scalar;
mod simd;
pub mod vabsdiff;
pub mod vabsdiff2;
pub mod vabsdiff4;
pub mod vadd;
pub mod vadd2;
pub mod vadd4;
pub mod vavrg2;
pub mod vavrg4;
pub mod vmad;
pub mod vmax;
pub mod vmax2;
pub mod vmax4;
pub mod vmin;
pub mod vmin2;
pub mod vmin4;
pub mod vset;
pub mod vset2;
pub mod vset4;
pub mod vshl;
pub mod vshr;
pub mod vsub;
pub mod vsub2;
pub mod vsub4;

/// The records, in the order of the manual.
pub const FORMS: &[&Form] = &[
    &vadd::VADD,
    &vadd::VADD_OP2,
    &vsub::VSUB,
    &vsub::VSUB_OP2,
    &vabsdiff::VABSDIFF,
    &vabsdiff::VABSDIFF_OP2,
    &vmin::VMIN,
    &vmin::VMIN_OP2,
    &vmax::VMAX,
    &vmax::VMAX_OP2,
    &vshl::VSHL,
    &vshl::VSHL_OP2,
    &vshr::VSHR,
    &vshr::VSHR_OP2,
    &vmad::VMAD,
    &vmad::VMAD_PO,
    &vset::VSET,
    &vset::VSET_OP2,
    &vadd2::VADD2,
    &vadd2::VADD2_ADD,
    &vsub2::VSUB2,
    &vsub2::VSUB2_ADD,
    &vavrg2::VAVRG2,
    &vavrg2::VAVRG2_ADD,
    &vabsdiff2::VABSDIFF2,
    &vabsdiff2::VABSDIFF2_ADD,
    &vmin2::VMIN2,
    &vmin2::VMIN2_ADD,
    &vmax2::VMAX2,
    &vmax2::VMAX2_ADD,
    &vset2::VSET2,
    &vset2::VSET2_ADD,
    &vadd4::VADD4,
    &vadd4::VADD4_ADD,
    &vsub4::VSUB4,
    &vsub4::VSUB4_ADD,
    &vavrg4::VAVRG4,
    &vavrg4::VAVRG4_ADD,
    &vabsdiff4::VABSDIFF4,
    &vabsdiff4::VABSDIFF4_ADD,
    &vmin4::VMIN4,
    &vmin4::VMIN4_ADD,
    &vmax4::VMAX4,
    &vmax4::VMAX4_ADD,
    &vset4::VSET4,
    &vset4::VSET4_ADD,
];
