//! Miscellaneous Instructions.

use crate::form::Form;

pub mod brkpt;
pub mod nanosleep;
pub mod pmevent;
pub mod setmaxnreg;
pub mod trap;

/// Records of this chapter.
pub const FORMS: &[&Form] = &[
    &brkpt::BRKPT,
    &nanosleep::NANOSLEEP,
    &pmevent::PMEVENT,
    &pmevent::PMEVENT_MASK,
    &trap::TRAP,
    &setmaxnreg::SETMAXNREG,
];
