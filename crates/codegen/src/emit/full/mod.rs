//! Full copies: all 32 lanes of a warp, straight code over eight packs, without masks.

pub(crate) mod atomics;
pub(crate) mod branch;
pub(crate) mod by_routine;
pub(crate) mod chain;
pub(crate) mod inst;
pub(crate) mod joint_bounds;
pub(crate) mod memory;
pub(crate) mod runs;
pub(crate) mod scattered;
pub(crate) mod sync;
pub(crate) mod term;
