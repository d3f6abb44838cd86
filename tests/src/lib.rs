//! What the tests of Handloom share: the runner of file tests, engines side by side, a generator of random kernels, an oracle of
//! conversions.
//!
//! Takes: PTX files with directives, seeds. Gives: what is wrong, for a person.
//! Does not know: how any stage works; it uses what users use, and the text forms of the stages.
//!
//! Invariants: expected values are written by people or by independent programs, never by Handloom; randomness has a seed, and a
//! failure prints it.

#![forbid(unsafe_code)]

pub mod agree;
pub mod circles;
pub mod convert;
pub mod copies;
pub mod counted;
pub mod coverage;
pub mod crates;
pub mod device;
pub mod filetest;
pub mod generate;
pub mod kernel;
pub mod listing;
pub mod litmus;
pub mod matrix;
pub mod once_a_cta;
pub mod programs;
pub mod reference;
pub mod sides;
pub mod strides;
pub mod workspace;

pub use handloom_filetest::{engines, rng};
