//! The tiers of compiled code.

/// What code is made for. When a lower one meets what it was not made for, a block starts over in a higher one; blocks of launches that take long begin in a higher
/// one of wide code.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Tier {
    /// What takes little time to make. Of Cranelift, all lanes of a warp stay together: there are no masked copies. Of wide code, no warps go side by side.
    #[default]
    Lean,
    /// Everything, resting on tests that programs without faults hardly ever fail.
    Quick,
    /// Everything, resting on nothing.
    Careful,
}

impl Tier {
    /// All of them, the lowest first.
    pub const ALL: [Tier; 3] = [Tier::Lean, Tier::Quick, Tier::Careful];

    /// Its word: `lean`, `quick` or `careful`.
    pub const fn name(self) -> &'static str {
        match self {
            Tier::Lean => "lean",
            Tier::Quick => "quick",
            Tier::Careful => "careful",
        }
    }
}
