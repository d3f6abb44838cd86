//! `alloca`, `stacksave`, `stackrestore`: the end of a thread's local memory.
//!
//! Frames of calls grow up from the start of local memory, and what `alloca` returns grows down from its end. Where they
//! would meet, the stack is used up. A function gives back what it allocated when it returns: the lowering writes
//! that down as a pair of `Save` and `Restore`.
//!
//! # PTX ISA
//! Stack Manipulation Instructions.

use handloom_audit::init::Decides;
use handloom_ir::simt::{Inst, StackOp};
use handloom_ir::trap::{Trap, TrapKind};

use crate::cta::{Cta, Group};
use crate::numbers::number;

/// The room between the frames of a thread and the end of its local memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Room {
    /// End of the frame of the function that runs.
    pub low: u64,
    /// End of the thread's local memory.
    pub end: u64,
}

/// Does one op for one thread, of which `used` bytes below the end are allocated. Returns the result, or the operand
/// where there is none.
///
/// # Errors
/// The sentence of a `stack` trap.
pub fn step(op: StackOp, room: Room, used: &mut u64, operand: u64) -> Result<u64, String> {
    let pointer = room.end - *used;
    let moved = match op {
        StackOp::Save => pointer,
        StackOp::Restore if (room.low..=room.end).contains(&operand) => operand,
        StackOp::Restore => return Err(format!("`stackrestore` of {operand:#x}, which `stacksave` cannot have given")),
        StackOp::Alloca { align } => {
            let at = pointer.checked_sub(operand).map(|at| at & !(u64::from(align) - 1));
            match at.filter(|at| *at >= room.low) {
                Some(at) => at,
                None => return Err(format!("`alloca` of {operand} bytes, which local memory has no room for")),
            }
        }
    };
    *used = room.end - moved;
    Ok(moved)
}

impl Cta<'_> {
    pub(crate) fn stack(&mut self, inst: &Inst, op: StackOp, group: Group) -> Result<(), Box<Trap>> {
        let mut refused = Vec::new();
        for t in group.threads() {
            let operand = inst.src.first().map_or(0, |v| self.get(t, *v));
            let end = self.env.local_base(number(t)).saturating_add(self.env.local_size);
            let room = Room { low: self.threads[t].frame().end, end };
            match step(op, room, &mut self.threads[t].stack_used, operand) {
                Ok(value) => {
                    if let Some(v) = inst.src.first() {
                        self.decides(Decides::Operand, inst.span, t, *v);
                    }
                    if let StackOp::Alloca { .. } = op {
                        self.with_init(|init| init.renew(value, operand));
                    }
                    inst.dst.iter().for_each(|d| self.set(t, *d, value));
                }
                Err(why) => refused.push((t, why)),
            }
        }
        let Some((_, why)) = refused.first() else { return Ok(()) };
        let mut trap = self.trap_of(TrapKind::Stack, inst.span, refused.iter().map(|(t, _)| *t));
        trap.detail.clone_from(why);
        Err(trap)
    }
}
