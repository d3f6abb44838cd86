//! Code that a function has once, and that is called from several places: what is known of it while the function is emitted.

use handloom_plan::access::AccessClass;

use crate::access::Access;
use crate::asm::Label;

/// A function of one `.f32` value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Function {
    Power,
    Logarithm,
    Sine,
    Cosine,
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
