//! Integer arithmetic instructions.

use crate::form::Form;

pub mod abs;
pub mod add;
pub mod bfe;
pub mod bfi;
pub mod bfind;
pub mod bmsk;
pub mod brev;
pub mod clz;
pub mod div;
pub mod dp2a;
pub mod dp4a;
pub mod fns;
pub mod mad;
pub mod mad24;
pub mod max;
pub mod min;
pub mod mul;
pub mod mul24;
pub mod neg;
pub mod popc;
pub mod rem;
pub mod sad;
pub mod sub;
pub mod szext;

/// The records, in the order of the manual.
pub const FORMS: &[&Form] = &[
    &add::ADD,
    &add::ADD_SAT,
    &add::ADD_PACKED,
    &sub::SUB,
    &sub::SUB_SAT,
    &sub::SUB_PACKED,
    &mul::MUL,
    &mul::MUL_WIDE,
    &mad::MAD,
    &mad::MAD_WIDE,
    &mad::MAD_HI_SAT,
    &mul24::MUL24,
    &mad24::MAD24,
    &mad24::MAD24_HI_SAT,
    &sad::SAD,
    &div::DIV,
    &rem::REM,
    &abs::ABS_INT,
    &neg::NEG,
    &neg::NEG_PACKED,
    &min::MIN,
    &min::MIN_RELU,
    &min::MIN_PACKED,
    &max::MAX,
    &max::MAX_RELU,
    &max::MAX_PACKED,
    &popc::POPC,
    &clz::CLZ,
    &bfind::BFIND,
    &fns::FNS,
    &brev::BREV,
    &bfe::BFE,
    &bfi::BFI,
    &szext::SZEXT,
    &bmsk::BMSK,
    &dp4a::DP4A,
    &dp2a::DP2A,
];
