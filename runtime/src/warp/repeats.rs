//! What a thread of a checked launch does in rounds that its audit counts: the steps are kept by those who do them, so that one more costs no look at all.

use handloom_audit::Count;
use handloom_ir::types::StateSpace;

/// An op of one lane that is a step of rounds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    /// The memory site of the code.
    pub(crate) site: usize,
    /// The lane, as a mask.
    pub(crate) mask: u32,
    /// The address of the warp's context.
    pub(crate) warp: usize,
    /// What it touches; none of a fence.
    pub(crate) touch: Option<Touch>,
}

/// An access that passed all checks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Touch {
    /// The address that the code names.
    pub(crate) addr: u64,
    /// Where that is.
    pub(crate) at: u64,
    pub(crate) space: StateSpace,
    /// What `View::age` said.
    pub(crate) view: u64,
    /// It wrote what was there.
    pub(crate) same: bool,
    /// It is a `cas` that found another value.
    pub(crate) failed: bool,
}

/// A step as it is kept: the number of its rounds, and the step that comes after it.
#[derive(Clone, Copy, Debug)]
struct Kept {
    rounds: u32,
    after: u32,
    step: Step,
}

/// The steps of a cta.
#[derive(Debug)]
pub(crate) struct Repeats {
    count: Count,
    /// By the number of the step in the round.
    kept: Vec<Option<Kept>>,
}

impl Repeats {
    /// Of a launch that begins.
    pub(crate) fn new(count: Count) -> Repeats {
        Repeats { count, kept: Vec::new() }
    }

    /// What the next step touches, if it is of this site by these lanes; `None` if that is not known.
    #[inline]
    pub(crate) fn next(&self, site: usize, mask: u32, warp: usize) -> Option<Option<Touch>> {
        let (rounds, next) = self.count.next()?;
        let kept = self.kept.get(next as usize)?.as_ref()?;
        let is_it = kept.rounds == rounds && (kept.step.site, kept.step.mask, kept.step.warp) == (site, mask, warp);
        is_it.then_some(kept.step.touch)
    }

    /// The next step was done.
    #[inline]
    pub(crate) fn pass(&self) {
        let Some((rounds, next)) = self.count.next() else { return };
        if let Some(Some(kept)) = self.kept.get(next as usize) {
            self.count.pass(rounds, kept.after);
        }
    }

    /// The step that came next at `before` was told, and is one of rounds.
    pub(crate) fn keep(&mut self, before: Option<(u32, u32)>, step: Step) {
        let (Some((rounds, number)), Some((_, after))) = (before, self.count.next()) else { return };
        let number = number as usize;
        if self.kept.len() <= number {
            self.kept.resize(number + 1, None);
        }
        self.kept[number] = Some(Kept { rounds, after, step });
    }

    /// The step that comes next.
    pub(crate) fn place(&self) -> Option<(u32, u32)> {
        self.count.next()
    }
}
