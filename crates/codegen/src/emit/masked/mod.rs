//! Masked copies: some lanes of a warp, in loops over the packs that have any; what is written is blended.

pub(crate) mod inst;
pub(crate) mod memory;
pub(crate) mod pack_loop;
pub(crate) mod term;
