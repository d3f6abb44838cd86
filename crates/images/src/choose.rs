//! Which member a device takes.

use crate::{Arch, Member, MemberKind};

/// A choice among members that are the same code for several architectures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Choice {
    /// This member has the newest PTX that runs on the device.
    Runs(usize),
    /// All PTX is for other devices, mostly newer ones: this member has the oldest.
    Other(usize),
}

impl Choice {
    /// The member.
    pub fn index(self) -> usize {
        match self {
            Choice::Runs(i) | Choice::Other(i) => i,
        }
    }
}

/// The member that a device of a capability (ten times major, plus minor) takes from one container: the newest PTX that runs on
/// it. Cubins count only where no member is PTX, and only those with PTX inside. Of equals the first.
pub fn choose(members: &[Member<'_>], capability: u32) -> Option<Choice> {
    let candidates = candidates(members);
    let runs = candidates.iter().filter(|(_, arch)| arch.runs_on(capability));
    let newest = runs.max_by_key(|(i, arch)| (*arch, std::cmp::Reverse(*i)));
    let oldest = || candidates.iter().min_by_key(|(i, arch)| (*arch, *i));
    newest.map(|(i, _)| Choice::Runs(*i)).or_else(|| oldest().map(|(i, _)| Choice::Other(*i)))
}

/// The members of one container that have PTX, with the architecture of each.
pub(crate) fn candidates(members: &[Member<'_>]) -> Vec<(usize, Arch)> {
    let arch = |m: &Member<'_>| m.arch.unwrap_or_default();
    let of = |kind| members.iter().enumerate().filter(move |(_, m)| m.kind == kind);
    let ptx: Vec<_> = of(MemberKind::Ptx).map(|(i, m)| (i, arch(m))).collect();
    if !ptx.is_empty() {
        return ptx;
    }
    let has_text = |i: usize, m: &Member<'_>| m.texts(i + 1).is_ok_and(|t| !t.is_empty());
    of(MemberKind::Cubin).filter(|(i, m)| has_text(*i, m)).map(|(i, m)| (i, arch(m))).collect()
}
