//! What a function has of instructions that come late.

use handloom_check::module as checked;
use handloom_ir::simt::{BlockId, Reg};

use super::loads::HeldLoad;

/// The place where instructions that are under way come. All registers are B32.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) block: BlockId,
    /// Groups so far.
    pub(crate) groups: Reg,
    /// The last group that comes, as who goes there says.
    pub(crate) last: Reg,
    /// Where it goes on: an index of [`Late::goes_on`].
    pub(crate) next: Reg,
    /// The last instruction that was begun, counted from 1 in the order of the text; 0: none was.
    pub(crate) newest: Reg,
}

/// What of a function comes late.
#[derive(Default, Debug)]
pub(crate) struct Late {
    pub(crate) place: Option<Place>,
    /// Instructions as they are done when they come, in the order of the text. Beside each the number of its group (B32), from 1; 0: it is not under way.
    pub(crate) begun: Vec<(checked::Inst, Reg)>,
    /// The blocks that go on from the place.
    pub(crate) goes_on: Vec<BlockId>,
    /// Loads that are held back where the text is.
    pub(crate) loads: Vec<HeldLoad>,
    /// Loads so far, by which the seed tells them apart.
    pub(crate) n_loads: u32,
}
