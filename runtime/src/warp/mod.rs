//! What a warp and its cta are between two calls of code: contexts, what the host keeps beside them, and memory as a cta sees it.
//!
//! Both those who decide what runs (`sched`) and the routines that code calls (`rows`) work on it.

pub(crate) mod context;
pub(crate) mod counted;
pub(crate) mod host;
mod images;
mod memory;
pub(crate) mod repeats;
pub(crate) mod sums;
pub(crate) mod told;

pub(crate) use memory::KernelMemory;
