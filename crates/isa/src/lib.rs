//! One record per instruction form.
//!
//! Takes: nothing. Gives: constant data ([`forms`]), the way from an instruction's words to its records ([`lookup`]) and, per
//! form, a function that builds SIMT ops. Does not know: Cranelift, the AST, host types.
//!
//! How to read it: [`form`] is the schema, then one folder per chapter of the manual and one file per opcode; [`find`] matches.

#![forbid(unsafe_code)]

use std::sync::OnceLock;

use crate::form::Form;

pub mod comparison;
mod compose;
pub mod control_flow;
pub mod data_movement;
pub mod extended_precision;
pub mod find;
pub mod floating_point;
pub mod form;
pub mod half_comparison;
pub mod half_precision;
pub mod integer;
pub mod listing;
pub mod literals;
pub mod logic_shift;
pub mod matrix;
pub mod misc;
pub mod mixed_precision;
pub mod selector;
pub mod spelling;
pub mod sreg;
pub mod stack;
pub mod surface;
pub mod sync_comm;
pub mod target;
pub mod tcgen05;
pub mod texture;
pub mod video;
pub mod wgmma;
pub mod words;

pub use find::{Candidates, Match, Mismatch, lookup, nearest, suggest, suggest_qualifier};
pub use literals::{ORDERED, check_element, check_literal};

/// The records of each chapter of the manual, in its order.
pub const CHAPTERS: &[&[&Form]] = &[
    integer::FORMS,
    extended_precision::FORMS,
    floating_point::FORMS,
    half_precision::FORMS,
    mixed_precision::FORMS,
    comparison::FORMS,
    half_comparison::FORMS,
    logic_shift::FORMS,
    data_movement::mov::FORMS,
    data_movement::prmt::FORMS,
    data_movement::cvt::FORMS,
    data_movement::cvt_pack::FORMS,
    data_movement::FORMS,
    texture::FORMS,
    surface::FORMS,
    control_flow::FORMS,
    sync_comm::FORMS,
    video::FORMS,
    matrix::FORMS,
    wgmma::FORMS,
    tcgen05::FORMS,
    stack::FORMS,
    misc::FORMS,
];

/// All records.
pub fn forms() -> &'static [&'static Form] {
    static ALL: OnceLock<Vec<&'static Form>> = OnceLock::new();
    ALL.get_or_init(|| CHAPTERS.concat())
}
