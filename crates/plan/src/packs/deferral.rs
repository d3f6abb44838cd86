//! What a masked copy does with an instruction that is not done by scalars.

use handloom_ir::simt::{Builtin, Op};
use handloom_ir::types::{Order, Scope, StateSpace};

/// When and how an instruction of a masked copy is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deferral {
    /// It waits, with others, for a loop over packs; a value op without vector code for the routine.
    Waits,
    /// A load. One of neighbouring words waits; another is done at once, after what waits.
    Load,
    /// At once, after what waits: an access, or an op that the routine does as one.
    Memory,
    /// At once, after what waits: a built-in function.
    Builtin(Builtin),
    /// At once, after what waits: a fence.
    Fence(Order, Scope),
    /// At once, after what waits, and after all values are in their homes: a warp-level op.
    Sync,
    /// Not at all.
    Nothing,
    /// Always by scalars.
    Scalar,
}

/// What a masked copy does with an op that is not done by scalars.
pub fn deferral(op: Op) -> Deferral {
    match op {
        Op::Cvta { space: StateSpace::SharedCluster, .. }
        | Op::Stack(_)
        | Op::Image(_)
        | Op::Tensor(_)
        | Op::Transfer(_) => Deferral::Memory,
        Op::Pure(_) | Op::Sreg(_) | Op::Cvta { .. } => Deferral::Waits,
        Op::Load { .. } => Deferral::Load,
        Op::Store { .. } | Op::Atom { .. } | Op::Red { .. } | Op::IsSpace(_) => Deferral::Memory,
        Op::Builtin(which) => Deferral::Builtin(which),
        Op::Fence { order, scope } => Deferral::Fence(order, scope),
        Op::Shfl(_) | Op::Vote(_) | Op::Match { .. } | Op::Redux { .. } | Op::Matrix(_) | Op::Elect | Op::BarWarp => {
            Deferral::Sync
        }
        Op::Nanosleep | Op::Mark | Op::Count(_) => Deferral::Nothing,
        Op::Activemask
        | Op::SymAddr(_)
        | Op::SharedAddr(_)
        | Op::ParamAddr { .. }
        | Op::SlotAddr(_)
        | Op::ArgAddr { .. } => Deferral::Scalar,
    }
}
