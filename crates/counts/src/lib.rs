//! Counts of a launch while it runs.
//!
//! Takes: what an engine tells a [`Counter`], request by request.
//!
//! Gives: the [`Site`] of each statement, and what an access costs by the [`rules`] of memory.
//!
//! Does not know: modules, lines, reports. What the counts mean to a person is the matter of the crate `profile`. They are apart because this half is called
//! for each statement that a warp executes, and is compiled to be fast; the other half runs once after a launch, and is compiled to be built soon.
//!
//! To read it: `counter` is what engines say, `rules` what an access costs, `quick` the same without sets, `sums` structures of counts.

#![forbid(unsafe_code)]

mod counter;
mod quick;
pub mod rules;
mod sums;

pub use counter::{Counter, HOT, MOST_ADDRESSES, Site, Space, Traffic, Waits, Warps, hottest, ratio};
pub use quick::Words;
