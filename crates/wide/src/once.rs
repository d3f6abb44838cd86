//! Code that a function has once, and that is called from several places: what is known of it while the function is emitted.

use handloom_plan::access::AccessClass;

use crate::access::{Access, Limits};
use crate::asm::Label;

/// A function of one `.f32` value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Function {
    Power,
    Logarithm,
    Sine,
    Cosine,
    HyperbolicTangent,
}

/// A function, and whether it flushes.
pub(crate) type Rounded = (Function, bool);

/// A move of a block, whose instructions follow each other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Move {
    pub(crate) load: usize,
    pub(crate) store: usize,
    pub(crate) from: AccessClass,
    pub(crate) to: AccessClass,
}

/// Code that moves, with the first load and store that want it.
#[derive(Clone, Copy)]
pub(crate) struct Mover {
    pub(crate) label: Label,
    pub(crate) load: Access,
    pub(crate) store: Access,
}

/// A move that tests refused.
pub(crate) struct ColdMove {
    pub(crate) start: Label,
    pub(crate) back: Label,
    pub(crate) block: usize,
    pub(crate) of: Move,
    pub(crate) site: usize,
    pub(crate) in_part: bool,
}

/// Code that reads words of matrices, with the first load that wants it.
#[derive(Clone, Copy)]
pub(crate) struct Reader {
    pub(crate) label: Label,
    pub(crate) load: Access,
}

/// What tells the accesses of one [`Accessor`] from those of others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct AccessKind {
    pub(crate) is_store: bool,
    /// Addresses are offsets in the CTA's shared memory.
    pub(crate) is_shared: bool,
    /// Of the element.
    pub(crate) bits: u8,
    /// Addresses are of 32 bits.
    pub(crate) short: bool,
    pub(crate) tested: Tested,
}

/// What the addresses of an access are tested against.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tested {
    Not,
    /// The heap, or the allocation that the site hit last; `or_own`: or the thread's own local memory.
    Heap {
        within: bool,
        or_own: bool,
    },
    Shared,
    Own,
}

impl Tested {
    /// By limits; `within`: whether the heap is one of them, not an allocation.
    pub(crate) fn by(limits: Limits, within: bool, or_own: bool) -> Tested {
        match limits {
            Limits::Safe => Tested::Not,
            Limits::Heap(_) => Tested::Heap { within, or_own },
            Limits::Shared => Tested::Shared,
            Limits::Own => Tested::Own,
        }
    }
}

/// Code that does accesses of lanes anywhere, with the first one that wants it.
#[derive(Clone, Copy)]
pub(crate) struct Accessor {
    pub(crate) kind: AccessKind,
    pub(crate) label: Label,
    pub(crate) of: Access,
}

/// An access that such code does.
#[derive(Clone, Copy)]
pub(crate) struct Called {
    /// Its site, with the rows of its operands.
    pub(crate) site: usize,
    /// Where it goes on once it is done, its result in a row.
    pub(crate) back: Label,
}

/// Code that asks the table of granules for accesses of one size.
#[derive(Clone, Copy)]
pub(crate) struct Asker {
    pub(crate) of: Access,
    pub(crate) place: Label,
    pub(crate) lanes: Label,
    /// Somebody asks for lanes.
    pub(crate) by_lanes: bool,
}

/// A test that failed: what code after all blocks asks then.
pub(crate) struct Asked {
    pub(crate) start: Label,
    /// Where it goes on if the table knows better.
    pub(crate) passed: Label,
    /// Its label `cold` is where it goes otherwise.
    pub(crate) x: Access,
    pub(crate) site: usize,
    pub(crate) by_lanes: bool,
}

/// What a function asks of the table of granules.
#[derive(Default)]
pub(crate) struct Granules {
    pub(crate) askers: Vec<Asker>,
    pub(crate) asked: Vec<Asked>,
}
