//! How full copies do warp-level ops.

use handloom_ir::simt::{Inst, Op, Val};
use handloom_ir::types::{ShflMode, VoteMode};

/// How a full copy does a warp-level op.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WarpOpWay {
    /// Not at all: all lanes are there.
    Nothing,
    /// From the bits of a predicate.
    Vote(VoteMode),
    /// Every lane's source is known: lanes are put in another order.
    Shuffle {
        /// How the source lane is found.
        mode: ShflMode,
        /// The source lane, or the distance.
        lane: u32,
        /// The clamp and the segment mask.
        clamp: u32,
    },
    /// By the routine.
    Routine,
}

/// How a full copy does a warp-level op: inline where the member mask is known to name all lanes, and nobody is told.
pub fn warp_op_way(inst: &Inst, audited: bool) -> WarpOpWay {
    if audited {
        return WarpOpWay::Routine;
    }
    let constant = |v: &Val| match v {
        Val::Imm(x, ty) => Some((x & ty.mask()) as u32),
        Val::Reg(_) => None,
    };
    let constants: Vec<Option<u32>> = inst.src.iter().map(constant).collect();
    match (inst.op, &constants[..]) {
        (Op::BarWarp, [.., Some(u32::MAX)]) => WarpOpWay::Nothing,
        (Op::Vote(mode), [.., Some(u32::MAX)]) => WarpOpWay::Vote(mode),
        (Op::Shfl(mode), [_, Some(lane), Some(clamp), Some(u32::MAX)]) => {
            WarpOpWay::Shuffle { mode, lane: *lane, clamp: *clamp }
        }
        _ => WarpOpWay::Routine,
    }
}
