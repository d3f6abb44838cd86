//! What is known of the calls of routines while a function is emitted.

use handloom_diag::hash::FastMap;

use crate::asm::Label;

/// What a call keeps: vectors by bit, from `FIRST_VECTOR` on, and whether the masks of the block are needed after it.
pub(crate) type Kept = (u32, bool);

/// The calls of a function.
#[derive(Default)]
pub(crate) struct Calls {
    pub(crate) code: FastMap<Kept, Label>,
    /// The sets in the order in which they came up.
    pub(crate) order: Vec<Kept>,
    /// By block, if that was asked: what lives after each instruction.
    pub(crate) live: Vec<Vec<u32>>,
    /// Whether code is emitted that is rarely run: a call there may keep more than it has to.
    pub(crate) is_rare: bool,
    /// Vectors of all registers that live across blocks.
    pub(crate) across: Option<u32>,
}
