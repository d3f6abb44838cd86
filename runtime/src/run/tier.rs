//! The tiers of compiled code.

/// What code is made for. When a lower one meets what it was not made for, a block starts over in the next.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Tier {
    /// All lanes of a warp stay together: there are no masked copies.
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

    /// The one that a block starts over in.
    pub(crate) fn next(self) -> Option<Tier> {
        Tier::ALL.get(self as usize + 1).copied()
    }
}
